// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

var shot = artel.Media{Ref: artel.Ref{Artifact: "a.png", Version: 1}, MediaType: "image/png", Kind: artel.KindImage, Size: 9}

// draftMessages are of all sorts.
func draftMessages() []pipeline.Message {
	text := func(s string) artel.Part { return artel.Text{Text: s} }
	return []pipeline.Message{
		{ID: "p", Role: artel.RoleSystem, Parts: artel.Parts{text("prompt")}, Origin: pipeline.OriginPreset, Stability: pipeline.Static},
		{ID: "1", Role: artel.RoleUser, Parts: artel.Parts{text("look"), shot}, Origin: pipeline.OriginHistory, Stability: pipeline.Session},
		{ID: "2", Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "c", Name: "f", Arguments: json.RawMessage(`{"a": 1}`)}}, Origin: pipeline.OriginHistory},
		{ID: "3", Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "c", Content: "r"}}, Origin: pipeline.OriginHistory},
		{ID: "d", Role: artel.RoleSystem, Parts: artel.Parts{text("note")}, Origin: pipeline.OriginDepth},
		{ID: "4", Role: artel.RoleAssistant, Parts: artel.Parts{artel.Reasoning{Text: "hm", Opaque: json.RawMessage(`"s"`), Service: "svc"}, text("seen")}, Origin: pipeline.OriginHistory},
		{ID: "d", Role: artel.RoleSystem, Parts: artel.Parts{text("note")}, Origin: pipeline.OriginDepth},
		{ID: "5", Role: artel.RoleUser, Parts: artel.Parts{text("and?")}, Origin: pipeline.OriginHistory},
	}
}

const all = `{"id":"p"},{"id":"1"},{"id":"2"},{"id":"3"},{"id":"d"},{"id":"4"},{"id":"d"},{"id":"5"}`

func answered(messages string) ([]pipeline.Message, error) {
	a, err := readAnswer([]byte(`{"version":1,"messages":[` + messages + `]}`))
	if err != nil {
		return nil, err
	}
	return a.apply(draftMessages())
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, messages string
		want           string // ids; else what the refusal says
		refused        bool
	}{
		{"all as they were", all, "p 1 2 3 d 4 d 5", false},
		{"some are left out", `{"id":"1"},{"id":"5"}`, "1 5", false},
		{"an exchange is left out", `{"id":"p"},{"id":"4"},{"id":"5"}`, "p 4 5", false},
		{"another order", `{"id":"5"},{"id":"p"}`, "5 p", false},
		{"other texts", `{"id":"p","text":"x"},{"id":"5","parts":[{"type":"text","text":"y"},{"type":"text","text":"z"}]}`, "p 5", false},
		{"a text beside its picture", `{"id":"1","parts":[{"type":"media","ref":"artifact:a.png@1","media_type":"image/png","kind":"image","size":9},{"type":"text","text":"x"}]},{"id":"5"}`, "1 5", false},
		{"the picture is left out", `{"id":"1","parts":[{"type":"text","text":"x"}]},{"id":"5"}`, "1 5", false},
		{"a new one", `{"id":"n","role":"assistant","text":"x"},{"id":"5"}`, "n 5", false},
		{"another role", `{"id":"p","role":"user"},{"id":"5"}`, "p 5", false},
		{"its parts as they were shown", `{"id":"2","parts":[{"type":"tool_call","id":"c","name":"f","arguments":{"a":1}}]},{"id":"3"},{"id":"4","role":"assistant","parts":[{"type":"reasoning","text":"hm","service":"svc"},{"type":"text","text":"seen"}]},{"id":"5"}`, "2 3 4 5", false},

		{"no id", `{"text":"x"}`, "the id is missing", true},
		{"text and parts", `{"id":"p","text":"x","parts":[]}`, "either text or parts", true},
		{"twice", `{"id":"p"},{"id":"p"},{"id":"5"}`, "more often than in the draft", true},
		{"a new one twice", `{"id":"n","role":"user","text":"x"},{"id":"n","role":"user","text":"x"},{"id":"5"}`, "given twice", true},
		{"an id of ours", `{"id":"artel:reminder","role":"user","text":"x"},{"id":"5"}`, "does not begin with", true},
		{"a long id", `{"id":"` + strings.Repeat("n", 300) + `","role":"user","text":"x"},{"id":"5"}`, "at most", true},
		{"a new tool result", `{"id":"n","role":"tool","text":"x"},{"id":"5"}`, "want system, user or assistant", true},
		{"a new one without a role", `{"id":"n","text":"x"},{"id":"5"}`, "want system, user or assistant", true},
		{"a new one without a text", `{"id":"n","role":"user"},{"id":"5"}`, "needs a text", true},
		{"a new one with a file of somebody", `{"id":"n","role":"user","parts":[{"type":"media","ref":"artifact:cnv_00000000000000000000000000/secret@1","media_type":"image/png","kind":"image"}]},{"id":"5"}`, "texts only", true},
		{"a new call", `{"id":"n","role":"assistant","parts":[{"type":"tool_call","id":"x","name":"f","arguments":{}}]},{"id":"5"}`, "texts only", true},
		{"a file of somebody", `{"id":"1","parts":[{"type":"media","ref":"artifact:cnv_00000000000000000000000000/secret@1","media_type":"image/png","kind":"image"}]},{"id":"5"}`, "none of the message's own", true},
		{"its picture twice", `{"id":"1","parts":[{"type":"media","ref":"artifact:a.png@1","media_type":"image/png","kind":"image","size":9},{"type":"media","ref":"artifact:a.png@1","media_type":"image/png","kind":"image","size":9}]},{"id":"5"}`, "none of the message's own", true},
		{"another call", `{"id":"2","parts":[{"type":"tool_call","id":"c","name":"g","arguments":{"a":1}}]},{"id":"3"},{"id":"5"}`, "cannot be changed", true},
		{"another result", `{"id":"2"},{"id":"3","text":"x"},{"id":"5"}`, "cannot be changed", true},
		{"another text beside state", `{"id":"4","text":"x"},{"id":"5"}`, "cannot be changed", true},
		{"a tool becomes a user", `{"id":"2"},{"id":"3","role":"user"},{"id":"5"}`, "cannot become", true},
		{"a user becomes a tool", `{"id":"5","role":"tool"}`, "cannot become", true},
		{"a role that is none", `{"id":"p","role":"god"},{"id":"5"}`, "cannot become", true},
		{"a call without its result", `{"id":"2"},{"id":"5"}`, "between a tool call and its result", true},
		{"a call at the end", `{"id":"5"},{"id":"2"}`, "no result after it", true},
		{"a result without its call", `{"id":"3"},{"id":"5"}`, "has no call", true},
		{"something between them", `{"id":"2"},{"id":"d"},{"id":"3"},{"id":"5"}`, "between a tool call and its result", true},
		{"the user is silent", `{"id":"p"},{"id":"1"}`, "newest message of the user, 5, is missing", true},
		{"the user speaks as another", `{"id":"5","role":"system"}`, "newest message of the user, 5, is missing", true},
		{"nothing", ``, "newest message of the user", true},
		{"an unknown key", `{"id":"5","content":"x"}`, "cannot be read", true},
		{"an unknown part", `{"id":"5","parts":[{"type":"blob"}]}`, "cannot be read", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ms, err := answered(c.messages)
			if c.refused {
				if err == nil || !strings.Contains(err.Error(), c.want) || artel.KindOf(err) != artel.Invalid {
					t.Errorf("got %v, %v", ms, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, m := range ms {
				ids = append(ids, m.ID)
				if m.ID == "4" && m.Parts[0].(artel.Reasoning).Opaque == nil {
					t.Error("the state of the service is gone")
				}
			}
			if got := strings.Join(ids, " "); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
	for answer, says := range map[string]string{
		"\xff":            "no UTF-8",
		`{"messages":[]}`: "version 0",
		`{"version":2}`:   "version 2",
		`null`:            "version 0",
		`{"version":1,"messages":[` + strings.Repeat(`{"id":"x"},`, maxMessages) + `{"id":"x"}]}`:     "at most 100000",
		`{"version":1,"logs":[{"level":"loud","message":"x"}]}`:                                       "want info, warn or error",
		`{"version":1,"logs":[` + strings.Repeat(`{"level":"info"},`, maxLogs) + `{"level":"info"}]}`: "at most 100",
		strings.Repeat("[", 20_000): "cannot be read",
	} {
		if _, err := readAnswer([]byte(answer)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s: %v", answer, err)
		}
	}
}

// Whatever a program answers, a request that comes of it is whole, and has
// nothing in it but texts and what was in the draft.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"version":1,"messages":[` + all + `]}`,
		`{"version":1,"messages":[{"id":"n","role":"user","text":"x"},{"id":"1","parts":[]},{"id":"5","text":""}],"logs":[{"level":"info","message":"m","details":{"a":1}}]}`,
		`{"version":1,"messages":[{"id":"2","parts":[{"type":"tool_call","id":"c","name":"f","arguments":{"a":1}}]},{"id":"3"},{"id":"5"}]}`,
		`{"version":1,"error":"no"}`, `{}`, `null`, `[`, "\xff",
	} {
		f.Add([]byte(s))
	}
	before := draftMessages()
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := readAnswer(b)
		if err != nil {
			return
		}
		after, err := a.apply(before)
		if err != nil {
			return
		}
		if err := checkExchanges(before, after); err != nil {
			t.Fatal(err)
		}
		for _, m := range after {
			i := slices.IndexFunc(before, func(o pipeline.Message) bool { return o.ID == m.ID })
			for _, p := range m.Parts {
				if _, ok := p.(artel.Text); ok {
					continue
				}
				if i < 0 || !slices.ContainsFunc(before[i].Parts, func(q artel.Part) bool { return equal(artel.Parts{p}, artel.Parts{q}) }) {
					t.Fatalf("%s has %+v", m.ID, p)
				}
			}
		}
	})
}
