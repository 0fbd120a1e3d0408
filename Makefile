# `make help` lists the targets. Every target does its own set-up.
SHELL := /bin/bash
GO ?= go
VERSION ?= $(shell git describe --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.version=$(VERSION)
GOFUMPT := mvdan.cc/gofumpt@v0.12.0
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help demo build test test-fast test-real test-all faults lint fmt fuzz soak \
	bench bench-quick bench-peer bench-peer-quick

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /|/' | column -t -s'|'

demo: ## A throwaway PostgreSQL, broker and connector: watch change events (needs only Go)
	@GO="$(GO)" LDFLAGS="$(LDFLAGS)" bash testenv/demo.sh $(or $(FOR),30s)

build: ## Build bin/tidemark
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o bin/tidemark ./cmd/tidemark

test: ## Every stage of `.ci/run`: style, unit, speed, fuzz corpus, simulator, integration, real broker (20 minutes)
	@bash testenv/stages.sh style unit gate fuzz sim integration broken real

test-fast: ## Style, unit and integration without Java (the inner loop)
	@bash testenv/stages.sh style unit integration

test-real: ## The real-broker stage alone (Java 17 and Maven)
	@bash testenv/stages.sh real

test-all: ## Everything in full: PostgreSQL 14 to 18, long fuzzing
	@TIDEMARK_TEST_ALL=1 bash testenv/stages.sh style unit gate fuzz sim integration broken real

faults: ## Every test of the catalogue of faults; writes docs/faults.md (needs Java 17 and Maven)
	@TIDEMARK_TEST_ALL=1 TIDEMARK_REALBROKER=1 bash testenv/stages.sh faults

fuzz: ## Fuzz each target for FUZZTIME (default 60s)
	@FUZZTIME=$${FUZZTIME:-60s} bash testenv/stages.sh fuzz

lint: ## gofumpt, vet, golangci-lint, go.mod tidiness
	@bash testenv/stages.sh style

bench: ## Throughput, memory, start beside pg_recvlogical; writes docs/benchmarks.md (20 minutes)
	@$(GO) run ./testenv/bench -json docs/benchmarks.json -markdown docs/benchmarks.md

bench-quick: ## The same in two minutes, printed only
	@$(GO) run ./testenv/bench -quick

soak: ## Workload and random faults for SOAK (default 1h), both modes (SOAK_MODE=alo|eos), page to SOAK_OUT
	@$(GO) run ./testenv/soak -for $(or $(SOAK),1h) -mode $(or $(SOAK_MODE),both) \
	  -seed $(or $(SOAK_SEED),0) $(if $(SOAK_OUT),-markdown $(SOAK_OUT))

bench-peer: ## Debezium on the same slots beside it; writes docs/benchmarks-peer.md (30 minutes, Java)
	@$(GO) run ./testenv/bench -peer -json docs/benchmarks-peer.json \
		-markdown docs/benchmarks-peer.md

bench-peer-quick: ## The same in a few minutes, printed only
	@$(GO) run ./testenv/bench -peer -quick

fmt: ## Format
	$(GO) run $(GOFUMPT) -w .
