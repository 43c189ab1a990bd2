// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// knownQuery refuses a query parameter that the OpenAPI document does not have
// for the operation, and names the nearest one that it has.
func knownQuery(hc huma.Context, next func(huma.Context)) {
	var known []string
	for _, p := range hc.Operation().Parameters {
		if p.In == "query" {
			known = append(known, p.Name)
		}
	}
	u := hc.URL()
	for _, name := range slices.Sorted(maps.Keys(u.Query())) {
		if slices.Contains(known, name) {
			continue
		}
		name = artel.Shorten(name, 80)
		detail := fmt.Sprintf("there is no query parameter %q", name)
		slices.Sort(known)
		if near := model.Nearest(strings.ToLower(name), known); near != "" {
			detail += fmt.Sprintf("; the nearest is %q", near)
		} else if len(known) > 0 {
			detail += ". There are: " + strings.Join(known, ", ")
		} else {
			detail += "; this operation has none"
		}
		p := newProblem(http.StatusUnprocessableEntity, "invalid", detail)
		p.Errors = []FieldError{{Parameter: name, Detail: "unknown"}}
		hc.SetHeader("Content-Type", problemType)
		hc.SetStatus(p.Status)
		abortOn(strictJSON.Marshal(hc.BodyWriter(), p))
		return
	}
	next(hc)
}
