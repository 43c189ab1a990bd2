// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/sdktest/program"
)

var update = flag.Bool("update", false, "write the sections of the programs in docs/compatibility.md anew")

// The services that every program is tried with.
var upstreams = []struct {
	id, title string
	dialect   model.Dialect
	model     string
	open      func(fake.Options) *fake.Server
	suffix    string
}{
	{"chat", "Chat Completions", model.OpenAI, "gpt-like", fake.OpenAI, "/v1"},
	{"responses", "Responses", model.OpenAIResponses, "gpt-like", fake.OpenAI, "/v1"},
	{"anthropic", "Messages", model.Anthropic, "claude-like", fake.Anthropic, ""},
	{"gemini", "Gemini 3", model.Gemini, "gemini-3-pro", fake.Gemini, ""},
}

// The rows of a program's table. Those with long waits are for make clients.
var rows = []struct {
	id, title string
	slow      bool
}{
	{id: "read", title: "reads a file"},
	{id: "look", title: "looks at a picture"},
	{id: "write", title: "writes a file"},
	{id: "edit", title: "edits two files"},
	{id: "embedded", title: "edits and copies a page with an embedded picture"},
	{id: "shoot", title: "calls a tool of an MCP server, which returns a picture"},
	{id: "retries", title: "does the task in spite of a 429 and a 500", slow: true},
	{id: "again", title: "tries again after 503s that Artel passes on", slow: true},
	{id: "break", title: "tries again after a stream that breaks off", slow: true},
	{id: "refuse", title: "shows the message of a 400"},
	{id: "deny", title: "shows the message of a 401", slow: true},
	{id: "tokens", title: "records the tokens that the service bills"},
	{id: "interrupt", title: "is interrupted"},
}

func TestAgents(t *testing.T) {
	wanted := os.Getenv("ARTEL_CLIENTS")
	var run []agent
	for _, p := range agents {
		if p.light && wanted == "" || wanted == "all" || slices.Contains(strings.Split(wanted, ","), p.name) {
			run = append(run, p)
		}
	}
	if len(run) == 0 {
		t.Fatalf("ARTEL_CLIENTS=%s names no program", wanted)
	}
	png, err := os.ReadFile("../../testdata/files/alpha.png")
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := os.ReadFile("../../testdata/files/palette.png")
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.ReadFile("../../testdata/files/gray16.png")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{}
	var config strings.Builder
	config.WriteString("services:\n")
	for _, u := range upstreams {
		h := httptest.NewServer(s.faulty(u.dialect, u.open(fake.Options{Responder: s.answer, Models: []string{u.model}})))
		t.Cleanup(h.Close)
		ids := map[string]bool{u.id: true}
		for _, p := range run {
			ids[p.id(u.id)] = true
		}
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			fmt.Fprintf(&config, "  - {id: %s, dialect: %s, baseURL: %q, model: %s, apiKey: sk-upstream, context_window: 200000, capabilities: {input: [text, vision, file]}}\n",
				id, u.dialect, h.URL+u.suffix, u.model)
		}
	}
	snippets := program.Snippets(t, program.Start(t, "../..", config.String()))

	results := make([]map[string]string, len(run)*len(upstreams)) // by row
	limit := 2
	if wanted != "" {
		limit = 4 // programs that meet faults mostly wait
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, limit)
	for i, p := range run {
		for j, u := range upstreams {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				trial := &trial{
					T: t, script: s, program: p, snippets: snippets, service: p.id(u.id), mark: fmt.Sprintf("p%d-%s", i, u.id),
					png: png, embedded: embedded, screen: screen, slow: wanted != "", out: map[string]string{},
				}
				trial.run()
				results[i*len(upstreams)+j] = trial.out
			})
		}
	}
	wg.Wait()
	got := map[string][]map[string]string{}
	for i, p := range run {
		got[p.title] = results[i*len(upstreams):][:len(upstreams)]
		t.Log(section(p, got[p.title], ""))
	}
	if t.Failed() {
		return
	}
	compare(t, got)
}

func (p agent) id(service string) string {
	if p.service == nil {
		return service
	}
	return p.service(service)
}

func digest(data []byte) artel.Digest {
	sum := sha256.Sum256(data)
	return artel.Digest("sha256-" + hex.EncodeToString(sum[:]))
}
