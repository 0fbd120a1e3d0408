#!/usr/bin/env bash
# `make demo`: compiles the connector and starts it on servers of its own.
#   testenv/demo.sh 30s
# The first start compiles everything, the standard library too. What is done to make it short, and what
# each step gave: docs/profile.md, "The first start".
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
export CGO_ENABLED=0

# quick fills QUICK with compiler flags that leave out what a demo does without: inlining, debug data
# and the optimisations named here. A Go that knows one of them by another name does without all.
quick() {
  local phases="addressing_modes branchelim cpufeatures dead_auto_elim dse early_fuse elim_unread_autos
    generic_cse late_fuse late_nilcheck likelyadjust loop_rotate lowered_cse lowered_deadcode_for_cse
    memcombine nilcheckelim pair phi_tighten phiopt prove rewrite_tern sccp short_circuit"
  QUICK=("-gcflags=all=-l -dwarf=false -d=$(printf 'ssa/%s/off,' $phases)"
    "-gcflags=github.com/xi2/xz=-dwarf=false")
  $GO build "${QUICK[@]}" internal/cpu 2>/dev/null || QUICK=("-gcflags=all=-N -l -dwarf=false")
}

quick
export GOGC=off GOMEMLIMIT=2GiB # of the compiler, which so collects no garbage
run=($GO run -exec 'env -u GOGC -u GOMEMLIMIT' "${QUICK[@]}")
echo "Compiling (the first time for a minute of two cores, with downloads) ..."
$GO mod download &
$GO build "${QUICK[@]}" encoding/json archive/zip math/big
wait $!
# First what takes long and is waited for.
$GO build "${QUICK[@]}" github.com/twmb/franz-go/pkg/kgo github.com/jackc/pgx/v5 \
  github.com/prometheus/client_golang/prometheus/promhttp ./testenv/download
# Best effort: the demo fetches what is not there, and says what went wrong.
"${run[@]}" -ldflags '-s -w' ./testenv/download/postgres 2>/dev/null &
exec "${run[@]}" -ldflags "${LDFLAGS:-} -s -w" ./cmd/tidemark demo --for "${1:-30s}"
