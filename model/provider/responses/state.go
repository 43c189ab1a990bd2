// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/artelhq/artel"
)

// The state of reasoning of a service that speaks another dialect, such as a
// signature, has no place of its own in an item. It travels as the item's
// encrypted content, which clients hand back untouched.

// StatePrefix begins such content; JSON in base64 follows. No service of this
// dialect takes it for its own.
const StatePrefix = "artel1."

// carried is what it holds.
type foreignState struct {
	Service artel.ServiceID `json:"service,omitempty"`
	Opaque  json.RawMessage `json:"opaque"`
}

func wrap(c foreignState) string {
	b, err := json.Marshal(c)
	if err != nil { // no JSON
		return ""
	}
	return StatePrefix + base64.RawURLEncoding.EncodeToString(b)
}

func unwrap(encrypted string) (c foreignState, ok bool) {
	text, ok := strings.CutPrefix(encrypted, StatePrefix)
	if !ok {
		return c, false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &c) != nil || len(c.Opaque) == 0 {
		return foreignState{}, false
	}
	return c, true
}
