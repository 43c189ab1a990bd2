// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/store/postgres/postgrestest"
)

// TestDatabase: a server keeps everything but bytes in PostgreSQL, which another one may not
// serve at the same time. One that waits for it takes over when the first is killed in the
// middle of a run, with the files and the key that signs addresses.
func TestDatabase(t *testing.T) {
	t.Parallel()
	at, err := postgrestest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(at.Stop)
	dir := t.TempDir()
	script := filepath.Join(dir, "slow.txtar")
	writeFiles(t, dir, map[string]string{"slow.txtar": "-- turn 1 --\n@call create_artifact {\"id\": \"a\", \"title\": \"A\", \"content\": \"one\"}\n-- turn 2 --\n@delay 500ms\nDone.\n"})
	env := with(bareEnvironment(dir), databaseVariable+"="+at.Schema(t), blobsVariable+"=file://"+filepath.Join(dir, "blobs"), "ARTEL_SECRET_KEY="+strings.Repeat("ab", 32))
	args := func(data string, more ...string) []string {
		return append([]string{"serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, data), "--scenario", script}, more...)
	}
	first, err := launch(dir, env, args("first")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.kill)
	if files, _ := filepath.Glob(filepath.Join(dir, "first", "artel.db*")); len(files) > 0 {
		t.Errorf("the data directory has %s", files)
	}
	if _, err := launch(dir, env, args("other")...); err == nil || !strings.Contains(err.Error(), "another server uses this database") {
		t.Errorf("a second server: %v", err)
	}
	client := httpapi.NewClient(first.url, nil)
	c, err := client.CreateConversation(t.Context(), httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	uploaded, err := client.Upload(t.Context(), c.ID, "tide.txt", "text/plain", strings.NewReader("High at noon."), 13)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := client.Sign(t.Context(), artel.Ref{Conversation: c.ID, Artifact: uploaded.ID}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan *process, 1)
	go func() {
		p, err := launch(dir, env, args("second", "--standby")...)
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
	first.kill()
	second := <-ready
	if second == nil {
		t.FailNow()
	}
	t.Cleanup(second.kill)
	client = httpapi.NewClient(second.url, nil)
	if state := waitForEnd(ctx, t, client, c.ID, sent.RunID); state != artel.RunDone {
		t.Errorf("the run is %q", state)
	}
	if got := body(t, second.url+strings.TrimPrefix(signed.URL, first.url)); got != "High at noon." {
		t.Errorf("the signed address gives %q", got)
	}
	if err := second.stop(); err != nil {
		t.Error(err)
	}
}
