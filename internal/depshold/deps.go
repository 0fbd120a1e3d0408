//go:build depshold

package depshold

import (
	_ "github.com/Shopify/toxiproxy/v2"
	_ "github.com/compose-spec/compose-go/v2/loader"
	_ "github.com/compose-spec/compose-go/v2/types"
	_ "github.com/fergusstrange/embedded-postgres"
	_ "github.com/goccy/go-yaml"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/hamba/avro/v2"
	_ "github.com/jackc/pglogrepl"
	_ "github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/linkedin/goavro/v2"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/prometheus/client_golang/prometheus/testutil"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/twmb/franz-go/pkg/kadm"
	_ "github.com/twmb/franz-go/pkg/kfake"
	_ "github.com/twmb/franz-go/pkg/kgo"
	_ "github.com/twmb/franz-go/pkg/kmsg"
	_ "github.com/twmb/franz-go/pkg/sasl/plain"
	_ "github.com/twmb/franz-go/pkg/sasl/scram"
	_ "github.com/twmb/franz-go/pkg/sr"
	_ "github.com/twmb/franz-go/pkg/sr/srfake"
	_ "github.com/ulikunitz/xz"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/errgroup"
	_ "pgregory.net/rapid"
)
