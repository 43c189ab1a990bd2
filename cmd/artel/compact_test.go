// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

// TestCompactWhileARunWorks: the verb asks the run at work, which waits for a
// person, and tells what that has summed up.
func TestCompactWhileARunWorks(t *testing.T) {
	dir := t.TempDir()
	steering, err := filepath.Abs("../../testdata/steering")
	if err != nil {
		t.Fatal(err)
	}
	p := serving(t, dir, bareEnvironment(dir), "--config", filepath.Join(steering, "artel.yaml"), "--scenario", filepath.Join(steering, "steering.txtar"))
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	client := httpapi.NewClient(p.url, nil)
	c, err := client.CreateConversation(ctx, httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Please keep notes on the harbour."})
	if err != nil {
		t.Fatal(err)
	}
	var out string
	var failed error
	var verbs sync.WaitGroup
	defer verbs.Wait()
	for e, err := range client.Events(ctx, c.ID, 0, time.Minute) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == artel.EventPermissionRequested {
			verbs.Go(func() {
				if out, _, failed = verb(ctx, dir, bareEnvironment(dir), "compact", "--server", p.url, "--focus", "the pier", string(c.ID)); failed != nil {
					stop()
				}
			})
		}
		if e.Type == artel.EventCompactionRequested {
			w, err := client.Waiting(ctx, c.ID)
			if err != nil || !w.Compaction || len(w.Permissions) != 1 {
				t.Fatalf("got %+v, %v", w, err)
			}
			if _, err := client.Decide(ctx, sent.RunID, w.Permissions[0].ID, httpapi.NewDecision{Decision: artel.Allow}); err != nil {
				t.Fatal(err)
			}
		}
		if e.Type == artel.EventRunFinished {
			if e.Run != sent.RunID {
				t.Errorf("%s has ended, want %s alone", e.Run, sent.RunID)
			}
			break
		}
	}
	verbs.Wait()
	if failed != nil || !strings.Contains(out, "messages summed up") || !strings.Contains(out, " tokens\n") || !strings.Contains(out, "summary_1") {
		t.Errorf("it says %q, %v", out, failed)
	}
	list, err := client.Summaries(ctx, c.ID)
	if err != nil || len(list.Items) != 1 || list.Items[0].Focus != "the pier" {
		t.Fatalf("%+v, %v", list, err)
	}
	summary := string(list.Items[0].ID)
	says := func(want []string, verbs ...string) {
		t.Helper()
		out, _, err := verb(ctx, dir, bareEnvironment(dir), append([]string{"compact", verbs[0], "--server", p.url}, verbs[1:]...)...)
		for _, w := range want {
			if err != nil || !strings.Contains(out, w) {
				t.Errorf("%v says %q, %v; want %q", verbs, out, err, w)
			}
		}
	}
	id := string(c.ID)
	says([]string{summary, "active", "messages, ", " → "}, "list", id)
	says([]string{"Please keep notes on the harbour.", "→ create_artifact"}, "read", id, summary)
	says([]string{summary + " is undone", "the next request has about "}, "undo", id)
	says([]string{"undone"}, "list", id)
	says([]string{summary + " is active"}, "redo", id, summary)
	if _, _, err := verb(ctx, dir, bareEnvironment(dir), "compact", "redo", "--server", p.url, id); err == nil {
		t.Error("nothing to redo is no error")
	}
}
