// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

var update = flag.Bool("update", false, "write the outcome of scenarios")

// A scene is a scenario file; testdata/scenario/README.md says what is in it.
type scene struct {
	messages []sceneMessage
	scripted bool
	upstream string
	service  string // what the demo's service has beside its name
	outcome  string
}

type sceneMessage struct {
	text    string
	uploads []txtar.File
	compact bool // is asked for instead
}

func readScene(t *testing.T, path string) (scene, *txtar.Archive) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var s scene
	var uploads []txtar.File
	for _, f := range archive.Files {
		word, rest, _ := strings.Cut(f.Name, " ")
		switch word {
		case "upload":
			if f.Name = rest; len(f.Data) == 0 {
				if f.Data, err = os.ReadFile(samplePath(rest)); err != nil {
					t.Fatal(err)
				}
			}
			uploads = append(uploads, f)
		case "message":
			s.messages = append(s.messages, sceneMessage{text: strings.TrimSuffix(string(f.Data), "\n"), uploads: uploads})
			uploads = nil
		case "compact":
			s.messages = append(s.messages, sceneMessage{compact: true})
		case "service":
			s.service = string(f.Data)
		case "turn":
			s.scripted = true
		case "upstream":
			s.upstream = string(f.Data)
		case "outcome":
			s.outcome = string(f.Data)
		}
	}
	return s, archive
}

// An outcome is what came of a scene, however it was played.
type outcome struct {
	messages  []artel.Message
	runs      []artel.RunFinished
	artifacts []artifactOutcome
}

type artifactOutcome struct {
	artel.Artifact
	text     *string
	versions []int
}

func (o outcome) String() string {
	var b strings.Builder
	indent := func(s string) string { return strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n  ") }
	runs := o.runs
	finished := func() {
		if len(runs) > 0 {
			fmt.Fprintf(&b, "run: %s\n", runs[0].State)
			if e := runs[0].Error; e != nil {
				fmt.Fprintf(&b, "  %s\n", e.Kind)
			}
			runs = runs[1:]
		}
	}
	messages := inThreads(o.messages)
	for i, m := range messages {
		if m.Role == artel.RoleUser && !m.Summary && i > 0 && m.Within == "" {
			finished()
		}
		if m.Within != "" {
			fmt.Fprintf(&b, "%s, ", m.Agent)
		}
		if m.Summary {
			fmt.Fprint(&b, "summary:\n")
		} else {
			fmt.Fprintf(&b, "%s:\n", m.Role)
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Text:
				fmt.Fprintf(&b, "  %s\n", indent(p.Text))
			case artel.Media:
				fmt.Fprintf(&b, "  [%s %s]\n", p.Filename, p.MediaType)
			case artel.ToolCall:
				fmt.Fprintf(&b, "  → %s %s\n", p.Name, subject(p.Arguments))
			case artel.ToolResult:
				said := "done"
				if p.IsError {
					said = "refused"
				}
				fmt.Fprintf(&b, "  ← %s\n", said)
			}
		}
	}
	finished()
	for _, a := range o.artifacts {
		fmt.Fprintf(&b, "artifact %s: versions %v, %s, %s, %q\n", a.ID, a.versions, a.MediaType, a.Source, a.Title)
		if a.text != nil {
			fmt.Fprintf(&b, "  %s\n", indent(messageIDs.ReplaceAllString(*a.text, "msg_…")))
		}
	}
	return b.String()
}

var messageIDs = regexp.MustCompile(`msg_[0-9a-z]+`)

// inThreads puts what subagents have said behind what their run has, as those
// that work at the same time have no order among each other.
func inThreads(all []artel.Message) []artel.Message {
	var out, nested []artel.Message
	flush := func() {
		slices.SortStableFunc(nested, func(m, n artel.Message) int { return strings.Compare(string(m.Within), string(n.Within)) })
		out, nested = append(out, nested...), nil
	}
	for _, m := range all {
		if m.Within != "" {
			nested = append(nested, m)
			continue
		}
		if m.Role == artel.RoleUser {
			flush()
		}
		out = append(out, m)
	}
	flush()
	return out
}

// TestScenarios plays every scenario through the HTTP API and through the
// command line, and wants the same outcome of both.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "scenario", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			s, archive := readScene(t, path)
			server, rehearse := stage(t, path, s)
			rehearse()
			played := playHTTP(t, s, server)
			rehearse()
			again := playCLI(t, s, server)
			if *update {
				archive.Files[len(archive.Files)-1].Data = []byte(played.String())
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				s.outcome = played.String()
			}
			for face, got := range map[string]string{"HTTP": played.String(), "CLI": again.String()} {
				if diff := cmp.Diff(s.outcome, got); diff != "" {
					t.Errorf("%s: -want +got\n%s", face, diff)
				}
			}
		})
	}
}

// stage starts what a scene needs, and returns the server and what is to be
// done before the scene is played on it.
func stage(t *testing.T, path string, s scene) (server *process, rehearse func()) {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	env := bareEnvironment(dir)
	if s.service != "" {
		conf := "services:\n  - {id: scripted, dialect: demo, model: demo, " + strings.TrimSpace(s.service) + "}\ndefault_service: scripted\n"
		writeFiles(t, dir, map[string]string{"artel.yaml": conf})
	}
	if s.upstream == "" {
		if !s.scripted {
			return serving(t, dir, env), func() {}
		}
		return serving(t, dir, env, "--scenario", path), func() {}
	}
	upstream, err := launch(dir, env, "fake", "openai", "--addr", "127.0.0.1:0", "--scenario", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(upstream.kill)
	silence := patience // no limit that a busy machine could reach
	if strings.Contains(s.upstream, `"hang"`) {
		silence = 400 * time.Millisecond
	}
	conf := fmt.Sprintf("services: [{id: upstream, baseURL: %q, model: fake-1, apiKey: k, timeout: %d}]\n", upstream.url, silence.Milliseconds())
	writeFiles(t, dir, map[string]string{"artel.yaml": conf})
	return serving(t, dir, env), func() { behave(t, upstream, s.upstream) }
}

// behave tells a fake how to behave.
func behave(t *testing.T, upstream *process, behavior string) {
	t.Helper()
	resp, err := http.Post(strings.TrimSuffix(upstream.url, "/v1")+"/_fake/behave", "application/json", strings.NewReader(behavior))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("behave %s: %s", behavior, resp.Status)
	}
}

func playHTTP(t *testing.T, s scene, p *process) (o outcome) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 3*patience) // long answers are told word by word
	defer stop()
	client := httpapi.NewClient(p.url, nil)
	conversation, err := client.CreateConversation(ctx, httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.messages {
		if m.compact {
			sent, err := client.Compact(ctx, conversation.ID, "")
			if err != nil {
				t.Fatal(err)
			}
			if run := finished(ctx, t, client, conversation.ID, sent.RunID); run.State != artel.RunDone {
				t.Fatalf("%+v", run)
			}
			continue
		}
		message := httpapi.NewMessage{Text: m.text}
		for _, f := range m.uploads {
			a, err := client.Upload(ctx, conversation.ID, f.Name, "", bytes.NewReader(f.Data), int64(len(f.Data)))
			if err != nil {
				t.Fatal(err)
			}
			message.Attachments = append(message.Attachments, string(a.ID))
		}
		sent, err := client.Send(ctx, conversation.ID, message)
		if err != nil {
			t.Fatal(err)
		}
		run := finished(ctx, t, client, conversation.ID, sent.RunID)
		o.runs = append(o.runs, artel.RunFinished{State: run.State, Error: run.Error})
	}
	list, err := client.Messages(ctx, conversation.ID, "", 500)
	if err != nil {
		t.Fatal(err)
	}
	o.messages = list.Items
	artifacts, err := client.Artifacts(ctx, conversation.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range artifacts.Items {
		view, err := client.Artifact(ctx, a.Ref)
		if err != nil {
			t.Fatal(err)
		}
		found := artifactOutcome{Artifact: a, text: view.Content}
		var versions httpapi.List[artel.Version]
		fetchJSON(t, p.url+"/api/v1/conversations/"+string(conversation.ID)+"/artifacts/"+string(a.ID)+"/versions", &versions)
		for _, v := range versions.Items {
			found.versions = append(found.versions, v.Number)
		}
		o.artifacts = append(o.artifacts, found)
	}
	return o
}

// finished follows the events until a run ends, and reads it.
func finished(ctx context.Context, t *testing.T, c *httpapi.Client, id artel.ConversationID, run artel.RunID) artel.Run {
	t.Helper()
	for e, err := range c.Events(ctx, id, 0, patience) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == artel.EventRunFinished && e.Run == run {
			break
		}
	}
	r, err := c.Run(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fetchJSON(t *testing.T, url string, into any) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", url, resp.Status, err)
	}
}

func playCLI(t *testing.T, s scene, p *process) (o outcome) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 3*patience) // long answers are told word by word
	defer stop()
	dir := t.TempDir()
	env := with(bareEnvironment(dir), "ARTEL_SERVER="+p.url)
	var conversation artel.ConversationID
	for _, m := range s.messages {
		if m.compact {
			var done artel.CompactionCompleted
			verbJSON(ctx, t, dir, env, &done, "compact", "--json", string(conversation))
			o.messages = append(o.messages, *done.Message)
			continue
		}
		args := []string{"chat", "--json"}
		if conversation != "" {
			args = append(args, "-c", string(conversation))
		}
		for _, f := range m.uploads {
			if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "-f", f.Name)
		}
		out, code, err := verb(ctx, dir, env, append(args, m.text)...)
		ended := o.hear(t, out)
		if want := min(1, slices.Index([]artel.RunState{artel.RunDone, artel.RunFailed}, ended)); code != want {
			t.Errorf("exit code %d for a run that is %s: %v", code, ended, err)
		}
		conversation = o.messages[0].Conversation
	}
	var artifacts httpapi.List[artel.Artifact]
	verbJSON(ctx, t, dir, env, &artifacts, "ls", string(conversation), "--json")
	for _, a := range artifacts.Items {
		found := artifactOutcome{Artifact: a}
		for n := 1; n < a.Version; n++ {
			ref := a.Ref
			ref.Version = n
			if _, code, _ := verb(ctx, dir, env, "cat", "--json", ref.String()); code == 0 {
				found.versions = append(found.versions, n)
			}
		}
		found.versions = append(found.versions, a.Version)
		var view httpapi.ArtifactView
		verbJSON(ctx, t, dir, env, &view, "cat", "--json", a.Ref.String())
		found.text = view.Content
		o.artifacts = append(o.artifacts, found)
	}
	return o
}

// hear takes what one chat printed into the outcome, and returns how its run
// ended.
func (o *outcome) hear(t *testing.T, out string) artel.RunState {
	t.Helper()
	for line := range strings.Lines(out) {
		var e artel.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var told struct {
			Message *artel.Message
			artel.RunFinished
		}
		switch e.Type {
		case artel.EventUserInput, artel.EventMessageCompleted, artel.EventToolCompleted, artel.EventCompactionCompleted, artel.EventSubagentStarted:
			if err := json.Unmarshal(e.Data, &told); err != nil {
				t.Fatal(err)
			}
			if told.Message != nil {
				o.messages = append(o.messages, *told.Message)
			}
		case artel.EventRunFinished:
			if err := json.Unmarshal(e.Data, &told.RunFinished); err != nil {
				t.Fatal(err)
			}
			o.runs = append(o.runs, told.RunFinished)
		}
	}
	if len(o.runs) == 0 {
		t.Fatalf("no run finished:\n%s", out)
	}
	return o.runs[len(o.runs)-1].State
}

// verbJSON runs a verb that must succeed and decodes what it prints.
func verbJSON(ctx context.Context, t *testing.T, dir string, env []string, into any, args ...string) {
	t.Helper()
	out, _, err := verb(ctx, dir, env, args...)
	if err == nil {
		err = json.Unmarshal([]byte(out), into)
	}
	if err != nil {
		t.Fatalf("artel %s: %v", strings.Join(args, " "), err)
	}
}
