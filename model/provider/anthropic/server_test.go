// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/anthropic"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/providertest"
)

func decoding() provider.DecodeOptions { return provider.DecodeOptions{} }

func TestNeutral(t *testing.T) {
	t.Parallel()
	r := decode(t, `{"model":"m","max_tokens":50,"stream":true,"temperature":0.5,"top_p":0.9,"stop_sequences":["END"],
		"system":[{"type":"text","text":"Be"},{"type":"text","text":"brief."}],
		"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},
		"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},
		"tools":[{"name":"f","description":"F.","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],
		"messages":[
		{"role":"user","content":[{"type":"image","source":{"data":"AAAA","media_type":"image/png","type":"base64"}},{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"AAAAAA=="}},
			{"type":"image","source":{"type":"url","url":"https://x/y.png"}},{"type":"document","source":{"type":"file","file_id":"file_1"}},{"type":"document","title":"T","context":"C","source":{"type":"text","media_type":"text/plain","data":"D"}},
			{"type":"search_result","source":"artel://a/1","title":"S","content":[{"type":"text","text":"found"}]},{"type":"container_upload","file_id":"file_2"}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"redacted_thinking","data":"ZA=="},{"type":"text","text":"I look."},
			{"type":"tool_use","id":"a","name":"f","input":{"source":{"type":"base64","data":"AAAA"}},"caller":{"type":"code_execution_20260120","tool_id":"s"}},
			{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"text","text":"two"},{"type":"tool_reference","tool_name":"g"}]},{"type":"text","text":"and?"}]},
		{"role":"system","content":"Now."}]}`)
	half, most := 0.5, 0.9
	hash := func(b ...byte) artel.Ref { return artel.BlobRef(artel.NewDigest(sum(b))) }
	image := artel.Media{Ref: hash(0, 0, 0), MediaType: "image/png", Kind: artel.KindImage, Size: 3}
	want := &model.Request{
		Service: model.Service{Dialect: model.Anthropic, Model: "m", Capabilities: model.TextOnly()}, MaxOutput: 50,
		Choice:   model.ToolChoice{Mode: model.ChooseNamed, Name: "f", OneByOne: true},
		Format:   model.Format{JSON: true, Schema: json.RawMessage(`{"type":"object"}`), Strict: true},
		Sampling: model.Sampling{Temperature: &half, TopP: &most, Stop: []string{"END"}},
		Tools:    []model.ToolSpec{{Name: "f", Description: "F.", Schema: json.RawMessage(`{"type":"object"}`)}},
		Dropped: []model.Drop{
			{Field: "tools.web_search_20250305", Reason: model.NotTranslated},
			{Field: "messages.server_tool_use", Reason: model.NotTranslated},
			{Field: "messages.web_search_tool_result", Reason: model.NotTranslated},
		},
		Messages: []model.Message{
			{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "Be"}, artel.Text{Text: "brief."}}},
			{Role: artel.RoleUser, Parts: artel.Parts{
				image,
				artel.Media{Ref: hash(0, 0, 0, 0), MediaType: "application/pdf", Kind: artel.KindDocument, Filename: "a.pdf", Size: 4},
				artel.Text{Text: "[image at https://x/y.png]"},
				artel.Text{Text: "[document file_1]"},
				artel.Text{Text: "T\nC\n\nD"},
				artel.Text{Text: "S\nartel://a/1\n\nfound"},
				artel.Text{Text: "[file file_2]"},
			}},
			{Role: artel.RoleAssistant, Parts: artel.Parts{
				artel.Reasoning{Text: "Hm.", Opaque: json.RawMessage(`{"type":"thinking","signature":"c2ln"}`)},
				artel.Reasoning{Opaque: json.RawMessage(`{"type":"redacted_thinking","data":"ZA=="}`)},
				artel.Text{Text: "I look."},
				artel.ToolCall{ID: "a", Name: "f", Arguments: json.RawMessage(`{"source":{"type":"base64","data":"AAAA"}}`), Opaque: json.RawMessage(`{"caller":{"type":"code_execution_20260120","tool_id":"s"}}`)},
				artel.Reasoning{Opaque: json.RawMessage(`{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`)},
				artel.Reasoning{Opaque: json.RawMessage(`{"type":"web_search_tool_result","tool_use_id":"s","content":[]}`)},
			}},
			{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "a", Content: "one\n\ntwo\n\n[tool g]", IsError: true, Parts: artel.Parts{image}}}},
			{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "and?"}}},
			{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "Now."}}},
		},
	}
	if diff := cmp.Diff(want, r.Neutral()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAnswerStream(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	flushed := 0
	a := anthropic.Answer{ID: "msg_1", Model: "m", InputTokens: 5}
	err := a.Stream(&b, func() error { flushed++; return nil }, providertest.Each(
		model.ReasoningDelta("Hm"), model.ReasoningDelta("."), model.ReasoningDone{Opaque: json.RawMessage(`{"type":"thinking","signature":"c2ln"}`)},
		model.ReasoningDone{Opaque: json.RawMessage(`{"type":"redacted_thinking","data":"ZA=="}`)},
		model.TextDelta("I <look>."),
		model.CallPiece{ID: "toolu_1", Name: "f"}, model.CallPiece{ID: "toolu_1", Name: "f", Text: `{"q":`}, model.CallPiece{ID: "toolu_1", Name: "f", Text: `"é"}`},
		model.CallDelta{ID: "toolu_1", Name: "f", Arguments: json.RawMessage(`{"q":"é"}`)},
		model.Finish{Reason: model.StopTools, Usage: artel.Usage{Calls: 1, InputTokens: 33, CachedTokens: 20, StoredTokens: 3, OutputTokens: 7, ThoughtTokens: 4}},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := `event: message_start
data: {"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}},"type":"message_start"}

event: content_block_start
data: {"content_block":{"type":"thinking","thinking":"","signature":""},"index":0,"type":"content_block_start"}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"delta":{"thinking":"Hm","type":"thinking_delta"},"index":0,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"thinking":".","type":"thinking_delta"},"index":0,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"signature":"c2ln","type":"signature_delta"},"index":0,"type":"content_block_delta"}

event: content_block_stop
data: {"index":0,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"type":"redacted_thinking","data":"ZA=="},"index":1,"type":"content_block_start"}

event: content_block_stop
data: {"index":1,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"type":"text","text":""},"index":2,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"text":"I <look>.","type":"text_delta"},"index":2,"type":"content_block_delta"}

event: content_block_stop
data: {"index":2,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}},"index":3,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"partial_json":"","type":"input_json_delta"},"index":3,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"partial_json":"{\"q\":","type":"input_json_delta"},"index":3,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"partial_json":"\"é\"}","type":"input_json_delta"},"index":3,"type":"content_block_delta"}

event: content_block_stop
data: {"index":3,"type":"content_block_stop"}

event: message_delta
data: {"delta":{"stop_reason":"tool_use","stop_sequence":null},"type":"message_delta","usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":20,"output_tokens":7,"output_tokens_details":{"thinking_tokens":4}}}

event: message_stop
data: {"type":"message_stop"}

`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if flushed != strings.Count(want, "event:") {
		t.Errorf("flushed %d times", flushed)
	}
}

func TestAnswerErrors(t *testing.T) {
	t.Parallel()
	failing := func(err error) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			if yield(model.TextDelta("half"), nil) && err != nil {
				yield(nil, err)
			}
		}
	}
	for name, c := range map[string]struct {
		err    error
		status int
		want   string
	}{
		"refused":     {&artel.Error{Kind: artel.Invalid, Err: &model.CallError{Status: 400, Message: "messages: no"}}, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages: no"}}`},
		"overloaded":  {&artel.Error{Kind: artel.Unavailable, Err: &model.CallError{Status: 529, Message: "Overloaded"}}, 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		"limited":     {&artel.Error{Kind: artel.Unavailable, Err: &model.CallError{Status: 429, Message: "slow"}}, 429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`},
		"broken":      {&artel.Error{Kind: artel.Unavailable, Err: &model.CallError{Status: 200, Message: "broken"}}, 502, `{"type":"error","error":{"type":"api_error","message":"broken"}}`},
		"its own":     {anthropic.Bad("messages.0", "no"), 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0: no"}}`},
		"denied":      {artel.Errorf(artel.Denied, "", "", "no"), 403, `{"type":"error","error":{"type":"permission_error","message":"no"}}`},
		"not there":   {artel.Errorf(artel.NotFound, "", "", "no"), 404, `{"type":"error","error":{"type":"not_found_error","message":"no"}}`},
		"too large":   {artel.Errorf(artel.TooLarge, "", "", "no"), 413, `{"type":"error","error":{"type":"request_too_large","message":"no"}}`},
		"unsupported": {artel.Errorf(artel.Unsupported, "", "", "no"), 400, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`},
		"anything":    {errors.New("oops"), 500, `{"type":"error","error":{"type":"api_error","message":"oops"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			err := anthropic.Answer{}.Stream(&b, nil, failing(c.err))
			if !errors.Is(err, c.err) || !strings.HasSuffix(b.String(), "event: error\ndata: "+c.want+"\n\n") || anthropic.ErrorOf(c.err).Status != c.status {
				t.Errorf("got %v: %s", err, b.String())
			}
			if _, err := (anthropic.Answer{}).Whole(failing(c.err)); !errors.Is(err, c.err) {
				t.Errorf("whole: %v", err)
			}
		})
	}
	if err := (anthropic.Answer{}).Stream(io.Discard, nil, failing(nil)); err == nil {
		t.Error("an answer without an end is no error")
	}
	gone := errors.New("gone")
	if err := (anthropic.Answer{}).Stream(io.Discard, func() error { return gone }, failing(nil)); !errors.Is(err, gone) {
		t.Errorf("a client that has gone: %v", err)
	}
	if got := string(anthropic.Refused(402, "pay").MarshalBody("req_7")); got != `{"type":"error","error":{"type":"billing_error","message":"pay"},"request_id":"req_7"}` {
		t.Error(got)
	}
}

// What an answer says reaches the client, streamed or whole, and comes back in
// the next request; also what another dialect signed.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var deltas []model.Delta
		var want artel.Parts
		add := func(p artel.Part) {
			n := len(want) - 1
			if n >= 0 {
				if before, ok := want[n].(artel.Text); ok {
					if after, ok := p.(artel.Text); ok {
						want[n] = artel.Text{Text: before.Text + after.Text}
						return
					}
				}
			}
			want = append(want, p)
		}
		calls := 0
		for range rapid.IntRange(1, 6).Draw(rt, "parts") {
			s := rapid.StringN(1, 20, -1).Draw(rt, "text")
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0, 1:
				deltas = append(deltas, model.TextDelta(s))
				add(artel.Text{Text: s})
			case 2:
				o := json.RawMessage(rapid.SampledFrom([]string{`{"type":"thinking","signature":"c2ln"}`, `{"encrypted_content":"<x>"}`, `"s"`}).Draw(rt, "state"))
				deltas = append(deltas, model.ReasoningDelta(s), model.ReasoningDone{Opaque: o})
				add(artel.Reasoning{Text: s, Opaque: o, Service: "up"})
			case 3:
				o := json.RawMessage(rapid.SampledFrom([]string{`{"type":"thinking","signature":"c2ln"}`, `{"type":"redacted_thinking","data":"ZA=="}`, `{"x":1}`}).Draw(rt, "state"))
				deltas = append(deltas, model.ReasoningDone{Opaque: o})
				add(artel.Reasoning{Opaque: o, Service: "up"})
			case 4:
				deltas = append(deltas, model.ReasoningDelta(s), model.ReasoningDone{})
				add(artel.Reasoning{Text: s, Service: "up"})
			default:
				calls++
				c := artel.ToolCall{ID: artel.CallID("c" + string(rune('0'+calls))), Name: "f", Arguments: json.RawMessage(`{"a":"é<"}`)}
				deltas = append(deltas, model.CallDelta(c))
				add(c)
			}
		}
		deltas = append(deltas, model.Finish{Reason: model.StopEnd})
		a := anthropic.Answer{ID: "msg_1", Model: "m", Service: "up"}
		whole, err := a.Whole(providertest.Each(deltas...))
		if err != nil {
			rt.Fatal(err)
		}
		content, err := whole.MarshalBody()
		if err != nil {
			rt.Fatal(err)
		}
		r := decode(t, `{"model":"m","messages":[`+string(content)+`]}`).Neutral()
		got := r.Messages[0].Parts
		for i, p := range got {
			// What the dialect signed does not say whose it is.
			if x, ok := p.(artel.Reasoning); ok && x.Service == "" {
				x.Service = "up"
				got[i] = x
			}
		}
		if diff := cmp.Diff(valid(want), got); diff != "" {
			rt.Fatalf("whole: -want +got\n%s", diff)
		}
		var b bytes.Buffer
		if err := a.Stream(&b, nil, providertest.Each(deltas...)); err != nil {
			rt.Fatal(err)
		}
		text := ""
		for _, p := range want {
			if x, ok := p.(artel.Text); ok {
				text += x.Text
			}
		}
		heard, called := "", 0
		for d, err := range anthropic.New(anthropic.Options{Client: providertest.Canned(b.String())}).Generate(t.Context(), &model.Request{Service: model.Service{ID: "s", BaseURL: "http://x", Model: "m"}, Messages: []model.Message{user("x")}}) {
			if err != nil {
				rt.Fatal(err)
			}
			switch d := d.(type) {
			case model.TextDelta:
				heard += string(d)
			case model.CallDelta:
				called++
			}
		}
		if heard != strings.ToValidUTF8(text, "\uFFFD") || called != calls {
			rt.Fatalf("heard %q and %d calls, want %q and %d", heard, called, text, calls)
		}
	})
}

// TestLargeMedia sends 50 MiB in a tool result to a server that decodes it, and
// watches what both allocate.
func TestLargeMedia(t *testing.T) {
	store := blob.NewMemory()
	info, err := store.Put(t.Context(), bytes.NewReader(make([]byte, 50<<20)), 0)
	if err != nil {
		t.Fatal(err)
	}
	var got *model.Request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := anthropic.Decode(r.Context(), r.Body, provider.DecodeOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		got = req.Neutral()
		_ = anthropic.Answer{}.Stream(w, nil, providertest.Each(model.TextDelta("ok"), model.Finish{Reason: model.StopEnd}))
	}))
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	service := native()
	service.BaseURL = srv.URL
	r := &model.Request{Service: service, Messages: []model.Message{
		user("look"),
		{Role: artel.RoleAssistant, Parts: artel.Parts{artel.ToolCall{ID: "a", Name: "f"}}},
		{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "a", Parts: artel.Parts{artel.Media{Ref: artel.BlobRef(info.Digest), MediaType: "image/png", Size: info.Size}}}}},
	}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, err := range anthropic.New(anthropic.Options{Client: srv.Client(), Blobs: store}).Generate(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if m := got.Messages[2].Parts[0].(artel.ToolResult).Parts[0].(artel.Media); m.Ref.Digest != info.Digest || m.Size != info.Size {
		t.Errorf("got %+v", m)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
		t.Errorf("50 MiB cost %d bytes of allocation", grown)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(request("", "user:"+png+","+says("x"), "assistant:"+call, "user:"+res)))
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[` + png + `]}}]}]}`))
	f.Add([]byte(`{"messages":[{"content":[{"type":"tool_result","content":[{"type":"image","source":{"data":"AAAA","type":"base64"}}]}]}],"tools":[{}],"thinking":{"type":"x"}}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"artel.e30"},{"type":"server_tool_use"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := anthropic.Decode(t.Context(), bytes.NewReader(body), decoding())
		if err != nil {
			return
		}
		invalid := rules.Validate(r, rules.Options{})
		n := r.Neutral()
		if invalid != nil {
			return
		}
		n.Service.ID = "s"
		for i := range n.Messages { // media are not kept here
			if len(artel.MediaOf(n.Messages[i].Parts)) > 0 {
				return
			}
		}
		again, err := anthropic.Encode(n, nil)
		if err != nil {
			t.Fatalf("%v of %s", err, body)
		}
		b, err := io.ReadAll(again.Open(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if err := rules.ValidateJSON(b); err != nil && !strings.Contains(err.Error(), "Tool '") && !strings.Contains(err.Error(), "Thinking") {
			t.Fatalf("%v\nof %s\nfrom %s", err, b, body)
		}
	})
}

func FuzzStream(f *testing.F) {
	f.Add(stream(started, begin(0, `{"type":"text","text":""}`), ping, delta(0, `{"type":"text_delta","text":"Hi"}`), over(0), ends("end_turn"), stopped))
	f.Add(stream(started, begin(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`), delta(0, `{"type":"input_json_delta","partial_json":"{"}`), over(0), ends("pause_turn"), stopped))
	f.Add(`{"content":[{"type":"thinking","thinking":"x","signature":"s"}],"stop_reason":"end_turn"}`)
	f.Fuzz(func(t *testing.T, body string) { providertest.CheckAnswer(t, dialect(t), "", body) })
}

func sum(b []byte) [32]byte { return sha256.Sum256(b) }

// valid returns parts with texts as JSON has them.
func valid(parts artel.Parts) artel.Parts {
	for i, p := range parts {
		switch p := p.(type) {
		case artel.Text:
			parts[i] = artel.Text{Text: strings.ToValidUTF8(p.Text, "\uFFFD")}
		case artel.Reasoning:
			p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
			parts[i] = p
		}
	}
	return parts
}
