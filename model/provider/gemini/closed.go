// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"slices"
)

// closed returns a schema whose objects have the properties that it names and
// no others, as Gemini fills any: the APIs of others promise a schema only where
// it says so. It reports whether each object has all of its properties, which
// some of them ask for as well.
func closed(schema json.RawMessage, depth int) (json.RawMessage, bool) {
	all := Members(schema)
	if all == nil || depth > 256 {
		return schema, depth <= 256
	}
	whole := true
	inner := func(v json.RawMessage) json.RawMessage {
		v, ok := closed(v, depth+1)
		whole = whole && ok
		return v
	}
	var names, required []string
	limited := false
	out := make([]json.RawMessage, 0, len(all)+1)
	for _, m := range all {
		switch m.Key {
		case "properties", "$defs", "definitions":
			var each []json.RawMessage
			for _, p := range Members(m.Value) {
				if m.Key == "properties" {
					names = append(names, p.Key)
				}
				each = append(each, slices.Concat(quote(p.Key), []byte{':'}, inner(p.Value)))
			}
			m.Value = join('{', each, '}')
		case "anyOf", "prefixItems":
			each := listOf(m.Value)
			for i := range each {
				each[i] = inner(each[i])
			}
			m.Value = join('[', each, ']')
		case "items":
			m.Value = inner(m.Value)
		case "required":
			required = stringsOf(m.Value)
		case "additionalProperties":
			limited = true
			whole = whole && string(m.Value) == "false"
		}
		out = append(out, slices.Concat(quote(m.Key), []byte{':'}, m.Value))
	}
	if len(names) > 0 && !limited {
		out = append(out, json.RawMessage(`"additionalProperties":false`))
	}
	for _, name := range names {
		whole = whole && slices.Contains(required, name)
	}
	return join('{', out, '}'), whole
}
