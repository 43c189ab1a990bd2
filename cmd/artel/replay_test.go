// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

// TestReplayVerb makes a run of the demo again on it, twice, from two steps, and reads
// what it exports.
func TestReplayVerb(t *testing.T) {
	dir := t.TempDir()
	p := serving(t, dir, bareEnvironment(dir))
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	client := httpapi.NewClient(p.url, nil)
	c, err := client.CreateConversation(ctx, httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Look around."})
	if err != nil {
		t.Fatal(err)
	}
	if r := finished(ctx, t, client, c.ID, sent.RunID); r.State != artel.RunDone {
		t.Fatalf("%+v", r)
	}
	file := filepath.Join(dir, "set.jsonl")
	out, _, err := verb(ctx, dir, bareEnvironment(dir), "replay", "--server", p.url, string(c.ID), "--service", "demo", "--export", file)
	if err != nil || !strings.Contains(out, "demo (recorded)") || !strings.Contains(out, "done") || !strings.Contains(out, " in, ") {
		t.Fatalf("it says %q, %v", out, err)
	}
	if out, _, err := verb(ctx, dir, bareEnvironment(dir), "compact", "--server", p.url, string(c.ID)); err != nil {
		t.Fatalf("it says %q, %v", out, err)
	}
	if out, _, err = verb(ctx, dir, bareEnvironment(dir), "replay", "--server", p.url, string(c.ID), "--service", "demo", "--from", "2", "--export", file); err != nil {
		t.Fatalf("it says %q, %v", out, err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		var item replayItem
		if err := json.Unmarshal([]byte(line), &item); err != nil {
			t.Fatal(err)
		}
		if item.ID != string(sent.RunID)+"/demo" || item.From != i+1 || item.Ideal == "" || item.Output != item.Ideal || len(item.Calls) != len(item.IdealCalls) || item.Difference != nil || item.Input[0].Role != artel.RoleSystem {
			t.Errorf("line %d: %.2000s", i+1, line)
		}
	}
	for _, args := range [][]string{{string(sent.RunID)}, {string(sent.RunID), "--service", "nowhere"}, {string(sent.RunID), "--service", "demo", "--from", "99"}, {"x", "--service", "demo"}} {
		if out, _, err := verb(ctx, dir, bareEnvironment(dir), append([]string{"replay", "--server", p.url}, args...)...); err == nil {
			t.Errorf("%v is no error: %s", args, out)
		}
	}
	t.Log(out)
}
