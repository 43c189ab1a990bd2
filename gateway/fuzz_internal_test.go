// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/artelhq/artel/internal/sse"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
)

// TestEventsStayAsTheyAre: however a stream comes in pieces, what is handed on
// is the stream up to its last whole event.
func TestEventsStayAsTheyAre(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(rt, "line end")
		var stream, whole strings.Builder
		count := rapid.IntRange(0, 6).Draw(rt, "events")
		for range count {
			for range rapid.IntRange(1, 3).Draw(rt, "lines") {
				whole.WriteString("data: " + rapid.StringMatching(`[a-z {}":é]{0,40}`).Draw(rt, "line") + end)
			}
			whole.WriteString(end)
		}
		stream.WriteString(whole.String())
		rest := rapid.SampledFrom([]string{"", "data: cut", "data: cut" + end}).Draw(rt, "rest")
		stream.WriteString(rest)
		var in io.Reader = strings.NewReader(stream.String())
		switch rapid.IntRange(0, 2).Draw(rt, "pieces") {
		case 0:
			in = iotest.OneByteReader(in)
		case 1:
			in = iotest.HalfReader(in)
		}
		var got bytes.Buffer
		e := newEventReader(in, new([bufferSize]byte))
		n := 0
		for {
			run, err := e.next()
			if err == io.EOF && rest == "" || err == io.ErrUnexpectedEOF && (rest != "" || end == "\r") {
				break
			}
			if err != nil {
				rt.Fatal(err)
			}
			got.Write(run)
			for len(run) > 0 {
				run = run[len(firstOf(run)):]
				n++
			}
		}
		if end == "\r" && rest == "" {
			// Whether the last event has ended shows only by what follows.
			if !strings.HasPrefix(whole.String(), got.String()) {
				rt.Fatalf("got %q of %q", got.String(), whole.String())
			}
			return
		}
		if got.String() != whole.String() || end != "\r" && n != count {
			rt.Fatalf("got %d events %q, want %d %q", n, got.String(), count, whole.String())
		}
	})
}

// FuzzEvents: what is handed on means what the whole stream means, the last event
// is known, and no dialect calls a run plain of which an event says something.
func FuzzEvents(f *testing.F) {
	for _, event := range []string{
		`{"choices":[{"delta":{"content":"x"}}]}`, `{"choices":[],"usage":{"prompt_tokens":1}}`, `{"error":{"message":"x"}}`, "[DONE]", "[DO\ndata: NE]",
		`{"type":"message_stop"}`, `{"type":"m\u0065ssage_stop"}`, `{"type":"content_block_delta"}`, `{"type":"error"}`, "x\nevent: message_delta", "x\nevent: error",
		`{"type":"response.completed"}`, `{"type":"response.f\u0061iled"}`, "x\nevent: response.incomplete", `{"type":"response.output_text.delta","delta":"x"}`,
		`{"candidates":[{"finishReason":"STOP"}]}`, `{"promptFeedback":{"blockReason":"SAFETY"}}`, `{"usageMetadata":{}}`, `{"error":{"code":400}}`,
	} {
		f.Add([]byte("data: {}\n\ndata: "+event+"\n\n"), 100)
	}
	f.Add([]byte("data: a\n\nevent: b\r\ndata: c\r\n\r\n"), 3)
	f.Add([]byte(":x\r\r\ndata\n\n\n\r\r\r"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		e := newEventReader(&inPieces{stream, max(1, min(size, 100))}, new([bufferSize]byte))
		var out []byte
		for {
			run, err := e.next()
			if err != nil {
				break
			}
			if len(run) == 0 || len(firstOf(run)) == 0 {
				t.Fatal("an empty event")
			}
			out = append(out, run...)
			last := run
			for rest := run; len(rest) > 0; rest = rest[len(last):] {
				last = firstOf(rest)
				for _, d := range []provider.Editor{openai.Editor(), responses.Editor(), anthropic.Editor(), gemini.Editor()} {
					if v := d.Inspect(last); v != (provider.EventInfo{}) && d.Skippable(run) {
						t.Fatalf("%s: %q is called plain, and means %+v", d.Dialect(), last, v)
					}
				}
			}
			if got := e.last(); len(got) == 0 || !bytes.HasSuffix(last, got) || len(got) != len(last) && bytes.IndexByte(run, '\r') < 0 {
				t.Fatalf("the last event of %q is %q, and %q is said", run, last, got)
			}
		}
		if !bytes.HasPrefix(stream, out) {
			t.Fatalf("%q became %q", stream, out)
		}
		var want, got []sse.Event
		for x := range sse.Events(bytes.NewReader(stream), 0) {
			want = append(want, x)
		}
		for x := range sse.Events(bytes.NewReader(out), 0) {
			got = append(got, x)
		}
		if len(got) > len(want) || len(want) > len(got)+1 && bytes.IndexByte(stream, '\r') < 0 {
			t.Fatalf("%d events became %d", len(want), len(got))
		}
	})
}

type inPieces struct {
	rest []byte
	size int
}

func (p *inPieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// FuzzSpans: whatever a request is, the places that are found in it are places
// of it, and putting into them leaves JSON.
func FuzzSpans(f *testing.F) {
	for _, seed := range []string{
		`{"model":"a","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]},{"role":"tool","tool_call_id":"c","content":[ ]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","data":"x","media_type":"image/png"}}]},{"type":"thinking","thinking":"x","signature":"artel.e30"}]}]}`,
		`{"input":[{"type":"function_call_output","call_id":"c","output":"x"},{"type":"reasoning","encrypted_content":"artel1.x"},{"role":"user","content":"y"}]}`,
		`{"contents":[{"parts":[{"functionResponse":{"name":"f","parts":[{"inlineData":{"data":"x"}}],"response":{"a":["b"]}}},{"file_data":{"file_uri":"u"}}]}]}`,
		`{"model":"a","model":"b","messages":{"role":"user"}}`,
		`{"input":[{"type":"function_call_output"}]}`,
		`{"messages":[{"role":"tool"},{"role":"user","content":[{"type":"tool_result"},{"type":"image","source":{}}]}],"contents":[{"parts":[{"functionResponse":{}},{"inlineData":{}}]}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !gjson.Valid(text) || !json.Valid([]byte(text)) {
			return
		}
		h, ok := provider.ReadHead(text)
		for _, m := range h.Models {
			if !ok || !json.Valid([]byte(m.Of(text))) {
				t.Fatalf("the model is %q", m.Of(text))
			}
		}
		for _, d := range []provider.Editor{openai.Editor(), anthropic.Editor(), responses.Editor(), gemini.Editor()} {
			own := d.StripForeign(text)
			if !json.Valid([]byte(own)) {
				t.Fatalf("%s: %s", d.Dialect(), own)
			}
			l := d.Scan(own)
			var edits []provider.Edit
			for _, m := range l.Media {
				if !json.Valid([]byte(m.Part.Of(own))) || m.Slot.From < m.Part.From || m.Slot.To > m.Part.To {
					t.Fatalf("%s: a part is %q with %v", d.Dialect(), m.Part.Of(own), m.Slot)
				}
				edits = append(edits, provider.Edit{Span: m.Part, With: d.TextPart("x")})
			}
			if !json.Valid([]byte(provider.ApplyEdits(own, edits))) {
				t.Fatalf("%s: %s", d.Dialect(), provider.ApplyEdits(own, edits))
			}
			for i, r := range l.Results {
				said := "y"
				for _, s := range r.Texts {
					if own[s.From] != '"' {
						t.Fatalf("%s: a text is %q", d.Dialect(), s.Of(own))
					}
				}
				if r.Content.To == 0 {
					continue
				}
				for _, edits := range [][]provider.Edit{d.FillResult(own, r, &said, nil), d.FillResult(own, r, nil, []string{d.TextPart("z")}), {{Span: r.MediaMember, With: ""}}} {
					if got := provider.ApplyEdits(own, edits); !json.Valid([]byte(got)) {
						t.Fatalf("%s: result %d: %s", d.Dialect(), i, got)
					}
				}
			}
			for i, e := range l.Elements {
				if got := provider.ApplyEdits(own, d.PrependParts(own, e, []string{d.TextPart("w")})); !json.Valid([]byte(got)) {
					t.Fatalf("%s: joined %s", d.Dialect(), got)
				}
				if e.InsertAt > 0 {
					if got := provider.ApplyEdits(own, []provider.Edit{{Span: provider.Span{From: e.InsertAt, To: e.InsertAt}, With: "," + d.TextPart("v")}}); !json.Valid([]byte(got)) {
						t.Fatalf("%s: inside %s", d.Dialect(), got)
					}
				}
				got := provider.Arrange(own, provider.Array{Elements: spansOf(l.Elements), After: map[int]string{i: d.UserMessage([]string{d.TextPart("u")}) + "," + d.Filler()}}, nil)
				if !json.Valid([]byte(got)) {
					t.Fatalf("%s: after %d: %s", d.Dialect(), i, got)
				}
			}
		}
	})
}
