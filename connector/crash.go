//go:build !crashpoints

package connector

// crashPoint is where tests kill the process (build tag crashpoints); nothing otherwise.
func crashPoint(string) {}
