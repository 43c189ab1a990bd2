// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/sdktest/program"
)

// A trial lets a program do everything with one service.
type trial struct {
	*testing.T
	script                *script
	program               agent
	snippets              map[program.Snippet]string
	service, mark         string
	png, embedded, screen []byte
	slow                  bool              // with the slow rows
	out                   map[string]string // the words of the table, by row
}

// bad notes that the program fails in a row.
func (t *trial) bad(row, format string, args ...any) {
	t.out[row] = "✗"
	t.Errorf("%s with %s: "+format, append([]any{t.program.title, t.service}, args...)...)
}

// session starts the program; nil: it could not.
func (t *trial) session(word string) (*session, *process) {
	modules, err := filepath.Abs(filepath.Join("install", t.program.name, "node_modules"))
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	server := []string{"node"}
	for _, name := range []string{"mcp.mjs", "../../testdata/files/gray16.png"} {
		file, err := filepath.Abs(name)
		if err != nil {
			t.Error(err)
			return nil, nil
		}
		server = append(server, file)
	}
	s := &session{
		mark: t.mark + "-" + word, word: word, disturbed: t.slow, dir: t.TempDir(),
		picture: digest(t.png), embedded: digest(t.embedded), screen: digest(t.screen), shoots: t.program.server,
		base64: base64.StdEncoding.EncodeToString(t.embedded), begun: make(chan struct{}), left: make(chan struct{}),
	}
	t.script.sessions.Store(s.mark, s)
	for name, text := range map[string]string{
		"notes.txt": notesBefore, "greet.js": codeBefore, "page.html": fmt.Sprintf(pageBefore, "old", dataURI(t.embedded)), "alpha.png": string(t.png),
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	how := t.program.start(start{model: t.service, modules: modules, server: server, snippets: t.snippets})
	r, err := launch(how, "do: "+word+" "+s.mark, modules, t.TempDir(), s.dir)
	if err != nil {
		t.Error(err)
		return s, nil
	}
	t.Cleanup(r.kill)
	return s, r
}

func (t *trial) run() {
	t.work()
	if t.slow {
		t.fails("again", "shown", "No room for MARK.")
		t.fails("break", "shown", "broke off")
		t.fails("deny", "✓", "No key for MARK here.")
	}
	t.fails("refuse", "✓", "No prompts like MARK here.")
	t.interrupted()
}

// work lets the program do the task.
func (t *trial) work() {
	p, out := t.program, t.out
	s, r := t.session("work")
	if r == nil {
		return
	}
	err := r.wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || !s.ended || len(s.problems) > 0 {
		t.Errorf("%s with %s: the task ended %v at step %d (%v), %q, tools %q\n%s", p.title, t.service, s.ended, s.step, err, s.problems, s.offered, r.said())
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
			t.bad(row, "%s (-want +got):\n%s", name, cmp.Diff(short.Replace(want), short.Replace(got)))
		}
	}
	for _, row := range []string{"read", "write", "edit", "embedded"} {
		out[row] = "✓"
	}
	if t.slow {
		out["retries"] = "✓"
	}
	t.tokens(s, r)
	if !s.read {
		t.bad("read", "the text of the file did not arrive")
	}
	switch {
	case p.blind && s.looked == "":
		out["look"] = "not sent"
	case p.blind || s.looked == "":
		t.bad("look", "of the picture came %q, and %q", s.looked, s.results)
	default:
		out["look"] = s.looked
	}
	if out["shoot"] = s.shot; p.server && s.shot == "" {
		t.bad("shoot", "the picture of the MCP server did not arrive, but %q; tools %q", s.results, s.offered)
	}
	same("write", "made.md", made)
	same("edit", "notes.txt", notesAfter)
	same("edit", "greet.js", codeAfter)
	same("embedded", "page.html", fmt.Sprintf(pageBefore, "new", dataURI(t.embedded)))
	same("embedded", "copy.html", fmt.Sprintf(pageTag, "copy", dataURI(t.embedded))+"\n")
}

// interrupted lets the program be interrupted while a model answers.
func (t *trial) interrupted() {
	w, r := t.session("wait")
	if r == nil {
		return
	}
	late := time.After(patience)
	select {
	case <-w.begun:
	case <-r.done:
		t.bad("interrupt", "it ended by itself: %v\n%s", r.err, r.said())
		return
	case <-late:
		t.bad("interrupt", "no answer began\n%s", r.said())
		return
	}
	r.interrupt()
	for _, c := range []struct {
		end  <-chan struct{}
		what string
	}{{w.left, "the call of the service goes on"}, {r.done, "the program goes on"}} {
		select {
		case <-c.end:
		case <-late:
			t.bad("interrupt", "%s\n%s", c.what, r.said())
			return
		}
	}
	t.out["interrupt"] = "✓"
}
