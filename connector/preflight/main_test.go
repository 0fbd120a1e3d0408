package preflight

import (
	"testing"

	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
