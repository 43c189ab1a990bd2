// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/sse"
)

// TestManyAtOnce has one server answer twenty conversations at once, each to
// its own user. One reader opens its stream and does not read until all is
// over, and one goes away in the middle: neither changes what happens.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "report.txtar")
	writeFiles(t, dir, map[string]string{"report.txtar": "-- turn 1 --\nI write.\n@delay 300ms\n@call create_artifact {\"id\": \"report\", \"title\": \"Report\", \"content\": \"All is well.\"}\n-- turn 2 --\nDone.\n"})
	p := serving(t, dir, bareEnvironment(dir), "--scenario", script)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	client := httpapi.NewClient(p.url, nil)
	var wg sync.WaitGroup
	for i := range 20 {
		c, err := client.CreateConversation(ctx, httpapi.NewConversation{})
		if err != nil {
			t.Fatal(err)
		}
		var slow *http.Response
		if i == 0 {
			slow = follow(ctx, t, p, c.ID)
		}
		wg.Go(func() {
			said := fmt.Sprintf("Report on number %d.", i)
			sent, err := client.Send(ctx, c.ID, httpapi.NewMessage{Text: said})
			if err != nil {
				t.Error(err)
				return
			}
			if i == 1 {
				leaveEarly(ctx, t, client, c.ID)
			}
			if state := waitForEnd(ctx, t, client, c.ID, sent.RunID); state != artel.RunDone {
				t.Errorf("run %d is %s", i, state)
			}
			report, err := client.Artifact(ctx, artel.Ref{Conversation: c.ID, Artifact: "report"})
			if err != nil || *report.Content != "All is well." {
				t.Errorf("report %d: %+v, %v", i, report, err)
			}
			list, err := client.Messages(ctx, c.ID, "", 100)
			if err != nil || len(list.Items) != 4 {
				t.Errorf("messages %d: %+v, %v", i, list.Items, err)
			} else if diff := cmp.Diff(artel.Parts{artel.Text{Text: said}}, list.Items[0].Parts); diff != "" {
				t.Errorf("message %d: %s", i, diff)
			}
			if slow != nil {
				readLate(t, slow)
			}
		})
	}
	wg.Wait()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

func follow(ctx context.Context, t *testing.T, p *process, id artel.ConversationID) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/conversations/"+string(id)+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	return resp
}

// readLate reads what a stream holds after the run is over: everything, in
// order, without gaps.
func readLate(t *testing.T, resp *http.Response) {
	defer resp.Body.Close()
	next := artel.Seq(1)
	for frame, err := range sse.Events(resp.Body, 0) {
		if err != nil {
			t.Error(err)
			return
		}
		var e artel.Event
		if err := json.Unmarshal([]byte(frame.Data), &e); err != nil {
			t.Error(err)
			return
		}
		if e.Seq == 0 {
			continue
		}
		if e.Seq != next {
			t.Errorf("event %d comes where %d is due", e.Seq, next)
		}
		if next++; e.Type == artel.EventRunFinished {
			return
		}
	}
	t.Error("the stream ended before the run did")
}

// leaveEarly follows until the model speaks, and goes away.
func leaveEarly(ctx context.Context, t *testing.T, client *httpapi.Client, id artel.ConversationID) {
	for e, err := range client.Events(ctx, id, 0, patience) {
		if err != nil {
			t.Error(err)
			return
		}
		if e.Type == artel.EventMessageDelta {
			return
		}
	}
}

func waitForEnd(ctx context.Context, t *testing.T, client *httpapi.Client, id artel.ConversationID, run artel.RunID) artel.RunState {
	for e, err := range client.Events(ctx, id, 0, patience) {
		if err != nil {
			t.Error(err)
			return ""
		}
		var told artel.RunFinished
		if e.Type == artel.EventRunFinished && e.Run == run && json.Unmarshal(e.Data, &told) == nil {
			return told.State
		}
	}
	return ""
}

// TestHelpNamesEveryVerb holds the help to the verbs that there are.
func TestHelpNamesEveryVerb(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, _, err := verb(t.Context(), dir, bareEnvironment(dir), "help")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq("serve chat put get ls cat detect route models demo fake version") {
		if !strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("the help lacks %s", name)
		}
	}
}
