// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/responses"
)

// TestDefinedTools: the tools that the API defines and the client runs become
// functions, and calls of them the items that the client expects.
func TestDefinedTools(t *testing.T) {
	r := decode(t, request(hello, `"tools":[{"type":"local_shell"},{"type":"shell"},{"type":"apply_patch"},{"type":"tool_search","execution":"client","description":"finds","parameters":{"type":"object","properties":{"goal":{"type":"string"}}}},
		{"type":"shell","environment":{"type":"container_auto"}},{"type":"tool_search"},{"type":"code_interpreter","container":{"type":"auto"}},
		{"type":"computer"},{"type":"computer_use_preview","display_width":800,"display_height":600,"environment":"linux"}]`))
	var names, dropped []string
	neutral := r.Neutral()
	for _, tool := range neutral.Tools {
		names = append(names, tool.Name)
		if !json.Valid(tool.Schema) || tool.Description == "" {
			t.Errorf("%s: %q, %s", tool.Name, tool.Description, tool.Schema)
		}
	}
	for _, d := range neutral.Dropped {
		dropped = append(dropped, d.Field)
	}
	if want := []string{"local_shell", "shell", "apply_patch", "tool_search", "computer", "computer_use_preview"}; !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
	if want := []string{"tools.shell", "tools.tool_search", "tools.code_interpreter"}; !slices.Equal(dropped, want) {
		t.Errorf("dropped %v, want %v", dropped, want)
	}
	for name, c := range map[string][2]string{
		"local_shell":          {`{"command":["ls"]}`, `{"type":"local_shell_call","id":"lsh_1_0","call_id":"a","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}}`},
		"shell":                {`{"commands":["ls"],"timeout_ms":5}`, `{"type":"shell_call","id":"sh_1_0","call_id":"a","status":"completed","action":{"commands":["ls"],"timeout_ms":5}}`},
		"apply_patch":          {`{"type":"delete_file","path":"a"}`, `{"type":"apply_patch_call","id":"apc_1_0","call_id":"a","status":"completed","operation":{"type":"delete_file","path":"a"}}`},
		"tool_search":          {`{"goal":"x"}`, `{"type":"tool_search_call","id":"tsc_1_0","call_id":"a","status":"completed","execution":"client","arguments":{"goal":"x"}}`},
		"computer":             {`{"actions":[{"type":"wait"}]}`, `{"type":"computer_call","id":"cu_1_0","call_id":"a","status":"completed","actions":[{"type":"wait"}],"pending_safety_checks":[]}`},
		"computer_use_preview": {`{"type":"wait"}`, `{"type":"computer_call","id":"cu_1_0","call_id":"a","status":"completed","action":{"type":"wait"},"pending_safety_checks":[]}`},
	} {
		deltas := func(yield func(model.Delta, error) bool) {
			_ = yield(model.CallPiece{ID: "a", Name: name, Text: c[0][:3]}, nil) &&
				yield(model.CallDelta{ID: "a", Name: name, Arguments: json.RawMessage(c[0])}, nil) &&
				yield(model.CallPiece{ID: "cut", Name: name, Text: `{"c`}, nil) && // it never ends
				yield(model.Finish{Reason: model.StopTools}, nil)
		}
		if got := outputs(t, r, deltas); !sameJSON(t, got, "["+c[1]+"]") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestDefinedCalls: calls of defined tools in the history have the names and the
// arguments of the functions, and their results belong to them.
func TestDefinedCalls(t *testing.T) {
	for tool, want := range map[string]string{"computer": "computer", "computer_use_preview": "computer_use_preview"} {
		r := decode(t, request(hello+`,{"type":"computer_call","id":"cu_1","call_id":"a","actions":[{"type":"wait"}]},{"type":"computer_call_output","call_id":"a","output":{"type":"computer_screenshot","image_url":"`+png+`"}},
			{"type":"local_shell_call","id":"lsh_1","call_id":"b","action":{"type":"exec","command":["ls"]}},{"type":"local_shell_call_output","id":"lsh_1","output":"x.txt"}`, `"tools":[{"type":"`+tool+`"}]`))
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		var calls []artel.ToolCall
		var results []artel.ToolResult
		for _, m := range r.Neutral().Messages {
			calls, results = append(calls, artel.CallsOf(m.Parts)...), append(results, artel.ResultsOf(m.Parts)...)
		}
		if len(calls) != 2 || len(results) != 2 || calls[0].Name != want || string(calls[0].Arguments) != `{"actions":[{"type":"wait"}]}` || results[1].CallID != "b" || results[1].Content != "x.txt" {
			t.Errorf("%s: calls %+v, results %+v", tool, calls, results)
		}
	}
}

// TestItemsOfService: every item that the API knows is read, whatever it lacks.
func TestItemsOfService(t *testing.T) {
	for _, kind := range responses.ServiceItems() {
		for _, more := range []string{"", `,"call_id":"a"`, `,"call_id":"a","action":{},"arguments":{},"output":[],"tools":[]`} {
			r := decode(t, request(hello+`,{"type":"`+kind+`"`+more+`},`+message))
			stored := kind == "compaction" || kind == "compaction_trigger"
			if err := r.Check(); (err != nil) != stored {
				t.Errorf("%s: %v", kind, err)
			}
			if n := r.Neutral(); len(n.Messages) < 2 {
				t.Errorf("%s%s: %+v", kind, more, n.Messages)
			}
		}
	}
}

// outputs returns the output of the streamed answer to r.
func outputs(t *testing.T, r *responses.Request, deltas iter.Seq2[model.Delta, error]) string {
	t.Helper()
	var b strings.Builder
	a := responses.Answer{ID: "resp_1", Model: "m", Created: time.Unix(1, 0), Request: r}
	if err := a.Stream(&b, nil, deltas); err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(b.String(), "event: response.completed\ndata: ")
	var e struct {
		Response struct{ Output json.RawMessage }
	}
	if err := json.Unmarshal([]byte(last), &e); err != nil {
		t.Fatal(err)
	}
	return string(e.Response.Output)
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatal(err)
	}
	p, _ := json.Marshal(x) // it was JSON
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

// TestNamespaces: tools of one name in two namespaces stay apart, also in the
// history; a later declaration replaces an earlier one.
func TestNamespaces(t *testing.T) {
	r := decode(t, request(hello+`,{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"a","tools":[{"type":"function","name":"f","description":"new"}]}]},
		{"type":"function_call","call_id":"1","name":"f","namespace":"a","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"},
		{"type":"function_call","call_id":"2","name":"f","namespace":"gone","arguments":"{}"},{"type":"function_call_output","call_id":"2","output":"x"},
		{"type":"custom_tool_call","call_id":"3","name":"c","namespace":"b","input":"text"},{"type":"custom_tool_call_output","call_id":"3","output":"x"},
		{"type":"tool_search_call","call_id":"4","execution":"client","arguments":{"query":"z"}},{"type":"tool_search_output","call_id":"4","execution":"client","tools":[{"type":"namespace","name":"d","tools":[{"type":"function","name":"z","defer_loading":true}]}]}`,
		`"tools":[{"type":"function","name":"a__f","description":"mine"},{"type":"namespace","name":"a","description":"letters","tools":[{"type":"function","name":"f","description":"old"}]},{"type":"namespace","name":"b","tools":[{"type":"custom","name":"c"}]},{"type":"namespace","name":"functions","tools":[{"type":"function","name":"plain"}]}]`)).Neutral()
	var tools, calls []string
	for _, tool := range r.Tools {
		tools = append(tools, tool.Name+":"+tool.Description)
	}
	if want := []string{"a__f:mine", "a__f_2:new", "b__c:", "plain:", "d__z:"}; !slices.Equal(tools, want) {
		t.Errorf("tools %q, want %q", tools, want)
	}
	found := ""
	for _, m := range r.Messages {
		for _, c := range artel.CallsOf(m.Parts) {
			calls = append(calls, c.Name)
		}
		for _, res := range artel.ResultsOf(m.Parts) {
			found = res.Content
		}
	}
	if want := []string{"a__f_2", "gone__f", "b__c", "tool_search"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	if !strings.Contains(found, "d__z") {
		t.Errorf("the search found %q", found)
	}
}

// TestChoiceOfTools: choices name tools as they are offered; one of a tool that is
// dropped is dropped too.
func TestChoiceOfTools(t *testing.T) {
	const tools = `"tools":[{"type":"namespace","name":"a","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}]},{"type":"apply_patch"},{"type":"custom","name":"c"},{"type":"web_search"}]`
	for choice, want := range map[string]struct {
		mode    model.ChoiceMode
		name    string
		tools   int
		dropped bool
	}{
		`"required"`: {mode: model.ChooseAny, tools: 4},
		`{"type":"function","name":"f","namespace":"a"}`: {mode: model.ChooseNamed, name: "a__f", tools: 4},
		`{"type":"custom","name":"c"}`:                   {mode: model.ChooseNamed, name: "c", tools: 4},
		`{"type":"apply_patch"}`:                         {mode: model.ChooseNamed, name: "apply_patch", tools: 4},
		`{"type":"web_search"}`:                          {tools: 4, dropped: true},
		`{"type":"shell"}`:                               {tools: 4, dropped: true},
		`{"type":"allowed_tools","mode":"required","tools":[{"type":"namespace","name":"a"},{"type":"apply_patch"}]}`: {mode: model.ChooseAny, tools: 3},
		`{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g","namespace":"a"}]}`:             {tools: 1},
		`{"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"}]}`:                                  {dropped: true},
	} {
		r := decode(t, request(hello, tools, `"tool_choice":`+choice)).Neutral()
		dropped := slices.ContainsFunc(r.Dropped, func(d model.Drop) bool { return d.Field == "tool_choice" })
		if r.Choice.Mode != want.mode || r.Choice.Name != want.name || len(r.Tools) != want.tools || dropped != want.dropped {
			t.Errorf("%s: %+v, %d tools, dropped %v", choice, r.Choice, len(r.Tools), r.Dropped)
		}
	}
}
