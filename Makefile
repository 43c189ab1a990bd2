# SPDX-License-Identifier: Apache-2.0

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run build test check bench fuzz soak clean

FUZZTIME ?= 10s
SOAKTIME ?= 30m
SOAKCOUNT ?= 20
SOAKKILLS ?= 1000

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## serve the page and the API on http://127.0.0.1:7420
	go run ./cmd/artel serve

build: ## build bin/artel
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/artel ./cmd/artel

# The race detector looks at this module, not at the transpiled C of its
# database, which only it would make three times as slow.
RACE := -race -gcflags=modernc.org/...=-race=false

test: ## run every test, with the race detector; installs what they need first
	@scripts/setup
	@mkdir -p bin && go build -o bin/testsum ./scripts/testsum
	@{ failed=0; go test $(RACE) -shuffle=on -timeout 24m -json ./... || failed=1; go -C sdktest test -timeout 10m -json ./... || failed=1; exit $$failed; } | bin/testsum

check: ## gofumpt, vet, staticcheck, module files, rules of the house, govulncheck
	@scripts/check

bench: ## measure against the budgets, beside anchors; writes docs/performance.md
	cd bench && go run .

fuzz: ## fuzz every target for FUZZTIME (10s)
	@scripts/fuzz $(FUZZTIME)

soak: ## repeat every test SOAKCOUNT (20) times, kill a server SOAKKILLS (1000) times, fuzz every target for SOAKTIME (30m)
	go test $(RACE) -shuffle=on -timeout 0 -count=$(SOAKCOUNT) ./...
	ARTEL_SOAK=$(SOAKKILLS) ARTEL_SOAK_REPORT=$(CURDIR)/docs/reliability.md go test $(RACE) -timeout 0 -count=1 -run '^TestKills$$' ./cmd/artel
	ARTEL_SOAK=1 go test -count=1 -run '^TestRecall$$' ./artifact/edit
	scripts/fuzz $(SOAKTIME)

clean: ## remove what was built
	rm -rf bin
