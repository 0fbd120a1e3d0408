package testenv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are drawn from below the range that systems take ephemeral ports from (32768 on Linux), so
// that no outgoing connection takes the port of a server while it is stopped between two starts.
const (
	firstPort = 15000
	lastPort  = 32000
)

// freePort returns a port of 127.0.0.1 that nothing listens on.
func freePort() (int, error) {
	var errs error
	for range 50 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 in 50 tries: %w", errs)
}
