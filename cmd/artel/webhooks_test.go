// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/store"
)

// A hookReceiver counts the requests for each id. Answer may be nil.
type hookReceiver struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string // ids in the order of their requests
}

func newHookReceiver(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *hookReceiver {
	t.Helper()
	rc := &hookReceiver{}
	rc.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		rc.mu.Lock()
		n := len(rc.seen)
		rc.seen = append(rc.seen, r.Header.Get("webhook-id"))
		rc.mu.Unlock()
		if answer != nil {
			answer(n, w, r)
		}
	}))
	t.Cleanup(func() { rc.CloseClientConnections(); rc.Close() })
	return rc
}

func (rc *hookReceiver) ids() []string {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return slices.Clone(rc.seen)
}

const privateWebhooks = "webhooks: {allow_private: true}\n"

// answered sends a message and waits until its run has ended.
func answered(ctx context.Context, t *testing.T, client *httpapi.Client) artel.ConversationID {
	t.Helper()
	c, err := client.CreateConversation(ctx, httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Go."})
	if err != nil {
		t.Fatal(err)
	}
	waitForEnd(ctx, t, client, c.ID, sent.RunID)
	return c.ID
}

// waiting waits until a condition holds.
func waitingFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// endOf returns the name of the delivery of the end of a run.
func endOf(ctx context.Context, t *testing.T, client *httpapi.Client, c artel.ConversationID) string {
	t.Helper()
	for _, e := range wholeLog(ctx, t, client, c) {
		if e.Type == artel.EventRunFinished {
			return fmt.Sprintf("%s/%d", c, e.Seq)
		}
	}
	t.Fatalf("no run of %s has ended", c)
	return ""
}

// TestWebhookAfterKill: a server that is killed after an event and before it was delivered,
// or in the middle of the request, loses none and names none anew.
func TestWebhookAfterKill(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"artel.yaml": privateWebhooks, "s.txtar": "-- turn 1 --\nDone.\n"})
	came := make(chan struct{}, 1)
	rc := newHookReceiver(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 0: // is never answered
			came <- struct{}{}
			<-r.Context().Done()
		case 1: // is to be repeated after the server was killed
			w.WriteHeader(http.StatusInternalServerError)
			came <- struct{}{}
		}
	})
	env := bareEnvironment(dir)
	start := func() (*process, *httpapi.Client) {
		p := serving(t, dir, env, "--scenario", filepath.Join(dir, "s.txtar"))
		return p, httpapi.NewClient(p.url, nil)
	}
	p, client := start()
	made, err := client.MakeWebhook(ctx, httpapi.NewWebhook{Name: "x", URL: rc.URL, Events: []artel.EventType{artel.EventRunFinished}})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for range 2 {
		c := answered(ctx, t, client)
		want = append(want, endOf(ctx, t, client, c))
		<-came
	}
	p.kill()
	_, client = start()
	want = append(want, endOf(ctx, t, client, answered(ctx, t, client)))
	waitingFor(t, "accepted", func() bool {
		all, err := client.Deliveries(ctx, made.ID, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(all.Items) == 3 && !slices.ContainsFunc(all.Items, func(d httpapi.DeliveryView) bool { return d.State != store.DeliveryAccepted })
	})
	got := rc.ids()
	slices.Sort(got)
	if got = slices.Compact(got); len(got) != 3 || slices.ContainsFunc(want, func(id string) bool { return !slices.Contains(got, id) }) {
		t.Errorf("%q were delivered, want %q", got, want)
	}
}

// TestWebhookCommands: the verbs, from the first webhook to its end.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"artel.yaml": privateWebhooks})
	rc := newHookReceiver(t, nil)
	p := serving(t, dir, bareEnvironment(dir))
	run := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "artel", append(append([]string{"webhooks"}, args...), "--server", p.url)...)
		cmd.Dir, cmd.Env = dir, bareEnvironment(dir)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Fatalf("%q: exit code %d, want %d (%v)\n%s", args, code, want, err, out)
		}
		return string(out)
	}
	secret := strings.TrimSpace(run(0, "add", "chat", rc.URL, "--event", "run_finished"))
	id := strings.Fields(run(0, "ls"))[0]
	if !strings.HasPrefix(secret, "whsec_") || !strings.HasPrefix(id, "hook") {
		t.Fatalf("got %q and %q", secret, id)
	}
	name := strings.TrimSpace(run(0, "test", id))
	waitingFor(t, "the test", func() bool { return strings.Contains(run(0, "log", id), "accepted") })
	number := strings.Fields(run(0, "log", id))[0]
	run(0, "again", id, number)
	waitingFor(t, "the repetition", func() bool { return slices.Equal(rc.ids(), []string{name, name}) })
	if next := strings.TrimSpace(run(0, "secret", id)); next == secret || !strings.HasPrefix(next, "whsec_") {
		t.Errorf("got %q", next)
	}
	run(0, "set", id, "--disable", "--name", "off")
	if out := run(0, "ls"); !slices.Contains(strings.Fields(out), "off") || !strings.HasSuffix(strings.TrimSpace(out), "disabled") {
		t.Errorf("got %q", out)
	}
	for _, wrong := range [][]string{{"set", id}, {"again", id, "x"}, {"log", id, "--limit", "0"}} {
		run(2, wrong...)
	}
	run(0, "rm", id)
	if out := run(0, "ls"); out != "" {
		t.Errorf("got %q", out)
	}
}
