package offsets

import (
	"time"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// matrixWithout are the rows without a slot, without O, or with a lost slot.
var matrixWithout = []matrixRow{
	{
		name:   "no slot, no O: fresh start",
		change: func(in *StartInput) { in.Slot, in.Stored, in.Publication = nil, nil, nil },
		action: FreshStart,
	},
	{
		name:   "no slot, only our intent: fresh start",
		change: func(in *StartInput) { in.Slot = nil; intentCreate(in) },
		action: FreshStart,
	},
	{
		name: "no slot, our intent and published snapshot rows: gap",
		change: func(in *StartInput) {
			in.Slot = nil
			intentCreate(in)
			in.Stored.Snapshot = &SnapshotState{
				Point: 150, Attempts: []SnapshotAttempt{{ID: 1, Position: 150}},
			}
		},
		code: fault.SlotMissing, gap: true, from: 150, to: 1000,
		says: []string{"unfinished first snapshot"},
	},
	{
		name:   "slot, no O, our own intent: half-made",
		change: intentCreate,
		action: HalfMade, start: 200,
	},
	{
		name: "slot, no O, our own intent, the publication changed since",
		change: func(in *StartInput) {
			intentCreate(in)
			in.Stored.Publication = shopPublication()
			in.Publication.OID++
		},
		code: fault.PublicationChanged, gap: true, from: 200, to: 1000,
	},
	{
		name:   "slot, no O, our own intent, no publication",
		change: func(in *StartInput) { intentCreate(in); in.Publication = nil },
		action: Refuse, code: fault.PublicationMissing,
		says: []string{"pg_drop_replication_slot('tidemark_shop')"},
	},
	{
		name:   "slot, no O, an intent for another slot",
		change: func(in *StartInput) { intentCreate(in); in.Stored.Intent.Slot = "other" },
		action: Refuse, code: fault.SlotWithoutOffset,
	},
	{
		name:   "slot, no O, an intent on another cluster",
		change: func(in *StartInput) { intentCreate(in); in.Stored.Intent.SystemID = "8" },
		action: Refuse, code: fault.ClusterChanged,
	},
	{
		name:   "slot, no O, no intent: refused",
		change: func(in *StartInput) { in.Stored = nil },
		action: Refuse, code: fault.SlotWithoutOffset,
		says: []string{"0/C8", "slot.adopt: true", "pg_drop_replication_slot"},
	},
	{
		name:   "slot, no O, no intent, slot.adopt",
		change: func(in *StartInput) { in.Stored = nil; in.Adopt = true },
		action: Adopt, start: 200,
	},
	{
		name: "slot, no O, slot.adopt, no publication",
		change: func(in *StartInput) {
			in.Stored, in.Publication, in.Adopt = nil, nil, true
		},
		action: Refuse, code: fault.PublicationMissing,
	},
	{
		name:   "slot whose creation did not finish",
		change: func(in *StartInput) { intentCreate(in); in.Slot.ConfirmedFlush = 0 },
		action: Refuse, code: fault.SlotLost,
	},
	{
		name:   "no slot, O",
		change: func(in *StartInput) { in.Slot = nil },
		code:   fault.SlotMissing, gap: true, from: 300, to: 1000,
		says: []string{"0/12C", "at least 0/3E8", "700 bytes", "offsets show"},
	},
	{
		name:   "no slot, O, a new slot was made",
		change: func(in *StartInput) { in.Slot, in.NewPoint = nil, 1100 },
		code:   fault.SlotMissing, gap: true, from: 300, to: 1100,
		says: []string{"up to 0/44C", "800 bytes"},
	},
	{
		name: "wal_status lost",
		change: func(in *StartInput) {
			in.Slot.WALStatus, in.Slot.RestartLSN = "lost", 0
		},
		code: fault.SlotLost, gap: true, from: 300, to: 1000,
		says: []string{"wal_status lost", "max_slot_wal_keep_size", "700 bytes"},
	},
	{
		name:   "invalidation_reason wal_removed",
		change: func(in *StartInput) { in.Slot.InvalidationReason = "wal_removed" },
		code:   fault.SlotLost, gap: true, from: 300, to: 1000,
		says: []string{"wal_removed", "max_slot_wal_keep_size"},
	},
	{
		name:   "invalidation_reason idle_timeout",
		change: func(in *StartInput) { in.Slot.InvalidationReason = "idle_timeout" },
		code:   fault.SlotLost, gap: true, from: 300, to: 1000,
		says: []string{"idle_timeout", "idle_replication_slot_timeout"},
	},
	{
		name: "invalidation_reason rows_removed",
		change: func(in *StartInput) {
			in.Slot.InvalidationReason, in.Slot.Conflicting = "rows_removed", true
		},
		code: fault.SlotLost, gap: true, from: 300, to: 1000,
		says: []string{"rows_removed", "hot_standby_feedback"},
	},
	{
		name:   "invalidation_reason wal_level_insufficient",
		change: func(in *StartInput) { in.Slot.InvalidationReason = "wal_level_insufficient" },
		code:   fault.SlotLost, gap: true, from: 300, to: 1000,
		says: []string{"wal_level_insufficient", "wal_level = logical"},
	},
	{
		name:   "an invalidation_reason of a later version",
		change: func(in *StartInput) { in.Slot.InvalidationReason = "bad_weather" },
		code:   fault.SlotLost, gap: true, from: 300, to: 1000, says: []string{"bad_weather"},
	},
	{
		name:   "conflicting, as 16 says it",
		change: func(in *StartInput) { in.Slot.Conflicting = true },
		code:   fault.SlotLost, gap: true, from: 300, to: 1000,
		says: []string{"conflicting", "hot_standby_feedback"},
	},
	{
		name: "a half-made start's slot lost",
		change: func(in *StartInput) {
			intentCreate(in)
			in.Slot.WALStatus = "lost"
		},
		code: fault.SlotLost, gap: true, from: 200, to: 1000,
	},
}

// matrixWithPosition are the rows with slot and O, and those for whose slot it is.
var matrixWithPosition = []matrixRow{
	{
		name:   "C <= O <= W: resume at O",
		change: func(*StartInput) {},
		action: Resume, start: 300,
	},
	{
		name:   "C = O = W: resume at O",
		change: func(in *StartInput) { in.Slot.ConfirmedFlush, in.Server.WALEnd = 300, 300 },
		action: Resume, start: 300,
	},
	{
		name:   "unreserved is not lost yet",
		change: func(in *StartInput) { in.Slot.WALStatus = "unreserved" },
		action: Resume, start: 300,
	},
	{
		name:   "O < C",
		change: func(in *StartInput) { in.Slot.ConfirmedFlush = 301 },
		code:   fault.SlotAhead, gap: true, from: 300, to: 301,
		says: []string{"0/12C", "0/12D", "1 bytes", "advanced or recreated"},
	},
	{
		name:   "O > W: history rewound",
		change: func(in *StartInput) { in.Server.WALEnd = 299 },
		action: Refuse, code: fault.HistoryRewound,
		says: []string{"0/12B", "0/12C", "1 bytes", "--new-history"},
	},
	{
		name:   "O > W and no slot: history rewound all the same",
		change: func(in *StartInput) { in.Server.WALEnd = 299; in.Slot = nil },
		action: Refuse, code: fault.HistoryRewound,
	},
	{
		name:   "P <= O for a new slot",
		change: func(in *StartInput) { in.Slot, in.NewPoint = nil, 300 },
		action: Refuse, code: fault.HistoryRewound, says: []string{"consistent point 0/12C"},
	},
	{
		name: "an older timeline",
		change: func(in *StartInput) {
			in.Stored.Timeline = 2
		},
		action: Refuse, code: fault.HistoryRewound, says: []string{"timeline 1", "timeline 2"},
	},
	{
		name:   "other system identifier",
		change: func(in *StartInput) { in.Server.SystemID = "8" },
		action: Refuse, code: fault.ClusterChanged, says: []string{"found system identifier 8"},
	},
	{
		name:   "other system identifier and no slot: not a fresh start",
		change: func(in *StartInput) { in.Server.SystemID = "8"; in.Slot = nil },
		action: Refuse, code: fault.ClusterChanged,
	},
	{
		name: "newer timeline, the slot survived, O before the switch",
		change: func(in *StartInput) {
			in.Server.Timeline, in.Timelines = 2, []TimelineSwitch{{1, 300}}
		},
		action: Resume, start: 300,
	},
	{
		name: "newer timeline, two promotions later",
		change: func(in *StartInput) {
			in.Server.Timeline, in.Timelines = 3, []TimelineSwitch{{1, 400}, {2, 500}}
		},
		action: Resume, start: 300,
	},
	{
		name: "newer timeline, O after the switch",
		change: func(in *StartInput) {
			in.Server.Timeline, in.Timelines = 2, []TimelineSwitch{{1, 299}}
		},
		action: Refuse, code: fault.TimelineDiverged,
		says: []string{"0/12B", "1 bytes", "--new-history"},
	},
	{
		name: "newer timeline that never was on the stored one",
		change: func(in *StartInput) {
			in.Stored.Timeline, in.Server.Timeline = 2, 3
			in.Timelines = []TimelineSwitch{{1, 400}}
		},
		action: Refuse, code: fault.TimelineDiverged,
	},
	{
		name: "newer timeline, the slot did not survive",
		change: func(in *StartInput) {
			in.Server.Timeline, in.Timelines, in.Slot = 2, []TimelineSwitch{{1, 400}}, nil
		},
		code: fault.SlotMissing, gap: true, from: 300, to: 1000,
	},
	{
		name: "newer timeline, C after O",
		change: func(in *StartInput) {
			in.Server.Timeline, in.Timelines = 2, []TimelineSwitch{{1, 400}}
			in.Slot.ConfirmedFlush = 310
		},
		code: fault.SlotAhead, gap: true, from: 300, to: 310,
	},
	{
		name:   "publication dropped",
		change: func(in *StartInput) { in.Publication = nil },
		code:   fault.PublicationChanged, gap: true, from: 300, to: 1000,
		says: []string{"publication_gone", "--accept-publication"},
	},
	{
		name:   "publication dropped, nothing stored of it",
		change: func(in *StartInput) { in.Publication, in.Stored.Publication = nil, nil },
		code:   fault.PublicationChanged, gap: true, from: 300, to: 1000,
	},
	{
		name:   "a captured table was taken out and put back",
		change: func(in *StartInput) { in.Publication.Tables[1].OID = 999 },
		code:   fault.PublicationChanged, gap: true, from: 300, to: 1000,
		says: []string{"public.b", "row 602 xmin 90", "row 999 xmin 90"},
	},
	{
		name: "a table that is not captured was taken out and put back",
		change: func(in *StartInput) {
			in.Publication.Tables[1].OID = 999
			in.Captured = func(relid uint32, _ string) bool { return relid != 12 }
		},
		action: Resume, start: 300,
	},
	{
		name: "the publication was changed by our own act",
		change: func(in *StartInput) {
			in.Publication.Tables[0].OID, in.Publication.Tables[0].XMin = 999, 99
			in.Stored.Intent = own
		},
		action: Resume, start: 300,
	},
	{
		name:   "slot active for another PID: wait",
		change: func(in *StartInput) { in.Slot.Active, in.Slot.ActivePID = true, 4711 },
		action: Wait,
	},
	{
		name: "slot active for another PID: wait before anything else is judged",
		change: func(in *StartInput) {
			in.Slot.Active, in.Slot.ActivePID, in.Slot.ConfirmedFlush = true, 4711, 900
		},
		action: Wait,
	},
	{
		name: "slot active for another PID after the wait",
		change: func(in *StartInput) {
			in.Slot.Active, in.Slot.ActivePID, in.Waited = true, 4711, 90*time.Second
			in.ActiveSession = &SessionInfo{
				PID: 4711, ClientAddr: "10.0.0.9", ApplicationName: "tidemark shop i0", Own: true,
				BackendStart: time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC),
			}
		},
		action: Refuse, code: fault.SlotInUse,
		says: []string{
			"PID 4711", "10.0.0.9", `"tidemark shop i0"`, "2026-11-29T23:00:00Z",
			"an earlier session of this connector", "pg_terminate_backend(4711)", "1m30s",
		},
	},
	{
		name: "slot active for ourselves: the second look",
		change: func(in *StartInput) {
			in.Slot.Active, in.Slot.ActivePID, in.SelfPID = true, 4711, 4711
		},
		action: Resume, start: 300,
	},
	{
		name: "slot active for another at the second look",
		change: func(in *StartInput) {
			in.Slot.Active, in.Slot.ActivePID, in.SelfPID = true, 4711, 4712
		},
		action: Wait,
	},
	{
		name:   "wrong plugin",
		change: func(in *StartInput) { in.Slot.Plugin = "wal2json" },
		action: Refuse, code: fault.SlotForeign,
		says: []string{"wal2json", "SELECT pg_drop_replication_slot('tidemark_shop')"},
	},
	{
		name:   "wrong database",
		change: func(in *StartInput) { in.Slot.Database = "other" },
		action: Refuse, code: fault.SlotForeign, says: []string{"database other"},
	},
	{
		name: "physical slot, though it is active",
		change: func(in *StartInput) {
			in.Slot.Type, in.Slot.Plugin, in.Slot.Database, in.Slot.Active = "physical", "", "", true
		},
		action: Refuse, code: fault.SlotForeign, says: []string{"physical"},
	},
	{
		name:   "another session's temporary slot",
		change: func(in *StartInput) { in.Slot.Temporary = true },
		action: Refuse, code: fault.SlotForeign, says: []string{"temporary"},
	},
	{
		name:   "synchronized copy on a standby",
		change: func(in *StartInput) { in.Slot.Synced = true },
		action: Refuse, code: fault.SlotForeign, says: []string{"promotion"},
	},
	{
		name: "a repair that did not finish, with its new slot",
		change: func(in *StartInput) {
			in.Slot.ConfirmedFlush = 900
			in.Stored.Intent = &Intent{
				Kind: IntentRepair, Code: fault.SlotLost, From: 300, To: 900, Reason: "wal_removed",
			}
		},
		code: fault.SlotLost, gap: true, from: 300, to: 900,
		says: []string{"wal_removed", "begun and not finished"},
	},
	{
		name: "Debezium's position: the cluster is not known, the positions are held to",
		change: func(in *StartInput) {
			in.Stored = &Record{LSN: 300, Migrated: "debezium"}
		},
		action: Resume, start: 300,
	},
	{
		name: "Debezium's position beyond the server's WAL",
		change: func(in *StartInput) {
			in.Stored = &Record{LSN: 3000, Migrated: "debezium"}
		},
		action: Refuse, code: fault.HistoryRewound,
	},
}
