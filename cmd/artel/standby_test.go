// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

// TestStandby has a second server wait for the first, which is killed in the
// middle of a run: the second goes on with it.
func TestStandby(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "slow.txtar")
	writeFiles(t, dir, map[string]string{"slow.txtar": "-- turn 1 --\n@call create_artifact {\"id\": \"a\", \"title\": \"A\", \"content\": \"one\"}\n-- turn 2 --\n@delay 500ms\nDone.\n"})
	env := bareEnvironment(dir)
	first := serving(t, dir, env, "--scenario", script)
	client := httpapi.NewClient(first.url, nil)
	c, err := client.CreateConversation(t.Context(), httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan *process, 1)
	go func() {
		p, err := launch(dir, env, "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--scenario", script, "--standby")
		if err != nil {
			t.Error(err)
		}
		ready <- p
	}()
	sent, err := client.Send(t.Context(), c.ID, httpapi.NewMessage{Text: "Go."})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for e, err := range client.Events(ctx, c.ID, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == artel.EventToolCompleted {
			break
		}
	}
	select {
	case <-ready:
		t.Fatal("the second server did not wait")
	default:
	}
	began := time.Now()
	first.kill()
	second := <-ready
	if second == nil {
		t.FailNow()
	}
	t.Cleanup(second.kill)
	t.Logf("taken over within %v", time.Since(began))
	if state := waitForEnd(ctx, t, httpapi.NewClient(second.url, nil), c.ID, sent.RunID); state != artel.RunDone {
		t.Errorf("the run is %q", state)
	}
	if err := second.stop(); err != nil {
		t.Error(err)
	}
}
