// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/json"
)

// Decoded is the embedded part of every dialect's request: what [Extract] found in
// its JSON.
type Decoded struct {
	extraction *Extraction // nil: not decoded from JSON
}

// NewDecoded returns the part of a request that has x.
func NewDecoded(x *Extraction) Decoded { return Decoded{x} }

// Extraction returns the JSON of the request and its payloads, both empty if it was
// not decoded.
func (d *Decoded) Extraction() *Extraction {
	if d.extraction == nil {
		return &Extraction{}
	}
	return d.extraction
}

// StringOrList reads a string into text, or a list into list; null leaves both
// unchanged, and everything else is the error otherwise.
func StringOrList[T any](data []byte, text **string, list *[]T, otherwise error) error {
	switch data = bytes.TrimSpace(data); {
	case len(data) > 0 && data[0] == '"':
		return json.Unmarshal(data, text)
	case len(data) > 0 && data[0] == '[':
		*list = []T{}
		return json.Unmarshal(data, list)
	case string(data) == "null":
		return nil
	}
	return otherwise
}
