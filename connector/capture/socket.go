package capture

import (
	"crypto/tls"
	"net"
)

// A reader that asks for less than directRead goes through the socket's own buffer.
const (
	directRead   = 64 << 10
	socketBuffer = 512 << 10
)

// socket is the TCP (or Unix) connection under a replication connection, below TLS if there is any.
// It is transparent until stream turns it on: from then on it reads much at a time and lets a busy
// socket fill between reads. Large reads go straight into the caller's buffer; the small ones of a
// TLS layer are served from a buffer of its own.
type socket struct {
	net.Conn
	on   bool
	pace pacer
	buf  []byte // only under TLS
	r, w int
}

// stream turns buffering and pacing on and asks for a receive buffer of so many bytes. No read may
// be running.
func (s *socket) stream(receiveBuffer int) {
	if receiveBuffer > 0 {
		setReceiveBuffer(s.Conn, receiveBuffer)
	}
	s.pace.room = func() int { return receiveRoom(s.Conn) }
	s.on = true
}

// Read reads what is there, at least one byte.
func (s *socket) Read(p []byte) (int, error) {
	if !s.on {
		return s.Conn.Read(p)
	}
	if s.r < s.w {
		n := copy(p, s.buf[s.r:s.w])
		s.r += n
		return n, nil
	}
	if len(p) >= directRead {
		return s.paced(p)
	}
	if s.buf == nil {
		s.buf = make([]byte, socketBuffer)
	}
	n, err := s.paced(s.buf)
	s.r, s.w = 0, n
	if n == 0 {
		return 0, err
	}
	n = copy(p, s.buf[:n])
	s.r = n
	return n, nil
}

func (s *socket) paced(p []byte) (int, error) {
	s.pace.before()
	n, err := s.Conn.Read(p)
	s.pace.after(n, n == len(p))
	return n, err
}

// buffered returns the number of bytes that were read from the kernel and not yet handed on.
func (s *socket) buffered() int { return s.w - s.r }

// socketOf finds our socket under the connection that pgconn made of it.
func socketOf(conn net.Conn) *socket {
	switch c := conn.(type) {
	case *socket:
		return c
	case *tls.Conn:
		s, _ := c.NetConn().(*socket)
		return s
	}
	return nil
}
