// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/openai"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/providertest"
)

// user wraps the parts' JSON in a request.
func user(parts string) string {
	return `{"model":"m","messages":[{"role":"user","content":` + parts + `}]}`
}

func TestValidate(t *testing.T) {
	t.Parallel()
	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	messages := func(list string) string { return `{"model":"m","messages":[` + list + `]}` }
	tool := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"r"}` }
	const png = "data:image/png;base64,iVBORw=="
	for name, c := range map[string]struct{ body, want string }{
		"plain":                       {user(`"hi"`), ""},
		"parts":                       {user(`[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"` + png + `","detail":"low"}}]`), ""},
		"escaped slashes":             {user(`[{"type":"image_url","image_url":{"url":"data:image\/png;base64,\/\u002f+\u002bAA=="}}]`), ""},
		"group":                       {messages(call + "," + tool("b") + "," + tool("a")), ""},
		"audio":                       {user(`[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]`), ""},
		"pdf":                         {user(`[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}}]`), ""},
		"file id":                     {user(`[{"type":"file","file":{"file_id":"file-1"}}]`), ""},
		"custom tool":                 {`{"model":"m","tools":[{"type":"custom","custom":{"name":"c"}}],"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"c","input":"x"}}]},` + tool("a") + `]}`, ""},
		"custom tool without one":     {`{"model":"m","tools":[{"type":"custom"}],"messages":[{"role":"user","content":"x"}]}`, "Missing required parameter: 'tools[0].custom'"},
		"name of a custom tool":       {`{"model":"m","tools":[{"type":"custom","custom":{"name":"a b"}}],"messages":[{"role":"user","content":"x"}]}`, "tools[0].custom.name"},
		"functions":                   {`{"model":"m","functions":[{"name":"f"}],"function_call":"auto","messages":[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"x"}]}`, ""},
		"name of a function":          {`{"model":"m","functions":[{"name":"a b"}],"messages":[{"role":"user","content":"x"}]}`, "functions[0].name"},
		"call of no function":         {`{"model":"m","function_call":"auto","messages":[{"role":"user","content":"x"}]}`, "only allowed when 'functions' are specified"},
		"result of no function":       {messages(`{"role":"function","content":"x"}`), "Missing required parameter: 'messages[0].name'"},
		"no JSON":                     {`{"model":`, "could not parse"},
		"trailing":                    {user(`"hi"`) + "x", "could not parse"},
		"wrong type":                  {`{"model":1}`, "Invalid type for 'model'"},
		"no model":                    {`{"messages":[]}`, "must provide a model"},
		"no messages":                 {`{"model":"m"}`, "Missing required parameter: 'messages'"},
		"empty messages":              {messages(""), "empty array"},
		"unknown argument":            {`{"model":"m","foo":1,"messages":[{"role":"user","content":"x"}]}`, "Unrecognized request argument supplied: foo"},
		"unknown message field":       {messages(`{"role":"user","content":"x","reasoning_content":"y"}`), "Unknown parameter: 'messages[0].reasoning_content'"},
		"unknown part field":          {user(`[{"type":"text","text":"x","cache_control":{}}]`), "Unknown parameter: 'messages[0].content[0].cache_control'"},
		"unknown role":                {messages(`{"role":"bot","content":"x"}`), "Invalid value: 'bot'"},
		"null content":                {messages(`{"role":"user","content":null}`), "expected a string, got null"},
		"image in tool":               {messages(strings.ReplaceAll(call, `"id":"b"`, `"id":"c"`) + `,{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"` + png + `"}}]}`), "Image URLs are only allowed for messages with role 'user'"},
		"image in assistant":          {messages(`{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"` + png + `"}}]}`), "Image URLs are only allowed"},
		"file in system":              {messages(`{"role":"system","content":[{"type":"file","file":{}}]}`), "Supported values are: 'text'"},
		"seed's file shape":           {user(`[{"type":"file","file":{"filename":"a.bin","mimeType":"x/y","data":"AAAA"}}]`), "Missing required parameter: 'messages[0].content[0].file.file_data'"},
		"unanswered":                  {messages(call + "," + tool("a")), "did not have response messages: b"},
		"user in the group":           {messages(call + "," + tool("a") + `,{"role":"user","content":"x"},` + tool("b")), "did not have response messages: b"},
		"answered twice":              {messages(call + "," + tool("a") + "," + tool("a")), "must be a response to a preceeding message"},
		"tool alone":                  {messages(tool("a")), "must be a response to a preceeding message"},
		"arguments no JSON":           {messages(strings.Replace(call, `"{}"`, `"{"`, 1)), "expected a string of JSON"},
		"long id":                     {messages(strings.ReplaceAll(call, `"a"`, `"`+strings.Repeat("a", 41)+`"`)), "string too long"},
		"no data URL":                 {user(`[{"type":"image_url","image_url":{"url":"iVBORw=="}}]`), "Expected a base64-encoded data URL"},
		"svg":                         {user(`[{"type":"image_url","image_url":{"url":"data:image/svg+xml;base64,AAAA"}}]`), "unsupported image"},
		"bad base64":                  {user(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAA*"}}]`), "Invalid base64"},
		"unpadded":                    {user(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAA"}}]`), "Invalid base64"},
		"line ends in base64":         {user(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA\nAA"}}]`), "Invalid base64"},
		"empty image":                 {user(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}]`), "Invalid base64"},
		"audio with data URL":         {user(`[{"type":"input_audio","input_audio":{"data":"data:audio/wav;base64,AAAA","format":"wav"}}]`), "without a 'data:' prefix"},
		"audio format":                {user(`[{"type":"input_audio","input_audio":{"data":"AAAA","format":"ogg"}}]`), "'wav' and 'mp3'"},
		"file of another type":        {user(`[{"type":"file","file":{"filename":"a.zip","file_data":"data:application/zip;base64,AAAA"}}]`), "unsupported MIME type 'application/zip'"},
		"file without a name":         {user(`[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]`), "file.filename"},
		"stream options":              {`{"model":"m","stream_options":{"include_usage":true},"messages":[{"role":"user","content":"x"}]}`, "only allowed when 'stream'"},
		"tool names":                  {`{"model":"m","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"x"}]}`, "more than once"},
		"tool name pattern":           {`{"model":"m","tools":[{"type":"function","function":{"name":"f.g"}}],"messages":[{"role":"user","content":"x"}]}`, "does not match pattern"},
		"schema":                      {`{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"string"}}}],"messages":[{"role":"user","content":"x"}]}`, "must be a JSON Schema of 'type: \"object\"'"},
		"key with an escape is found": {user(`[{"type":"image_url","image_url":{"\u0075rl":"data:image/png;base64,AAA*"}}]`), "Invalid base64"},
		"deep":                        {user(`"x"`)[:20] + strings.Repeat("[", 100_000), "could not parse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := rules.ValidateJSON([]byte(c.body))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if e, ok := errors.AsType[*openai.APIError](err); err != nil && (!ok || e.Status != 400 || e.Type != "invalid_request_error") {
				t.Errorf("got %#v", err)
			}
		})
	}
}

// TestExtraction hides payloads among text that looks like them and wants each
// found, and all the rest untouched.
func TestExtraction(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var parts, texts []string
		var want []provider.Payload
		for range rapid.IntRange(1, 4).Draw(rt, "parts") {
			if rapid.Bool().Draw(rt, "text") {
				s := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`data:image/png;base64,AAAA`, `"url":"data:image/png;base64,AAAA"`, `\`, `\"`, "url"})).Draw(rt, "s")
				s = strings.ToValidUTF8(s, "")
				b, _ := json.Marshal(map[string]string{"type": "text", "text": s})
				parts, texts = append(parts, string(b)), append(texts, s)
				continue
			}
			data := make([]byte, rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(24<<10-2, 24<<10+2), rapid.IntRange(0, 60_000)).Draw(rt, "size"))
			for i := range data {
				data[i] = byte(i * 13)
			}
			enc := base64.StdEncoding.EncodeToString(data)
			if rapid.Bool().Draw(rt, "escape") {
				enc = strings.NewReplacer("/", `\/`, "+", `\u002B`).Replace(enc)
			}
			want = append(want, provider.Payload{Digest: artel.NewDigest(sha256.Sum256(data)), Size: int64(len(data))})
			parts = append(parts, `{"type":"image_url", "image_url" : { "detail":"low","url" :"data:image/png;base64,`+enc+`"}}`)
		}
		var in io.Reader = strings.NewReader(user("[" + strings.Join(parts, ",") + "]"))
		if rapid.Bool().Draw(rt, "halves") {
			in = iotest.HalfReader(in)
		}
		req, err := openai.Decode(t.Context(), in, provider.DecodeOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		got := req.Extraction().Payloads()
		if len(got) != len(want) {
			rt.Fatalf("%d payloads, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i].Digest != want[i].Digest || got[i].Size != want[i].Size || got[i].Bad {
				rt.Fatalf("payload %d: got %+v, want %+v", i, got[i], want[i])
			}
		}
		var heard []string
		for _, p := range req.Neutral().Messages[0].Parts {
			if p, ok := p.(artel.Text); ok {
				heard = append(heard, p.Text)
			}
		}
		if d := cmp.Diff(texts, heard); d != "" {
			rt.Fatal(d)
		}
		if !json.Valid(req.Extraction().Elided()) {
			rt.Fatalf("not JSON: %s", req.Extraction().Elided())
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(user(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}}]`)))
	f.Add([]byte(user(`[{"type":"input_audio","input_audio":{"data":"\/AA\u003d`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		if req, ok := providertest.DecodePieces(t, openai.Decode, body); ok {
			_ = rules.Validate(req, rules.Options{})
			_ = req.Neutral()
		}
	})
}

// TestDecodeMemory reads a large request and watches what is allocated.
func TestDecodeMemory(t *testing.T) {
	providertest.DecodeMemory(t, openai.Decode, user(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,|"}}]`))
}

func TestDecodeBoundsText(t *testing.T) {
	t.Parallel()
	_, err := openai.Decode(t.Context(), providertest.Endless('['), provider.DecodeOptions{MaxText: 1 << 20})
	if err == nil {
		t.Error("endless brackets were taken")
	}
	_, err = openai.Decode(t.Context(), io.MultiReader(strings.NewReader(`{"x":"`), providertest.Endless('x')), provider.DecodeOptions{MaxText: 1 << 20})
	if e, ok := errors.AsType[*openai.APIError](err); !ok || e.Status != 413 {
		t.Errorf("got %v, want 413", err)
	}
	broken := errors.New("broken")
	_, err = openai.Decode(t.Context(), io.MultiReader(strings.NewReader(user(`[{"image_url":{"url":"data:image/png;base64,AAAA`)[:80]), iotest.ErrReader(broken)), provider.DecodeOptions{})
	if !errors.Is(err, broken) {
		t.Errorf("the reader's error is lost: %v", err)
	}
}

func TestAnswerWhole(t *testing.T) {
	t.Parallel()
	a := openai.Answer{ID: "chatcmpl-1", Model: "m", Created: time.Unix(7, 0)}
	r, err := a.Whole(providertest.Each(
		model.ReasoningDelta("hm"), model.TextDelta("a"), model.TextDelta("b"),
		model.CallDelta{ID: "c", Name: "f", Arguments: json.RawMessage(`{"x":1}`)},
		model.Finish{Reason: model.StopTools, Usage: artel.Usage{InputTokens: 2, OutputTokens: 3, CachedTokens: 1, ThoughtTokens: 2}},
	))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ab",` +
		`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}],"reasoning_content":"hm"},"finish_reason":"tool_calls"}],` +
		`"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":2}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := a.Whole(providertest.Each(model.TextDelta("x"))); err == nil {
		t.Error("an answer without a Finish was taken")
	}
	if err := a.Stream(io.Discard, nil, providertest.Each(model.TextDelta("x"))); err == nil {
		t.Error("a stream without a Finish was taken")
	}
}

// TestAlternatingPieces: the pieces of several calls may alternate in a stream.
func TestAlternatingPieces(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	deltas := func(yield func(model.Delta, error) bool) {
		for _, piece := range []string{`{"x`, `":`, `1}`} {
			for _, id := range []artel.CallID{"a", "b", "c"} {
				if !yield(model.CallPiece{ID: id, Name: "f", Text: piece}, nil) {
					return
				}
			}
		}
		for _, id := range []artel.CallID{"c", "a", "b"} {
			if !yield(model.CallDelta{ID: id, Name: "f", Arguments: json.RawMessage(`{"x":1}`)}, nil) {
				return
			}
		}
		yield(model.Finish{Reason: model.StopTools}, nil)
	}
	if err := (openai.Answer{ID: "a", Model: "m", Created: time.Unix(1, 0)}).Stream(&b, nil, deltas); err != nil {
		t.Fatal(err)
	}
	got := map[int]string{}
	for line := range strings.Lines(b.String()) {
		var chunk openai.Response
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &chunk) != nil || len(chunk.Choices) == 0 {
			continue
		}
		for _, c := range chunk.Choices[0].Delta.ToolCalls {
			got[*c.Index] += string(c.Function.Arguments)
		}
	}
	for n := range 3 {
		if got[n] != `{"x":1}` {
			t.Errorf("call %d: %q", n, got[n])
		}
	}
}

// TestFilterStopEmpty: an answer that a content filter ended is empty if none of its
// choices has text, a call, a refusal or reasoning, whichever of them was filtered.
func TestFilterStopEmpty(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]bool{
		``:                                    true,
		`"role":"assistant"`:                  true,
		`"role":"assistant","content":null`:   true,
		`"content":"","tool_calls":[]`:        true,
		`"content":"","refusal":null`:         true,
		`"content":"half"`:                    false,
		`"content":null,"tool_calls":[{}]`:    false,
		`"function_call":{"name":"f"}`:        false,
		`"refusal":"no"`:                      false,
		`"reasoning_content":"hm"`:            false,
		`"reasoning":"hm"`:                    false,
		`"reasoning_details":[{"text":"hm"}]`: false,
		`"audio":{"data":"AA=="}`:             false,
	} {
		for _, name := range []string{"message", "delta"} {
			for _, before := range []string{"", `{"index":1,"` + name + `":{}},`} {
				data := `{"choices":[` + before + `{"index":0,"` + name + `":{` + members + `},"finish_reason":"content_filter"}]}`
				if stopped, empty := openai.Editor().FilterStop([]byte(data)); !stopped || empty != want {
					t.Errorf("stopped is %v, empty is %v: %s", stopped, empty, data)
				}
			}
		}
	}
}
