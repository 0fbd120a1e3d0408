#!/usr/bin/env bash
# Runs the named stages of the proof, cheap first, and prints what each ran and how long it took.
#   testenv/stages.sh style unit gate fuzz sim integration broken real
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
GOFUMPT=mvdan.cc/gofumpt@v0.12.0
GOLANGCI=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# Inputs, not seconds: at the end of its time the fuzzer now and then takes its own deadline for a
# failure ("context deadline exceeded").
FUZZTIME=${FUZZTIME:-10000x}

# Packages without a server behind their tests; everything else is integration.
PURE="./internal/fault ./internal/imports ./schema ./offsets ./config ./envelope
./connector/decode ./connector/metrics ./connector/worker ./schema/registry ./testenv/faults"

need_java() {
  for c in java:openjdk-17-jre-headless mvn:maven; do
    if ! command -v "${c%%:*}" >/dev/null; then
      echo "the real-broker stage needs ${c%%:*}: apt-get install ${c##*:} (or 'make test-fast')" >&2
      exit 1
    fi
  done
}

style() {
  local unformatted
  unformatted=$($GO run $GOFUMPT -l .)
  if [ -n "$unformatted" ]; then
    echo "not formatted (make fmt):" && echo "$unformatted" && exit 1
  fi
  bash -n testenv/demo.sh
  $GO vet ./...
  $GO run $GOLANGCI run ./...
  $GO mod tidy -diff
  $GO test ./internal/imports
}

unit() {
  $GO test -race -shuffle=on -timeout 5m $PURE
  # The race detector makes pools forget: what must not allocate is counted without it.
  $GO test -count=1 -run Alloc -timeout 5m ./schema ./envelope ./connector/decode ./testenv/bench
}

fuzz() {
  local pkg target bin cache
  bin=$(mktemp -d) && cache=$($GO env GOCACHE)/fuzz
  while read -r pkg; do
    # One instrumented binary a package, run in the package's directory as go test does.
    $GO test -c -fuzz=. -o "$bin/fuzz.test" "$pkg"
    for target in $(cd "$pkg" && "$bin/fuzz.test" -test.list '^Fuzz'); do
      echo "fuzz $pkg $target $FUZZTIME"
      (cd "$pkg" && "$bin/fuzz.test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$FUZZTIME" \
        -test.fuzzcachedir "$cache/$($GO list .)")
    done
  done < <(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u)
  rm -rf "$bin"
}

# The simulator, without the race detector: a run is one goroutine.
sim() {
  local seeds=10000
  if [ -n "${TIDEMARK_TEST_ALL:-}" ]; then seeds=100000; fi
  TIDEMARK_SIM_SEEDS=${TIDEMARK_SIM_SEEDS:-$seeds} \
    $GO test -count=1 -timeout 20m -v ./testenv/sim | grep -vE '^=== |^ *--- PASS'
}

integration() {
  local pkgs
  pkgs=$($GO list ./... | grep -vxF -f <($GO list $PURE ./testenv/sim))
  # One package at a time: each starts its own servers, and there are two cores.
  # With crash points: the tag changes nothing but what TIDEMARK_CRASH does.
  $GO test -race -shuffle=on -p 1 -timeout 25m -tags crashpoints $pkgs
}

broken() { TIDEMARK_BROKEN=1 $GO test -timeout 15m -count=1 -run '^TestBroken' ./testenv/check/...; }

# Slower than the kept ratio, three times in a row; what allocates fails in stage unit.
gate() { $GO run ./testenv/bench -gate testenv/bench/gate.json; }

real() {
  need_java
  TIDEMARK_REALBROKER=1 $GO test -timeout 20m -count=1 -v -run '^Test(F[0-9][0-9])*Real' \
    ./testenv/... ./connector/...
}

# Runs the tests of the catalogue of faults and writes docs/faults.md.
faults() {
  local out ended=0
  need_java
  out=$(mktemp)
  TIDEMARK_TEST_ALL=1 $GO test -json -count=1 -p 1 -timeout 60m -tags crashpoints -run '^TestF[0-9][0-9]' \
    $($GO run ./testenv/faults -packages) >"$out" || ended=$?
  $GO run ./testenv/faults "$out"
  rm "$out"
  return $ended
}

for stage in "$@"; do
  echo "=== stage $stage"
  began=$(date +%s)
  "$stage"
  echo "=== stage $stage: ok, $(($(date +%s) - began)) s"
done
