// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/responses"
)

// TestWithout: what is left of a list is what was not taken out, in its order,
// whatever the white space.
func TestWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept := rapid.SliceOfN(rapid.Bool(), 0, 8).Draw(t, "kept")
		space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
		var elements []string
		want := []any{}
		for _, k := range kept {
			elements = append(elements, map[bool]string{true: `"in"`, false: `"out"`}[k])
			if k {
				want = append(want, "in")
			}
		}
		text := `{"l":[` + space + strings.Join(elements, space+","+space) + space + `]}`
		if len(want) == 0 && len(kept) > 0 {
			want = append(want, "all")
		}
		got := provider.ApplyEdits(text, provider.RemoveElements(gjson.Get(text, "l"), func(v gjson.Result) bool { return v.String() == "out" }, func() string { return `"all"` }))
		var list struct{ L []any }
		if err := json.Unmarshal([]byte(got), &list); err != nil {
			t.Fatalf("%s became %s: %v", text, got, err)
		}
		if diff := cmp.Diff(want, list.L); diff != "" {
			t.Errorf("%s became %s:\n%s", text, got, diff)
		}
	})
}

// TestForeignReasoningIsLinear: a history of many thoughts is looked at once,
// and not once for each. One look for each takes minutes.
func TestForeignReasoningIsLinear(t *testing.T) {
	const n = 50_000
	thought := `{"type":"thinking","thinking":"so","signature":"` + anthropic.SignaturePrefix + `x"}`
	item := `{"type":"reasoning","encrypted_content":"` + responses.StatePrefix + `x"}`
	for _, tt := range []struct {
		own        func(string) string
		text, want string
	}{
		{
			anthropic.Editor().StripForeign, `{"messages":[{"role":"assistant","content":[` + strings.Repeat(thought+",", n) + `{"type":"text","text":"hi"}]},` +
				`{"role":"assistant","content":[` + thought + `]}]}`,
			`{"messages":[{"role":"assistant","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":[{"type":"text","text":"so"}]}]}`,
		},
		{responses.Editor().StripForeign, `{"input":[` + strings.Repeat(item+",", n) + item + `]}`, `{"input":[]}`},
	} {
		if got := tt.own(tt.text); got != tt.want {
			t.Errorf("got %.200s, want %s", got, tt.want)
		}
	}
}
