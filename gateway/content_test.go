// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// TestUnknownContent: a translated request with content that its dialect does not
// know is refused in the words of that API; nothing is dropped, and no part
// reaches the model as JSON.
func TestUnknownContent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const (
		unknown = `{"type":"hologram","data":"AAAA","source":{"type":"base64","data":"` + "iVBORw0KGgo=" + `"}}`
		result  = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":[` + unknown + `]}`
	)
	chatParts := `Supported values are: 'text', 'image_url', 'input_audio', 'file', 'refusal', 'video_url'.`
	for name, c := range map[string]struct{ path, body, want, param string }{
		"chat, part":        {"/v1/chat/completions", `{"messages":[{"role":"user","content":[` + unknown + `]}]}`, "Invalid value: 'hologram'. " + chatParts, "messages[0].content[0].type"},
		"chat, result":      {"/v1/chat/completions", `{"messages":[` + result + `]}`, "Invalid value: 'hologram'. " + chatParts, "messages[1].content[0].type"},
		"chat, empty part":  {"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, "Missing required parameter: 'messages[0].content[0].image_url'.", "messages[0].content[0].image_url"},
		"chat, role":        {"/v1/chat/completions", `{"messages":[{"role":"bot","content":"x"}]}`, "Invalid value: 'bot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', 'developer'.", "messages[0].role"},
		"chat, call":        {"/v1/chat/completions", `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"spell","spell":{}}]}]}`, "Invalid value: 'spell'.", "messages[0].tool_calls[0].type"},
		"responses, part":   {"/v1/responses", `{"input":[{"role":"user","content":[` + unknown + `]}]}`, "Invalid value: 'hologram'. Supported values are: 'input_text', 'input_image'", "input[0].content[0].type"},
		"responses, result": {"/v1/responses", `{"input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":[` + unknown + `]}]}`, "Invalid value: 'hologram'.", "input[1].output[0].type"},
		"responses, empty":  {"/v1/responses", `{"input":[{"role":"user","content":[{"type":"input_file"}]}]}`, "Missing required parameter", "input[0].content[0]"},
		"responses, item":   {"/v1/responses", `{"input":[{"type":"hologram"}]}`, "Invalid value: 'hologram'. Supported values are: 'message', 'reasoning'", "input[0].type"},
		"responses, role":   {"/v1/responses", `{"input":[{"role":"bot","content":"x"}]}`, "Invalid value: 'bot'.", "input[0].role"},
		"compaction":        {"/v1/responses", `{"input":[{"type":"compaction","encrypted_content":"x"}]}`, "Invalid value: 'compaction'. Only services that speak Responses themselves", "input[0]"},
		"previous response": {"/v1/responses", `{"input":"hi","previous_response_id":"resp_1","background":true}`, "Previous response with id 'resp_1' not found.", "previous_response_id"},
		"messages, block":   {"/v1/messages", `{"max_tokens":9,"messages":[{"role":"user","content":[` + unknown + `]}]}`, "messages.0.content.0: Input tag 'hologram' found using 'type' does not match any of the expected tags: 'compaction', 'container_upload'", ""},
		"messages, result":  {"/v1/messages", `{"max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[` + unknown + `]}]}]}`, "messages.1.content.0.tool_result.content.0: Input tag 'hologram'", ""},
		"messages, system":  {"/v1/messages", `{"max_tokens":9,"system":[` + unknown + `],"messages":[{"role":"user","content":"hi"}]}`, "system.0: Input tag 'hologram'", ""},
		"messages, source":  {"/v1/messages", `{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"carrier_pigeon"}}]}]}`, "messages.0.content.0.image.source: Input tag 'carrier_pigeon'", ""},
		"messages, role":    {"/v1/messages", `{"max_tokens":9,"messages":[{"role":"bot","content":"x"}]}`, "messages.0.role: Input should be 'user', 'assistant' or 'system'", ""},
		"gemini, part":      {"gemini", `{"contents":[{"role":"user","parts":[{"hologram":{"data":"AAAA"}}]}]}`, "Unknown name \"hologram\" at 'contents[0].parts[0]': Cannot find field.", ""},
		"gemini, empty":     {"gemini", `{"contents":[{"role":"user","parts":[{}]}]}`, "contents[0].parts[0].data: required oneof field 'data' must have one initialized field", ""},
		"gemini, role":      {"gemini", `{"contents":[{"role":"bot","parts":[{"text":"x"}]}]}`, "Please use a valid role: user, model.", ""},
	} {
		asked := len(b.asked)
		path, body := c.path, `{"model":"other",`+c.body[1:]
		if path == "gemini" {
			path, body = "/v1beta/models/other:generateContent", c.body
		}
		status, got := b.post(path, body)
		e := gjson.Get(got, "error")
		if status != 400 || !strings.Contains(e.Get("message").String(), c.want) || e.Get("param").String() != c.param || len(b.asked) != asked {
			t.Errorf("%s: %d %s", name, status, got)
		}
		if strings.Contains(got, "payload:") {
			t.Errorf("%s: the answer has an inner mark: %s", name, got)
		}
	}
	// A service of the same dialect decides itself.
	b.upstream = says(completion)
	if status, got := b.post("/v1/chat/completions", `{"model":"chat","messages":[{"role":"user","content":[`+unknown+`]}]}`); status != 200 || !strings.Contains(b.last(), unknown) {
		t.Errorf("forwarded: %d %s", status, got)
	}
}

// TestServiceContent: content that only a service of the client's dialect can use
// is left out and logged, or refused if the client wants that.
func TestServiceContent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for path, c := range map[string]struct {
		body string
		want []string
	}{
		"/v1/responses": {
			`{"model":"other","tools":[{"type":"web_search"}],"tool_choice":"required","input":[{"role":"user","content":"hi"},{"type":"web_search_call","id":"ws_1","status":"completed"}]}`,
			[]string{"tools.web_search", "tool_choice", "input.web_search_call"},
		},
		"/v1/messages": {
			`{"model":"other","max_tokens":9,"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}],"tool_choice":{"type":"tool","name":"web_fetch"},"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_fetch","input":{}},{"type":"text","text":"x"}]},{"role":"user","content":"so?"}]}`,
			[]string{"tools.web_fetch_20250910", "tool_choice", "messages.server_tool_use"},
		},
		"/v1/chat/completions": {
			`{"model":"other","tools":[{"type":"oracle"},{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"oracle"},"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"x","audio":{"id":"audio_1"}},{"role":"user","content":"so?"}]}`,
			[]string{"tools.oracle", "tool_choice", "messages[1].audio"},
		},
		"/v1beta/models/other:generateContent": {
			`{"tools":[{"googleSearch":{}},{"code_execution":{}}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"generationConfig":{"warp":9},"contents":[{"role":"user","parts":[{"text":"hi"},{"inline_data":{"mime_type":"video/mp4","data":"AAAA"},"video_metadata":{"fps":5}}]}]}`,
			[]string{"contents.parts.videoMetadata", "tools.googleSearch", "tools.codeExecution", "toolConfig", "generation_config.warp"},
		},
	} {
		status, got := b.post(path, c.body)
		if status != 200 {
			t.Fatalf("%s: %d %s", path, status, got)
		}
		var fields []string
		for _, change := range b.entry().Changes {
			if change.Did == "dropped" && change.Reason == artel.Reason(model.NotTranslated) {
				fields = append(fields, change.Field)
			}
		}
		if !has(fields, c.want...) {
			t.Errorf("%s: dropped %v, want %v", path, fields, c.want)
		}
		if asked := b.asked[len(b.asked)-1]; asked.Choice.Mode != model.ChooseAuto {
			t.Errorf("%s: choice %+v", path, asked.Choice)
		}
		if status, got = b.post(path, c.body, "X-Artel-Strict", "true"); status != 400 {
			t.Errorf("%s, strict: %d %s", path, status, got)
		}
	}
	// A summary that Anthropic made is text.
	status, got := b.post("/v1/messages", `{"model":"other","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"compaction","content":"They met in Oslo."}]},{"role":"user","content":"where?"}]}`)
	if said := b.asked[len(b.asked)-1].Messages[0].Parts[0]; status != 200 || !strings.Contains(said.(artel.Text).Text, "They met in Oslo.") {
		t.Errorf("%d %s, said %+v", status, got, said)
	}
}

// TestDefinedToolsOfMessages: tools that Anthropic defines and the client runs are
// functions for other services, which can be chosen.
func TestDefinedToolsOfMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream = http.HandlerFunc(apis)
	const tools = `"tools":[{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"str_replace_based_edit_tool","max_characters":9},{"type":"memory_20250818","name":"memory"},{"type":"computer_20250124","name":"computer","display_width_px":800,"display_height_px":600},{"type":"web_search_20250305","name":"web_search"}]`
	body := func(service string) string {
		return `{"model":"` + service + `","max_tokens":9,` + tools + `,"tool_choice":{"type":"tool","name":"bash"},"messages":[{"role":"user","content":"ls"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"computer","input":{"action":"screenshot"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]}]}`
	}
	b.answer = calling(model.CallDelta{ID: "b", Name: "bash", Arguments: json.RawMessage(`{"command":"ls"}`)})
	status, got := b.post("/v1/messages", body("other"))
	if block := gjson.Get(got, "content.0"); status != 200 || block.Get("type").String() != "tool_use" || block.Get("name").String() != "bash" || block.Get("input.command").String() != "ls" {
		t.Errorf("%d %s", status, got)
	}
	asked := b.asked[0]
	var names []string
	for _, tool := range asked.Tools {
		names = append(names, tool.Name)
	}
	if want := []string{"bash", "str_replace_based_edit_tool", "memory", "computer"}; !slices.Equal(names, want) || asked.Choice.Name != "bash" || !strings.Contains(asked.Tools[3].Description, "800 × 600") {
		t.Errorf("tools %v, choice %+v", names, asked.Choice)
	}
	for _, service := range []string{"chat", "responses", "gemini"} {
		if status, got := b.post("/v1/messages", body(service)); status != 200 || !strings.Contains(b.last(), `"str_replace_based_edit_tool"`) {
			t.Errorf("%s: %d %s, sent %s", service, status, got, b.last())
		}
	}
}

// TestCustomToolsOfChat: custom tools of Chat Completions reach services of other
// dialects with their grammar, and their calls come back as text.
func TestCustomToolsOfChat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream = http.HandlerFunc(apis)
	body := func(service string, stream bool) string {
		head := `{"model":"` + service + `",`
		if stream {
			head += `"stream":true,`
		}
		return head + `"tools":[{"type":"custom","custom":{"name":"sql","description":"Asks.","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: \"SELECT 1\""}}}},{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":{"type":"custom","custom":{"name":"sql"}},"messages":[{"role":"user","content":"ask"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"sql","input":"SELECT 0"}}]},{"role":"tool","tool_call_id":"a","content":"0"}]}`
	}
	b.answer = calling(
		model.CallDelta{ID: "b", Name: "sql", Arguments: json.RawMessage(`{"input": "SELECT \"1\""}`)},
		model.CallDelta{ID: "c", Name: "f", Arguments: json.RawMessage(`{"x":1}`)},
	)
	_, got := b.post("/v1/chat/completions", body("other", false))
	if calls := gjson.Get(got, "choices.0.message.tool_calls").Raw; calls != `[{"id":"b","type":"custom","custom":{"name":"sql","input":"SELECT \"1\""}},{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]` {
		t.Errorf("calls %s", calls)
	}
	_, got = b.post("/v1/chat/completions", body("other", true))
	var input, arguments strings.Builder
	for line := range strings.Lines(got) {
		for _, c := range gjson.Get(strings.TrimPrefix(line, "data: "), "choices.0.delta.tool_calls").Array() {
			if c.Get("index").Int() == 0 && c.Get("function").Exists() || c.Get("index").Int() == 1 && c.Get("custom").Exists() {
				t.Errorf("chunk %s", c)
			}
			input.WriteString(c.Get("custom.input").String())
			arguments.WriteString(c.Get("function.arguments").String())
		}
	}
	if input.String() != `SELECT "1"` || arguments.String() != `{"x":1}` || !strings.Contains(got, `"finish_reason":"tool_calls"`) {
		t.Errorf("input %q, arguments %q", input.String(), arguments.String())
	}
	asked := b.asked[0]
	if tool := asked.Tools[0]; tool.Name != "sql" || !strings.Contains(tool.Description, "SELECT 1") || asked.Choice.Name != "sql" {
		t.Errorf("tool %+v, choice %+v", tool, asked.Choice)
	}
	if c := artel.CallsOf(asked.Messages[1].Parts)[0]; c.Name != "sql" || string(c.Arguments) != `{"input":"SELECT 0"}` {
		t.Errorf("the history has %+v", c)
	}
	for _, service := range []string{"messages", "responses", "gemini", "chat"} {
		if status, got := b.post("/v1/chat/completions", body(service, false)); status != 200 {
			t.Errorf("%s: %d %s", service, status, got)
		}
	}
}

// TestFunctionsOfChat: the deprecated functions of Chat Completions are tools for
// other services, and their calls come back in the same form.
func TestFunctionsOfChat(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream = http.HandlerFunc(apis)
	body := func(service string, more string) string {
		return `{"model":"` + service + `",` + more + `"functions":[{"name":"f","description":"F.","parameters":{"type":"object"}}],"function_call":{"name":"f"},"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"x\":0}"}},{"role":"function","name":"f","content":"zero"},{"role":"user","content":"again"}]}`
	}
	b.answer = calling(
		model.CallDelta{ID: "b", Name: "f", Arguments: json.RawMessage(`{"x":1}`)},
		model.CallDelta{ID: "c", Name: "f", Arguments: json.RawMessage(`{"x":2}`)}, // the form holds one call
	)
	_, got := b.post("/v1/chat/completions", body("other", ""))
	choice := gjson.Get(got, "choices.0")
	if choice.Get("message.function_call").Raw != `{"name":"f","arguments":"{\"x\":1}"}` || choice.Get("message.tool_calls").Exists() || choice.Get("finish_reason").String() != "function_call" {
		t.Errorf("%s", got)
	}
	_, got = b.post("/v1/chat/completions", body("other", `"stream":true,`))
	var name, arguments strings.Builder
	for line := range strings.Lines(got) {
		c := gjson.Get(strings.TrimPrefix(line, "data: "), "choices.0.delta.function_call")
		name.WriteString(c.Get("name").String())
		arguments.WriteString(c.Get("arguments").String())
	}
	if name.String() != "f" || arguments.String() != `{"x":1}` || strings.Contains(got, "tool_calls") || !strings.Contains(got, `"finish_reason":"function_call"`) {
		t.Errorf("%s", got)
	}
	asked := b.asked[0]
	call := artel.CallsOf(asked.Messages[1].Parts)[0]
	if len(asked.Tools) != 1 || asked.Choice != (model.ToolChoice{Mode: model.ChooseNamed, Name: "f", OneByOne: true}) || call.ID == "" || string(call.Arguments) != `{"x":0}` {
		t.Errorf("tools %+v, choice %+v, call %+v", asked.Tools, asked.Choice, call)
	}
	if res := artel.ResultsOf(asked.Messages[2].Parts)[0]; res.CallID != call.ID || res.Content != "zero" {
		t.Errorf("result %+v of call %+v", res, call)
	}
	for _, service := range []string{"messages", "responses", "gemini", "chat"} {
		if status, got := b.post("/v1/chat/completions", body(service, "")); status != 200 {
			t.Errorf("%s: %d %s", service, status, got)
		}
	}
}
