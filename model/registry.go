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
// Capabilities are corrected by a [Ledger]: what was probed or learned from
// refusals overrides what endpoints and the catalog state, until it expires.
type Registry struct {
	current atomic.Pointer[snapshot]

	mu        sync.Mutex // guards the inputs of rebuild
	ledger    *Ledger
	services  []Service
	findings  []Finding
	defaultID artel.ServiceID

	stored         []Service // of [ReplaceStored]
	storedFindings []Finding
}

type snapshot struct {
	services          []Service
	asCalled          []Service // by the same indexes; see [Service.OnWire]
	marks             [][]Mark  // of each service
	findings          []Finding
	byID              map[artel.ServiceID]int
	defaultIndex      int // into services
	configuredDefault artel.ServiceID
	until             time.Time // when the next mark expires; zero: never
	clock             func() time.Time
}

// NewRegistry returns a registry of services in order of preference. Of several
// services with the same id the first counts. defaultID may be empty or unknown.
func NewRegistry(services []Service, defaultID artel.ServiceID) *Registry {
	r := &Registry{ledger: NewLedger(LedgerOptions{})}
	r.Replace(services, nil, defaultID)
	return r
}

// Learned returns the part of the registry that corrects capabilities.
func (r *Registry) Learned() Learned { return Learned{r} }

// Learned is what a registry learned about its services: the marks of its ledger.
type Learned struct{ registry *Registry }

// Use replaces the ledger, which initially is in memory only.
func (l Learned) Use(ledger *Ledger) {
	l.registry.mu.Lock()
	defer l.registry.mu.Unlock()
	l.registry.ledger = ledger
	l.registry.rebuild()
}

// Add adds marks to the ledger and applies them to the services.
func (l Learned) Add(marks ...Mark) {
	if len(marks) == 0 {
		return
	}
	l.registry.mu.Lock()
	defer l.registry.mu.Unlock()
	l.registry.ledger.Add(marks...)
	l.registry.rebuild()
}

// Marks returns the unexpired marks of a service, oldest first.
func (l Learned) Marks(id artel.ServiceID) []Mark {
	s := l.registry.load()
	if i, ok := s.byID[id]; ok {
		return slices.Clone(s.marks[i])
	}
	return nil
}

// Refuses reports whether a service has refused requests of a client because of these
// bytes.
func (l Learned) Refuses(id artel.ServiceID, d artel.Digest, holder string) bool {
	s := l.registry.load()
	i, ok := s.byID[id]
	return ok && slices.ContainsFunc(s.marks[i], func(m Mark) bool { return m.Digest == d && m.Holder == holder && !m.OK && m.Applies() })
}

// Forget removes the mark of a service with a key ([Mark.Key]), or all with the key "",
// and returns how many they were.
func (l Learned) Forget(id artel.ServiceID, key string) int {
	l.registry.mu.Lock()
	defer l.registry.mu.Unlock()
	s := l.registry.current.Load()
	i, ok := s.byID[id]
	if !ok {
		return 0
	}
	n := l.registry.ledger.Forget(s.services[i], key)
	if n > 0 {
		l.registry.rebuild()
	}
	return n
}

// load returns the current snapshot.
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

// Replace replaces all services and findings. Findings, in order of preference,
// say where services were looked for; their outcome is computed here, and the
// finding of the demo is added.
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

// SetFindings replaces the findings only.
func (r *Registry) SetFindings(findings []Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.findings = make([]Finding, len(findings))
	for i, f := range findings {
		r.findings[i] = f.clone()
	}
	r.rebuild()
}

// rebuild makes a new snapshot; r.mu is held.
func (r *Registry) rebuild() {
	s := &snapshot{configuredDefault: r.defaultID, byID: make(map[artel.ServiceID]int, len(r.services)+1), clock: r.ledger.opts.Now}
	services, findings := r.preferred()
	for _, svc := range append(services, DemoService()) {
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
	s.findings = s.resolveFindings(findings)
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
	return 0 // only if a service that cannot be called has the id "demo"
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

// Resolve finds a callable service by its id, or else the first one whose model
// has that name, except the demo. may must allow it. The service is returned as
// [Service.OnWire]; it is shared and must not be changed. nil: there is none.
func (r *Registry) Resolve(name string, may func(artel.ServiceID) bool) *Service {
	s := r.load()
	if i, ok := s.byID[artel.ServiceID(name)]; ok && s.services[i].Callable() && may(s.services[i].ID) {
		return &s.asCalled[i]
	}
	for i := range s.services {
		if v := &s.services[i]; v.Model == name && v.Callable() && !v.Demo() && may(v.ID) {
			return &s.asCalled[i]
		}
	}
	return nil
}

// All returns every service in order of preference, the demo last unless it
// was placed elsewhere.
func (r *Registry) All() []Service {
	s := r.load()
	out := make([]Service, len(s.services))
	for i, v := range s.services {
		out[i] = v.clone()
	}
	return out
}

// Findings returns where services were looked for and the outcome, in order of
// preference.
func (r *Registry) Findings() []Finding {
	s := r.load()
	out := make([]Finding, len(s.findings))
	for i, f := range s.findings {
		out[i] = f.clone()
	}
	return out
}

// Default returns the configured default service if it can be called, or else
// the first that can be called, or else the demo.
func (r *Registry) Default() Service {
	s := r.load()
	return s.services[s.defaultIndex].clone()
}

// ConfiguredDefault returns the configured default, which may be unknown; "": none.
func (r *Registry) ConfiguredDefault() artel.ServiceID { return r.load().configuredDefault }

// Suggest returns the services that take media of this type, in order of
// preference. Callable services are judged as [Service.OnWire], those for routing
// only by their description. The demo is never suggested. mediaType may be empty.
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

// DemoID is the id of the built-in scripted service.
const DemoID artel.ServiceID = "demo"

// DemoService returns the built-in scripted service, which needs no network.
func DemoService() Service {
	return Service{
		ID: DemoID, Name: "Demo (scripted, no model)", Dialect: Demo, Model: "demo", Origin: "built in",
		Description: "A scripted stand-in that shows every mechanism offline.",
		Capabilities: Merge(Capabilities{
			Input: known(FromCatalog, []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}),
		}),
	}
}
