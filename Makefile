# SPDX-License-Identifier: Apache-2.0

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run build test race postgres cluster check clients bench fuzz soak clean

FUZZTIME ?= 10s
SOAKTIME ?= 30m
SOAKCOUNT ?= 20
SOAKKILLS ?= 1000
SOAKSEEDS ?= 100000
CLUSTERROUNDS ?= 75

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## serve the page and the API on http://127.0.0.1:7420
	go run ./cmd/artel serve

build: ## build bin/artel
	go build -ldflags '-s -w' -o bin/artel ./cmd/artel

# Builds, tests and checks share one build cache.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

TESTSUM = go build -o bin/testsum ./scripts/testsum && bin/testsum
TEST = go test -vet=off -shuffle=on -timeout 60m -json
# The longest packages come first, so that the others run beside them.
FIRST = ./webui ./cmd/artel ./app

# What opens a database through store/rows/rowstest.
DATABASE = ./event/... ./model/rendition ./pipeline ./agent/... ./artifact ./app/... ./gateway/... ./httpapi
# A part of it that takes half a minute: what runs, servers and users do at the same time.
TOGETHER = -run 'AtOnce|Queue|Recover|Taken|TakesOver|Resumed|Process|Search|Delete|User|Scope|PagesOverHTTP|TestConversations|TestDatabase' \
	-skip 'UnderLoad|EachProcessors' ./app ./app/access ./app/health ./gateway/mcpserver ./httpapi

test: ## run every test once, and a part of them on PostgreSQL; installs what they need first
	@scripts/setup
	@go run ./scripts/postgres $(TEST) $(TOGETHER) | { $(TESTSUM); }
	@{ failed=0; $(TEST) $(FIRST) ./... || failed=1; cd sdktest && $(TEST) ./... || failed=1; exit $$failed; } | { $(TESTSUM); }

postgres: ## run the tests of everything above the store on PostgreSQL
	@scripts/setup
	@go run ./scripts/postgres $(TEST) $(DATABASE) | { $(TESTSUM); }

cluster: ## kill replicas, database connections and the database in CLUSTERROUNDS (75) runs, and simulate SOAKSEEDS (100000) clusters
	@scripts/setup
	ARTEL_CLUSTER_ROUNDS=$(CLUSTERROUNDS) go test -v -timeout 0 -count=1 -run '^TestReplicas' ./cmd/artel
	ARTEL_CLUSTER_SEEDS=$(SOAKSEEDS) go test -timeout 0 -count=1 -run '^TestCluster$$' ./event/bus

race: ## run the tests of the packages with goroutines with the race detector
	@scripts/setup
	@scripts/race | { $(TESTSUM); }

check: ## gofumpt, vet, staticcheck, module files, structure, govulncheck
	@scripts/check

clients: ## run every coding agent against the gateway; installs them first (some 1.5 GB)
	@scripts/setup clients
	@{ cd sdktest && ARTEL_CLIENTS=all $(TEST) -count=1 ./agents ./mcphosts; } | { $(TESTSUM); }

bench: ## measure against the budgets, beside anchors; writes docs/performance.md
	cd bench && go run .
	go test -run '^$$' -bench '^BenchmarkPage' -benchtime 3x ./webui

fuzz: ## fuzz every target for FUZZTIME (10s)
	@scripts/fuzz $(FUZZTIME)

soak: ## repeat every test SOAKCOUNT (20) times, kill a server SOAKKILLS (1000) times, simulate SOAKSEEDS (100000) clusters, fuzz every target for SOAKTIME (30m)
	scripts/race --all -timeout 0 -count=$(SOAKCOUNT) | { $(TESTSUM); }
	ARTEL_SOAK=$(SOAKKILLS) ARTEL_SOAK_REPORT=$(CURDIR)/docs/reliability.md go test -timeout 0 -count=1 -run '^TestKills$$' ./cmd/artel
	ARTEL_SOAK=1 go test -count=1 -run '^TestRecall$$' ./artifact/edit
	ARTEL_CLUSTER_SEEDS=$(SOAKSEEDS) go test -timeout 0 -count=1 -run '^TestCluster$$' ./event/bus
	scripts/fuzz $(SOAKTIME)

clean: ## remove what was built
	rm -rf bin
