// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// Keys are the use cases of the keys of the gateway: those of users, and those of the
// configuration, which only its file changes.
type Keys struct {
	*access.Keys
	file []store.GatewayKey
}

// Fixed lists the keys of the configuration to those who see all keys. They act for
// the first administrator.
func (ks *Keys) Fixed(ctx context.Context) []store.GatewayKey {
	if access.Require(ctx, store.ScopeAdmin) != nil {
		return nil
	}
	return slices.Clone(ks.file)
}

// IsFixed reports whether an id is that of a key of the configuration.
func (ks *Keys) IsFixed(id string) bool {
	return slices.ContainsFunc(ks.file, func(f store.GatewayKey) bool { return f.ID == id })
}

// Names returns the names of the keys that the actor may see, by their ids.
func (ks *Keys) Names(ctx context.Context) (map[string]string, error) {
	all, err := ks.List(ctx)
	names := map[string]string{}
	for _, k := range append(all, ks.Fixed(ctx)...) {
		names[k.ID] = k.Name
	}
	return names, err
}

// checkKey refuses keys whose services or budget the deployment cannot serve.
func (k *core) checkKey(v store.GatewayKey) error {
	const op = "app.Keys"
	all := k.services.All()
	for _, id := range v.Services {
		i := slices.IndexFunc(all, func(s model.Service) bool { return s.ID == id })
		switch {
		case i < 0:
			return artel.Errorf(artel.Invalid, op, "services", "there is no service %s; artel models lists the services", artel.Shorten(string(id), 80))
		case v.Limits.Budget.USD > 0 && !all[i].Priced():
			return unpriced(op, "a budget", all[i])
		}
	}
	if v.Limits.Budget.USD == 0 || v.Services != nil {
		return nil
	}
	var without *model.Service
	for _, s := range all {
		switch {
		case !s.Callable():
		case s.Priced():
			return nil // calls of the others are refused
		default:
			without = &s
		}
	}
	if without != nil {
		return unpriced(op, "a budget", *without)
	}
	return nil
}

// unpriced is the error of a limit of the cost of a service whose price is not known.
func unpriced(op, limit string, s model.Service) error {
	return &artel.Error{Op: op, Subject: "budget", Kind: artel.Invalid, Code: artel.CodeLimitCostUnknown, Err: model.UnpricedError(limit, s)}
}
