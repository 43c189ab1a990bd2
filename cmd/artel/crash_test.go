// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model/fake"
)

// How the scenario of the ledger goes: so many turns, and edits in each.
const (
	ledgerTurns = 3
	ledgerEdits = 4
	ledgerID    = "ledger"
)

func ledgerText(n int) string { return fmt.Sprintf("entries: %03d\n", n) }

// ledger is a scenario that edits one artifact again and again.
func ledger() string {
	quote := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	var b strings.Builder
	fmt.Fprintf(&b, "-- turn 1 --\n@call create_artifact {\"id\": %q, \"title\": \"Ledger\", \"content\": %s}\n", ledgerID, quote(ledgerText(0)))
	for turn := range ledgerTurns {
		fmt.Fprintf(&b, "-- turn %d --\nI write.\n@delay 1ms\n", turn+2)
		for i := range ledgerEdits {
			n := turn*ledgerEdits + i
			fmt.Fprintf(&b, "@call update_artifact {\"id\": %q, \"edits\": [{\"old\": %s, \"new\": %s}]}\n", ledgerID, quote(ledgerText(n)), quote(ledgerText(n+1)))
		}
	}
	fmt.Fprintf(&b, "-- turn %d --\nThe ledger is written.\n", ledgerTurns+2)
	return b.String()
}

// TestKills kills a server in the middle of its work, again and again, and
// wants everything that it acknowledged to be there after the next start, every
// run to come to its end with each step done once, and no answer of the model
// that was kept to be paid for again. ARTEL_SOAK is the number of kills (20),
// ARTEL_SEED makes a run again, ARTEL_SOAK_REPORT names a file for the report.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := number(t, "ARTEL_SOAK", 20)
	seed := uint64(number(t, "ARTEL_SEED", int(time.Now().UnixNano())))
	t.Logf("ARTEL_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, seed))
	const perFolder = 25 // so that checking everything stays quick
	all := &soak{states: map[artel.RunState]int{}}
	for left := kills; left > 0; left -= perFolder {
		all.add(killAndCheck(t, rnd, min(left, perFolder)))
	}
	t.Logf("%d kills, runs ended %v, %d edits, %d paid calls, starts took %v (half) and %v (all)", all.kills, all.states, all.edits, all.calls, all.start(50), all.start(100))
	if path := os.Getenv("ARTEL_SOAK_REPORT"); path != "" && !t.Failed() {
		if err := os.WriteFile(path, []byte(all.report(seed)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func number(t *testing.T, name string, standard int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return standard
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: want a number from 1", name, v)
	}
	return n
}

func killAndCheck(t *testing.T, rnd *rand.Rand, kills int) *soak {
	t.Helper()
	dir := t.TempDir()
	paid := newBill(t)
	upstream := httptest.NewServer(fake.OpenAI(fake.Options{Responder: paid.answer}))
	defer upstream.Close()
	env := with(bareEnvironment(dir), "OPENAI_API_KEY=sk-soak", "OPENAI_BASE_URL="+upstream.URL+"/v1")
	s := &soak{states: map[artel.RunState]int{}}
	p := serving(t, dir, env)
	for s.kills < kills {
		w := newWitness(t, p, paid)
		for range min(1+rnd.IntN(3), kills-s.kills) { // one run is killed up to three times
			if w.ended { // nothing comes any more
				break
			}
			w.work(t, p, rnd)
			s.kills++
			kept := w.answersKept(t, filepath.Join(dir, "data", "artel.db"))
			paid.keep(string(w.conversation), kept)
			began := time.Now()
			p = serving(t, dir, env)
			s.starts = append(s.starts, time.Since(began))
			checkFolders(t, filepath.Join(dir, "data"))
		}
		s.edits += w.check(t, p, s.states)
		s.calls += paid.check(t, string(w.conversation))
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	checkDatabase(t, filepath.Join(dir, "data", "artel.db"))
	return s
}

// A soak is what came of many kills.
type soak struct {
	kills, edits, calls int
	states              map[artel.RunState]int
	starts              []time.Duration // of servers after a kill
}

func (s *soak) add(o *soak) {
	s.kills, s.edits, s.calls, s.starts = s.kills+o.kills, s.edits+o.edits, s.calls+o.calls, append(s.starts, o.starts...)
	for state, n := range o.states {
		s.states[state] += n
	}
}

// start is how long so many of a hundred starts took at most.
func (s *soak) start(percent int) time.Duration {
	slices.Sort(s.starts)
	return s.starts[min(len(s.starts)-1, len(s.starts)*percent/100)].Round(time.Millisecond)
}

// A witness is what a client was told before the server died.
type witness struct {
	conversation artel.ConversationID
	sent         httpapi.Sent // zero: not acknowledged
	events       []artel.Event
	ended        bool              // the end of the run was seen
	uploads      map[string][]byte // by ref
}

func newWitness(t *testing.T, p *process, paid *bill) *witness {
	t.Helper()
	c, err := httpapi.NewClient(p.url, nil).CreateConversation(t.Context(), httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	paid.open(string(c.ID))
	return &witness{conversation: c.ID, uploads: map[string][]byte{}}
}

// work has the server keep the ledger while files go up, and kills it after so
// many events or so long a time.
func (w *witness) work(t *testing.T, p *process, rnd *rand.Rand) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	client := httpapi.NewClient(p.url, nil)
	most, longest := rnd.IntN(30), time.Hour
	if rnd.IntN(2) == 0 {
		most, longest = 1<<30, time.Duration(rnd.Int64N(int64(400*time.Millisecond)))
	}
	after := artel.Seq(0)
	if n := len(w.events); n > 0 {
		after = w.events[n-1].Seq
	}
	enough := make(chan struct{})
	size, fill := 1+rnd.IntN(1<<16), rand.NewChaCha8([32]byte{byte(rnd.IntN(256))})
	first := w.sent.RunID == ""
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(enough)
		n := 0
		for e, err := range client.Events(ctx, w.conversation, after, 0) {
			if err != nil {
				return
			}
			if e.Seq > 0 {
				w.events = append(w.events, e)
			}
			w.ended = w.ended || e.Type == artel.EventRunFinished
			if n++; n > most || w.ended {
				return
			}
		}
	})
	wg.Go(func() {
		for i := range 2 {
			content := make([]byte, size)
			_, _ = fill.Read(content) // never fails
			a, err := client.Upload(ctx, w.conversation, fmt.Sprintf("f%d.bin", i), "", bytes.NewReader(content), int64(size))
			if err != nil {
				return
			}
			a.Ref.Version = a.Version
			w.uploads[a.Ref.String()] = content
		}
	})
	wg.Go(func() {
		if !first {
			return
		}
		if sent, err := client.Send(ctx, w.conversation, httpapi.NewMessage{Text: "Keep the ledger of " + string(w.conversation) + "."}); err == nil {
			w.sent = sent
		}
	})
	select {
	case <-enough:
	case <-time.After(longest):
	}
	p.kill()
	stop()
	wg.Wait()
}

// answersKept reads the dead server's database: how many answers of the model
// it holds.
func (w *witness) answersKept(t *testing.T, path string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	row := db.QueryRowContext(t.Context(), "SELECT count(*) FROM events WHERE conversation = ? AND type = 'message_completed'", string(w.conversation))
	if err := row.Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// check wants all that w saw, and nothing that is broken. It returns how many
// edits there are.
func (w *witness) check(t *testing.T, p *process, states map[artel.RunState]int) int {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	client := httpapi.NewClient(p.url, nil)
	log := wholeLog(ctx, t, client, w.conversation)
	if len(log) > 0 {
		waitForEnd(ctx, t, client, w.conversation, log[0].Run)
		log = wholeLog(ctx, t, client, w.conversation)
	}
	w.checkEvents(t, log)

	edits, created, told := 0, false, 0
	for _, e := range log {
		switch e.Type {
		case artel.EventArtifactCreated:
			created = true
		case artel.EventArtifactUpdated:
			edits++
		}
	}
	for _, e := range w.events {
		var done artel.ToolCompleted
		if e.Type == artel.EventToolCompleted && json.Unmarshal(e.Data, &done) == nil && done.OK && done.Name == "update_artifact" {
			told++
		}
	}
	if edits < told {
		t.Errorf("%d edits were acknowledged, %d are there", told, edits)
	}
	a, err := client.Artifact(ctx, artel.Ref{Conversation: w.conversation, Artifact: ledgerID})
	switch {
	case err != nil && created:
		t.Errorf("the ledger: %v", err)
	case err == nil && !created:
		t.Error("there is a ledger, and no event that tells of it")
	case err == nil && (a.Content == nil || *a.Content != ledgerText(edits) || a.Live):
		t.Errorf("the ledger after %d edits: %+v", edits, a)
	}
	if want := ledgerTurns * ledgerEdits; len(log) > 0 && edits != want {
		t.Errorf("the ledger has %d entries, want each of %d once", edits, want)
	}
	w.checkRuns(ctx, t, client, log, states)
	for ref, want := range w.uploads {
		parsed, err := artel.ParseRef(ref)
		if err != nil {
			t.Fatal(err)
		}
		body, err := client.Open(ctx, parsed)
		if err != nil {
			t.Errorf("upload %s: %v", ref, err)
			continue
		}
		got, err := io.ReadAll(body)
		_ = body.Close()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("upload %s: %d bytes of %d, %v", ref, len(got), len(want), err)
		}
	}
	return edits
}

func wholeLog(ctx context.Context, t *testing.T, client *httpapi.Client, id artel.ConversationID) []artel.Event {
	t.Helper()
	var log []artel.Event
	for {
		page, err := client.Log(ctx, id, artel.Seq(len(log)))
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, page.Items...)
		if page.Next == "" {
			return log
		}
	}
}

// checkEvents wants numbers without gaps, and every event that was seen.
func (w *witness) checkEvents(t *testing.T, log []artel.Event) {
	t.Helper()
	for i, e := range log {
		if e.Seq != artel.Seq(i+1) {
			t.Fatalf("the event after %d has the number %d", i, e.Seq)
		}
	}
	for _, e := range w.events {
		if e.Seq == 0 {
			continue
		}
		if int(e.Seq) > len(log) {
			t.Errorf("event %d (%s) was seen and is lost; the log ends at %d", e.Seq, e.Type, len(log))
			continue
		}
		kept := log[e.Seq-1]
		if kept.Type != e.Type || kept.Run != e.Run || !kept.Time.Equal(e.Time) {
			t.Errorf("event %d was %s of %s, and is %s of %s", e.Seq, e.Type, e.Run, kept.Type, kept.Run)
		}
		if diff := cmp.Diff(lasting(t, e.Data), lasting(t, kept.Data)); diff != "" {
			t.Errorf("event %d (%s): -seen +kept\n%s", e.Seq, e.Type, diff)
		}
	}
}

// lasting is an event's data without what is only told live.
func lasting(t *testing.T, data json.RawMessage) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	metadata, _ := m["metadata"].(map[string]any)
	snapshot, _ := metadata["artifact_snapshot"].(map[string]any)
	for _, in := range []map[string]any{m, snapshot} {
		delete(in, "content")
		delete(in, "content_omitted")
	}
	return m
}

// checkRuns wants every run to have ended once and for all, with its messages.
func (w *witness) checkRuns(ctx context.Context, t *testing.T, client *httpapi.Client, log []artel.Event, states map[artel.RunState]int) {
	t.Helper()
	list, err := client.Messages(ctx, w.conversation, "", 500)
	if err != nil {
		t.Fatal(err)
	}
	messages := map[artel.MessageID]bool{}
	for _, m := range list.Items {
		messages[m.ID] = true
	}
	ended := map[artel.RunID]artel.RunState{}
	started := map[artel.RunID]bool{}
	for _, e := range log {
		var told struct {
			Message artel.Message
			State   artel.RunState
		}
		if state, over := ended[e.Run]; over {
			t.Errorf("event %d (%s) comes after the run was %s", e.Seq, e.Type, state)
		}
		switch e.Type {
		case artel.EventRunStarted:
			started[e.Run] = true
		case artel.EventUserInput, artel.EventMessageCompleted, artel.EventToolCompleted, artel.EventRunFinished:
			if err := json.Unmarshal(e.Data, &told); err != nil {
				t.Fatal(err)
			}
			if id := told.Message.ID; id != "" && !messages[id] {
				t.Errorf("event %d (%s) tells of message %s, which is not there", e.Seq, e.Type, id)
			}
			if e.Type == artel.EventRunFinished {
				ended[e.Run] = told.State
			}
		}
	}
	if w.sent.RunID != "" && !started[w.sent.RunID] {
		t.Errorf("run %s was acknowledged and is lost", w.sent.RunID)
	}
	for id := range started {
		run, err := client.Run(ctx, id)
		if err != nil || run.State != ended[id] || run.State != artel.RunDone || run.FinishedAt == nil {
			t.Errorf("run %s is %+v; its last event says %q; %v", id, run, ended[id], err)
		}
		states[run.State]++
	}
}

// checkFolders wants whole blobs and nothing half done beside them.
func checkFolders(t *testing.T, data string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(data, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || slices.Contains([]string{"lock", "turn.lock"}, d.Name()) {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		if want := hex.EncodeToString(sum[:]) + "." + strconv.Itoa(len(b)); d.Name() != want {
			return fmt.Errorf("%s holds %s", path, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Join(data, "spool"))
	if err != nil || len(left) > 0 {
		t.Errorf("spooled: %v, %v", left, err)
	}
}

// checkDatabase has SQLite look at every page.
func checkDatabase(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var said string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		t.Errorf("integrity: %s %v", said, err)
	}
}

// TestStopAndRestart stops a server as an operator does while a run waits for
// its model and somebody follows, and starts it again.
func TestStopAndRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "hang.txtar")
	writeFiles(t, dir, map[string]string{"hang.txtar": "-- turn 1 --\n@call create_artifact {\"id\": \"draft\", \"title\": \"Draft\", \"content\": \"so far\"}\n-- turn 2 --\nI think\n@hang\n"})
	env := bareEnvironment(dir)
	p := serving(t, dir, env, "--scenario", script)
	client := httpapi.NewClient(p.url, nil)
	c, err := client.CreateConversation(t.Context(), httpapi.NewConversation{Title: "Kept"})
	if err != nil {
		t.Fatal(err)
	}
	upload, err := client.Upload(t.Context(), c.ID, "a.bin", "", bytes.NewReader([]byte{0, 1, 2}), -1)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := client.Send(t.Context(), c.ID, httpapi.NewMessage{Text: "Go.", Attachments: []string{string(upload.ID)}})
	if err != nil {
		t.Fatal(err)
	}
	said, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for e, err := range client.Events(t.Context(), c.ID, 0, 0) {
			if err != nil {
				return
			}
			if e.Type == artel.EventMessageDelta {
				close(said)
			}
		}
	}()
	<-said
	if err := p.stop(); err != nil { // as when its grace period has passed
		t.Fatal(err)
	}
	<-gone

	p = serving(t, dir, env, "--scenario", script)
	client = httpapi.NewClient(p.url, nil)
	run, err := client.Run(t.Context(), sent.RunID)
	if err != nil || run.State != artel.RunRunning {
		t.Errorf("the run is %+v, %v", run, err)
	}
	if a, err := client.Artifact(t.Context(), artel.Ref{Conversation: c.ID, Artifact: "draft"}); err != nil || *a.Content != "so far" {
		t.Errorf("the draft is %+v, %v", a, err)
	}
	body, err := client.Open(t.Context(), upload.Ref)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if b, err := io.ReadAll(body); err != nil || !bytes.Equal(b, []byte{0, 1, 2}) {
		t.Errorf("the upload is %v, %v", b, err)
	}
	for e, err := range client.Events(t.Context(), c.ID, 0, patience) { // it says anew what it said
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == artel.EventMessageDelta {
			break
		}
	}
	if _, err := client.Send(t.Context(), c.ID, httpapi.NewMessage{Text: "Again."}); err == nil || !isRunActive(err) {
		t.Errorf("a second run at once: %v", err)
	}
	if run, err = client.Cancel(t.Context(), sent.RunID); err != nil || run.State != artel.RunCancelled {
		t.Errorf("cancelling it: %+v, %v", run, err)
	}
	// The conversation is free for the next message.
	if _, err := client.Send(t.Context(), c.ID, httpapi.NewMessage{Text: "Again."}); err != nil {
		t.Error(err)
	}
}

func isRunActive(err error) bool {
	p, ok := errors.AsType[*httpapi.Problem](err)
	return ok && p.Code == "run_active" && p.Status == 409
}
