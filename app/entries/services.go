// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// maxServices is how many can be stored.
const maxServices = 200

// A Service is a stored service as a client reads it.
type Service struct {
	ID       string
	Fields   map[string]any // of the entry; secrets are {"set": true, "ends_with"?: …}
	Disabled bool
	Services []artel.ServiceID // in the registry, one for each model; none: it is disabled or has a problem
	Problem  model.Problem     // why it is not in the registry; may be empty
	Detail   string            // of Problem
}

// List returns the stored services in order of creation, to administrators.
func (s *Services) List(ctx context.Context) ([]Service, error) {
	if err := admin(ctx); err != nil {
		return nil, err
	}
	all, err := s.list(ctx, store.ServiceEntry)
	if err != nil {
		return nil, err
	}
	findings := s.c.Registry.Findings()
	out := make([]Service, len(all))
	for i, e := range all {
		if out[i], err = view(e, findings); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Get returns one, to administrators.
func (s *Services) Get(ctx context.Context, id string) (Service, error) {
	if err := admin(ctx); err != nil {
		return Service{}, err
	}
	e, err := s.get(ctx, id)
	if err != nil {
		return Service{}, err
	}
	return view(e, s.c.Registry.Findings())
}

func view(e store.Entry, findings []model.Finding) (Service, error) {
	fields, err := fieldsOf(e)
	v := Service{ID: e.ID, Fields: fields, Disabled: e.Disabled}
	for _, f := range findings {
		if f.Source == model.Stored && f.Name == e.ID {
			v.Services, v.Problem, v.Detail = f.Services, f.Problem, f.Detail
		}
	}
	return v, err
}

// Create stores a service with the fields of an entry of the configuration file, and
// disabled. It is of kind Invalid with [model.Flaws], and Conflict if another service
// has the id.
func (s *Services) Create(ctx context.Context, fields map[string]any) (Service, error) {
	const op = "entries.Services.Create"
	if err := admin(ctx); err != nil {
		return Service{}, err
	}
	d, err := newDraft(fields, secrets{})
	if err != nil {
		return Service{}, err
	}
	parsed, err := model.ParseEntry(d.fields, Origin)
	if err != nil {
		return Service{}, err
	}
	id := string(parsed.ID)
	if id == string(model.AutoService) || len(id) > maxID || strings.ContainsFunc(id, notInID) {
		return Service{}, refused(model.Flaw{Code: model.UnknownWord, Key: "id", Value: id})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.c.Registry.Lookup(parsed.ID); taken {
		return Service{}, artel.Errorf(artel.Conflict, op, id, "another service has this id; choose another one")
	}
	now := s.now()
	e := store.Entry{Kind: store.ServiceEntry, ID: id, Disabled: d.disabled, CreatedAt: now, UpdatedAt: now}
	if err := s.sealed(ctx, &e, d); err != nil {
		return Service{}, err
	}
	err = s.change(ctx, audit.Act{Action: audit.ServiceAdded, Target: id, Detail: parsed.BaseURL}, func(tx store.PeopleTx) error {
		all, err := tx.Entries.List(store.ServiceEntry)
		if err == nil && len(all) >= maxServices {
			err = artel.Errorf(artel.TooLarge, op, id, "there are %d services; at most %d are stored", len(all), maxServices)
		}
		if err != nil {
			return err
		}
		return tx.Entries.Create(e)
	})
	if artel.KindOf(err) == artel.Conflict {
		err = artel.Errorf(artel.Conflict, op, id, "another service has this id; choose another one")
	}
	if err != nil {
		return Service{}, err
	}
	return s.applied(ctx, id)
}

const maxID = 80

func notInID(r rune) bool {
	return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// Update replaces the fields of a stored service. Its id stays. apiKey stays if it is
// absent, and values of headers if they are sent as they were read; they have to be sent
// again if the service moves to another host.
func (s *Services) Update(ctx context.Context, id string, fields map[string]any) (Service, error) {
	if err := admin(ctx); err != nil {
		return Service{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.get(ctx, id)
	if err != nil {
		return Service{}, err
	}
	d, parsed, err := s.revise(e, fields)
	if err != nil {
		return Service{}, err
	}
	e.Disabled, e.UpdatedAt = d.disabled, s.now()
	if err := s.sealed(ctx, &e, d); err != nil {
		return Service{}, err
	}
	err = s.change(ctx, audit.Act{Action: audit.ServiceChanged, Target: id, Detail: parsed.BaseURL}, func(tx store.PeopleTx) error { return tx.Entries.Update(e) })
	if err != nil {
		return Service{}, err
	}
	return s.applied(ctx, id)
}

// revise returns a draft of an entry with other fields.
func (s *Services) revise(e store.Entry, fields map[string]any) (draft, model.Service, error) {
	before, err := open(s.secrets, e)
	if lost := err; lost != nil {
		// They can be entered again; what is sent back as it was read cannot be kept.
		if d, e := newDraft(fields, secrets{}); e != nil || d.secrets.APIKey == "" {
			return draft{}, model.Service{}, lost
		}
	}
	d, err := newDraft(fields, before)
	if err != nil {
		return d, model.Service{}, err
	}
	if given, ok := d.fields["id"]; ok && given != e.ID {
		return d, model.Service{}, artel.Errorf(artel.Invalid, "entries.Services.Update", e.ID, "the id cannot be changed; add another service")
	}
	d.fields["id"], d.stored["id"] = e.ID, e.ID
	parsed, err := model.ParseEntry(d.fields, Origin)
	if err != nil {
		return d, parsed, err
	}
	was, err := fieldsOf(e)
	if err != nil {
		return d, parsed, err
	}
	if !d.kept {
		return d, parsed, nil
	}
	old, err := model.ParseEntry(withoutSecrets(was), Origin)
	if err != nil || !model.SameOrigin(old.BaseURL, parsed.BaseURL) {
		return d, parsed, artel.Errorf(artel.Invalid, "entries.Services.Update", e.ID, "send apiKey and the values of headers again: they are not sent to another server than the one that they were given for")
	}
	return d, parsed, nil
}

func withoutSecrets(fields map[string]any) map[string]any {
	delete(fields, "apiKey")
	delete(fields, "headers")
	return fields
}

// Delete removes a stored service.
func (s *Services) Delete(ctx context.Context, id string) error {
	if err := admin(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.get(ctx, id); err != nil {
		return err
	}
	err := s.change(ctx, audit.Act{Action: audit.ServiceDeleted, Target: id}, func(tx store.PeopleTx) error { return tx.Entries.Delete(store.ServiceEntry, id) })
	if err != nil {
		return err
	}
	delete(s.named, id)
	return s.apply(ctx, "")
}

// applied applies a change of an entry and returns it.
func (s *Services) applied(ctx context.Context, id string) (Service, error) {
	delete(s.named, id)
	if err := s.apply(ctx, id); err != nil {
		return Service{}, err
	}
	e, err := s.get(ctx, id)
	if err != nil {
		return Service{}, err
	}
	return view(e, s.c.Registry.Findings())
}

// Load reads the entries and puts them in the registry. With ask, every endpoint is
// asked for its models, for a few seconds at most; without, those that were not asked
// before have the models that are named.
func (s *Services) Load(ctx context.Context, ask bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ask {
		return s.apply(ctx, everyEndpoint)
	}
	return s.apply(ctx, "")
}

// Reload reads the entries again after another process has changed one of them, and asks
// its endpoint for its models; with an empty id it asks every endpoint.
func (s *Services) Reload(ctx context.Context, id string) error {
	if id == "" {
		return s.Load(ctx, true)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.named, id)
	return s.apply(ctx, id)
}

const everyEndpoint = "*" // not an id

// askTime is how long an endpoint may take to list its models.
const askTime = 8 * time.Second

// apply puts the entries in the registry and asks the endpoint of the entry ask. s.mu
// is held.
func (s *Services) apply(ctx context.Context, ask string) error {
	all, err := s.list(ctx, store.ServiceEntry)
	if err != nil {
		return err
	}
	var lost error
	findings := make([]model.Finding, len(all))
	answers := make([][]model.Service, len(all))
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(8)
	for i, e := range all {
		f := &findings[i]
		*f = model.Finding{Source: model.Stored, Name: e.ID, Found: model.FoundNothing}
		fields, err := full(s.secrets, e)
		switch {
		case e.Disabled:
			f.Problem = model.Disabled
			continue
		case err != nil:
			f.Problem, f.Detail, lost = model.SecretUnreadable, artel.Shorten(err.Error(), 300), cmp.Or(lost, err)
			continue
		}
		parsed, err := model.ParseEntry(fields, Origin)
		if err != nil { // of an older version
			f.Problem, f.Detail = model.BadAnswer, artel.Shorten(err.Error(), 300)
			continue
		}
		g.Go(func() error {
			found, problem := s.complete(ctx, e, parsed, ask == everyEndpoint || ask == e.ID, &mu)
			answers[i] = found
			if problem != nil {
				f.SetProblem(problem)
				if found[0].Model == "" {
					found[0].Problem = artel.Shorten(problem.Error(), 300)
				}
			}
			for _, one := range found {
				f.Services = append(f.Services, one.ID)
			}
			return nil
		})
	}
	_ = g.Wait()
	model.ReplaceStored(s.c.Registry, slices.Concat(answers...), findings)
	s.report(ctx, store.ServiceEntry, lost)
	return nil
}

// complete returns the services of an entry: those that its endpoint named, if it is
// asked or was asked before.
func (s *Services) complete(ctx context.Context, e store.Entry, parsed model.Service, ask bool, mu *sync.Mutex) ([]model.Service, error) {
	mu.Lock()
	before, known := s.named[e.ID]
	mu.Unlock()
	known = known && before.at.Equal(e.UpdatedAt)
	if known && !ask {
		return before.services, nil
	}
	kind := parsed.Server
	if !ask || s.c.HTTP == nil {
		parsed.Server = model.NoServer
	}
	limited, stop := context.WithTimeout(ctx, askTime)
	defer stop()
	found, more, err := model.CompleteAll(limited, s.c.HTTP, parsed)
	if !ask || s.c.HTTP == nil {
		for i := range found {
			found[i].Server = kind
		}
		return found, nil
	}
	if more > 0 {
		s.o.Log.WarnContext(ctx, "a model service lists more models than are taken; name those that are wanted in models", "service", e.ID, "taken", len(found), "left_out", more)
	}
	if err != nil && known {
		return before.services, err
	}
	if err == nil {
		mu.Lock()
		s.named[e.ID] = completed{e.UpdatedAt, found}
		mu.Unlock()
	}
	return found, err
}
