// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"bytes"
	"encoding/json"
)

// marshal writes v without escaping HTML, so that the text stays short and the
// same for every cache.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// arguments returns a call's arguments as a JSON object. What a model wrote
// where it should have written one is kept inside: the API takes nothing else.
func arguments(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return json.RawMessage("{}")
	case raw[0] == '{' && json.Valid(raw):
		return raw
	}
	var text any = string(raw)
	if s := ""; json.Unmarshal(raw, &s) == nil {
		text = s
	}
	return mustJSON(map[string]any{"invalid_arguments": text})
}
