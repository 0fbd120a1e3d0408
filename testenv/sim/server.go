package sim

import (
	"github.com/tidemark-cdc/tidemark/connector/capture"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// The tables: two that are captured, one that is published and not captured. Messages outside of
// transactions count as changes of a table of their own, with one key.
const (
	elsewhere = 2
	messages  = 3
	numTables = 3
	numKeys   = 3
)

var tableNames = [...]string{"public.a", "public.b", "public.elsewhere", "messages"}

func relid(table int) uint32 { return uint32(16385 + table) }

// row is one row message: an insert, update or delete, or a logical message (M).
type row struct {
	id, table, key int
	lsn            offsets.LSN
	op             byte
	decoded        fate
}

// fate is what decoding makes of a row, by the catalog at its LSN.
type fate byte

const (
	sent          fate = iota
	leftOut            // its table was not in the publication
	noPublication      // the publication did not exist
)

// entry is a piece of WAL that decoding makes something of: a commit with its rows, or a message.
type entry struct {
	start, end offsets.LSN // of the record: a commit's start is its final LSN
	xid        uint32      // 0: a message outside of transactions
	rows       []*row      // that are sent
	missing    bool        // rows of it met no publication
}

type openTx struct {
	xid    uint32
	rows   []*row
	locked [numTables][numKeys]bool
	undo   [numTables][numKeys]bool // which keys existed before
}

type publication struct {
	exists    bool
	oid, xmin uint32
	tables    [numTables]struct{ oid, xmin uint32 } // oid 0: it is out
}

type slot struct {
	exists, lost bool
	confirmed    offsets.LSN
	persisted    offsets.LSN // what a crash of the server leaves
	active       *walsender
}

// server is the scripted PostgreSQL. It does what wire-facts.md of the design says of the real one,
// with every freedom that it leaves: when a walsender sends, what a keepalive between two commits
// says, when a client's end is noticed.
type server struct {
	w       *World
	wal     []entry
	end     offsets.LSN
	xid     uint32
	changes int
	oids    uint32
	pids    int32
	open    []*openTx
	exists  [numTables][numKeys]bool
	pub     publication
	slot    slot
	senders []*walsender
}

func newServer(w *World) *server {
	s := &server{w: w, end: 0x1000000, xid: 700, oids: 20000, pids: 100}
	s.createPublication()
	return s
}

func (s *server) advance(bytes int) offsets.LSN {
	at := s.end
	s.end += offsets.LSN(bytes)
	return at
}

func (s *server) nextXID() uint32 { s.xid++; return s.xid }
func (s *server) nextOID() uint32 { s.oids++; return s.oids }

func (s *server) createPublication() {
	x := s.nextXID()
	s.pub = publication{exists: true, oid: s.nextOID(), xmin: x}
	for t := range s.pub.tables {
		s.pub.tables[t].oid, s.pub.tables[t].xmin = s.nextOID(), x
	}
	s.advance(64)
}

func (s *server) setTable(table int, in bool) {
	s.pub.tables[table].oid = 0
	if x := s.nextXID(); in {
		s.pub.tables[table].oid, s.pub.tables[table].xmin = s.nextOID(), x
	}
	s.advance(64)
}

func (s *server) fingerprint() *offsets.Fingerprint {
	if !s.pub.exists {
		return nil
	}
	f := &offsets.Fingerprint{
		Name: "p", OID: s.pub.oid, XMin: s.pub.xmin, Operations: "insert, update, delete",
	}
	for t, r := range s.pub.tables {
		if r.oid != 0 {
			f.Tables = append(f.Tables, offsets.PublicationTable{
				Relid: relid(t), Name: tableNames[t], OID: r.oid, XMin: r.xmin,
			})
		}
	}
	return f
}

func (s *server) begin() {
	s.open = append(s.open, &openTx{xid: s.nextXID()})
}

// write makes the next change of a transaction. Rows of one COPY share an LSN: shared says that
// this one has the LSN of the one before.
func (s *server) write(tx *openTx, table, key int, del, shared bool) {
	for _, o := range s.open {
		if o != tx && o.locked[table][key] {
			return // another transaction has the row
		}
	}
	if !tx.locked[table][key] {
		tx.locked[table][key], tx.undo[table][key] = true, s.exists[table][key]
	}
	s.changes++
	r := &row{id: s.changes, table: table, key: key, op: 'I', lsn: s.end}
	if n := len(tx.rows); shared && n > 0 {
		r.lsn = tx.rows[n-1].lsn
	} else {
		s.advance(48)
	}
	if s.exists[table][key] {
		r.op = 'U'
		if del {
			r.op = 'D'
		}
	}
	s.exists[table][key] = r.op != 'D'
	switch {
	case !s.pub.exists:
		r.decoded = noPublication
	case s.pub.tables[table].oid == 0:
		r.decoded = leftOut
	}
	tx.rows = append(tx.rows, r)
}

// message is a logical message of another program within the transaction: progress, and counted.
func (s *server) message(tx *openTx) {
	s.changes++
	tx.rows = append(tx.rows, &row{id: s.changes, table: messages, lsn: s.advance(40), op: 'M'})
}

// single is a captured message outside of transactions.
func (s *server) single() {
	s.changes++
	r := &row{id: s.changes, table: messages, lsn: s.advance(40), op: 'M'}
	s.wal = append(s.wal, entry{start: r.lsn, end: s.end, rows: []*row{r}})
	s.w.truth.committed(r, r.lsn)
}

func (s *server) close(tx *openTx, commit bool) {
	for i, o := range s.open {
		if o == tx {
			s.open = append(s.open[:i], s.open[i+1:]...)
			break
		}
	}
	if !commit {
		for t := range tx.locked {
			for k, locked := range tx.locked[t] {
				if locked {
					s.exists[t][k] = tx.undo[t][k]
				}
			}
		}
		s.advance(32)
		return
	}
	e := entry{start: s.advance(32), end: s.end, xid: tx.xid}
	for _, r := range tx.rows {
		if r.decoded == sent {
			e.rows = append(e.rows, r)
		}
		e.missing = e.missing || r.decoded == noPublication
		if r.table < elsewhere {
			s.w.truth.committed(r, e.start)
		}
	}
	s.wal = append(s.wal, e)
}

// createSlot needs that no transaction is open: a real server waits for them.
func (s *server) createSlot() {
	s.slot = slot{exists: true, confirmed: s.end, persisted: s.end}
	s.w.truth.begin()
}

func (s *server) drop(ws *walsender, err error) {
	if ws.alive {
		ws.alive, ws.err, ws.status = false, err, nil
		if s.slot.active == ws {
			s.slot.active = nil
		}
	}
}

// crash is a crash of the server: what was acknowledged since the last checkpoint is forgotten.
func (s *server) crash() {
	for _, ws := range s.senders {
		s.drop(ws, errConnection)
	}
	for len(s.open) > 0 {
		s.close(s.open[0], false)
	}
	s.slot.confirmed = s.slot.persisted
}

var errConnection = fault.New(fault.PostgresUnreachable, "the connection was lost")

// start is START_REPLICATION: an older position is silently forwarded.
func (s *server) start(at offsets.LSN) (*walsender, error) {
	switch {
	case !s.slot.exists:
		return nil, fault.New(fault.SlotMissing, "slot")
	case s.slot.lost:
		return nil, fault.New(fault.SlotLost, "slot")
	case s.slot.active != nil:
		return nil, fault.New(fault.SlotInUse, "slot")
	}
	s.pids++
	ws := &walsender{s: s, pid: s.pids, alive: true, from: max(at, s.slot.confirmed)}
	s.slot.active = ws
	s.senders = append(s.senders, ws)
	return ws, nil
}

// walsender is one session of streaming.
type walsender struct {
	s         *server
	pid       int32
	alive     bool
	gone      bool // the client is, and the server has not noticed
	err       error
	from      offsets.LSN // commits whose record begins before it are not sent
	cursor    int         // next entry of the WAL
	begun     bool        // its Begin was sent
	row       int         // next row of it
	announced [numTables]bool
	warned    bool
	socket    []capture.Frame // sent and not read
	status    []offsets.LSN   // status updates, not received
}

const socketFrames = 6

// step sends the next message.
func (ws *walsender) step() bool {
	if !ws.alive || len(ws.socket) >= socketFrames {
		return false
	}
	for ; ws.cursor < len(ws.s.wal); ws.cursor++ {
		e := &ws.s.wal[ws.cursor]
		switch {
		case e.start < ws.from:
			continue
		case e.xid == 0:
			ws.data(e.start, messageFrame(0, e.rows[0], "captured"))
			ws.cursor++
			return true
		case e.missing && ws.s.w.cfg.Version < 18:
			ws.s.drop(ws, fault.New(fault.PublicationChanged, "publication \"p\" does not exist"))
			return true
		case e.missing && !ws.warned:
			ws.warned = true
			ws.socket = append(ws.socket, capture.Frame{Kind: capture.Notice, Warning: capture.Warning{
				Severity: "WARNING", Message: "skipped loading publication \"p\"",
			}})
			return true
		case len(e.rows) == 0 && ws.s.w.cfg.Version >= 15:
			continue
		}
		ws.transaction(e)
		return true
	}
	return false
}

func (ws *walsender) transaction(e *entry) {
	if !ws.begun {
		ws.data(e.start-1, beginFrame(e.start, e.xid))
		ws.begun, ws.row = true, 0
		return
	}
	if ws.row == len(e.rows) {
		ws.data(e.end, commitFrame(e.start, e.end))
		ws.begun = false
		ws.cursor++
		return
	}
	r := e.rows[ws.row]
	if r.op != 'M' && !ws.announced[r.table] {
		ws.announced[r.table] = true
		ws.data(0, relationFrame(r.table))
		return
	}
	ws.row++
	ws.data(r.lsn, rowFrame(r))
}

func (ws *walsender) data(start offsets.LSN, payload []byte) {
	ws.socket = append(ws.socket, capture.Frame{
		Kind: capture.Data, Start: start, ServerEnd: start, Payload: payload,
	})
}

// keepalive says up to where everything was decoded and sent: anywhere between the end of the last
// commit and the start of the next one. With cfg.Eager the server claims a commit while it is still
// sending it, which PostgreSQL does not: K2 must not depend on that.
func (ws *walsender) keepalive(t *tape) {
	if !ws.alive || len(ws.socket) >= socketFrames {
		return
	}
	low, high := offsets.LSN(0x1000000), ws.s.end
	if ws.cursor > 0 {
		low = ws.s.wal[ws.cursor-1].end
	}
	if ws.cursor < len(ws.s.wal) {
		high = ws.s.wal[ws.cursor].start
		if ws.begun && ws.s.w.cfg.Eager && t.oneIn(2) {
			high = ws.s.wal[ws.cursor].end
		}
	}
	if t.oneIn(3) {
		high = max(low, min(high, low+8))
	}
	ws.socket = append(ws.socket, capture.Frame{Kind: capture.Keepalive, ServerEnd: high})
}

// receive takes the next status update.
func (ws *walsender) receive() bool {
	if !ws.alive || len(ws.status) == 0 {
		return false
	}
	at := ws.status[0]
	ws.status = ws.status[1:]
	ws.s.w.truth.told(at, ws.s.slot.confirmed)
	ws.s.slot.confirmed = max(ws.s.slot.confirmed, at)
	return true
}
