// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

// genParts draws lists of every part, with everything in them that can be there.
func genParts(depth int) *rapid.Generator[artel.Parts] {
	kinds := []*rapid.Generator[artel.Part]{
		rapid.Custom(func(t *rapid.T) artel.Part { return artel.Text{Text: rapid.String().Draw(t, "text")} }),
		rapid.Custom(func(t *rapid.T) artel.Part {
			return artel.Media{
				Ref: genRef().Draw(t, "ref"), MediaType: "image/png", Kind: artel.KindImage, Filename: rapid.String().Draw(t, "name"),
				Size: rapid.Int64().Draw(t, "size"), Width: rapid.Int().Draw(t, "width"), Height: rapid.Int().Draw(t, "height"),
				Pages: rapid.Int().Draw(t, "pages"), Duration: rapid.Float64Range(0, 1e9).Draw(t, "duration"),
			}
		}),
		rapid.Custom(func(t *rapid.T) artel.Part {
			args, _ := json.Marshal(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "arguments"))
			c := artel.ToolCall{ID: artel.CallID(rapid.String().Draw(t, "id")), Name: rapid.String().Draw(t, "name"), Arguments: args}
			if rapid.Bool().Draw(t, "opaque") {
				c.Opaque, c.Service = json.RawMessage(`{"a":[1]}`), "s"
			}
			return c
		}),
		rapid.Custom(func(t *rapid.T) artel.Part {
			return artel.Reasoning{Text: rapid.String().Draw(t, "text"), Opaque: json.RawMessage(`{"a":[1]}`), Service: "s"}
		}),
	}
	if depth > 0 {
		kinds = append(kinds, rapid.Custom(func(t *rapid.T) artel.Part {
			r := artel.ToolResult{
				CallID: "c", Content: rapid.String().Draw(t, "content"), IsError: rapid.Bool().Draw(t, "error"),
				Millis: rapid.Int64Min(0).Draw(t, "millis"),
			}
			if told := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata"); len(told) > 0 {
				r.Metadata = map[string]any{}
				for k, v := range told {
					r.Metadata[k] = v
				}
			}
			if inner := genParts(depth-1).Draw(t, "parts"); len(inner) > 0 {
				r.Parts = inner
			}
			return r
		}))
	}
	return rapid.Custom(func(t *rapid.T) artel.Parts {
		return artel.Parts(rapid.SliceOfN(rapid.OneOf(kinds...), 0, 5).Draw(t, "parts"))
	})
}

func TestPartsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genParts(2).Draw(t, "parts")
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got artel.Parts
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: -want +got\n%s", data, diff)
		}
	})
}

func TestPartsJSON(t *testing.T) {
	tests := []struct {
		parts artel.Parts
		want  string
	}{
		{nil, `[]`},
		{artel.Parts{artel.Text{}}, `[{"type":"text","text":""}]`},
		{artel.Parts{artel.Reasoning{}}, `[{"type":"reasoning"}]`},
		{artel.Parts{artel.ToolCall{ID: "1", Name: "n"}}, `[{"type":"tool_call","id":"1","name":"n","arguments":{}}]`},
		{artel.Parts{artel.ToolResult{CallID: "1"}}, `[{"type":"tool_result","call_id":"1","content":""}]`},
		{
			artel.Parts{artel.ToolResult{CallID: "1", Millis: 7, Metadata: map[string]any{"content_type": "text"}}},
			`[{"type":"tool_result","call_id":"1","content":"","duration_ms":7,"metadata":{"content_type":"text"}}]`,
		},
		{
			artel.Parts{artel.Media{Ref: artel.Ref{Artifact: "a", Version: 2}, MediaType: "image/png", Kind: artel.KindImage}},
			`[{"type":"media","ref":"artifact:a@2","media_type":"image/png","kind":"image","size":0}]`,
		},
	}
	for _, tt := range tests {
		got, err := json.Marshal(tt.parts)
		if err != nil || string(got) != tt.want {
			t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
		}
	}
}

func TestPartsRefuse(t *testing.T) {
	for _, in := range []string{`[{"type":"blob"}]`, `[{}]`, `[null]`, `[3]`, `{}`, `[{"type":"media","ref":"no ref"}]`, `[{"type":"text","text":1}]`} {
		ps := artel.Parts{artel.Text{Text: "before"}}
		if err := json.Unmarshal([]byte(in), &ps); err == nil {
			t.Errorf("%s was accepted as %#v", in, ps)
		}
		if len(ps) != 1 {
			t.Errorf("%s: a refused list left %#v", in, ps)
		}
	}
	if _, err := json.Marshal(artel.Parts{nil}); err == nil {
		t.Error("a nil part was written")
	}
	if _, err := json.Marshal(artel.Parts{artel.ToolCall{Arguments: json.RawMessage("{")}}); err == nil {
		t.Error("broken arguments were written")
	}
}

func TestTextOf(t *testing.T) {
	got := artel.TextOf(artel.Parts{artel.Text{Text: "a"}, artel.Reasoning{Text: "b"}, artel.Text{}, artel.Text{Text: "c"}})
	if got != "a\n\nc" {
		t.Errorf("got %q", got)
	}
}

func FuzzParts(f *testing.F) {
	for _, s := range []string{
		`[]`, `null`, `[{"type":"text","text":"a"}]`, `[{"type":"media","ref":"artifact:a@2"}]`, `[{"type":"tool_call","arguments":null}]`,
		`[{"type":"tool_result","parts":[{"type":"text"}]}]`, `[{"type":"reasoning","opaque":{}}]`, `[{"type":"text","type":"media"}]`, `[null]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second artel.Parts
		if json.Unmarshal(data, &first) != nil {
			return
		}
		out, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", data, err)
		}
		if err := json.Unmarshal(out, &second); err != nil {
			t.Fatalf("%s became %s: %v", data, out, err)
		}
		again, err := json.Marshal(second)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%s became %s and then %s, %v", data, out, again, err)
		}
	})
}

// TestZeroValuesMarshal holds the package to its promise about zero values.
func TestZeroValuesMarshal(t *testing.T) {
	for _, v := range []any{
		artel.Conversation{},
		artel.Message{},
		artel.Run{},
		artel.RunError{},
		artel.Usage{},
		artel.Artifact{},
		artel.Version{},
		artel.Change{},
		artel.MediaInfo{},
		artel.Route{},
		artel.Ref{},
		artel.Text{},
		artel.Media{},
		artel.ToolResult{},
		artel.Reasoning{},
		artel.Parts{},
		artel.Event{},
		artel.ToolCall{},
		artel.ToolStarted{},
		artel.ToolCompleted{},
	} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%T: %v", v, err)
			continue
		}
		back := reflect.New(reflect.TypeOf(v))
		if err := json.Unmarshal(data, back.Interface()); err != nil {
			t.Errorf("%T: %s: %v", v, data, err)
		}
		if strings.Contains(string(data), `"parts":null`) {
			t.Errorf("%T: %s", v, data)
		}
	}
}
