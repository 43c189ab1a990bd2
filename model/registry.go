// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/artelhq/artel"
)

// A Registry holds the services of a process. It is safe for concurrent use
// and can be replaced while it is used: every method sees either the old
// services or the new ones. It always holds a demo service.
//
// What services take is seen through a [Ledger]: what was tried out or learned
// from refusals stands over what endpoints and the catalog say, until it ends.
type Registry struct {
	current atomic.Pointer[snapshot]

	mu        sync.Mutex // for what snapshots are made of
	ledger    *Ledger
	services  []Service
	findings  []Finding
	defaultID artel.ServiceID
}

type snapshot struct {
	services          []Service
	asCalled          []Service // the same as calls see them
	marks             [][]Mark  // of each service
	findings          []Finding
	byID              map[artel.ServiceID]int
	defaultIndex      int // index of the default
	configuredDefault artel.ServiceID
	until             time.Time // a mark ends then; zero: none does
	clock             func() time.Time
}

// NewRegistry returns a registry of services in order of preference; of two
// with the same id the first counts. defaultID may be empty or unknown.
func NewRegistry(services []Service, defaultID artel.ServiceID) *Registry {
	r := &Registry{ledger: NewLedger(LedgerOptions{})}
	r.Replace(services, nil, defaultID)
	return r
}

// SetLedger makes l the registry's ledger, in the place of one that ends with the
// process.
func (r *Registry) SetLedger(l *Ledger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ledger = l
	r.rebuild()
}

// Learn adds marks to the ledger, and services are seen by them from now on.
func (r *Registry) Learn(marks ...Mark) {
	if len(marks) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ledger.Add(marks...)
	r.rebuild()
}

// Marks returns what is known of a service by trial and refusal, oldest first.
func (r *Registry) Marks(id artel.ServiceID) []Mark {
	s := r.load()
	if i, ok := s.byID[id]; ok {
		return slices.Clone(s.marks[i])
	}
	return nil
}

// Refuses reports whether a service was seen to refuse a request for these
// bytes.
func (r *Registry) Refuses(id artel.ServiceID, d artel.Digest) bool {
	s := r.load()
	i, ok := s.byID[id]
	return ok && slices.ContainsFunc(s.marks[i], func(m Mark) bool { return m.Digest == d && !m.OK })
}

// now returns the snapshot that holds.
func (r *Registry) load() *snapshot {
	s := r.current.Load()
	if s.until.IsZero() || s.clock().Before(s.until) {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rebuild()
	return r.current.Load()
}

// Replace puts services in the place of all that were there, and findings
// beside them: where these services, and others in vain, were looked for, in
// the order of preference. What each finding came to is said anew, and the one
// of the demo is added.
func (r *Registry) Replace(services []Service, findings []Finding, defaultID artel.ServiceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.services = make([]Service, len(services))
	for i, s := range services {
		r.services[i] = s.clone()
	}
	r.findings = make([]Finding, len(findings))
	for i, f := range findings {
		r.findings[i] = f.clone()
	}
	r.defaultID = defaultID
	r.rebuild()
}

// SetFindings replaces the findings alone.
func (r *Registry) SetFindings(findings []Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.findings = make([]Finding, len(findings))
	for i, f := range findings {
		r.findings[i] = f.clone()
	}
	r.rebuild()
}

// look makes a snapshot of what is there; r.mu is held.
func (r *Registry) rebuild() {
	s := &snapshot{configuredDefault: r.defaultID, byID: make(map[artel.ServiceID]int, len(r.services)+1), clock: r.ledger.opts.Now}
	for _, svc := range append(slices.Clip(r.services), DemoService()) {
		if _, taken := s.byID[svc.ID]; taken {
			continue
		}
		s.byID[svc.ID] = len(s.services)
		marks, next := r.ledger.of(svc)
		if !next.IsZero() && (s.until.IsZero() || next.Before(s.until)) {
			s.until = next
		}
		svc = svc.clone()
		svc.Capabilities = svc.Capabilities.withMarks(marks, false)
		s.services, s.marks = append(s.services, svc), append(s.marks, marks)
		s.asCalled = append(s.asCalled, svc.OnWire())
	}
	s.defaultIndex = s.choose(r.defaultID)
	s.findings = s.resolveFindings(r.findings)
	r.current.Store(s)
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
	s := r.load()
	i, ok := s.byID[id]
	if !ok {
		return Service{}, false
	}
	return s.services[i].clone(), true
}

// Resolve finds the service that a call means by a name: by its id, else the
// first that calls a model by that name and is not the demo. It can be called,
// may allows it, and it is as a call sees it; see [Service.OnWire].
func (r *Registry) Resolve(name string, may func(artel.ServiceID) bool) (Service, bool) {
	s := r.load()
	if i, ok := s.byID[artel.ServiceID(name)]; ok && s.services[i].Callable() && may(s.services[i].ID) {
		return s.asCalled[i].clone(), true
	}
	for i := range s.services {
		if v := &s.services[i]; v.Model == name && v.Callable() && !v.Demo() && may(v.ID) {
			return s.asCalled[i].clone(), true
		}
	}
	return Service{}, false
}

// DescribeAll returns every service in order of preference, the demo last unless it
// was placed elsewhere.
func (r *Registry) All() []Service {
	s := r.load()
	out := make([]Service, len(s.services))
	for i, v := range s.services {
		out[i] = v.clone()
	}
	return out
}

// Findings returns where services were looked for and what came of it, in
// order of preference.
func (r *Registry) Findings() []Finding {
	s := r.load()
	out := make([]Finding, len(s.findings))
	for i, f := range s.findings {
		out[i] = f.clone()
	}
	return out
}

// Default returns the service for whoever names none: the configured default
// if it can be called, else the first that can be called, else the demo.
func (r *Registry) Default() Service {
	s := r.load()
	return s.services[s.defaultIndex].clone()
}

// ConfiguredDefault returns what was configured as the default, whether there is such a
// service or not; "": nothing.
func (r *Registry) ConfiguredDefault() artel.ServiceID { return r.load().configuredDefault }

// Suggest returns the services that take media of this type, in order of
// preference: those that can be called as far as their wire carries it, and
// those that serve for routing only as they are described. The demo is a
// stand-in and never suggested. mediaType may be empty.
func (r *Registry) Suggest(need artel.Capability, mediaType string) []artel.ServiceID {
	var ids []artel.ServiceID
	for _, s := range r.load().services {
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
