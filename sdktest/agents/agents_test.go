// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// The rows of a program's table.
var rows = []struct{ id, title string }{
	{"read", "reads a file"},
	{"look", "looks at a picture"},
	{"write", "writes a file"},
	{"edit", "edits two files"},
	{"embedded", "edits and copies a page with an embedded picture"},
	{"shoot", "calls a tool of an MCP server, which returns a picture"},
	{"interrupt", "is interrupted"},
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
		h := httptest.NewServer(u.open(fake.Options{Responder: s.answer, Models: []string{u.model}}))
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
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i, p := range run {
		for j, u := range upstreams {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				results[i*len(upstreams)+j] = try(t, s, p, snippets, p.id(u.id), fmt.Sprintf("p%d-%s", i, u.id), png, embedded, screen)
			})
		}
	}
	wg.Wait()
	got := map[string]string{}
	for i, p := range run {
		got[p.title] = section(p, results[i*len(upstreams):])
		t.Log(got[p.title])
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

// try lets p do the task and be interrupted, and returns the words of the table.
func try(t *testing.T, all *script, p agent, snippets map[program.Snippet]string, service, mark string, png, embedded, screen []byte) map[string]string {
	modules, err := filepath.Abs(filepath.Join("install", p.name, "node_modules"))
	if err != nil {
		t.Error(err)
		return nil
	}
	server := []string{"node"}
	for _, name := range []string{"mcp.mjs", "../../testdata/files/gray16.png"} {
		file, err := filepath.Abs(name)
		if err != nil {
			t.Error(err)
			return nil
		}
		server = append(server, file)
	}
	out := map[string]string{}
	bad := func(row, format string, args ...any) {
		out[row] = "✗"
		t.Errorf("%s with %s: "+format, append([]any{p.title, service}, args...)...)
	}
	session := func(word string) (*session, *process) {
		s := &session{
			mark: mark + "-" + word, dir: t.TempDir(), picture: digest(png), embedded: digest(embedded), screen: digest(screen), shoots: p.server,
			base64: base64.StdEncoding.EncodeToString(embedded), begun: make(chan struct{}), left: make(chan struct{}),
		}
		all.sessions.Store(s.mark, s)
		for name, text := range map[string]string{
			"notes.txt": notesBefore, "greet.js": codeBefore, "page.html": fmt.Sprintf(pageBefore, "old", dataURI(embedded)), "alpha.png": string(png),
		} {
			if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		}
		home := t.TempDir()
		how := p.start(start{model: service, modules: modules, server: server, snippets: snippets})
		r, err := launch(how, "do: "+word+" "+s.mark, modules, home, s.dir)
		if err != nil {
			t.Error(err)
			return s, nil
		}
		t.Cleanup(r.kill)
		return s, r
	}

	s, r := session("work")
	if r == nil {
		return out
	}
	err = r.wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || !s.ended || len(s.problems) > 0 {
		t.Errorf("%s with %s: the task ended %v at step %d (%v), %q, tools %q\n%s", p.title, service, s.ended, s.step, err, s.problems, s.offered, r.said())
	}
	file := func(name string) string {
		b, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	same := func(row, name, want string) {
		if got := file(name); got != want {
			short := strings.NewReplacer(s.base64, "THE PICTURE")
			bad(row, "%s (-want +got):\n%s", name, cmp.Diff(short.Replace(want), short.Replace(got)))
		}
	}
	for _, row := range rows {
		out[row.id] = "✓"
	}
	if !s.read {
		bad("read", "the text of the file did not arrive")
	}
	switch {
	case p.blind && s.looked == "":
		out["look"] = "not sent"
	case p.blind || s.looked == "":
		bad("look", "of the picture came %q, and %q", s.looked, s.results)
	default:
		out["look"] = s.looked
	}
	if out["shoot"] = s.shot; p.server && s.shot == "" {
		bad("shoot", "the picture of the MCP server did not arrive, but %q; tools %q", s.results, s.offered)
	}
	same("write", "made.md", made)
	same("edit", "notes.txt", notesAfter)
	same("edit", "greet.js", codeAfter)
	same("embedded", "page.html", fmt.Sprintf(pageBefore, "new", dataURI(embedded)))
	same("embedded", "copy.html", fmt.Sprintf(pageTag, "copy", dataURI(embedded))+"\n")

	w, r := session("wait")
	if r == nil {
		return out
	}
	late := time.After(patience)
	select {
	case <-w.begun:
	case <-r.done:
		bad("interrupt", "it ended by itself: %v\n%s", r.err, r.said())
		return out
	case <-late:
		bad("interrupt", "no answer began\n%s", r.said())
		return out
	}
	r.interrupt()
	for _, c := range []struct {
		end  <-chan struct{}
		what string
	}{{w.left, "the call of the service goes on"}, {r.done, "the program goes on"}} {
		select {
		case <-c.end:
		case <-late:
			bad("interrupt", "%s\n%s", c.what, r.said())
			return out
		}
	}
	return out
}
