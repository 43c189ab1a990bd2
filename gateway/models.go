// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// serveModels lists the services that the key may use, or describes one.
func (s *server) serveModels(w http.ResponseWriter, r *http.Request, d provider.Editor, id string) {
	x := s.newExchange(w, r, d)
	x.finish(x.listModels(id))
}

func (x *exchange) listModels(id string) error {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.w.Header().Set("Allow", "GET, HEAD")
		return notAllowed(x.r)
	}
	leave, err := x.admit()
	if err != nil {
		return err
	}
	defer leave()
	ctx := x.r.Context()
	all := append(x.gw.backend.Services(ctx, x.key), x.gw.backend.Routes.Aliases(ctx, x.key)...)
	if id != "" {
		for _, s := range all {
			if string(s.ID) == id {
				return x.writeJSON(x.d.ModelBody(s))
			}
		}
		behind, err := x.gw.backend.Routes.Targets(ctx, id, x.key, func() string { return "" })
		if err != nil || behind[0].Model == id {
			return modelNotFound(id)
		}
		s := *behind[0]
		s.ID, s.Name = artel.ServiceID(id), id // by an alias
		return x.writeJSON(x.d.ModelBody(s))
	}
	if x.d.Dialect() == model.OpenAI && x.r.URL.Query().Has("client_version") {
		return x.writeJSON(codexModels(all))
	}
	return x.writeJSON(x.d.ModelsBody(all))
}
