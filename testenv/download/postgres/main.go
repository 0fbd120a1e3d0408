// Command postgres downloads PostgreSQL 18, if it is not there: `make demo` does so while it compiles.
package main

import (
	"fmt"
	"os"

	"github.com/tidemark-cdc/tidemark/testenv/download"
)

func main() {
	if _, err := download.Postgres("18"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
