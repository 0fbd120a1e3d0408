package offsets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// recordFormat is the format of the records that this version writes. It is not written while it
// is 1: the value is then exactly the contract's map. A record with a greater one is refused.
const recordFormat = 1

// Record is the value of the connector's key in the offsets topic: where to start, and everything
// that says whether starting there is right. It is written whole each time.
type Record struct {
	// LSN is the position: the end LSN of the last finished transaction, or an idle position.
	// 0 means that there is none yet (an intent before the first position), never "the beginning".
	LSN LSN
	// History counts how often LSNs started anew by a person's decision.
	History int64

	// LSNCommit, EventIndex and RowLSN are exactly-once only: in the transaction with that final
	// LSN, so many row messages are done, the last of them at RowLSN. LSNCommit 0: no cut.
	LSNCommit  LSN
	EventIndex int64
	RowLSN     LSN
	// MessageLSN is exactly-once only: logical messages outside transactions are done up to it.
	MessageLSN LSN

	// TxID is the last transaction's xid, TsUsec its commit time; both for people.
	TxID   uint32
	TsUsec int64

	// Publication is the fingerprint at the position; nil is unknown.
	Publication *Fingerprint
	// SystemID and Timeline name the cluster whose LSNs these are; "" and 0 are unknown.
	SystemID string
	Timeline uint32
	Slot     string

	// Snapshot is the state of each table; nil when there never was a snapshot.
	Snapshot *SnapshotState
	// Intent is what is about to be created or repaired; nil when nothing is.
	Intent *Intent
	// Epoch is raised by each process that takes the connector over. Information only.
	Epoch int64

	// Migrated names the program that wrote the record, when it was not Tidemark; never written.
	Migrated string
	// Extra holds fields that this version does not know; they are written again as they came.
	Extra map[string]json.RawMessage
}

// HasPosition reports whether the record holds a position to start from.
func (r *Record) HasPosition() bool { return r != nil && r.LSN != 0 }

// IntentKind says what is about to happen.
type IntentKind string

// The kinds.
const (
	// IntentCreate: publication and slot are about to be made, then the snapshot.
	IntentCreate IntentKind = "create"
	// IntentPublication: we are about to change the publication in a running connector.
	IntentPublication IntentKind = "publication"
	// IntentRepair: a gap is being repaired by a new snapshot.
	IntentRepair IntentKind = "repair"
)

// Intent is stored before the act that it names, so that a crash in between is recognised.
type Intent struct {
	Kind     IntentKind `json:"kind"`
	Slot     string     `json:"slot,omitempty"`
	SystemID string     `json:"system_id,omitempty"`
	TsUsec   int64      `json:"ts_usec,omitempty"`
	// XID is the transaction of ours that changes the publication (IntentPublication): a row whose
	// xmin it is was changed by us.
	XID uint32 `json:"xid,omitempty"`
	// Tables are the OIDs whose rows in the publication we change (IntentPublication) or that are
	// repaired (IntentRepair; empty is all).
	Tables []uint32 `json:"tables,omitempty"`
	// From, To, Code and Reason are the gap that is being repaired.
	From   LSN        `json:"from,omitempty"`
	To     LSN        `json:"to,omitempty"`
	Code   fault.Code `json:"code,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// recordJSON is the record on the wire, in the order in which it is written.
type recordJSON struct {
	Format      int            `json:"format,omitempty"`
	LSN         *uint64        `json:"lsn,omitempty"`
	History     int64          `json:"history"`
	LSNCommit   uint64         `json:"lsn_commit,omitempty"`
	EventIndex  int64          `json:"event_index,omitempty"`
	RowLSN      uint64         `json:"row_lsn,omitempty"`
	MessageLSN  uint64         `json:"message_lsn,omitempty"`
	TxID        uint32         `json:"txId,omitempty"`
	Publication *Fingerprint   `json:"publication,omitempty"`
	TsUsec      int64          `json:"ts_usec,omitempty"`
	SystemID    string         `json:"system_id,omitempty"`
	Timeline    uint32         `json:"timeline,omitempty"`
	Slot        string         `json:"slot,omitempty"`
	Snapshot    *SnapshotState `json:"snapshot,omitempty"`
	Intent      *Intent        `json:"intent,omitempty"`
	Epoch       int64          `json:"epoch"`
}

// recordFields are the names that recordJSON takes; everything else is Extra.
var recordFields = []string{
	"format", "lsn", "history", "lsn_commit", "event_index", "row_lsn", "message_lsn", "txId",
	"publication", "ts_usec", "system_id", "timeline", "slot", "snapshot", "intent", "epoch",
}

// Marshal returns the record's JSON: the known fields in their order, then the unknown ones.
func (r *Record) Marshal() ([]byte, error) {
	if uint64(r.LSN) > math.MaxInt64 || uint64(r.LSNCommit) > math.MaxInt64 {
		return nil, fault.New(fault.Internal, "a position above 63 bits cannot be stored")
	}
	j := recordJSON{
		History: r.History, LSNCommit: uint64(r.LSNCommit), EventIndex: r.EventIndex,
		RowLSN: uint64(r.RowLSN), MessageLSN: uint64(r.MessageLSN), TxID: r.TxID,
		Publication: r.Publication, TsUsec: r.TsUsec,
		SystemID: r.SystemID, Timeline: r.Timeline, Slot: r.Slot, Snapshot: r.Snapshot,
		Intent: r.Intent, Epoch: r.Epoch,
	}
	if r.LSN != 0 {
		lsn := uint64(r.LSN)
		j.LSN = &lsn
	}
	b, err := marshalPlain(j)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "the offsets record cannot be written", err)
	}
	if len(r.Extra) == 0 {
		return b, nil
	}
	out := bytes.NewBuffer(b[:len(b)-1])
	for _, name := range slices.Sorted(maps.Keys(r.Extra)) {
		key, err := marshalPlain(name)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, "the offsets record cannot be written", err)
		}
		out.WriteByte(',')
		out.Write(key)
		out.WriteByte(':')
		out.Write(r.Extra[name])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// marshalPlain is json.Marshal without its escapes for HTML, which Kafka Connect does not write
// either: a key with an "&" would be another key.
func marshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalRecord reads a value of the offsets topic. A nil record without an error is a reset: an
// empty value or JSON null. Anything that is not understood in full is offsets_unreadable: going
// on from a guess could skip changes.
func UnmarshalRecord(value []byte) (*Record, error) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || bytes.Equal(value, []byte("null")) {
		return nil, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(value, &raw); err != nil {
		return nil, unreadable("it is not a JSON map", err)
	}
	if _, ours := raw["history"]; !ours && raw["format"] == nil {
		return unmarshalDebezium(raw)
	}
	var head struct {
		Format *float64 `json:"format"`
	}
	if err := json.Unmarshal(value, &head); err != nil {
		return nil, unreadable("its format is not a number", err)
	}
	if head.Format != nil && *head.Format != recordFormat {
		return nil, unreadable(fmt.Sprintf("its format is %v and this version reads %d: "+
			"a newer Tidemark wrote it", *head.Format, recordFormat), nil)
	}
	var j recordJSON
	if err := json.Unmarshal(value, &j); err != nil {
		return nil, unreadable("a field has another type", err)
	}
	r := &Record{
		History: j.History, LSNCommit: LSN(j.LSNCommit), EventIndex: j.EventIndex,
		RowLSN: LSN(j.RowLSN), MessageLSN: LSN(j.MessageLSN), TxID: j.TxID,
		Publication: j.Publication, TsUsec: j.TsUsec,
		SystemID: j.SystemID, Timeline: j.Timeline, Slot: j.Slot, Snapshot: j.Snapshot,
		Intent: j.Intent, Epoch: j.Epoch,
	}
	if j.LSN != nil {
		r.LSN = LSN(*j.LSN)
	}
	for _, name := range recordFields {
		delete(raw, name)
	}
	if len(raw) > 0 {
		r.Extra = raw
	}
	return r, r.check()
}

// check refuses what no version of Tidemark writes.
func (r *Record) check() error {
	switch {
	case r.LSN == 0 && r.Intent == nil:
		return unreadable("it has neither a position nor an intent", nil)
	case r.History < 0:
		return unreadable("its history is negative", nil)
	case r.LSN != 0 && r.SystemID == "":
		return unreadable("it has a position without a system_id", nil)
	case r.LSNCommit != 0 && r.EventIndex <= 0, r.LSNCommit == 0 && r.EventIndex != 0:
		return unreadable("lsn_commit and event_index do not go together", nil)
	case r.LSNCommit != 0 && r.LSNCommit < r.LSN:
		return unreadable("its transaction (lsn_commit) lies before its position", nil)
	}
	if r.Snapshot != nil {
		return r.Snapshot.check()
	}
	return nil
}

// unmarshalDebezium reads a record of Debezium's PostgreSQL connector, whose key has the same form.
// Its lsn is a row's, which is no position. Its lsn_commit is the last commit in front of that row:
// everything before it was handed on, and at worst a start there has one transaction sent again.
// The cluster is unknown (system_id empty), so the start-up matrix cannot tell another cluster
// from this one, only a position outside of it.
func unmarshalDebezium(raw map[string]json.RawMessage) (*Record, error) {
	if raw["lsn_proc"] == nil && raw["lsn"] == nil {
		return nil, unreadable("it is neither Tidemark's nor Debezium's", nil)
	}
	if snapshot := string(raw["snapshot"]); snapshot != "" && snapshot != "null" &&
		snapshot != "false" && string(raw["snapshot_completed"]) != "true" {
		return nil, unreadable("it is Debezium's, in the middle of its snapshot", nil)
	}
	var d struct {
		LSNCommit uint64 `json:"lsn_commit"`
		TxID      int64  `json:"txId"`
		TsUsec    int64  `json:"ts_usec"`
	}
	b, err := json.Marshal(raw)
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		return nil, unreadable("it looks like Debezium's, but a field has another type", err)
	}
	if d.LSNCommit == 0 {
		return nil, unreadable("it is Debezium's and has no lsn_commit: its lsn is a row's, "+
			"from which nothing can start", nil)
	}
	return &Record{
		LSN: LSN(d.LSNCommit), TxID: uint32(d.TxID), TsUsec: d.TsUsec, Migrated: "debezium",
	}, nil
}

func unreadable(why string, err error) *fault.Error {
	f := fault.Wrap(fault.OffsetsUnreadable, "the connector's offsets record cannot be read: "+why,
		err)
	f.Fix = "show it with tidemark offsets show; when it must go, tidemark offsets reset"
	return f
}
