// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// history draws a branch: any roles, calls and results in any order, with ids
// that come again, and attachments of the given artifacts.
func history(t *rapid.T, files []artel.Artifact) []artel.Message {
	call := rapid.SampledFrom([]artel.CallID{"a", "b", "c"})
	word := rapid.SampledFrom([]string{"", " ", "hello", "some longer words in a row", "中文"})
	ms := make([]artel.Message, rapid.IntRange(0, 12).Draw(t, "messages"))
	for i := range ms {
		m := artel.Message{ID: artel.MessageID(fmt.Sprintf("m%02d", i))}
		m.Muted = rapid.IntRange(0, 9).Draw(t, "muted") == 0
		m.Summary = rapid.IntRange(0, 9).Draw(t, "summary") == 0
		m.Agent = rapid.SampledFrom([]artel.AgentName{"", "", "lead", "other"}).Draw(t, "agent")
		var parts artel.Parts
		if len(files) > 0 && rapid.Bool().Draw(t, "attach") {
			parts = artel.Parts{rapid.SampledFrom(files).Draw(t, "file").MediaPart()}
		}
		switch rapid.IntRange(0, 3).Draw(t, "role") {
		case 0:
			m.Role, m.Parts = artel.RoleUser, append(parts, artel.Text{Text: word.Draw(t, "text")})
		case 1:
			m.Role, m.Parts = artel.RoleAssistant, artel.Parts{artel.Text{Text: word.Draw(t, "text")}}
		case 2:
			m.Role = artel.RoleAssistant
			for range rapid.IntRange(1, 2).Draw(t, "calls") {
				m.Parts = append(m.Parts, artel.ToolCall{ID: call.Draw(t, "id"), Name: "f", Arguments: json.RawMessage(`{}`)})
			}
		default:
			m.Role = artel.RoleTool
			m.Parts = artel.Parts{artel.ToolResult{CallID: call.Draw(t, "id"), Content: word.Draw(t, "text"), Parts: parts}}
		}
		ms[i] = m
	}
	return ms
}

func TestBuildKeepsItsPromises(t *testing.T) {
	w := newWorld(t)
	shot := picture(t)
	secret := append([]byte("%PDF-1.4\n"), []byte(strings.Repeat("\x00\x01binary payload\xff", 40))...)
	files := []artel.Artifact{w.upload("a.png", shot), w.upload("b.pdf", secret), w.upload("c.txt", []byte("plain text"))}
	w.create("task_plan", "- [ ] one")
	registry := builtIn(t)
	capability := rapid.SampledFrom([]artel.Capability{artel.CanText, artel.CanVision, artel.CanFile})

	rapid.Check(t, func(rt *rapid.T) {
		in := input(service(rapid.SampledFrom([]int{0, 300, 600, 2000, 8000}).Draw(rt, "window"), rapid.SliceOfN(capability, 0, 2).Draw(rt, "can")...), history(rt, files)...)
		in.Agent.Prompt, in.Now, in.Sources = "You lead.", now, w.files
		in.Placement = rapid.SampledFrom([]pipeline.Placement{"", pipeline.PlaceTail, pipeline.PlaceSystem}).Draw(rt, "placement")
		before, err := json.Marshal(in.History)
		if err != nil {
			rt.Fatal(err)
		}
		r, err := registry.Build(t.Context(), in)
		after, _ := json.Marshal(in.History)
		if string(before) != string(after) {
			rt.Fatal("the history was written into")
		}
		if errors.Is(err, artel.TooLarge) {
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		again, err := builtIn(t).Build(t.Context(), in)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(r.Request, again.Request); diff != "" || r.Record.RequestHash != again.Record.RequestHash {
			rt.Fatalf("two builds differ:\n%s", diff)
		}
		wholeExchanges(rt, r.Request.Messages)
		inOrder(rt, in, r)
		noBytes(rt, r.Request.Messages, in.Service, shot, secret)
		if tk := r.Record.Tokens; tk.Budget > 0 && tk.Total > tk.Budget {
			rt.Fatalf("over the budget: %+v", tk)
		}
		steps := r.Record.Processors
		for i, s := range steps {
			if i > 0 && s.TokensBefore != steps[i-1].TokensAfter {
				rt.Fatalf("tokens change between processors: %+v", steps)
			}
		}
	})
}

// wholeExchanges fails where a call has not one result right after it, or a
// result no call.
func wholeExchanges(t *rapid.T, ms []model.Message) {
	open := map[artel.CallID]int{}
	close := func() {
		for id, n := range open {
			if n > 0 {
				t.Fatalf("%d calls %s without results", n, id)
			}
		}
	}
	for _, m := range ms {
		if m.Role != artel.RoleTool {
			close()
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.ToolCall:
				open[p.ID]++
			case artel.ToolResult:
				if open[p.CallID]--; open[p.CallID] < 0 {
					t.Fatalf("a result without a call of its own: %v", p)
				}
			}
		}
	}
	close()
}

func inOrder(t *rapid.T, in pipeline.Input, r pipeline.Result) {
	at := map[string]int{pipeline.RolePromptID: -1, pipeline.ReminderID: len(in.History)}
	for i, m := range in.History {
		at[string(m.ID)] = i
	}
	last := -2
	for _, id := range ids(r) {
		if strings.HasPrefix(id, "artel:no-result:") {
			continue // right after its call; see wholeExchanges
		}
		i, ok := at[id]
		if !ok || i <= last {
			t.Fatalf("order: %v", ids(r))
		}
		if i >= 0 && i < len(in.History) && (in.History[i].Muted || in.History[i].Agent == "other") {
			t.Fatalf("%s should not be sent", id)
		}
		last = i
	}
}

func noBytes(t *rapid.T, ms []model.Message, s model.Service, secrets ...[]byte) {
	var walk func(ps artel.Parts)
	check := func(text string) {
		for _, b := range secrets {
			encoded := base64.StdEncoding.EncodeToString(b)
			for i := 0; i+24 <= len(encoded); i += 24 {
				if strings.Contains(text, encoded[i:i+24]) {
					t.Fatal("base64 in a text")
				}
			}
			if strings.Contains(text, string(b[len(b)-16:])) {
				t.Fatal("bytes in a text")
			}
		}
	}
	walk = func(ps artel.Parts) {
		for _, p := range ps {
			switch p := p.(type) {
			case artel.Text:
				check(p.Text)
			case artel.ToolResult:
				check(p.Content)
				walk(p.Parts)
			case artel.Media:
				if !p.Ref.IsBlob() || p.Kind == artel.KindText || !s.Capabilities.Has(p.Kind.Needs()) {
					t.Fatalf("not for this service: %+v", p)
				}
			}
		}
	}
	for _, m := range ms {
		walk(m.Parts)
	}
}
