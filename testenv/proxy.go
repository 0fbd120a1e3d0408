package testenv

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A Direction names one or both ways through a proxy. There is no zero value.
type Direction int

// The directions: what the client sends, what the server sends.
const (
	ToServer Direction = 1 << iota
	ToClient
	BothWays = ToServer | ToClient
)

// A Proxy forwards TCP connections to a server and breaks them on demand. Its methods take effect on
// open connections too, may be called in any order and from several goroutines.
//
//	          Cut                     Heal
//	forwards ─────> refuses, all cut ──────> forwards
//	          Stall                   Resume
//	forwards ─────> silent, all open ──────> forwards what was held back
//
// A library exists for this (toxiproxy), whose timeout toxic throws away what it holds back, which a
// stalled network does not; it also brings an HTTP server of its own.
type Proxy struct {
	Addr string // where clients connect to; does not change

	port int
	quit chan struct{} // closed by Close
	work sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when a field below changes
	target   string
	listener net.Listener // nil while cut
	links    map[*link]struct{}
	stalled  Direction
	latency  time.Duration
	slice    int
	limit    int64 // bytes that may still pass to the client before all is cut; below 0: no limit
	closed   bool
}

// A link is one client's connection and the one to the server that belongs to it.
type link struct {
	client, server net.Conn
}

func (l *link) close(reset bool) {
	for _, c := range []net.Conn{l.client, l.server} {
		if tcp, ok := c.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0) // close sends RST and drops what was not sent
		}
		_ = c.Close()
	}
}

// NewProxy listens on a free port of loopback and forwards to target, a "host:port". An empty
// target, for a server that is yet to be started, refuses until SetTarget. The caller closes it.
func NewProxy(target string) (*Proxy, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		Addr: fmt.Sprintf("127.0.0.1:%d", port), port: port, target: target,
		quit: make(chan struct{}), changed: make(chan struct{}),
		links: map[*link]struct{}{}, limit: -1,
	}
	if err := p.Heal(); err != nil {
		return nil, err
	}
	return p, nil
}

// Port returns the port of Addr.
func (p *Proxy) Port() int { return p.port }

// change changes settings under the lock and wakes what waits for them.
func (p *Proxy) change(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
	close(p.changed)
	p.changed = make(chan struct{})
}

// SetTarget forwards new connections to another server; open ones stay.
func (p *Proxy) SetTarget(target string) { p.change(func() { p.target = target }) }

// Cut closes all connections and refuses new ones, as when the server's process is gone.
func (p *Proxy) Cut() { p.change(p.cutLocked) }

func (p *Proxy) cutLocked() {
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.closeLinks(false)
}

// ResetAll ends all connections with RST, as a firewall that forgot them would, and takes new ones.
func (p *Proxy) ResetAll() { p.change(func() { p.closeLinks(true) }) }

func (p *Proxy) closeLinks(reset bool) {
	for l := range p.links {
		l.close(reset)
		delete(p.links, l)
	}
}

// Heal takes connections again after Cut and forgets every other fault.
func (p *Proxy) Heal() (err error) {
	p.change(func() {
		p.stalled, p.latency, p.slice, p.limit = 0, 0, 0, -1
		if p.listener != nil || p.closed {
			return
		}
		if p.listener, err = net.Listen("tcp", p.Addr); err != nil {
			return
		}
		p.work.Add(1)
		go p.accept(p.listener)
	})
	return err
}

// Stall stops forwarding in those directions and closes nothing, as when packets are lost on the
// way; connections are still taken.
func (p *Proxy) Stall(ways Direction) { p.change(func() { p.stalled = ways }) }

// Resume forwards again after Stall, beginning with what was held back.
func (p *Proxy) Resume() { p.change(func() { p.stalled = 0 }) }

// SetLatency holds back every read for that long, each way.
func (p *Proxy) SetLatency(d time.Duration) { p.change(func() { p.latency = d }) }

// SetSlice forwards in writes of at most n bytes; 0 forwards as it comes.
func (p *Proxy) SetSlice(n int) { p.change(func() { p.slice = n }) }

// CutAfter cuts, as Cut does, once n more bytes have been forwarded to clients: in the middle of a
// message, if so chosen.
func (p *Proxy) CutAfter(n int64) { p.change(func() { p.limit = n }) }

// Connections returns how many connections are open.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Close cuts all connections and returns when nothing of the proxy is left. It may be called again.
func (p *Proxy) Close() {
	p.change(func() {
		p.cutLocked()
		if !p.closed {
			p.closed = true
			close(p.quit)
		}
	})
	p.work.Wait()
}

func (p *Proxy) accept(listener net.Listener) {
	defer p.work.Done()
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed by Cut or Close
		}
		p.work.Add(1)
		go p.connect(client)
	}
}

// connect makes the link of a client and forwards until it ends.
func (p *Proxy) connect(client net.Conn) {
	defer p.work.Done()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server}
	p.mu.Lock()
	if p.listener == nil { // cut while it was being dialled
		p.mu.Unlock()
		l.close(false)
		return
	}
	p.links[l] = struct{}{}
	p.mu.Unlock()
	var ways sync.WaitGroup
	ways.Go(func() { p.forward(l, server, client, ToServer) })
	p.forward(l, client, server, ToClient)
	ways.Wait()
	l.close(false)
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// forward copies one way until either side ends; the end is passed on.
func (p *Proxy) forward(l *link, to, from net.Conn, way Direction) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.pass(to, buffer[:n], way) {
			l.close(false)
			return
		}
		if err != nil {
			if p.open(way) && errors.Is(err, io.EOF) {
				_ = to.(*net.TCPConn).CloseWrite()
				return
			}
			l.close(false)
			return
		}
	}
}

// pass writes what was read, as the faults that hold at each piece demand. It returns false when the
// link has to end.
func (p *Proxy) pass(to io.Writer, bytes []byte, way Direction) bool {
	p.mu.Lock()
	latency := p.latency
	p.mu.Unlock()
	if latency > 0 && !p.wait(latency) {
		return false
	}
	for len(bytes) > 0 {
		if !p.open(way) {
			return false
		}
		piece, last := p.take(len(bytes), way)
		if _, err := to.Write(bytes[:piece]); err != nil {
			return false
		}
		bytes = bytes[piece:]
		if last {
			p.Cut()
			return false
		}
	}
	return true
}

// take returns how many of n bytes pass in the next write, and whether they are the last.
func (p *Proxy) take(n int, way Direction) (piece int, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slice > 0 {
		n = min(n, p.slice)
	}
	if p.limit < 0 || way != ToClient {
		return n, false
	}
	n = int(min(int64(n), p.limit))
	p.limit -= int64(n)
	return n, p.limit == 0
}

// open waits while that way is stalled. It returns false when the proxy is closed meanwhile.
func (p *Proxy) open(way Direction) bool {
	for {
		p.mu.Lock()
		stalled, changed := p.stalled&way != 0, p.changed
		p.mu.Unlock()
		if !stalled {
			return true
		}
		select {
		case <-changed:
		case <-p.quit:
			return false
		}
	}
}

func (p *Proxy) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.quit:
		return false
	}
}
