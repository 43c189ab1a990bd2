// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/artelhq/artel/pipeline/plugin"
)

// plugins registers what authors of plugins need.
func (f *server) plugins() {
	register(f, f.op(http.MethodGet, "/pipeline/plugin-schema", "plugin-schema",
		"The JSON Schema of what plugins of the context pipeline read ($defs/draft) and write ($defs/answer); the same for every deployment of a release", http.StatusOK),
		func(context.Context, *none) (*body[json.RawMessage], error) {
			return answer(json.RawMessage(plugin.Schema()), nil)
		})
}
