// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
)

// readTurn is a conversation in which a coding agent has read a file; later steps have
// written it back.
func readTurn(text string, more ...model.Message) *model.Request {
	signed := json.RawMessage(`{"thought_signature":"c2lnbmF0dXJl"}`)
	r := &model.Request{
		Tools: []model.ToolSpec{{Name: "read", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "write", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []model.Message{
			{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "copy a.html"}}},
			{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "call_1", Name: "read", Arguments: json.RawMessage(`{"path":"a.html"}`), Opaque: signed}}},
			{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "call_1", Content: text}}},
		},
	}
	r.Messages = append(r.Messages, more...)
	return r
}

// A scribe is a model that writes the last file that it has read, in pieces.
type scribe struct {
	cut  func(left int) int // the length of the next piece
	text string             // the last text that it was shown
	args string             // the arguments that it wrote last
	sees []string           // the arguments of earlier calls, as it was shown them
}

func (s *scribe) answer(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	s.sees = nil
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.ToolResult:
				if p.CallID == "call_1" {
					s.text = p.Content + artel.TextOf(p.Parts)
				}
			case artel.ToolCall:
				if p.Name == "write" {
					s.sees = append(s.sees, string(p.Arguments))
				}
			}
		}
	}
	args, err := json.Marshal(map[string]any{"path": "b.html", "old_string": s.text, "lines": []string{s.text + "b"}, "note": "blo"})
	if err != nil {
		panic(err)
	}
	s.args = string(args)
	return func(yield func(model.Delta, error) bool) {
		rest := []rune(s.args)
		for len(rest) > 0 {
			n := s.cut(len(rest))
			if !yield(model.CallPiece{ID: "call_2", Name: "write", Text: string(rest[:n])}, nil) {
				return
			}
			rest = rest[n:]
		}
		_ = yield(model.CallDelta{ID: "call_2", Name: "write", Arguments: json.RawMessage(s.args)}, nil) && yield(model.Finish{Reason: model.StopTools}, nil)
	}
}

// serve answers in all dialects.
func (s *scribe) serve(w http.ResponseWriter, r *http.Request) { serveBy(s.answer)(w, r) }

// serveBy is a handler that answers with a model in all dialects.
func serveBy(answer func(context.Context, *model.Request) iter.Seq2[model.Delta, error]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := read(r)
		if err != nil {
			panic(err)
		}
		a.send(w, answer(r.Context(), a.request))
	}
}

// An sdk is a client of a dialect.
type sdk struct {
	provider interface {
		model.Provider
		model.Writer
	}
	service model.Service
	path    string
}

// sdks are clients of all dialects, for a service behind the gateway.
func (b *bench) sdks(service string) map[string]sdk {
	of := func(d model.Dialect, base string) model.Service {
		return model.Service{ID: "client", Dialect: d, BaseURL: b.url + base, Model: service, APIKey: "any", Capabilities: sees()}
	}
	return map[string]sdk{
		"chat":      {openai.New(openai.Options{Blobs: b.blobs}), of(model.OpenAI, "/v1"), "/v1/chat/completions"},
		"messages":  {anthropic.New(anthropic.Options{Blobs: b.blobs}), of(model.Anthropic, ""), "/v1/messages"},
		"responses": {responses.New(responses.Options{Blobs: b.blobs}), of(model.OpenAIResponses, "/v1"), "/v1/responses"},
		"gemini":    {gemini.New(gemini.Options{Blobs: b.blobs}), of(model.Gemini, ""), "/v1beta/models/" + service + ":generateContent"},
	}
}

// ask makes a call, and returns the arguments of the call in the answer and its pieces.
func (c sdk) ask(t rapid.TB, b *bench, r *model.Request) (whole, pieces string) {
	t.Helper()
	r.Service = c.service
	for d, err := range c.provider.Generate(apptest.Context(b.t), r) {
		if err != nil {
			t.Fatal(err)
		}
		switch d := d.(type) {
		case model.CallPiece:
			pieces += d.Text
		case model.CallDelta:
			whole = string(d.Arguments)
		}
	}
	<-b.finished
	return whole, pieces
}

// page draws a text with pictures in it.
func page(t *rapid.T) string {
	var b strings.Builder
	for range rapid.IntRange(1, 5).Draw(t, "pieces") {
		png := picture(8, uint8(rapid.IntRange(1, 3).Draw(t, "picture")))
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			b.WriteString(`<img src="` + dataURL(png) + `" alt="a \" b">`)
		case 1:
			b.WriteString(encoded(png))
		case 2: // wrapped
			b.WriteString(wrapped(png))
		case 3:
			b.WriteString("url('" + dataURL(png) + "')")
		default:
			b.WriteString(rapid.SampledFrom([]string{"plain <b>words</b> & \\n", "\"quoted\"\tblob:sha256-", "blob:sha256-" + strings.Repeat("0", 64), "ünï", "b"}).Draw(t, "text"))
		}
		b.WriteString(rapid.SampledFrom([]string{"\n", " ", "\n\n"}).Draw(t, "end"))
	}
	return b.String() + dataURL(picture(8, 9)) + "."
}

// TestRestore: a coding agent that reads a file with pictures in it and writes it back
// writes exactly what it read, whatever dialects client and service speak, and in
// whatever pieces the call arrives. The model has read refs, also in its own call when
// the conversation continues.
func TestRestore(t *testing.T) {
	b := newBench(t)
	s := &scribe{}
	b.upstream, b.answer = http.HandlerFunc(s.serve), s.answer
	rapid.Check(t, func(t *rapid.T) {
		service := rapid.SampledFrom([]string{"chat", "messages", "responses", "gemini", "other"}).Draw(t, "service")
		dialect := rapid.SampledFrom([]string{"chat", "messages", "responses", "gemini"}).Draw(t, "dialect")
		c := b.sdks(service)[dialect]
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)) // the model is in another goroutine
		longest := rapid.SampledFrom([]int{1, 5, 40, 1000}).Draw(t, "longest")
		s.cut = func(left int) int { return 1 + random.IntN(min(left, longest)) }
		text := page(t)
		check := func(round int, got, pieces string) {
			var args struct {
				Old   string `json:"old_string"`
				Lines []string
				Note  string
			}
			if err := json.Unmarshal([]byte(got), &args); err != nil || args.Old != text || len(args.Lines) != 1 || args.Lines[0] != text+"b" || args.Note != "blo" {
				t.Fatalf("%s to %s, round %d: %v\ngot  %q\nwant %q", dialect, service, round, err, args.Old, text)
			}
			if pieces != "" && pieces != got {
				t.Fatalf("%s to %s, round %d: the pieces are %q, the whole is %q", dialect, service, round, pieces, got)
			}
			if strings.Contains(s.text, encoded(picture(8, 9))[:60]) || !strings.Contains(s.text, "blob:sha256-") {
				t.Fatalf("%s to %s: the model has read %q", dialect, service, s.text)
			}
			if !has(b.did(), "scrubbed", "restored") {
				t.Fatalf("%s to %s: did %v", dialect, service, b.did())
			}
		}
		got, pieces := c.ask(t, b, readTurn(text))
		check(1, got, pieces)
		wrote := s.args
		got, pieces = c.ask(t, b, readTurn(
			text,
			model.Message{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "call_2", Name: "write", Arguments: json.RawMessage(got), Opaque: json.RawMessage(`{"thought_signature":"c2lnbmF0dXJl"}`)}}},
			model.Message{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "call_2", Content: "written"}}},
		))
		check(2, got, pieces)
		var saw, written any
		if len(s.sees) != 1 || json.Unmarshal([]byte(s.sees[0]), &saw) != nil || json.Unmarshal([]byte(wrote), &written) != nil || quotedJSON(saw) != quotedJSON(written) {
			t.Fatalf("%s to %s: the model wrote\n%s\nand was shown\n%s", dialect, service, wrote, s.sees)
		}
	})
}

func quotedJSON(v any) string {
	b, _ := json.Marshal(v) // was decoded
	return string(b)
}

// TestRestoreWhole: likewise in an answer that is not a stream.
func TestRestoreWhole(t *testing.T) {
	b := newBench(t)
	s := &scribe{cut: func(left int) int { return left }}
	b.upstream, b.answer = http.HandlerFunc(s.serve), s.answer
	png := picture(8, 9)
	for _, service := range []string{"chat", "messages", "responses", "gemini", "other"} {
		for dialect, c := range b.sdks(service) {
			body := b.written(c, readTurn("<img src='"+dataURL(png)+"'>"))
			for what, headers := range map[string][]string{"all": nil, "off": {"X-Artel-Scrub", "off"}} {
				status, got := b.post(c.path, body, append(headers, "anthropic-version", "2023-06-01")...)
				if status != 200 || strings.Contains(got, "blob:sha256-") || strings.Count(got, dataURL(png)) < 2 {
					t.Errorf("%s to %s, %s: %d %s", dialect, service, what, status, got)
				}
				if off := what == "off"; strings.Contains(s.text, encoded(png)) != off || has(b.did(), "scrubbed") == off || has(b.did(), "restored") == off {
					t.Errorf("%s to %s, %s: did %v, the model read %s", dialect, service, what, b.did(), s.text)
				}
			}
		}
	}
}

// written returns the body of a request that is not for a stream.
func (b *bench) written(c sdk, r *model.Request) string {
	b.t.Helper()
	r.Service = c.service
	body, err := c.provider.Write(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Replace(string(body.Redacted()), `"stream":true`, `"stream":false`, 1)
}

// TestRestoreOnlyWhatWasTaken: a ref that the client itself wrote, or that the model made
// up, stays in calls, and in texts every ref stays.
func TestRestoreOnlyWhatWasTaken(t *testing.T) {
	b := newBench(t)
	own := artel.BlobRef(artel.NewDigest([32]byte{7})).String()
	s := &scribe{cut: func(left int) int { return min(left, 3) }}
	b.upstream = http.HandlerFunc(s.serve)
	text := "<a href='" + own + "'> and " + dataURL(picture(8, 9))
	for dialect, c := range b.sdks("chat") {
		if got, _ := c.ask(t, b, readTurn(text)); strings.Count(got, own) != 2 || strings.Count(got, "blob:sha256-") != 2 {
			t.Errorf("%s: %s", dialect, got)
		}
	}
}

// TestScrubParts: only what is nothing but media becomes a ref, by the configuration, the
// key or the header; wrong values of the headers are refused in the client's dialect.
func TestScrubParts(t *testing.T) {
	png := dataURL(picture(8, 9))
	b := newBench(t, setup{options: backend.Options{
		Rewriting: backend.Rewriting{Scrub: backend.ScrubOff},
		Keys: []backend.Key{
			{Name: "none", Secret: "0"}, {Name: "unrepaired", Secret: "2", Rewriting: backend.Rewriting{Repair: new(false)}}, {Name: "all", Secret: "1", Rewriting: backend.Rewriting{Scrub: backend.ScrubAll, Offload: new(2000)}},
		},
	}})
	for _, c := range []struct {
		key, scrub, text string
		want             bool
	}{
		{"0", "", png, false},
		{"0", "all", "see " + png, true},
		{"0", "parts", png + "\n", true},
		{"0", "parts", "see " + png, false},
		{"0", "parts", png + " " + png, false},
		{"1", "", "see " + png, true},
		{"1", "off", png, false},
	} {
		header := []string{"Authorization", "Bearer " + c.key}
		if c.scrub != "" {
			header = append(header, "X-Artel-Scrub", c.scrub)
		}
		status, body := b.post("/v1/chat/completions", toolTurn("chat", quoted(c.text)), header...)
		if status != 200 || has(b.did(), "scrubbed") != c.want || strings.Contains(b.last(), `"content":`+quoted(c.text)) == c.want {
			t.Errorf("%+v: %d %s, did %v", c, status, body, b.did())
		}
	}
	// Offload likewise.
	long := strings.Repeat("a line of words\n", 2000)
	for _, c := range []struct {
		key, offload string
		want         bool
	}{{"0", "", false}, {"0", "2000", true}, {"1", "", true}, {"1", "off", false}, {"1", "40000", false}} {
		header := []string{"Authorization", "Bearer " + c.key}
		if c.offload != "" {
			header = append(header, "X-Artel-Offload", c.offload)
		}
		status, body := b.post("/v1/chat/completions", toolTurn("chat", quoted(long)), header...)
		if status != 200 || has(b.did(), "offloaded") != c.want {
			t.Errorf("%+v: %d %s, did %v", c, status, body, b.did())
		}
	}
	// Repair likewise.
	png = `[{"type":"image","data":"` + encoded(picture(8, 1)) + `","mimeType":"image/png"}]`
	for _, c := range []struct {
		key, repair string
		want        bool
	}{{"0", "", true}, {"0", "false", false}, {"2", "", false}, {"2", "true", true}} {
		header := []string{"Authorization", "Bearer " + c.key, "X-Artel-Scrub", "off"}
		if c.repair != "" {
			header = append(header, "X-Artel-Repair", c.repair)
		}
		status, body := b.post("/v1/chat/completions", toolTurn("chat", quoted(png)), header...)
		if status != 200 || has(b.did(), "repaired") != c.want {
			t.Errorf("%+v: %d %s, did %v", c, status, body, b.did())
		}
	}
	for name, value := range map[string]string{"X-Artel-Scrub": "some", "X-Artel-Offload": "3", "X-Artel-Repair": "some"} {
		for _, dialect := range []string{"chat", "messages", "responses", "gemini"} {
			path, body := request(dialect, "chat", false)
			if status, got := b.post(path, body, name, value, "Authorization", "Bearer 0"); status != 400 || !strings.Contains(got, name) {
				t.Errorf("%s, %s: %d %s", dialect, name, status, got)
			}
		}
	}
}

// TestRestoreEvents: streams of other shapes than those of TestRestore: inputs of custom
// tools, which are no JSON, pings between pieces, calls in turns, a text that ends as a
// ref begins, lines that end in CR LF. Events of other kinds stay byte for byte.
func TestRestoreEvents(t *testing.T) {
	b := newBench(t)
	png := picture(8, 9)
	was := wrapped(png)
	ref := artel.BlobRef(artel.NewDigest(sha256.Sum256(png))).String()
	inJSON := strings.ReplaceAll(was, "\n", `\n`)
	twice := strings.ReplaceAll(inJSON, `\`, `\\`)
	event := func(name, data string) string { return "event: " + name + "\r\ndata: " + data + "\r\n\r\n" }
	custom := func(name, key, text string) string {
		return event("response.custom_tool_call_input."+name, `{"type":"response.custom_tool_call_input.`+name+`", "output_index":0,"`+key+`":"`+text+`","z":1.0}`)
	}
	begin := event("response.created", `{"type":"response.created","response":{"id":"r","output":[]}}`) +
		event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"custom_tool_call","input":"","name":"apply_patch","call_id":"c"}}`)
	end := event("response.completed", `{"type":"response.completed","response":{"id":"r","output":[{"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"+ INPUT"},{"type":"message","content":[{"type":"output_text","text":"`+ref+`"}]}]}}`)
	chunk := func(index, text string) string {
		return `data: {"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":` + index + `,"function":{"arguments":"` + text + `"}}]}}]}` + "\n\n"
	}
	last := `data: {"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	piece := func(choice string, calls ...string) string { // the index and the text of each
		var out []string
		for pair := range slices.Chunk(calls, 2) {
			out = append(out, `{"index":`+pair[0]+`,"custom":{"input":"`+pair[1]+`"}}`)
		}
		return `data: {"id":"a","choices":[{"index":` + choice + `,"delta":{"tool_calls":[` + strings.Join(out, ",") + `]}}]}` + "\n\n"
	}
	const speaks = `data: {"id":"a","choices":[{"index":1,"delta":{"content":"hi"}}]}` + "\n\n"
	block := func(text string) string {
		return event("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"`+text+`"}}`)
	}
	start := event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1}}}`) +
		event("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"write","input":{}}}`)
	stop := event("content_block_stop", `{"type":"content_block_stop","index":1}`) + event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}`) + event("message_stop", `{"type":"message_stop"}`)
	ping := event("ping", `{"type":"ping"}`)
	for name, c := range map[string]struct{ dialect, sent, want string }{
		"custom": {
			"responses", begin + custom("delta", "delta", "+ "+ref[:30]) + custom("delta", "delta", ref[30:]) + custom("done", "input", "+ "+ref) + strings.ReplaceAll(end, "INPUT", ref),
			begin + custom("delta", "delta", "+ ") + custom("delta", "delta", inJSON) + custom("done", "input", "+ "+inJSON) + strings.ReplaceAll(end, "INPUT", inJSON),
		},
		"custom, no ref": {
			"responses", begin + custom("delta", "delta", "+ blob:sha2") + custom("done", "input", "+ blob:sha2") + strings.ReplaceAll(end, "INPUT", "blob:sha2"),
			begin + custom("delta", "delta", "+ blob:sha2") + custom("done", "input", "+ blob:sha2") + strings.ReplaceAll(end, "INPUT", "blob:sha2"),
		},
		"in turns": {
			"chat", chunk("0", `{\"a\":\"`+ref[:1]) + chunk("1", `{\"b\":\"`+ref[:70]) + ": busy\n\n" + chunk("0", ref[1:]+`\"}`) + chunk("1", ref[70:]+`\"}`) + last,
			chunk("0", `{\"a\":\"`) + chunk("1", `{\"b\":\"`) + ": busy\n\n" + chunk("0", twice+`\"}`) + chunk("1", twice+`\"}`) + last,
		},
		"another choice begins": {
			"chat", piece("0", "0", "+ "+ref[:30]) + piece("1", "0", "x") + piece("0", "0", ref[30:]) + last,
			piece("0", "0", "+ ") + piece("1", "0", "x") + piece("0", "0", inJSON) + last,
		},
		"another choice speaks": {
			"chat", piece("0", "0", "+ "+ref[:30]) + speaks + piece("0", "0", ref[30:]) + last,
			piece("0", "0", "+ ") + speaks + piece("0", "0", inJSON) + last,
		},
		"another call begins with the end of one": {
			"chat", piece("0", "0", "+ "+ref[:30]) + piece("0", "0", ref[30:], "1", "x") + last,
			piece("0", "0", "+ ") + piece("0", "0", inJSON, "1", "x") + last,
		},
		"pings": {
			"messages", start + block(`{\"a\":\"`+ref[:20]) + ping + block(ref[20:40]) + ping + block(ref[40:]+`\"}`) + stop,
			start + block(`{\"a\":\"`) + ping + block("") + ping + block(twice+`\"}`) + stop,
		},
		"cut off": {
			"messages", start + block(`{\"a\":\"`+ref[:20]) + stop, start + block(`{\"a\":\"`+ref[:20]) + stop,
		},
	} {
		b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(c.sent))
		})
		client := b.sdks(c.dialect)[c.dialect]
		body := strings.Replace(b.written(client, readTurn("file:\n"+was+"\n")), `"stream":false`, `"stream":true`, 1)
		status, got := b.post(client.path, body, "anthropic-version", "2023-06-01")
		if status != 200 || got != c.want {
			t.Errorf("%s: %d\n%s\nwant\n%s", name, status, got, c.want)
		}
	}
}

// wrapped is base64 in lines of 76 characters.
func wrapped(png []byte) string {
	var lines []string
	for line := range slices.Chunk([]byte(encoded(png)), 76) {
		lines = append(lines, string(line))
	}
	return strings.Join(lines, "\n")
}
