// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

// searching calls the tool on a history of which message n has the id msg_n.
func searching(t *testing.T, history []artel.Message, args string) tool.Result {
	t.Helper()
	for i := range history {
		history[i].ID = artel.MessageID(fmt.Sprintf("msg_%d", i))
		history[i].CreatedAt = time.Date(2026, 11, 26, 14, 3, i, 0, time.UTC)
	}
	set, err := tool.NewSet(tool.SearchHistoryTool())
	if err != nil {
		t.Fatal(err)
	}
	e := &tool.Env{History: func(context.Context) ([]artel.Message, error) { return history, nil }}
	r, err := set.Call(t.Context(), e, tool.SearchHistory, json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(role artel.Role, s string) artel.Message {
	return artel.Message{Role: role, Parts: artel.Parts{artel.Text{Text: s}}}
}

func TestSearchHistory(t *testing.T) {
	picture := artel.Media{Ref: artel.Ref{Artifact: "chart", Version: 1}, MediaType: "image/png", Filename: "chart.png"}
	history := func() []artel.Message {
		return []artel.Message{
			text(artel.RoleUser, "How high is the red crane at Pier 9? <b>"),
			{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "c1", Name: "read_artifact", Arguments: json.RawMessage(`{"id":"cranes"}`)}}},
			{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "c1", Content: strings.Repeat("blue crane, 12 m\n", 60) + "red\ncrane: 47 m & <more>", Parts: artel.Parts{picture}}}},
			text(artel.RoleAssistant, "Der rote Kran ist 47 m hoch. "+strings.Repeat("und so fort ", 200)+"am Kai 9"),
			text(artel.RoleUser, "起重机有多高？"),
		}
	}
	for name, c := range map[string]struct {
		args string
		want []string // ids, in order
		has  string
	}{
		"all words, any case":     {`{"words":"CRANE red"}`, []string{"msg_2", "msg_0"}, `tool="read_artifact"`},
		"a phrase over lines":     {`{"words":"\"red crane\""}`, []string{"msg_2", "msg_0"}, "red crane: 47 m &amp; &lt;more&gt;"},
		"escaped":                 {`{"words":"pier"}`, []string{"msg_0"}, "&lt;b&gt;"},
		"no expression":           {`{"words":"c.ane"}`, nil, "Nothing matches."},
		"a word in Chinese":       {`{"words":"起重机"}`, []string{"msg_4"}, "起重机有多高？"},
		"calls":                   {`{"words":"read_artifact cranes"}`, []string{"msg_1"}, "call read_artifact {"},
		"media":                   {`{"words":"chart.png"}`, []string{"msg_2"}, "artifact:chart@1"},
		"places far apart":        {`{"words":"Kran Kai"}`, []string{"msg_3"}, " … "},
		"some words":              {`{"words":"crane Kran yacht"}`, []string{"msg_3", "msg_2", "msg_1", "msg_0"}, "No message has all words"},
		"fewer than there are":    {`{"words":"crane","max":1}`, []string{"msg_2"}, "[2 more messages match"},
		"the time and the author": {`{"words":"rote"}`, []string{"msg_3"}, `role="assistant" at="2026-11-26T14:03:03Z"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := searching(t, history(), c.args)
			var got []string
			for _, part := range strings.Split(r.Content, `<match message="`)[1:] {
				id, _, _ := strings.Cut(part, `"`)
				got = append(got, id)
			}
			if r.IsError || strings.Join(got, " ") != strings.Join(c.want, " ") || !strings.Contains(r.Content, c.has) {
				t.Errorf("got %v, want %v with %q:\n%s", got, c.want, c.has, r.Content)
			}
			if n := utf8.RuneCountInString(r.Content); n > 2500 {
				t.Errorf("it has %d characters", n)
			}
		})
	}
}

// TestSearchHistoryIsBounded: neither many matches nor a long message make a long
// result, and what is left out is said and can be read on.
func TestSearchHistoryIsBounded(t *testing.T) {
	var history []artel.Message
	for range 500 {
		history = append(history, text(artel.RoleUser, strings.Repeat("crane & pier ", 2000)))
	}
	r := searching(t, history, `{"words":"crane","max":50}`)
	if n := len(r.Content); n > 9000 || !strings.Contains(r.Content, "more messages match") || r.Metadata["complete"] != false {
		t.Errorf("%d bytes: %.300s … %s", n, r.Content, r.Content[n-200:])
	}
	var read strings.Builder
	args, pages := `{"message":"msg_7"}`, 0
	for ; args != "" && pages < 20; pages++ {
		r := searching(t, history, args)
		if n := utf8.RuneCountInString(r.Content); r.IsError || n > 8600 {
			t.Fatalf("page %d has %d characters: %.200s", pages, n, r.Content)
		}
		head, body, _ := strings.Cut(r.Content, ">\n")
		read.WriteString(strings.TrimSuffix(body, "\n</history_message>"))
		args = ""
		if _, hint, more := strings.Cut(head, "offset="); more {
			var line, column int
			if _, err := fmt.Sscanf(hint, "%d, column=%d", &line, &column); err != nil {
				t.Fatalf("%s: %v", hint, err)
			}
			args = fmt.Sprintf(`{"message":"msg_7","offset":%d,"column":%d}`, line, column)
		}
	}
	if want := strings.Repeat("crane & pier ", 2000); read.String() != want || pages < 3 {
		t.Errorf("in %d pages %d characters were read of %d", pages, read.Len(), len(want))
	}
}

func TestSearchHistoryRefuses(t *testing.T) {
	one := func() []artel.Message { return []artel.Message{text(artel.RoleUser, "x")} }
	for args, want := range map[string]string{
		`{}`:                              "give words",
		`{"words":"a","message":"b"}`:     "give words",
		`{"words":"\" \""}`:               "has no words",
		`{"words":"a","max":51}`:          "want 1 to 50",
		`{"message":"msg_9"}`:             "no message",
		`{"message":"msg_0","offset":-1}`: "numbers from 1",
		`{"words":"` + strings.Repeat("a ", 21) + `"}`: "has 21 words",
	} {
		if r := searching(t, one(), args); !r.IsError || !strings.Contains(r.Content, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if r := searching(t, nil, `{"words":"a"}`); r.IsError || !strings.Contains(r.Content, "no summary stands") {
		t.Errorf("nothing to search: %+v", r)
	}
	set, err := tool.NewSet(tool.SearchHistoryTool())
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no store")
	e := &tool.Env{History: func(context.Context) ([]artel.Message, error) { return nil, broken }}
	if _, err := set.Call(t.Context(), e, tool.SearchHistory, json.RawMessage(`{"words":"a"}`)); !errors.Is(err, broken) {
		t.Errorf("a broken store: %v", err)
	}
}

// TestSearchHistoryTokens bounds what the declaration costs in each request after a
// compaction.
func TestSearchHistoryTokens(t *testing.T) {
	set, err := tool.NewSet(tool.SearchHistoryTool())
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pipeline.NewRegistry(token.NewCounter(), pipeline.BuiltIn()...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := registry.Count(&model.Request{Service: model.Service{Dialect: model.OpenAI, Model: "gpt-4o"}, Tools: set.Specs()})
	if err != nil || n > 150 {
		t.Errorf("the declaration has %d tokens, %v", n, err)
	}
	t.Logf("%d tokens", n)
}
