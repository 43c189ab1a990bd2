// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
)

// TestSecondCallIsNotHeld: text at the end of a piece that may begin a ref is held until
// the next call begins, because the call before it has ended then. In JSON it cannot be
// the end of the call, so calls in turns wait.
func TestSecondCallIsNotHeld(t *testing.T) {
	event := func(index, call string) []byte {
		return []byte(`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":` + index + `,` + call + `}]}}]}` + "\n\n")
	}
	custom := func(index, text string) []byte { return event(index, `"custom":{"input":"`+text+`"}`) }
	function := func(index, text string) []byte { return event(index, `"function":{"arguments":"`+text+`"}`) }
	inputs := func(event []byte) string {
		return gjson.GetBytes(provider.EventData(event), "choices.0.delta.tool_calls.0.custom.input").Str
	}
	for name, c := range map[string]struct {
		events [][]byte
		passed int // of the events
	}{
		"a piece that may begin a ref":  {[][]byte{custom("0", "the web")}, 0},
		"the next call begins":          {[][]byte{custom("0", "the web"), custom("1", "")}, 2},
		"and continues":                 {[][]byte{custom("0", "the web"), custom("1", ""), custom("1", "more")}, 3},
		"and may begin a ref":           {[][]byte{custom("0", "the web"), custom("1", "blo")}, 1},
		"the same call again":           {[][]byte{custom("0", "the web"), custom("0", "bl")}, 1},
		"arguments in turns":            {[][]byte{function("0", `{\"a\":\"b`), function("1", `{\"a\":1`)}, 0},
		"arguments in turns, continued": {[][]byte{function("0", `{\"a\":\"b`), function("1", `{\"a\":1`), function("0", `ee\"}`)}, 3},
	} {
		e := &eventRestorer{d: openai.Editor(), r: &backend.Restorer{}, held: map[string]string{}, begun: map[string]bool{}}
		for _, event := range c.events {
			e.add(event)
		}
		if got := strings.Count(string(e.out), "data: "); got != c.passed {
			t.Errorf("%s: %d events are passed on, want %d: %s", name, got, c.passed, e.out)
		}
		all := string(e.out)
		e.out = nil
		e.release()
		all += string(e.out)
		var sent, got strings.Builder
		for _, event := range c.events {
			sent.WriteString(inputs(event))
		}
		for event := range strings.SplitAfterSeq(all, "\n\n") {
			got.WriteString(inputs([]byte(event)))
		}
		if !strings.HasPrefix(name, "arguments") && got.String() != sent.String() {
			t.Errorf("%s: %s became %s", name, sent.String(), got.String())
		}
	}
}
