// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/model"
)

// A ServiceEntry has the fields of an entry of services in artel.yaml, and disabled.
// Secrets (apiKey and the values of headers) are written as texts, and read as
// {"set": true, "ends_with"?: "4f2a"}.
type ServiceEntry map[string]any

// A StoredView is a service that an administrator added.
type StoredView struct {
	ID       string            `json:"id"`
	Entry    ServiceEntry      `json:"entry" doc:"its fields; secrets are {set, ends_with}"`
	Disabled bool              `json:"disabled,omitempty"`
	Services []artel.ServiceID `json:"services" doc:"what it stands for among the services: one for each of its models"`
	Problem  model.Problem     `json:"problem,omitempty" doc:"why it does not work"`
	Detail   string            `json:"detail,omitempty"`
}

func storedView(s entries.Service) StoredView {
	return StoredView{s.ID, s.Fields, s.Disabled, append([]artel.ServiceID{}, s.Services...), s.Problem, s.Detail}
}

// A ServicePath names a stored service.
type ServicePath struct {
	ID string `path:"id" maxLength:"256"`
}

// withStored adds to views what administrators see of the entries behind them, and the
// entries without a service.
func (f *server) withStored(ctx context.Context, views []ServiceView) ([]ServiceView, error) {
	all, err := f.app.Services.List(ctx)
	if artel.KindOf(err) == artel.Denied || artel.KindOf(err) == artel.Unauthenticated {
		return views, nil
	}
	for _, s := range all {
		found := false
		for i := range views {
			for _, id := range s.Services {
				if views[i].ID == id {
					found, views[i].ReadOnly, views[i].Entry, views[i].APIKey = true, false, s.ID, s.Fields["apiKey"]
				}
			}
		}
		if !found {
			name, _ := s.Fields["name"].(string)
			dialect, _ := s.Fields["dialect"].(string)
			views = append(views, ServiceView{
				ID: artel.ServiceID(s.ID), Name: name, Dialect: dialect, Origin: entries.Origin, Entry: s.ID, APIKey: s.Fields["apiKey"],
				Disabled: s.Disabled, Problem: string(s.Problem), Sources: map[string]model.Provenance{}, Input: []artel.Capability{},
			})
		}
	}
	return views, err
}

func (f *server) storedServices() {
	services := f.app.Services
	register(f, f.op(http.MethodPost, "/services", "add-service",
		"Add a service with the fields of an entry of services in artel.yaml; it can be used at once (role admin)", http.StatusCreated),
		func(ctx context.Context, in *struct{ Body ServiceEntry }) (*body[StoredView], error) {
			s, err := services.Create(ctx, in.Body)
			return answer(storedView(s), err)
		})
	register(f, f.op(http.MethodGet, "/services/{id}", "read-service", "Read the entry of a service that was added (role admin)", http.StatusOK),
		func(ctx context.Context, in *ServicePath) (*body[StoredView], error) {
			s, err := services.Get(ctx, in.ID)
			return answer(storedView(s), err)
		})
	register(f, f.op(http.MethodPut, "/services/{id}", "change-service",
		"Replace the fields of a service that was added; an apiKey that is absent stays (role admin)", http.StatusOK),
		func(ctx context.Context, in *struct {
			ServicePath
			Body ServiceEntry
		},
		) (*body[StoredView], error) {
			s, err := services.Update(ctx, in.ID, in.Body)
			return answer(storedView(s), err)
		})
	register(f, f.op(http.MethodDelete, "/services/{id}", "delete-service", "Delete a service that was added (role admin)", http.StatusNoContent),
		func(ctx context.Context, in *ServicePath) (*none, error) { return nil, services.Delete(ctx, in.ID) })
	register(f, f.op(http.MethodPost, "/services/check", "check-service",
		"Try a service that need not be added: reach it, use its key, list its models, ask one for a word and show it a picture; two model calls at its price (role admin)", http.StatusOK),
		func(ctx context.Context, in *struct{ Body ServiceEntry }) (*body[entries.CheckReport], error) {
			return answer(services.Check(ctx, in.Body, nil))
		})
}
