package decode

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-cdc/tidemark/offsets"
	"github.com/tidemark-cdc/tidemark/schema"
)

// decode decodes frames that must be good and returns the event of the last.
func decode(t *testing.T, s *Session, frames ...[]byte) *Event {
	t.Helper()
	var e *Event
	for i, f := range frames {
		var err error
		if e, err = s.Decode(offsets.LSN(0x100+i), f); err != nil {
			t.Fatalf("frame %d (%c): %v", i, f[0], err)
		}
	}
	return e
}

func TestBeginOpensATransactionAndCommitClosesIt(t *testing.T) {
	s := NewSession()
	// 2024-02-29 12:00:00.000001 UTC is 762523200000001 us after 2000-01-01, 1709208000000001 after
	// 1970.
	begin := decode(t, s, beginFrame(0x1749D88, 762_523_200_000_001, 747))
	if begin.Kind != KindBegin || begin.LSN != 0x100 || begin.Index != 0 {
		t.Fatalf("begin: %+v", begin)
	}
	want := Tx{FinalLSN: 0x1749D88, CommitMicros: 1_709_208_000_000_001, XID: 747}
	if *begin.Tx != want {
		t.Fatalf("transaction %+v, want %+v", *begin.Tx, want)
	}
	if !s.Open() {
		t.Fatal("no transaction is open after Begin")
	}
	commit := decode(t, s, commitFrame(0x1749D88, 0x1749DB8))
	if commit.Kind != KindCommit || commit.EndLSN != 0x1749DB8 || *commit.Tx != want {
		t.Fatalf("commit: %+v", commit)
	}
	if s.Open() {
		t.Fatal("a transaction is open after Commit")
	}
}

func TestRelationIsAnnouncedWithItsColumns(t *testing.T) {
	rel := orders()
	rel.Columns[1].TypeOID, rel.Columns[1].TypeMod = 1043, 24
	e := decode(t, NewSession(), relationFrame(rel))
	if e.Kind != KindRelation || e.Tx != nil {
		t.Fatalf("event %+v", e)
	}
	if diff := cmp.Diff(rel, e.Relation); diff != "" {
		t.Fatal(diff)
	}
}

func TestEmptyNamespaceIsPgCatalog(t *testing.T) {
	frame := wire("R").u32(1259).str("").str("pg_class").u8('n').u16(0)
	if e := decode(t, NewSession(), frame); e.Relation.Namespace != "pg_catalog" {
		t.Fatalf("namespace %q", e.Relation.Namespace)
	}
}

func TestARepeatedRelationKeepsItsPointerAndIsStillHandedOn(t *testing.T) {
	s := NewSession()
	first := decode(t, s, relationFrame(orders())).Relation
	again := decode(t, s, relationFrame(orders()))
	if again.Kind != KindRelation || again.Relation != first {
		t.Fatalf("event %+v, want relation %p", again, first)
	}
	changes := map[string]func(*schema.Relation){
		"name":      func(r *schema.Relation) { r.Name = "orders2" },
		"namespace": func(r *schema.Relation) { r.Namespace = "archive" },
		"identity":  func(r *schema.Relation) { r.Identity = schema.IdentityFull },
		"column":    func(r *schema.Relation) { r.Columns = r.Columns[:1] },
		"type":      func(r *schema.Relation) { r.Columns[0].TypeOID = 20 },
		"typmod":    func(r *schema.Relation) { r.Columns[1].TypeMod = 8 },
		"key":       func(r *schema.Relation) { r.Columns[1].Key = true },
		"rename":    func(r *schema.Relation) { r.Columns[1].Name = "remark" },
	}
	for name, change := range changes {
		rel := orders()
		change(rel)
		before := decode(t, s, relationFrame(orders())).Relation
		if after := decode(t, s, relationFrame(rel)).Relation; after == before {
			t.Errorf("a change of %s keeps the pointer", name)
		}
	}
}

func TestRowsCarryTheirTuples(t *testing.T) {
	s := NewSession()
	decode(t, s, beginFrame(0x2000, 0, 1), relationFrame(orders()))
	tests := []struct {
		name     string
		frame    []byte
		kind     Kind
		oldKind  byte
		old, new schema.Tuple
	}{
		{"insert", insertFrame(16385, row("7", "seven")), KindInsert, 0, nil, row("7", "seven")},
		{"insert of null", insertFrame(16385, row("7", "")), KindInsert, 0, nil, row("7", "")},
		{
			"update without old row", updateFrame(16385, 0, nil, row("7", "u")),
			KindUpdate, 0, nil, row("7", "u"),
		},
		{
			"update of the key", updateFrame(16385, 'K', row("7", ""), row("8", "eight")),
			KindUpdate, 'K', row("7", ""), row("8", "eight"),
		},
		{
			"update under FULL", updateFrame(16385, 'O', row("7", "seven"), row("7", "u")),
			KindUpdate, 'O', row("7", "seven"), row("7", "u"),
		},
		{"delete by key", deleteFrame(16385, 'K', row("7", "")), KindDelete, 'K', row("7", ""), nil},
		{
			"delete under FULL", deleteFrame(16385, 'O', row("7", "seven")),
			KindDelete, 'O', row("7", "seven"), nil,
		},
	}
	for i, tt := range tests {
		e := decode(t, s, tt.frame)
		if e.Kind != tt.kind || e.OldKind != tt.oldKind || e.Index != int64(i) ||
			e.Relation.Name != "orders" || e.Tx.XID != 1 {
			t.Errorf("%s: %+v", tt.name, e)
		}
		if diff := cmp.Diff(tt.old, e.Old); diff != "" {
			t.Errorf("%s: old row: %s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.new, e.New); diff != "" {
			t.Errorf("%s: new row: %s", tt.name, diff)
		}
	}
}

func TestAnEmptyTextIsNotNull(t *testing.T) {
	s := NewSession()
	decode(t, s, beginFrame(0x2000, 0, 1), relationFrame(orders()))
	frame := wire("I").u32(16385).u8('N').u16(2).u8('t').u32(0).u8('n')
	e := decode(t, s, frame)
	if e.New[0].Kind != schema.DatumText || e.New[0].Text == nil || len(e.New[0].Text) != 0 {
		t.Errorf("empty text: %+v", e.New[0])
	}
	if e.New[1].Kind != schema.DatumNull || e.New[1].Text != nil {
		t.Errorf("null after a value in the same storage: %+v", e.New[1])
	}
}

func TestTextIsASliceOfTheFrame(t *testing.T) {
	s := NewSession()
	decode(t, s, beginFrame(0x2000, 0, 1), relationFrame(orders()))
	frame := insertFrame(16385, row("7", "seven"))
	e := decode(t, s, frame)
	frame[len(frame)-1] = 'N'
	if got := string(e.New[1].Text); got != "seveN" {
		t.Fatalf("the text was copied: %q", got)
	}
}

func TestATableWithoutColumnsHasRows(t *testing.T) {
	s := NewSession()
	none := &schema.Relation{OID: 9, Namespace: "public", Name: "none", Identity: 'd'}
	e := decode(t, s, beginFrame(0x2000, 0, 1), relationFrame(none), insertFrame(9, nil))
	if e.Kind != KindInsert || len(e.New) != 0 || len(e.Relation.Columns) != 0 {
		t.Fatalf("%+v", e)
	}
}

func TestTruncateNamesItsRelations(t *testing.T) {
	s := NewSession()
	second := orders()
	second.OID, second.Name = 16400, "lines"
	decode(t, s, beginFrame(0x2000, 0, 1), relationFrame(orders()), relationFrame(second))
	e := decode(t, s, truncateFrame(1, 16385, 16400))
	if e.Kind != KindTruncate || len(e.Truncated) != 2 || e.Truncated[0].Name != "orders" ||
		e.Truncated[1].Name != "lines" || !e.Cascade || e.RestartIdentity {
		t.Fatalf("%+v", e)
	}
	e = decode(t, s, truncateFrame(2, 16400))
	if len(e.Truncated) != 1 || e.Truncated[0].Name != "lines" || e.Cascade || !e.RestartIdentity ||
		e.Index != 1 {
		t.Fatalf("%+v", e)
	}
}

func TestIndexCountsRowMessagesOnly(t *testing.T) {
	s := NewSession()
	steps := []struct {
		frame []byte
		index int64
	}{
		{beginFrame(0x2000, 0, 1), 0},
		{relationFrame(orders()), 0},
		{insertFrame(16385, row("1", "a")), 0},
		{wire("Y").u32(70000).str("public").str("mood"), 1},
		{messageFrame(0, 0x1F00, "app", "not transactional"), 0},
		{updateFrame(16385, 0, nil, row("1", "b")), 1},
		{messageFrame(1, 0x1F80, "app", "transactional"), 2},
		{truncateFrame(0, 16385), 3},
		{deleteFrame(16385, 'K', row("1", "")), 4},
		{commitFrame(0x2000, 0x2030), 5},
		{beginFrame(0x3000, 0, 2), 0},
		{insertFrame(16385, row("1", "a")), 0},
	}
	for i, step := range steps {
		if e := decode(t, s, step.frame); e.Index != step.index {
			t.Errorf("step %d (%c): index %d, want %d", i, step.frame[0], e.Index, step.index)
		}
	}
}

func TestAMessageOutsideOfATransactionBelongsToNone(t *testing.T) {
	s := NewSession()
	check := func(e *Event) {
		t.Helper()
		if e.Kind != KindMessage || e.Transactional || e.Tx != nil || e.Index != 0 ||
			e.MessageLSN != 0x1749D88 || string(e.Prefix) != "app" || string(e.Content) != "a\x00b" {
			t.Fatalf("%+v", e)
		}
	}
	check(decode(t, s, messageFrame(0, 0x1749D88, "app", "a\x00b")))
	decode(t, s, beginFrame(0x1749DC0, 0, 1), relationFrame(orders()),
		insertFrame(16385, row("1", "a")))
	check(decode(t, s, messageFrame(0, 0x1749D88, "app", "a\x00b")))
	if !s.Open() {
		t.Fatal("the message closed the transaction")
	}
}

func TestATransactionalMessageIsARowOfItsTransaction(t *testing.T) {
	s := NewSession()
	e := decode(t, s, beginFrame(0x2000, 0, 5), messageFrame(1, 0x1F80, "tidemark", ""))
	if e.Kind != KindMessage || !e.Transactional || e.Tx.XID != 5 || len(e.Content) != 0 {
		t.Fatalf("%+v", e)
	}
}

func TestOriginBelongsToItsTransactionOnly(t *testing.T) {
	s := NewSession()
	origin := []byte(wire("O").u64(0x77).str("node_b"))
	e := decode(t, s, beginFrame(0x2000, 0, 1), origin)
	if e.Kind != KindNone || e.Tx.Origin != "node_b" {
		t.Fatalf("%+v, origin %q", e, e.Tx.Origin)
	}
	e = decode(t, s, commitFrame(0x2000, 0x2030), beginFrame(0x3000, 0, 2))
	if e.Tx.Origin != "" {
		t.Fatalf("the next transaction has origin %q", e.Tx.Origin)
	}
}

func TestTypeAndStreamAbortAreConsumed(t *testing.T) {
	s := NewSession()
	frames := [][]byte{
		wire("Y").u32(70000).str("public").str("mood"),
		wire("A").u32(5).u32(6),
		wire("A").u32(5).u32(6).u64(0x99).u64(0),
	}
	for _, f := range frames {
		if e := decode(t, s, f); e.Kind != KindNone {
			t.Errorf("%c: %+v", f[0], e)
		}
	}
}

func TestARowCostsNoAllocation(t *testing.T) {
	s := NewSession()
	decode(t, s, beginFrame(0x2000, 0, 1), relationFrame(orders()))
	frames := [][]byte{
		insertFrame(16385, row("7", "seven")),
		updateFrame(16385, 'O', row("7", "seven"), row("7", "u")),
		deleteFrame(16385, 'K', row("7", "")),
		truncateFrame(0, 16385),
		messageFrame(1, 0x1F80, "app", "content"),
		messageFrame(0, 0x1F80, "app", "content"),
		commitFrame(0x2000, 0x2030),
		beginFrame(0x2000, 0, 2),
		wire("O").u64(0x77).str("node_b"),
	}
	all := func() {
		for _, f := range frames {
			if _, err := s.Decode(1, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	all()
	if n := testing.AllocsPerRun(100, all); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
