// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/artelhq/artel"
)

// StatePrefix begins the encrypted content of reasoning whose state, such as a
// signature, belongs to a service of another dialect; JSON in base64 follows.
// Clients return it unchanged, and no service of this dialect accepts it as its
// own.
const StatePrefix = "artel1."

// foreignState is the JSON after [StatePrefix].
type foreignState struct {
	Service artel.ServiceID `json:"service,omitempty"`
	Opaque  json.RawMessage `json:"opaque"`
}

func wrap(c foreignState) string {
	b, err := json.Marshal(c)
	if err != nil { // Opaque is no JSON
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
