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
		whole    bool
	}{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, true},
		{`{"properties":{"a":{}, "b":{}},"required":["a"]}`, `{"properties":{"a":{},"b":{}},"required":["a"],"additionalProperties":false}`, false},
		{`{"type":"array","items":{"anyOf":[{"properties":{"a":true},"required":["a"]},{"type":"null"}]}}`, `{"type":"array","items":{"anyOf":[{"properties":{"a":true},"required":["a"],"additionalProperties":false},{"type":"null"}]}}`, true},
		{`{"type":"object","properties":{"a":1},"required":["a"],"additionalProperties":true}`, `{"type":"object","properties":{"a":1},"required":["a"],"additionalProperties":true}`, false},
		{`{"$defs":{"x":{"properties":{"b":{}}}},"$ref":"#/$defs/x"}`, `{"$defs":{"x":{"properties":{"b":{}},"additionalProperties":false}},"$ref":"#/$defs/x"}`, false},
		{`{"type":"string"}`, `{"type":"string"}`, true},
		{`true`, `true`, true},
	} {
		got, whole := closeObjects(json.RawMessage(c.in), 0)
		if string(got) != c.want || whole != c.whole {
			t.Errorf("%s: %s %v, want %s %v", c.in, got, whole, c.want, c.whole)
		}
		if again, _ := closeObjects(got, 0); string(again) != string(got) {
			t.Errorf("%s: again %s", c.in, again)
		}
	}
	deep := strings.Repeat(`{"items":`, 300) + "1" + strings.Repeat("}", 300)
	if _, whole := closeObjects(json.RawMessage(deep), 0); whole {
		t.Error("what is too deep to look at counts as whole")
	}
}
