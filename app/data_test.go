// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

func (b *bench) noSpool() {
	b.t.Helper()
	left, err := os.ReadDir(b.spool)
	if err != nil || len(left) != 0 {
		b.t.Errorf("the spool holds %v, %v", left, err)
	}
}

func TestAttachments(t *testing.T) {
	b := newBench(t, play(t, "-- turn 1 --\nSeen.\n"))
	c := b.conversation()
	up := b.upload(c, "Photo.txt", "smile")
	if list, _ := b.Artifacts.List(apptest.Context(t), c, ""); len(list) != 1 {
		t.Fatalf("the upload is not visible: %+v", list)
	}
	r := b.ended(b.send(c, run.Input{Attachments: []string{up.Ref.String()}}))
	m := b.messages(c)[0]
	media, ok := m.Parts[0].(artel.Media)
	if !ok || media.Ref.Version != 1 || media.Ref.Conversation != c || media.Filename != "Photo.txt" || media.Size != 5 {
		t.Errorf("got %+v", m.Parts)
	}
	if found, _ := b.Conversations.Find(apptest.Context(t), c); found.Title != "Photo.txt" {
		t.Errorf("got title %q", found.Title)
	}
	root := artel.MessageID("")
	foreign := b.conversation()
	elsewhere := b.upload(foreign, "x.txt", "x")
	tests := map[string]struct {
		in   run.Input
		kind artel.Kind
	}{
		"unknown":                 {run.Input{Attachments: []string{"nothing"}}, artel.NotFound},
		"not an id":               {run.Input{Attachments: []string{"../etc"}}, artel.NotFound},
		"of another conversation": {run.Input{Attachments: []string{elsewhere.Ref.String()}}, artel.Invalid},
		"bytes":                   {run.Input{Attachments: []string{artel.BlobRef(up.Digest).String()}}, artel.Invalid},
		"of another branch":       {run.Input{Attachments: []string{string(up.ID)}, Parent: &root}, artel.NotFound},
		"no such version":         {run.Input{Attachments: []string{string(up.ID) + "@7"}}, artel.NotFound},
		"nothing at all":          {run.Input{Text: " \n"}, artel.Invalid},
		"too many":                {run.Input{Attachments: make([]string, 201)}, artel.TooLarge},
		"too long":                {run.Input{Text: strings.Repeat("x", 1_000_001)}, artel.TooLarge},
		"unknown agent":           {run.Input{Text: "x", Agent: "nobody"}, artel.Invalid},
		"unknown service":         {run.Input{Text: "x", Service: "nothing"}, artel.Invalid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := b.Runs.Send(apptest.Context(t), c, tt.in)
			if artel.KindOf(err) != tt.kind {
				t.Errorf("got %v, kind %s", err, artel.KindOf(err))
			}
			if tt.kind == artel.NotFound && artel.CodeOf(err) != artel.CodeArtifactNotFound {
				t.Errorf("got code %s", artel.CodeOf(err))
			}
		})
	}
	if n := len(b.messages(c)); n != 2 {
		t.Errorf("refused messages were kept: %d", n-2)
	}
	_ = r
}

func TestPinnedAttachment(t *testing.T) {
	b := newBench(t, play(t, "-- turn 1 --\nSeen.\n"))
	c := b.conversation()
	b.upload(c, "note.txt", "one")
	if r, err := b.Tools.Call(apptest.Context(t), c, "rewrite_artifact", json.RawMessage(`{"id":"note.txt","content":"second"}`), app.Target{}, false); err != nil || r.IsError {
		t.Fatalf("got %+v, %v", r, err)
	}
	b.ended(b.send(c, run.Input{Attachments: []string{"note.txt@1", "note.txt"}}))
	parts := b.messages(c)[0].Parts
	if old, now := parts[0].(artel.Media), parts[1].(artel.Media); old.Ref.Version != 1 || old.Size != 3 || now.Ref.Version != 2 || now.Size != 6 {
		t.Errorf("got %+v", parts)
	}
}

func TestDeletedIsNotAttached(t *testing.T) {
	b := newBench(t, play(t, "-- turn 1 --\nSeen.\n"))
	c := b.conversation()
	b.upload(c, "note.txt", "one")
	err := b.config.Store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
		v := artel.Version{Parent: 1, Author: "user", Update: artel.UpdateDelete, MediaInfo: artel.MediaInfo{MediaType: "text/plain", Kind: artel.KindText}, CreatedAt: time.Now()}
		empty := ""
		n, err := tx.Journal.Append(c, "note.txt", v, &empty)
		if err != nil {
			return err
		}
		v.Number = n
		return tx.Journal.Fold(c, "note.txt", v, &empty)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Runs.Send(apptest.Context(t), c, run.Input{Attachments: []string{"note.txt"}}); artel.CodeOf(err) != artel.CodeArtifactNotFound {
		t.Errorf("got %v", err)
	}
}

func TestBranches(t *testing.T) {
	b := newBench(t, play(t, "-- turn 1 --\n@call create_artifact {\"id\":\"note\",\"title\":\"Note\",\"content\":\"same\"}\n-- turn 2 --\nok\n"))
	c := b.conversation()
	first := b.ask(c, "First.")
	root := artel.MessageID("")
	second := b.ended(b.send(c, run.Input{Text: "Second.", Parent: &root}))
	if second.State != artel.RunDone {
		t.Fatalf("got %+v", second.Error)
	}
	versions, err := b.Versions.List(apptest.Context(t), c, "note")
	if err != nil || len(versions) != 2 {
		t.Fatalf("got %+v, %v", versions, err)
	}
	for at, want := range map[artel.MessageID]int{first.Reply: 1, second.Reply: 2, "": 2} {
		if a, _, err := b.Artifacts.Find(apptest.Context(t), c, "note", at); err != nil || a.Version != want {
			t.Errorf("at %q: got version %d, %v; want %d", at, a.Version, err, want)
		}
	}
	branch, err := b.Messages.Branch(apptest.Context(t), c, first.Reply, 0)
	if err != nil || len(branch) != 4 || branch[3].ID != first.Reply {
		t.Errorf("got %+v, %v", branch, err)
	}
	other := b.conversation()
	missing := artel.NewMessageID(time.Now())
	for _, parent := range []artel.MessageID{missing, first.Reply} {
		if _, err := b.Runs.Send(apptest.Context(t), other, run.Input{Text: "x", Parent: &parent}); artel.KindOf(err) != artel.NotFound {
			t.Errorf("parent %s: got %v", parent, err)
		}
		if _, err := b.Artifacts.List(apptest.Context(t), other, parent); artel.KindOf(err) != artel.NotFound {
			t.Errorf("at %s: got %v", parent, err)
		}
	}
}

// TestOwners tries every use case as somebody else: nothing is there.
func TestOwners(t *testing.T) {
	b := newBench(t, play(t, writes))
	c := b.conversation()
	r := b.ask(c, "Go.")
	up := b.upload(c, "a.txt", "private")
	me, mallory := apptest.Context(t), artel.WithOwner(apptest.Context(t), "mallory")
	pinned := artel.Ref{Conversation: c, Artifact: up.ID, Version: 1}.String()
	uses := map[string]func(context.Context) error{
		"find":     func(ctx context.Context) error { _, err := b.Conversations.Find(ctx, c); return err },
		"messages": func(ctx context.Context) error { _, _, err := b.Messages.List(ctx, c, store.Page{}); return err },
		"branch":   func(ctx context.Context) error { _, err := b.Messages.Branch(ctx, c, r.Reply, 0); return err },
		"run":      func(ctx context.Context) error { _, err := b.Runs.Find(ctx, r.ID); return err },
		"page":     func(ctx context.Context) error { _, err := b.Events.Page(ctx, c, 0, 0); return err },
		"last":     func(ctx context.Context) error { _, err := b.Events.Last(ctx, c); return err },
		"follow": func(ctx context.Context) error {
			for _, err := range b.Events.Follow(ctx, c, 0, 0) {
				return err
			}
			return nil
		},
		"stage": func(ctx context.Context) error {
			_, err := b.Artifacts.Stage(ctx, c, app.Upload{Body: strings.NewReader("x")})
			return err
		},
		"add":      func(ctx context.Context) error { _, err := b.Artifacts.Add(ctx, c, nil); return err },
		"list":     func(ctx context.Context) error { _, err := b.Artifacts.List(ctx, c, ""); return err },
		"artifact": func(ctx context.Context) error { _, _, err := b.Artifacts.Find(ctx, c, "note", ""); return err },
		"versions": func(ctx context.Context) error { _, err := b.Versions.List(ctx, c, "note"); return err },
		"version":  func(ctx context.Context) error { _, _, err := b.Versions.Find(ctx, c, "note", 3); return err },
		"raw": func(ctx context.Context) error {
			f, err := b.Artifacts.Open(ctx, c, "note", 0, "")
			return closed(f, err)
		},
		"route": func(ctx context.Context) error {
			_, err := b.Artifacts.Route(ctx, c, "note", "", app.Target{})
			return err
		},
		"file": func(ctx context.Context) error { f, err := b.Files.Open(ctx, pinned); return closed(f, err) },
		"digest": func(ctx context.Context) error {
			f, err := b.Files.Open(ctx, artel.BlobRef(up.Digest).String())
			return closed(f, err)
		},
		"tool": func(ctx context.Context) error {
			_, err := b.Tools.Call(ctx, c, "list_artifacts", nil, app.Target{}, false)
			return err
		},
		"answer": func(ctx context.Context) error { _, err := b.Answers.Find(ctx, "key"); return err },
	}
	if err := b.Answers.Keep(me, store.Answer{Key: "key", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	for name, use := range uses {
		if err := use(mallory); artel.KindOf(err) != artel.NotFound {
			t.Errorf("%s as somebody else: got %v", name, err)
		}
		if name == "follow" {
			continue
		}
		if err := use(me); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, use := range map[string]func() error{
		"send":   func() error { _, err := b.Runs.Send(mallory, c, run.Input{Text: "x"}); return err },
		"cancel": func() error { _, err := b.Runs.Cancel(mallory, r.ID); return err },
		"active": func() error { _, err := b.Runs.Active(mallory, c); return err },
		"delete": func() error { return b.Conversations.Delete(mallory, c) },
	} {
		if err := use(); artel.KindOf(err) != artel.NotFound {
			t.Errorf("%s as somebody else: got %v", name, err)
		}
	}
	if list, _, err := b.Conversations.List(mallory, store.ConversationQuery{}); err != nil || len(list) != 0 {
		t.Errorf("got %+v, %v", list, err)
	}
	if err := b.Conversations.Delete(me, c); err != nil {
		t.Error(err)
	}
	if _, err := b.Conversations.Find(me, c); artel.KindOf(err) != artel.NotFound {
		t.Errorf("after deleting: got %v", err)
	}
}

func closed(f app.File, err error) error {
	if err == nil {
		return f.Content.Close()
	}
	return err
}

func TestFilesSayWhatTheyAre(t *testing.T) {
	b := newBench(t, play(t, writes))
	c := b.conversation()
	b.ask(c, "Go.")
	head, err := b.Files.Open(apptest.Context(t), artel.Ref{Conversation: c, Artifact: "note"}.String())
	if err != nil || head.Immutable || head.Filename != "note.md" || head.Digest == "" {
		t.Errorf("got %+v, %v", head, err)
	}
	_ = closed(head, err)
	fixed, err := b.Files.Open(apptest.Context(t), artel.Ref{Conversation: c, Artifact: "note", Version: 3}.String())
	if err != nil || !fixed.Immutable || fixed.Digest != head.Digest {
		t.Errorf("got %+v, %v", fixed, err)
	}
	_ = closed(fixed, err)
	for _, ref := range []string{"note", "artifact:note", "blob:sha256-00", "", "/etc/passwd", artel.NewDigest([32]byte{}).Hex()} {
		if _, err := b.Files.Open(apptest.Context(t), ref); artel.KindOf(err) != artel.NotFound {
			t.Errorf("%q: got %v", ref, err)
		}
	}
}

func TestFollowCarriesContent(t *testing.T) {
	b := newBench(t, play(t, strings.Replace(writes, "-- turn 4 --", "-- turn 4 --\nHalf a\n@hang\n-- turn 5 --", 1)))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	check := func(when string) {
		t.Helper()
		var created *string
		updates, results := 0, []string{}
		b.until(c, func(e artel.Event) bool {
			switch e.Type {
			case artel.EventArtifactCreated:
				created = decode[artel.ArtifactCreated](t, e).Content
			case artel.EventArtifactUpdated:
				updates++
				if p := decode[artel.ArtifactUpdated](t, e); p.Content != nil {
					t.Errorf("%s: only the first event of an artifact carries its content", when)
				}
			case artel.EventToolCompleted:
				s, _ := decode[artel.ToolCompleted](t, e).Metadata["artifact_snapshot"].(map[string]any)
				text, _ := s["content"].(string)
				results = append(results, text)
			}
			return len(results) == 3
		})
		if created == nil || *created != "one two three" || updates != 2 {
			t.Errorf("%s: created with %v, %d updates", when, created, updates)
		}
		if got := strings.Join(results, "|"); got != "one two three|1 two three|1 2 three" {
			t.Errorf("%s: the results show %q", when, got)
		}
	}
	check("while only the journal has it")
	if _, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil {
		t.Fatal(err)
	}
	check("after it was folded")
	// Who comes late gets the content with the first update that it sees.
	all := b.events(c)
	var after artel.Seq
	for _, e := range all {
		if e.Type == artel.EventArtifactCreated {
			after = e.Seq
		}
	}
	for e, err := range b.Events.Follow(apptest.Context(t), c, after, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != artel.EventArtifactUpdated {
			continue
		}
		if p := decode[artel.ArtifactUpdated](t, e); p.Content == nil || *p.Content != "1 two three" {
			t.Errorf("got %+v", p)
		}
		break
	}
	for _, e := range all {
		if strings.Contains(string(e.Data), `"content":"1 2`) {
			t.Errorf("the stored %s has a snapshot", e.Type)
		}
	}
}

func TestLongContentIsOmitted(t *testing.T) {
	b := newBench(t, nil)
	c := b.conversation()
	long, _ := json.Marshal(map[string]string{"id": "long", "title": "Long", "content": strings.Repeat("界", artel.SnapshotLimit+1)})
	if r, err := b.Tools.Call(apptest.Context(t), c, "create_artifact", long, app.Target{}, false); err != nil || r.IsError {
		t.Fatalf("got %+v, %v", r, err)
	}
	e := b.until(c, ofType(artel.EventArtifactCreated))
	if p := decode[artel.ArtifactCreated](t, e); p.Content != nil || !p.ContentOmitted {
		t.Error("a text over the limit is on the stream")
	}
}

func TestToolsOutsideARun(t *testing.T) {
	b := newBench(t, play(t, writes))
	c := b.conversation()
	call := func(name, args string) string {
		t.Helper()
		r, err := b.Tools.Call(apptest.Context(t), c, name, json.RawMessage(args), app.Target{}, false)
		if err != nil {
			t.Fatal(err)
		}
		return r.Content
	}
	call("create_artifact", `{"id":"mine","title":"Mine","content":"one"}`)
	call("update_artifact", `{"id":"mine","edits":[{"old":"one","new":"two"}]}`)
	versions, err := b.Versions.List(apptest.Context(t), c, "mine")
	if err != nil || len(versions) != 2 || versions[1].Author != "user" {
		t.Errorf("got %+v, %v", versions, err)
	}
	if got := typesOf(b.events(c)); got != "artifact_created artifact_updated" {
		t.Errorf("got %s", got)
	}
	if got := call("read_artifact", `{"id":"nothing"}`); !strings.Contains(got, "no such artifact") {
		t.Errorf("got %s", got)
	}
	if _, err := b.Tools.Call(apptest.Context(t), c, "fly", nil, app.Target{}, false); artel.KindOf(err) != artel.NotFound || artel.CodeOf(err) != "tool_not_found" {
		t.Errorf("got %v", err)
	}
	if n := len(b.Tools.List(apptest.Context(t))); n < 6 {
		t.Errorf("got %d tools", n)
	}
}

func TestAnswers(t *testing.T) {
	now := time.Now()
	b := newBench(t, nil, func(c *app.Config) { c.Options.Now = func() time.Time { return now } })
	keep := func(key string) error {
		return b.Answers.Keep(apptest.Context(t), store.Answer{Key: key, Status: 200, Body: []byte("{}")})
	}
	if err := keep("a"); err != nil {
		t.Fatal(err)
	}
	if err := keep("a"); artel.KindOf(err) != artel.Conflict {
		t.Errorf("the same key again: got %v", err)
	}
	if a, err := b.Answers.Find(apptest.Context(t), "a"); err != nil || string(a.Body) != "{}" || a.CreatedAt.IsZero() {
		t.Errorf("got %+v, %v", a, err)
	}
	now = now.Add(app.KeepAnswers + time.Second)
	if err := keep("b"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Answers.Find(apptest.Context(t), "a"); !errors.Is(err, artel.NotFound) {
		t.Errorf("an old answer is kept: %v", err)
	}
}

func TestTitles(t *testing.T) {
	b := newBench(t, play(t, "-- turn 1 --\nok\n"))
	for text, want := range map[string]string{
		"Hello":                                          "Hello",
		"  One\ttwo \n three":                            "One two",
		"\n\nLate":                                       "Late",
		"\u4f60\u597d":                                   "\u4f60\u597d",
		strings.Repeat("word ", 20):                      strings.TrimSpace(strings.Repeat("word ", 12)) + "…",
		strings.Repeat("\u4e2d", 100):                    strings.Repeat("\u4e2d", 60) + "…",
		strings.Repeat("y", 59):                          strings.Repeat("y", 59),
		"\r\nWindows line\r\nsecond":                     "Windows line",
		"a " + strings.Repeat("\U0001f600", 70):          "a…",
		"https://example.com/" + strings.Repeat("a", 80): "https://example.com/" + strings.Repeat("a", 40) + "…",
	} {
		c := b.conversation()
		b.ask(c, text)
		if found, err := b.Conversations.Find(apptest.Context(t), c); err != nil || found.Title != want {
			t.Errorf("%q: got %q, want %q, %v", text, found.Title, want, err)
		}
	}
}

func TestConversationsAreChecked(t *testing.T) {
	b := newBench(t, nil)
	for name, n := range map[string]app.NewConversation{
		"title":   {Title: strings.Repeat("x", 257)},
		"agent":   {Agent: "nobody"},
		"service": {Service: "nothing"},
	} {
		if _, err := b.Conversations.Create(apptest.Context(t), n); artel.KindOf(err) != artel.Invalid && artel.KindOf(err) != artel.TooLarge {
			t.Errorf("%s: got %v", name, err)
		}
	}
	c, err := b.Conversations.Create(apptest.Context(t), app.NewConversation{Title: " Mine ", Agent: "lead_agent", Service: b.Models.Default(apptest.Context(t)).ID})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := b.Conversations.Find(apptest.Context(t), c.ID); err != nil || found != c || c.Title != "Mine" {
		t.Errorf("got %+v, made %+v, %v", found, c, err)
	}
}
