package pgdial

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func timeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func databaseOf(pg *testenv.Postgres, name string) config.Database {
	return config.Database{
		Host: pg.Host, Port: uint16(pg.Port), User: pg.User, Name: name,
		Password: config.NewSecret(pg.Password), SSLMode: "disable",
		ConnectTimeout: 10 * time.Second, TCPKeepAlive: true,
	}
}
