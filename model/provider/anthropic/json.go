// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"

	"github.com/artelhq/artel/model/provider"
)

// arguments returns a call's arguments as a JSON object. What a model wrote
// where it should have written one is kept inside: the API takes nothing else.
func arguments(raw json.RawMessage) json.RawMessage {
	return provider.ArgumentsObject(raw, provider.Marshal)
}
