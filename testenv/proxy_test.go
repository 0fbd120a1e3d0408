package testenv_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// startEcho answers every byte with itself.
func startEcho(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		work.Wait()
	})
	return l.Addr().String()
}

func startProxy(t *testing.T) *testenv.Proxy {
	t.Helper()
	target := startEcho(t)
	p, err := testenv.NewProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func dial(t *testing.T, p *testenv.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	answer := make([]byte, n)
	if _, err := io.ReadFull(c, answer); err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestACutProxyClosesAndRefusesUntilItIsHealed(t *testing.T) {
	p := startProxy(t)
	c := dial(t, p)
	send(t, c, "ping")
	if got := receive(t, c, 4); got != "ping" {
		t.Errorf("answer is %q", got)
	}
	p.Cut()
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read after Cut: %v, wanted the connection to end", err)
	}
	if _, err := net.Dial("tcp", p.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial after Cut: %v, wanted it refused", err)
	}
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	healed := dial(t, p)
	send(t, healed, "pong")
	if got := receive(t, healed, 4); got != "pong" {
		t.Errorf("answer is %q", got)
	}
}

func TestAStalledProxyIsSilentAndLosesNothing(t *testing.T) {
	for name, way := range map[string]testenv.Direction{
		"to the server": testenv.ToServer, "to the client": testenv.ToClient,
		"both ways": testenv.BothWays,
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t)
			c := dial(t, p)
			p.Stall(way)
			send(t, c, "held back")
			if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("read while stalled: %d bytes, %v, wanted silence", n, err)
			}
			p.Resume()
			if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, c, 9); got != "held back" {
				t.Errorf("answer is %q", got)
			}
		})
	}
}

func TestAResetReachesTheClientAsOne(t *testing.T) {
	p := startProxy(t)
	c := dial(t, p)
	send(t, c, "x")
	receive(t, c, 1)
	p.ResetAll()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read after ResetAll: %v, wanted ECONNRESET", err)
	}
}

func TestAProxyCutsAfterTheChosenByte(t *testing.T) {
	p := startProxy(t)
	c := dial(t, p)
	p.CutAfter(3)
	send(t, c, "abcdef")
	got, _ := io.ReadAll(c)
	if string(got) != "abc" {
		t.Errorf("received %q, wanted \"abc\"", got)
	}
}

func TestAProxySlicesAndDelays(t *testing.T) {
	p := startProxy(t)
	p.SetSlice(1)
	p.SetLatency(20 * time.Millisecond)
	c := dial(t, p)
	began := time.Now()
	send(t, c, "abc")
	if got := receive(t, c, 3); got != "abc" {
		t.Errorf("answer is %q", got)
	}
	if took := time.Since(began); took < 40*time.Millisecond {
		t.Errorf("there and back took %v, wanted at least twice 20 ms", took)
	}
}

func TestAProxyPassesOnTheEndOfOneWay(t *testing.T) {
	p := startProxy(t)
	c := dial(t, p)
	send(t, c, "last")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "last" {
		t.Errorf("received %q, %v, wanted \"last\" and the end", got, err)
	}
}

func TestAClosedProxyEndsAStalledConnection(t *testing.T) {
	p := startProxy(t)
	c := dial(t, p)
	p.Stall(testenv.BothWays)
	send(t, c, "x")
	p.Close()
	p.Close()
	if n := p.Connections(); n != 0 {
		t.Errorf("%d connections are open after Close", n)
	}
}
