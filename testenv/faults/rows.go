package main

// row is a row of the catalogue of faults.
type row struct {
	number  int
	section string // the heading that begins with this row
	fault   string
	reason  string // what of the row cannot be made to happen here, and why
}

var rows = []row{
	{number: 1, section: "Connector process", fault: "killed between the slot's creation and the snapshot"},
	{number: 2, fault: "killed in the midst of the snapshot"},
	{number: 3, fault: "killed after the last row of the snapshot, before its end is stored"},
	{number: 4, fault: "killed after sending, before the broker's answer"},
	{number: 5, fault: "killed after the broker's answer, before the position is stored"},
	{number: 6, fault: "killed after the position is stored, before the slot is told"},
	{number: 7, fault: "killed after the slot was told"},
	{number: 8, fault: "killed within a source transaction of many batches"},
	{number: 9, fault: "killed while it registers a schema"},
	{number: 10, fault: "asked to stop under load; asked twice; killed when its time is up"},
	{number: 11, fault: "two instances with one name and slot"},
	{number: 12, fault: "frozen, replaced, and woken up again"},
	{number: 13, fault: "a panic in the connector"},
	{number: 14, fault: "little memory and a huge transaction"},
	{number: 15, fault: "the log cannot be written"},
	{number: 16, fault: "too few file descriptors"},
	{number: 17, fault: "the wall clock is wrong, or leaps"},

	{number: 18, section: "Kafka", fault: "a broker that leads partitions is killed"},
	{number: 19, fault: "all brokers are away for long"},
	{number: 20, fault: "partitions get other leaders under load"},
	{number: 21, fault: "too few replicas in sync"},
	{number: 22, fault: "the answer to a produce request is lost"},
	{number: 23, fault: "the broker is slow, or answers with a time-out"},
	{number: 24, fault: "the broker lost data, or forgot the producer"},
	{number: 25, fault: "a record is larger than the topic takes"},
	{number: 26, fault: "a topic is missing"},
	{number: 27, fault: "a topic is deleted while the connector runs"},
	{number: 28, fault: "a topic gets more partitions while the connector runs"},
	{number: 29, fault: "a right is taken away"},
	{number: 30, fault: "passwords, tokens and certificates change"},
	{number: 31, fault: "the offsets topic is not compacted"},
	{number: 32, fault: "the offsets topic was deleted or emptied, and the slot is there"},
	{number: 33, fault: "the offsets topic holds foreign or unreadable records"},
	{number: 34, fault: "the answer to the end of a transaction is lost"},
	{number: 35, fault: "the transaction coordinator moves or is loading"},
	{number: 36, fault: "a transaction times out"},
	{number: 37, fault: "the transactional id expired"},
	{number: 38, fault: "a foreign transaction is open on the offsets topic at the start"},
	{
		number: 39, fault: "brokers of other versions, or without transactions",
		reason: "Redpanda itself: its server is not to be had here (no container runtime, no package); " +
			"a broker capped to versions before KIP-890 stands for it",
	},

	{number: 40, section: "Schema registry", fault: "the registry is down"},
	{number: 41, fault: "the registry answers with errors, slowly, with nonsense, or redirects"},
	{number: 42, fault: "a change of the table that the registry refuses"},
	{number: 43, fault: "a subject is deleted, or its mode changed"},
	{number: 44, fault: "the registry was restored and has other ids"},

	{number: 45, section: "PostgreSQL", fault: "the server restarts, or crashes"},
	{number: 46, fault: "the walsender is terminated in the midst of a transaction"},
	{number: 47, fault: "the network stalls, half-closes, resets, or comes in single bytes"},
	{number: 48, fault: "the broker takes nothing for longer than wal_sender_timeout"},
	{number: 49, fault: "fail-over to a standby that has the slot"},
	{number: 50, fault: "fail-over to a standby without the slot, or behind the position"},
	{number: 51, fault: "the server invalidated the slot"},
	{number: 52, fault: "the slot was made again, advanced, or read by another consumer"},
	{number: 53, fault: "the stored position is older than the slot"},
	{number: 54, fault: "the server was restored to an earlier point, or is another cluster"},
	{number: 55, fault: "the publication was changed or dropped"},
	{number: 56, fault: "DDL in the midst of the stream"},
	{number: 57, fault: "values that are hard to carry"},
	{number: 58, fault: "huge transactions, subtransactions, savepoints that are rolled back"},
	{number: 59, fault: "prepared transactions, over a restart"},
	{number: 60, fault: "equal LSNs, interleaved and empty transactions, idle slots beside busy databases"},
	{number: 61, fault: "the server's disk, walsenders, slots or connections are used up"},
	{number: 62, fault: "transactions that commit while slot and snapshot are made"},
}
