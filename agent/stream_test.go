// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// desk gives the bench a workspace.
func (b *bench) desk(t *testing.T) *artifact.Workspace {
	t.Helper()
	db := rowstest.Open(t)
	err := db.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		return tx.Conversations.Create(artel.Conversation{ID: b.in.Run.Conversation})
	})
	if err != nil {
		t.Fatal(err)
	}
	files := artifact.New(db, blob.NewMemory(), artifact.Options{})
	w := files.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: b.in.Run.Conversation, Author: "tester"})
	b.in.Env = tool.Env{Owner: artel.Local, Conversation: b.in.Run.Conversation, Artifacts: files, Workspace: w}
	return w
}

// A model that writes base64 is heard as if it had named what that is; tools
// get contents as they are written, and nobody is told of more than a
// description.
func TestModelsSpeakWithoutMedia(t *testing.T) {
	png, err := os.ReadFile("../testdata/files/red.png")
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(png)
	page := "<img src=\"data:image/png;base64," + encoded + "\">"
	args, err := json.Marshal(map[string]any{"id": "page", "title": "Page", "content": page})
	if err != nil {
		t.Fatal(err)
	}
	asked, err := json.Marshal(map[string]any{"text": encoded})
	if err != nil {
		t.Fatal(err)
	}
	answer := turn{}
	for _, piece := range strings.SplitAfter("Here it is: "+encoded+" - a red square, ", "A") {
		answer = append(answer, say(piece))
	}
	answer = append(answer, call("c1", "create_artifact", string(args)), call("c2", "echo", string(asked)), tools)
	b := newBench(t, []turn{answer, {say("Done."), end}}, tool.BuiltIn()...)
	w := b.desk(t)
	ref := "artifact:" + string(b.in.Run.Conversation) + "/image_1.png@1"
	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	deltas := ""
	for _, p := range all {
		told, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(told), encoded[20:44]) {
			t.Errorf("%s has it: %.300s", p.EventType(), told)
		}
		switch p := p.(type) {
		case artel.MessageDelta:
			deltas += p.Text
		case artel.ToolCompleted:
			if r := p.Message.Parts[0].(artel.ToolResult); !p.OK || p.Call == "c2" && r.Content != "echo "+ref {
				t.Errorf("%s: %s", p.Name, r.Content)
			}
		}
	}
	if want := "Here it is: " + ref + " - a red square, Done."; deltas != want {
		t.Errorf("said %q, want %q", deltas, want)
	}
	if text, _, err := w.Text(t.Context(), "page", 0); err != nil || text != page {
		t.Errorf("the page is %q, %v", text, err)
	}
	for i, r := range b.requests {
		for _, m := range r.Messages {
			if sent, err := m.Parts.MarshalJSON(); err != nil || strings.Contains(string(sent), encoded[20:44]) {
				t.Errorf("request %d has it: %.300s, %v", i, sent, err)
			}
		}
	}
}
