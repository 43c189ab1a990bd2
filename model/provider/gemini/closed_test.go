// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestClosed(t *testing.T) {
	for _, c := range []struct {
		in, want string
	}{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`},
		{`{"properties":{"a":{}, "b":{}},"required":["a"]}`, `{"properties":{"a":{},"b":{}},"required":["a"],"additionalProperties":false}`},
		{`{"type":"array","items":{"anyOf":[{"properties":{"a":true},"required":["a"]},{"type":"null"}]}}`, `{"type":"array","items":{"anyOf":[{"properties":{"a":true},"required":["a"],"additionalProperties":false},{"type":"null"}]}}`},
		{`{"type":"object","properties":{"a":1},"required":["a"],"additionalProperties":true}`, `{"type":"object","properties":{"a":1},"required":["a"],"additionalProperties":true}`},
		{`{"$defs":{"x":{"properties":{"b":{}}}},"$ref":"#/$defs/x"}`, `{"$defs":{"x":{"properties":{"b":{}},"additionalProperties":false}},"$ref":"#/$defs/x"}`},
		{`{"type":"string"}`, `{"type":"string"}`},
		{`true`, `true`},
	} {
		got := closeObjects(json.RawMessage(c.in), 0)
		if string(got) != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
		if again := closeObjects(got, 0); string(again) != string(got) {
			t.Errorf("%s: again %s", c.in, again)
		}
	}
	deep := strings.Repeat(`{"items":`, 300) + "1" + strings.Repeat("}", 300)
	if got := closeObjects(json.RawMessage(deep), 0); string(got) != deep {
		t.Errorf("a deep schema becomes %s", got)
	}
}
