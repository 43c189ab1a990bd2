// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"sync/atomic"

	"github.com/artelhq/artel"
)

// A Registry holds the services of a process. It is safe for concurrent use
// and can be replaced while it is used: every method sees either the old
// services or the new ones. It always holds a demo service.
type Registry struct{ now atomic.Pointer[snapshot] }

type snapshot struct {
	services []Service
	findings []Finding
	byID     map[artel.ServiceID]int
	standard int // index of the default
}

// NewRegistry returns a registry of services in order of preference; of two
// with the same id the first counts. defaultID may be empty or unknown.
func NewRegistry(services []Service, defaultID artel.ServiceID) *Registry {
	r := &Registry{}
	r.Replace(services, nil, defaultID)
	return r
}

// Replace puts services in the place of all that were there, and findings
// beside them: where these services, and others in vain, were looked for, in
// the order of preference. What each finding came to is said anew, and the one
// of the demo is added.
func (r *Registry) Replace(services []Service, findings []Finding, defaultID artel.ServiceID) {
	s := &snapshot{byID: make(map[artel.ServiceID]int, len(services)+1)}
	for _, svc := range append(slices.Clip(services), DemoService()) {
		if _, taken := s.byID[svc.ID]; !taken {
			s.byID[svc.ID] = len(s.services)
			s.services = append(s.services, svc.clone())
		}
	}
	s.standard = s.choose(defaultID)
	s.findings = s.settle(findings)
	r.now.Store(s)
}

func (s *snapshot) choose(id artel.ServiceID) int {
	if i, ok := s.byID[id]; ok && s.services[i].Callable() {
		return i
	}
	if i := slices.IndexFunc(s.services, func(v Service) bool { return v.Callable() && v.Dialect != Demo }); i >= 0 {
		return i
	}
	if i := slices.IndexFunc(s.services, Service.Callable); i >= 0 {
		return i
	}
	return 0 // somebody gave the id "demo" to a service that cannot be called
}

// Lookup returns the service with this id.
func (r *Registry) Lookup(id artel.ServiceID) (Service, bool) {
	s := r.now.Load()
	i, ok := s.byID[id]
	if !ok {
		return Service{}, false
	}
	return s.services[i].clone(), true
}

// All returns every service in order of preference, the demo last unless it
// was placed elsewhere.
func (r *Registry) All() []Service {
	s := r.now.Load()
	out := make([]Service, len(s.services))
	for i, v := range s.services {
		out[i] = v.clone()
	}
	return out
}

// Findings returns where services were looked for and what came of it, in
// order of preference.
func (r *Registry) Findings() []Finding {
	s := r.now.Load()
	out := make([]Finding, len(s.findings))
	for i, f := range s.findings {
		out[i] = f.clone()
	}
	return out
}

// Default returns the service for whoever names none: the configured default
// if it can be called, else the first that can be called, else the demo.
func (r *Registry) Default() Service {
	s := r.now.Load()
	return s.services[s.standard].clone()
}

// Suggest returns the services that take media of this type, in order of
// preference: those that can be called as far as their wire carries it, and
// those that serve for routing only as they are described. The demo is a
// stand-in and never suggested. mediaType may be empty.
func (r *Registry) Suggest(need artel.Capability, mediaType string) []artel.ServiceID {
	var ids []artel.ServiceID
	for _, s := range r.now.Load().services {
		if s.Callable() {
			s = s.OnWire()
		}
		if s.Dialect != Demo && s.Capabilities.Takes(need, mediaType) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// DemoID is the id of the built-in stand-in.
const DemoID artel.ServiceID = "demo"

// DemoService returns the built-in stand-in, which needs no network and no key.
func DemoService() Service {
	return Service{
		ID: DemoID, Name: "Demo (scripted, no model)", Dialect: Demo, Model: "demo", Origin: "built in",
		Description: "A scripted stand-in that shows every mechanism offline.",
		Capabilities: Merge(Capabilities{
			Input: known(FromCatalog, []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}),
		}),
	}
}
