// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/responses"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/providertest"
	"github.com/artelhq/artel/model/provider/responses"
)

// request wraps items in a request, and more fields where there are any.
func request(items string, more ...string) string {
	return `{"model":"m","input":[` + items + `]` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// user wraps parts in a message.
func user(parts string) string { return request(`{"role":"user","content":[` + parts + `]}`) }

const (
	png     = "data:image/png;base64,iVBORw=="
	call    = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	output  = `{"type":"function_call_output","call_id":"a","output":"r"}`
	message = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]}`
	hello   = `{"role":"user","content":"hi"}`
)

func TestValidate(t *testing.T) {
	t.Parallel()
	tool := func(s string) string { return `"tools":[{"type":"function","name":"f",` + s + `}]` }
	for name, c := range map[string]struct{ body, want string }{
		"a string":                {`{"model":"m","input":"hi"}`, ""},
		"messages":                {request(hello + "," + message + `,{"role":"developer","content":"x"}`), ""},
		"media":                   {user(`{"type":"input_text","text":"x"},{"type":"input_image","image_url":"` + png + `"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"},{"type":"input_file","filename":"a.docx","file_data":"AAAA"},{"type":"input_image","file_id":"file-1"},{"type":"input_file","file_url":"https://x/y.pdf"}`), ""},
		"media in outputs":        {request(call + `,{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"` + png + `"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}]}`), ""},
		"reasoning":               {request(hello + "," + thought + "," + message), ""},
		"tools":                   {request(hello, tool(`"strict":false,"parameters":{"type":"object"}`), `"tool_choice":{"type":"function","name":"f"}`), ""},
		"tools of the service":    {request(hello, `"tools":[{"type":"web_search","user_location":{}},{"type":"mcp","server_label":"x"},{"type":"custom","name":"g"}]`, `"tool_choice":{"type":"web_search"}`), ""},
		"items of the service":    {request(hello + `,{"type":"web_search_call","id":"ws","status":"completed"},{"type":"compaction","encrypted_content":"x"}`), ""},
		"schema":                  {request(hello, `"text":{"format":{"type":"json_schema","name":"a","strict":true,"schema":{"type":"object","properties":{},"additionalProperties":false}},"verbosity":"low"}`), ""},
		"no JSON":                 {`{"model":`, "could not parse"},
		"wrong type":              {`{"model":1}`, "Invalid type for 'model'"},
		"no model":                {`{"input":"x"}`, "Missing required parameter: 'model'"},
		"no input":                {`{"model":"m"}`, "Missing required parameter: 'input'"},
		"empty input":             {request(""), "empty array"},
		"unknown argument":        {request(hello, `"messages":[]`), "Unknown parameter: 'messages'"},
		"unknown field":           {request(`{"role":"user","content":"x","name":"y"}`), "Unknown parameter: 'input[0].name'"},
		"unknown part field":      {user(`{"type":"input_text","text":"x","cache_control":{}}`), "Unknown parameter: 'input[0].content[0].cache_control'"},
		"stored response":         {request(hello, `"previous_response_id":"resp_9"`), "Previous response with id 'resp_9' not found"},
		"stored conversation":     {request(hello, `"conversation":"conv_9"`), "conversation was not found"},
		"stored prompt":           {request(hello, `"prompt":{"id":"p"}`), "prompt was not found"},
		"background":              {request(hello, `"background":true`), "Background mode"},
		"stored item":             {request(hello + `,{"type":"item_reference","id":"msg_1"}`), "'msg_1' not found"},
		"reasoning that is gone":  {request(hello + `,{"type":"reasoning","id":"rs_1","summary":[]},` + message), "'rs_1' not found"},
		"reasoning to nothing":    {request(hello + "," + thought), "without its required following item"},
		"reasoning before a user": {request(thought + "," + hello), "without its required following item"},
		"unknown item":            {request(`{"type":"thing"}`), "Invalid value: 'thing'"},
		"unknown role":            {request(`{"role":"tool","content":"x"}`), "Invalid value: 'tool'"},
		"no content":              {request(`{"role":"user"}`), "Missing required parameter: 'input[0].content'"},
		"parts of Chat":           {user(`{"type":"text","text":"x"}`), "Invalid value: 'text'"},
		"input of the assistant":  {request(`{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`), "'output_text', 'refusal'"},
		"sound":                   {user(`{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`), "Invalid value: 'input_audio'"},
		"unanswered":              {request(call), "No tool output found for function call a"},
		"output alone":            {request(output), "No tool call found for function call output with call_id a"},
		"answered twice":          {request(call + "," + output + "," + output), "Duplicate output"},
		"called twice":            {request(call + "," + output + "," + call), "Duplicate call_id"},
		"long id":                 {request(strings.ReplaceAll(call, `"a"`, `"`+strings.Repeat("a", 65)+`"`)), "string too long"},
		"no id":                   {request(`{"type":"function_call","name":"f","arguments":"{}"}`), "input[0].call_id"},
		"arguments no string":     {request(strings.Replace(call, `"{}"`, `{}`, 1)), "expected a string"},
		"no output":               {request(call + `,{"type":"function_call_output","call_id":"a"}`), "input[1].output"},
		"phase":                   {request(`{"role":"assistant","phase":"x","content":"y"}`), "Invalid value: 'x'"},
		"two images in one":       {user(`{"type":"input_image","image_url":"` + png + `","file_id":"x"}`), "exactly one of"},
		"no data URL":             {user(`{"type":"input_image","image_url":"iVBORw=="}`), "Expected a base64-encoded data URL"},
		"svg":                     {user(`{"type":"input_image","image_url":"data:image/svg+xml;base64,AAAA"}`), "unsupported MIME type 'image/svg+xml'"},
		"bad base64":              {user(`{"type":"input_image","image_url":"data:image/png;base64,AAA*"}`), "Invalid base64"},
		"bad file":                {user(`{"type":"input_file","filename":"a.pdf","file_data":"AAA*"}`), "valid base64"},
		"file without a name":     {user(`{"type":"input_file","file_data":"data:application/pdf;base64,AAAA"}`), "filename"},
		"file of another type":    {user(`{"type":"input_file","filename":"a.zip","file_data":"data:application/zip;base64,AAAA"}`), "'application/zip' is not supported"},
		"few tokens":              {request(hello, `"max_output_tokens":15`), "Expected a value >= 16"},
		"temperature":             {request(hello, `"temperature":3`), "from 0 to 2"},
		"include":                 {request(hello, `"include":["x"]`), "Invalid value: 'x'"},
		"no reasoning to encrypt": {`{"model":"gpt-4o","input":"x","include":["reasoning.encrypted_content"]}`, "Encrypted content is not supported"},
		"JSON without the word":   {request(hello, `"text":{"format":{"type":"json_object"}}`), "must contain the word 'json'"},
		"JSON with the word":      {request(hello, `"instructions":"Write JSON.","text":{"format":{"type":"json_object"}}`), ""},
		"loose schema":            {request(hello, `"text":{"format":{"type":"json_schema","name":"a","strict":true,"schema":{"type":"object"}}}`), "additionalProperties"},
		"schema without a name":   {request(hello, `"text":{"format":{"type":"json_schema","schema":{}}}`), "text.format.name"},
		"tool name":               {request(hello, `"tools":[{"type":"function","name":"f.g"}]`), "does not match pattern"},
		"tool twice":              {request(hello, `"tools":[{"type":"function","name":"f"},{"type":"custom","name":"f"}]`), "more than once"},
		"tool of Chat":            {request(hello, `"tools":[{"type":"function","function":{"name":"f"}}]`), "Missing required parameter: 'tools[0].name'"},
		"unknown tool":            {request(hello, `"tools":[{"type":"hammer"}]`), "Invalid value: 'hammer'"},
		"strict tool":             {request(hello, tool(`"strict":true,"parameters":{"type":"object","properties":{"x":{}}}`)), "additionalProperties"},
		"choice without tools":    {request(hello, `"tool_choice":"required"`), "must be specified with 'tools'"},
		"choice of another":       {request(hello, tool(`"strict":false`), `"tool_choice":{"type":"function","name":"g"}`), "'g' not found"},
		"unknown choice":          {request(hello, `"tool_choice":"any"`), "Invalid value: 'any'"},
		"deep":                    {request(strings.Repeat("[", 100_000)), "could not parse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := rules.ValidateJSON([]byte(c.body))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if e, ok := errors.AsType[*responses.APIError](err); err != nil && (!ok || e.Status != 400 && e.Status != 404 || e.Type != "invalid_request_error") {
				t.Errorf("got %#v", err)
			}
		})
	}
}

func decode(t *testing.T, body string) *responses.Request {
	t.Helper()
	r, err := responses.Decode(t.Context(), strings.NewReader(body), provider.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestNeutral reads what clients send.
func TestNeutral(t *testing.T) {
	t.Parallel()
	text := func(role artel.Role, s string) model.Message {
		return model.Message{Role: role, Parts: artel.Parts{artel.Text{Text: s}}}
	}
	said := func(role artel.Role, ps ...artel.Part) model.Message { return model.Message{Role: role, Parts: ps} }
	digest := artel.Digest("sha256-0f4636c78f65d3639ece5a064b5ae753e3408614a14fb18ab4d7540d2c248543") // of the PNG's four bytes
	picture := artel.Media{Ref: artel.BlobRef(digest), MediaType: "image/png", Kind: artel.KindImage, Size: 4}
	raw := func(s string) artel.Reasoning { return artel.Reasoning{Opaque: json.RawMessage(s)} }
	for name, c := range map[string]struct {
		body string
		want model.Request
	}{
		"a string": {`{"model":"m","input":"hi","instructions":"Be brief."}`, model.Request{Messages: []model.Message{text("system", "Be brief."), text("user", "hi")}}},
		"one turn": {request(hello + "," + thought + "," + message + "," + call + `,{"type":"function_call","call_id":"b","name":"g","arguments":"{ broken"},` + output + `,{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"` + png + `"}]},{"role":"developer","content":"d"}`), model.Request{Messages: []model.Message{
			text("user", "hi"),
			said(
				"assistant", artel.Reasoning{Text: "I think.", Opaque: json.RawMessage(thought)}, artel.Text{Text: "yes"},
				artel.ToolCall{ID: "a", Name: "f", Arguments: json.RawMessage("{}")}, artel.ToolCall{ID: "b", Name: "g", Arguments: json.RawMessage(`"{ broken"`)},
			),
			said("tool", artel.ToolResult{CallID: "a", Content: "r"}),
			said("tool", artel.ToolResult{CallID: "b", Content: "x", Parts: artel.Parts{picture}}),
			text("system", "d"),
		}}},
		"a phase": {request(`{"role":"assistant","phase":"commentary","content":"x"}`), model.Request{Messages: []model.Message{said("assistant", raw(`{"phase":"commentary","type":"message"}`), artel.Text{Text: "x"})}}},
		"media": {user(`{"type":"input_image","image_url":"` + png + `"},{"type":"input_file","filename":"a.bin","file_data":"iVBORw=="},{"type":"input_file","filename":"a.docx","file_data":"iVBORw=="},{"type":"input_image","image_url":"https://x/y.png"},{"type":"input_image","file_id":"file-1"},{"type":"input_file","file_url":"https://x/y.pdf"},{"type":"input_audio","input_audio":{"data":"iVBORw==","format":"mp3"}}`), model.Request{Messages: []model.Message{said(
			"user", picture,
			artel.Media{Ref: artel.BlobRef(digest), MediaType: "application/octet-stream", Kind: artel.KindDocument, Filename: "a.bin", Size: 4},
			artel.Media{Ref: artel.BlobRef(digest), MediaType: "application/vnd.openxmlformats-officedocument.wordprocessingml.document", Kind: artel.KindDocument, Filename: "a.docx", Size: 4},
			artel.Text{Text: "[image at https://x/y.png]"}, artel.Text{Text: "[file file-1]"}, artel.Text{Text: "[file at https://x/y.pdf]"},
			artel.Media{Ref: artel.BlobRef(digest), MediaType: "audio/mpeg", Kind: artel.KindAudio, Size: 4},
		)}}},
		"custom tools": {request(`{"type":"custom_tool_call","call_id":"a","name":"patch","input":"*** x"},{"type":"custom_tool_call_output","call_id":"a","output":"ok"}`, `"tools":[{"type":"custom","name":"patch","description":"d"},{"type":"web_search"}]`), model.Request{
			Tools:   []model.ToolSpec{{Name: "patch", Description: "d", Schema: json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)}},
			Dropped: []model.Drop{{Field: "tools.web_search", Reason: model.NotTranslated}},
			Messages: []model.Message{
				said("assistant", artel.ToolCall{ID: "a", Name: "patch", Arguments: json.RawMessage(`{"input":"*** x"}`)}),
				said("tool", artel.ToolResult{CallID: "a", Content: "ok"}),
			},
		}},
		"tools that the client runs for the service": {request(`{"type":"local_shell_call","id":"ls","call_id":"a","action":{"type":"exec","command":["ls"]}},{"type":"local_shell_call_output","call_id":"a","output":"x.txt"},{"type":"computer_call","call_id":"b","action":{"type":"screenshot"}},{"type":"computer_call_output","call_id":"b","output":{"type":"computer_screenshot","image_url":"` + png + `"}},{"type":"shell_call","call_id":"c","action":{}},{"type":"shell_call_output","call_id":"c","output":[{"stdout":"x"}]}`), model.Request{Messages: []model.Message{
			said("assistant", artel.ToolCall{ID: "a", Name: "local_shell", Arguments: json.RawMessage(`{"type":"exec","command":["ls"]}`)}),
			said("tool", artel.ToolResult{CallID: "a", Content: "x.txt"}),
			said("assistant", artel.ToolCall{ID: "b", Name: "computer", Arguments: json.RawMessage(`{"type":"screenshot"}`)}),
			said("tool", artel.ToolResult{CallID: "b", Parts: artel.Parts{picture}}),
			said("assistant", artel.ToolCall{ID: "c", Name: "shell", Arguments: json.RawMessage(`{}`)}),
			said("tool", artel.ToolResult{CallID: "c", Content: `[{"stdout":"x"}]`}),
		}}},
		"what the service did": {request(`{"type":"web_search_call","id":"ws"},{"type":"image_generation_call","id":"ig","result":"iVBORw=="}`), model.Request{Dropped: []model.Drop{{Field: "input.web_search_call", Reason: model.NotTranslated}}, Messages: []model.Message{
			said("assistant", raw(`{"type":"web_search_call","id":"ws"}`), picture),
		}}},
		"settings": {request("", `"max_output_tokens":100`, `"temperature":0.5`, `"parallel_tool_calls":false`, `"tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}]`, `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]}`, `"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"},"strict":true}}`), model.Request{
			MaxOutput: 100, Tools: []model.ToolSpec{{Name: "g"}}, Choice: model.ToolChoice{Mode: model.ChooseAny, OneByOne: true},
			Sampling: model.Sampling{Temperature: new(0.5)}, Format: model.Format{JSON: true, Schema: json.RawMessage(`{"type":"object"}`), Name: "n", Strict: true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decode(t, c.body).Neutral()
			if d := cmp.Diff(c.want, *got, cmpopts.IgnoreFields(model.Request{}, "Service"), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

// sequence returns the types of a stream's events after checking that they are
// numbered, and the data of each.
func sequence(t *testing.T, stream []byte) (types []string, data []map[string]any) {
	t.Helper()
	for e := range strings.SplitSeq(strings.TrimSpace(string(stream)), "\n\n") {
		name, body, ok := strings.Cut(e, "\ndata: ")
		var fields map[string]any
		if err := json.Unmarshal([]byte(body), &fields); !ok || err != nil {
			t.Fatalf("%v: %q", err, e)
		}
		if fields["type"] != strings.TrimPrefix(name, "event: ") || fields["sequence_number"] != float64(len(types)) {
			t.Errorf("event %d is %q", len(types), e)
		}
		types, data = append(types, fields["type"].(string)), append(data, fields)
	}
	return types, data
}

// TestAnswer writes an answer with everything in it, as a stream with every
// event of the official sequence and as a whole, which are the same response.
func TestAnswer(t *testing.T) {
	t.Parallel()
	deltas := []model.Delta{
		model.ReasoningDelta("I "), model.ReasoningDelta("think."),
		model.ReasoningDone{Opaque: json.RawMessage(thought)},
		model.ReasoningDone{Opaque: json.RawMessage(`{"type":"message","phase":"commentary"}`)},
		model.TextDelta("ye"), model.TextDelta("s"),
		model.CallPiece{ID: "a", Name: "f"},
		model.CallPiece{ID: "a", Name: "f", Text: `{"x":`},
		model.CallPiece{ID: "a", Name: "f", Text: `"é"}`},
		model.CallDelta{ID: "a", Name: "f", Arguments: json.RawMessage(`{"x":"é"}`)},
		model.CallPiece{ID: "b", Name: "patch", Text: `{"input":"**`},
		model.CallPiece{ID: "b", Name: "patch", Text: `* x\`},
		model.CallDelta{ID: "b", Name: "patch", Arguments: json.RawMessage(`{"input":"*** x\n"}`)},
		model.Finish{Reason: model.StopTools, Usage: artel.Usage{InputTokens: 9, OutputTokens: 5, CachedTokens: 4, StoredTokens: 3, ThoughtTokens: 2}},
	}
	a := answer()
	a.Request = decode(t, request(hello, `"instructions":"Be brief."`, `"metadata":{"k":"v"}`, `"temperature":0.5`, `"tools":[{"type":"custom","name":"patch"}]`))
	var b bytes.Buffer
	flushed := 0
	if err := a.Stream(&b, func() error { flushed++; return nil }, providertest.Each(deltas...)); err != nil {
		t.Fatal(err)
	}
	types, data := sequence(t, b.Bytes())
	want := strings.Fields(`response.created response.in_progress
		response.output_item.added response.reasoning_summary_part.added response.reasoning_summary_text.delta response.reasoning_summary_text.delta
		response.reasoning_summary_text.done response.reasoning_summary_part.done response.output_item.done
		response.output_item.added response.content_part.added response.output_text.delta response.output_text.delta
		response.output_text.done response.content_part.done response.output_item.done
		response.output_item.added response.function_call_arguments.delta response.function_call_arguments.delta response.function_call_arguments.done response.output_item.done
		response.output_item.added response.custom_tool_call_input.delta response.custom_tool_call_input.delta response.custom_tool_call_input.delta response.custom_tool_call_input.done response.output_item.done
		response.completed`)
	if d := cmp.Diff(want, types); d != "" {
		t.Fatal(d)
	}
	if flushed != len(types) {
		t.Errorf("%d events, flushed %d times", len(types), flushed)
	}
	whole, err := a.Whole(providertest.Each(deltas...))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(whole, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(data[len(data)-1]["response"], any(got)); d != "" {
		t.Errorf("the stream and the whole differ: %s", d)
	}
	const output = `[` + thought + `,
		{"type":"message","id":"msg_1_1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"yes","annotations":[],"logprobs":[]}]},
		{"type":"function_call","id":"fc_1_2","call_id":"a","name":"f","arguments":"{\"x\":\"é\"}","status":"completed"},
		{"type":"custom_tool_call","id":"ctc_1_3","call_id":"b","name":"patch","input":"*** x\n","status":"completed"}]`
	var wanted any
	if err := json.Unmarshal([]byte(`{"id":"resp_1","object":"response","status":"completed","model":"kit-1","created_at":1,"completed_at":1,"instructions":"Be brief.",
		"metadata":{"k":"v"},"temperature":0.5,"tools":[{"type":"custom","name":"patch"}],"top_p":1,"tool_choice":"auto","parallel_tool_calls":true,
		"store":false,"background":false,"error":null,"incomplete_details":null,"previous_response_id":null,"max_output_tokens":null,"user":null,"truncation":"disabled",
		"reasoning":{"effort":null,"summary":null},"text":{"format":{"type":"text"}},"output":`+output+`,
		"usage":{"input_tokens":9,"output_tokens":5,"total_tokens":14,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"output_tokens_details":{"reasoning_tokens":2}}}`), &wanted); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(wanted, any(got)); d != "" {
		t.Error(d)
	}
	if got, want := told(t, "text/event-stream", b.String()), `(I ) (think.) <`+thought+`> <{"phase":"commentary","type":"message"}> "ye" "s" a:f{"x":"é"} b:patch{"input":"*** x\n"} tools 9/5 cached=4 stored=3 thought=2`; got != want {
		t.Errorf("read back: %s\nwant %s", got, want)
	}
}

func TestAnswerEnds(t *testing.T) {
	t.Parallel()
	for reason, want := range map[model.StopReason]string{
		model.StopEnd: `"end"`, model.StopLength: "max_output_tokens", model.StopRefusal: "content_filter",
	} {
		whole, err := answer().Whole(providertest.Each(model.TextDelta("x"), model.Finish{Reason: reason}))
		if incomplete := bytes.Contains(whole, []byte(want)); err != nil || incomplete == (reason == model.StopEnd) {
			t.Errorf("%s: %v %s", reason, err, whole)
		}
	}
	if _, err := answer().Whole(providertest.Each(model.TextDelta("x"))); err == nil {
		t.Error("an answer without a Finish was taken")
	}
	if err := answer().Stream(io.Discard, nil, providertest.Each(model.TextDelta("x"))); err == nil {
		t.Error("a stream without a Finish was taken")
	}
	var b bytes.Buffer
	broken := errors.New("it broke")
	err := answer().Stream(&b, nil, func(yield func(model.Delta, error) bool) {
		_ = yield(model.TextDelta("x"), nil) && yield(nil, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	types, data := sequence(t, b.Bytes())
	if n := len(types); types[n-2] != "error" || types[n-1] != "response.failed" || data[n-2]["message"] != "it broke" || data[n-1]["response"].(map[string]any)["status"] != "failed" {
		t.Errorf("the stream ends with %v", data[n-2:])
	}
	if got := told(t, "text/event-stream", b.String()); got != `"x" !unavailable transient=true it broke` {
		t.Errorf("read back: %s", got)
	}
	types, _ = sequence(t, append(b.Bytes()[:bytes.Index(b.Bytes(), []byte("event: error"))], answer().Fail(len(types)-3, 500, "gone")...))
	if n := len(types); types[n-2] != "error" || types[n-1] != "response.failed" {
		t.Errorf("Fail ends it with %v", types)
	}
}

// TestForeignState: the state that another dialect keeps with its reasoning
// goes through the client and comes back as it was.
func TestForeignState(t *testing.T) {
	t.Parallel()
	state := json.RawMessage(`{"type":"thinking","signature":"EqQB+/=="}`)
	a := answer()
	a.Service = "claude"
	for _, deltas := range [][]model.Delta{
		{model.ReasoningDelta("hm"), model.ReasoningDone{Opaque: state}}, {model.ReasoningDone{Opaque: state}},
	} {
		whole, err := a.Whole(providertest.Each(append(deltas, model.TextDelta("x"), model.Finish{})...))
		if err != nil {
			t.Fatal(err)
		}
		var resp struct{ Output []json.RawMessage }
		if err := json.Unmarshal(whole, &resp); err != nil {
			t.Fatal(err)
		}
		body := request(hello + "," + string(resp.Output[0]) + "," + message)
		if err := rules.ValidateJSON([]byte(body)); err != nil {
			t.Error(err)
		}
		r := decode(t, body).Neutral().Messages[1].Parts[0].(artel.Reasoning)
		if string(r.Opaque) != string(state) || r.Service != "claude" || r.Text != "hm" && len(deltas) == 2 {
			t.Errorf("it comes back as %+v", r)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(user(`{"type":"input_image","image_url":"` + png + `"},{"type":"input_file","filename":"a.pdf","file_data":"AAAA"}`)))
	f.Add([]byte(request(thought + "," + message + "," + call + "," + output)))
	f.Add([]byte(request(`{"type":"computer_call_output","call_id":"b","output":{"type":"computer_screenshot","image_url":"` + png + `"}},{"type":"image_generation_call","result":"AAAA"}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, ok := providertest.DecodePieces(t, responses.Decode, body)
		if !ok {
			return
		}
		_ = rules.Validate(req, rules.Options{})
		neutral := req.Neutral()
		neutral.Service.ID = "s"
		_, _ = responses.Encode(neutral, nil)
	})
}

// TestDecodeMemory reads a large request and watches what is allocated.
func TestDecodeMemory(t *testing.T) {
	providertest.DecodeMemory(t, responses.Decode, request(call+`,{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"data:image/png;base64,|"}]}`))
}
