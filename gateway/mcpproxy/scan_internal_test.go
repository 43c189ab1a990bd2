// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/artelhq/artel/media"
)

// spooled returns s in memory, and in a file that is read in parts.
func spooled(t testing.TB, s string) []*spool {
	long := &spool{}
	t.Cleanup(func() { _ = long.Close() })
	for _, p := range []string{strings.Repeat(" ", inMemory+1), s} {
		if _, err := long.WriteString(p); err != nil {
			t.Fatal(err)
		}
	}
	return []*spool{spoolOf([]byte(s)), long}
}

// FuzzScan: strings, members and elements are those of encoding/json, in memory and in
// files; nothing makes the scanner panic or run on.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"b":[true,null,"x\ny"],"ä":{"c":"\ud83d\ude00 \ud800x \u00e9"}}`, `[]`, `{}`, `[{},[],"",0,-1.5e9]`, `{"a":"` + strings.Repeat(`\\\"`, 50) + `"}`,
		`{"a"`, `[1,`, `"\u12`, `{"a":"\x"}`, `[[[[[[`, `{"a":1,}`, `[1 2]`, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range spooled(t, text) {
			var walk func(at span, want any, depth int)
			walk = func(at span, want any, depth int) {
				if depth > 20 {
					return
				}
				switch want := want.(type) {
				case map[string]any:
					got := map[string]span{}
					if err := s.members(at, func(key string, v span) error { got[strings.ToValidUTF8(key, "\uFFFD")] = v; return nil }); err != nil {
						t.Fatalf("%q: %v", text, err)
					}
					if len(got) != len(want) && utf8.ValidString(text) {
						t.Fatalf("%q: %d members, want %d", text, len(got), len(want))
					}
					for k, v := range want {
						if at, ok := got[k]; ok {
							walk(at, v, depth+1)
						}
					}
				case []any:
					n := 0
					if err := s.elements(at, func(i int, v span) error { n++; walk(v, want[i], depth+1); return nil }); err != nil || n != len(want) {
						t.Fatalf("%q: %d elements, want %d: %v", text, n, len(want), err)
					}
				case string:
					b, err := io.ReadAll(s.unescaped(inner(at)))
					if got := string(b); err != nil || utf8.ValidString(text) && got != want {
						t.Fatalf("%q: %q, want %q: %v", text, got, want, err)
					}
				}
			}
			var want any
			at := span{s.size - int64(len(text)), s.size}
			if json.Unmarshal([]byte(text), &want) == nil {
				at, err := scan(s, at).value()
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				walk(at, want, 0)
			} else {
				_ = s.members(at, func(string, span) error { return nil })
				_ = s.elements(at, func(int, span) error { return nil })
				_, _ = io.Copy(io.Discard, s.unescaped(at))
			}
		}
	})
}

// FuzzResult: whatever the server answers, the proxy passes on JSON whose text is within the
// limit, the same each time, or an error.
func FuzzResult(f *testing.F) {
	for _, s := range []string{
		`{"content":[{"type":"text","text":"` + strings.Repeat("words ", 900) + `"}]}`,
		`{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"audio","data":"!"},{"type":"resource","resource":{"uri":"x","blob":"AAEC"}},7,null]}`,
		`{"content":[],"structuredContent":{"rows":[` + strings.Repeat(`{"a":"b"},`, 700) + `1]},"_meta":{"x":"` + strings.Repeat("y", 20_000) + `"}}`,
		`{"content":[` + strings.Repeat(`{"type":"text","text":"x"},`, 5000) + `{"type":"resource_link","uri":"u","name":"n"}]}`,
		`{"contents":[{"uri":"a:b","text":"` + strings.Repeat("# h\\n", 2000) + `"},{"uri":"c","blob":"QUJD"},{"uri":"ui://x","text":"t"}]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, result string) {
		if !json.Valid([]byte(result)) || !utf8.ValidString(result) {
			return
		}
		var first [2][]byte
		for run := range 2 {
			p := New(nil, &discard{}, Options{Name: "x"})
			for i, rewrite := range []func(*message) (*message, error){
				func(m *message) (*message, error) { return p.callResult(t.Context(), m, "") },
				func(m *message) (*message, error) { return p.resourceResult(t.Context(), m) },
			} {
				m, err := parse(spoolOf([]byte(`{"jsonrpc":"2.0","id":1,"result":` + result + `}`)))
				if err != nil {
					t.Fatal(err)
				}
				out, err := rewrite(m)
				if err != nil {
					continue
				}
				b, err := out.bytes(out.all(), 64<<20)
				if err != nil || !json.Valid(b) {
					t.Fatalf("%q became %q: %v", result, b, err)
				}
				if run == 1 && !bytes.Equal(b, first[i]) {
					t.Errorf("%q differs from %q", b, first[i])
				}
				first[i] = b
				var shown struct {
					Result struct {
						Content []struct{ Type, Text string }
					}
				}
				total := 0
				if json.Unmarshal(b, &shown) == nil {
					for _, c := range shown.Result.Content {
						if c.Type == "text" {
							total += len(c.Text)
						}
					}
				}
				if out != m && total > DefaultLimit {
					t.Errorf("%d bytes of text", total)
				}
			}
		}
	})
}

// FuzzRead: no path and no pattern makes reading panic.
func FuzzRead(f *testing.F) {
	f.Add(`{"a":[{"b":1},{"b":2}]}`, "$.a[*].b", "b")
	f.Add(`[1,2,3]`, "[0:2]", "(")
	f.Add("a,b\n1,\"2\n3\"\n", `$["x"]['y'][`, "^")
	f.Fuzz(func(t *testing.T, content, path, pattern string) {
		p := New(nil, &discard{}, Options{Name: "x"})
		for _, s := range spooled(t, content) {
			at := span{s.size - int64(len(content)), s.size}
			if picked, err := pick(s, at, path); err == nil {
				_ = picked.Close()
			}
			_, _ = p.grep(t.Context(), s, at, readArgs{Grep: pattern})
			info, err := sniff(t.Context(), s, at, media.Hint{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := preview(s, at, info, 1024, "artel_read")
			if err != nil || len(text) > 1024 {
				t.Errorf("%d bytes of %q: %v", len(text), content, err)
			}
		}
	})
}

func TestParsePath(t *testing.T) {
	for path, ok := range map[string]bool{
		"$": true, "": true, "$.a": true, "a.b": true, `$["a b"]['c']`: true, "$[0][1:2][3:][:4][*]": true, "$.*": true,
		"$.": false, "$..a": false, "$[": false, "$[x]": false, "$[-1]": false, "$[2:1]": false, `$["a]`: false, strings.Repeat(".a", 200): false,
	} {
		if _, err := parsePath(path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}
