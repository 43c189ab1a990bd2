// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Routes choose the services that answer requests. They are safe for concurrent use.
type Routes struct {
	b       *Backend
	aliases []Alias
	health  *health
	once    *model.Caller
}

// CallerOnce is [Backend.Caller] without retries, for requests that another service
// can answer, or that must not be repeated.
func (r *Routes) CallerOnce() *model.Caller { return r.once }

// An Alias is another name for services. Pattern may have asterisks, each of which
// stands for any characters.
type Alias struct {
	Pattern  string
	Services []Deployment // at least one
}

// A Deployment is one of the services behind an alias. Its share of the conversations
// is Weight, from 1, in proportion to the weights of the others.
type Deployment struct {
	Service artel.ServiceID
	Weight  int
}

// matches reports whether a pattern stands for a name.
func (a Alias) matches(name string) bool {
	head, rest, some := strings.Cut(a.Pattern, "*")
	if !some {
		return name == a.Pattern
	}
	name, ok := strings.CutPrefix(name, head)
	for ok && some {
		var part string
		if part, rest, some = strings.Cut(rest, "*"); !some {
			return strings.HasSuffix(name, part)
		}
		_, name, ok = strings.Cut(name, part)
	}
	return ok
}

// alias returns the alias for a name; of several, the one with the longest pattern.
func (r *Routes) alias(name string) (Alias, bool) {
	var best Alias
	for _, a := range r.aliases {
		if a.matches(name) && (a.Pattern == name || best.Pattern != name && len(a.Pattern) > len(best.Pattern)) {
			best = a
		}
	}
	return best, best.Pattern != ""
}

// Targets returns the services to ask for a model, in their order: the service with
// that id; otherwise those of the alias that has or matches the name; otherwise the
// first service whose model has that name. The error is of kind NotFound if there
// is none that the key may use.
//
// Of several services behind an alias, seed chooses the first one by their weights:
// requests of one conversation have one seed, so that they reach the service that
// has cached their beginning. Services that are cooling down come last. They are
// shared and must not be changed.
func (r *Routes) Targets(ctx context.Context, name string, key Key, seed func() string) ([]*model.Service, error) {
	a, aliased := r.alias(name)
	if aliased { // an id comes first
		_, known := r.b.parts.Services.Lookup(artel.ServiceID(name))
		aliased = !known
	}
	if !aliased {
		s, err := r.b.service(ctx, name, key)
		return []*model.Service{s}, err
	}
	var all []*model.Service
	weights := map[artel.ServiceID]int{}
	for _, d := range a.Services {
		if s, err := r.b.service(ctx, string(d.Service), key); err == nil && s.ID == d.Service {
			all, weights[d.Service] = append(all, s), d.Weight
		}
	}
	if len(all) == 0 {
		return nil, artel.Errorf(artel.NotFound, "backend.Routes.Targets", artel.Shorten(name, 200), "there is none of the services of this alias, or this key may not use them")
	}
	if len(all) > 1 {
		from := seed()
		slices.SortStableFunc(all, func(x, y *model.Service) int {
			return cmp.Compare(score(y.ID, weights[y.ID], from), score(x.ID, weights[x.ID], from))
		})
	}
	return r.health.sort(all), nil
}

// Other returns the first service that the key may use whose endpoint has a model of
// that name that does not chat; see [model.Service].OtherModels.
func (r *Routes) Other(ctx context.Context, name string, key Key) (*model.Service, bool) {
	for _, s := range r.b.Services(ctx, key) {
		for _, pattern := range s.OtherModels {
			if (Alias{Pattern: pattern}).matches(name) {
				return &s, true
			}
		}
	}
	return nil, false
}

// score is the weight of a service for a seed. The service with the highest score
// is the first one, which happens with a probability in proportion to the weight
// (weighted rendezvous hashing; Schindelhauer and Schomaker, SPAA 2005). A service
// that is added or removed moves no conversation between the others.
func score(id artel.ServiceID, weight int, seed string) float64 {
	sum := sha256.Sum256([]byte(string(id) + "\x00" + seed))
	u := (float64(binary.BigEndian.Uint64(sum[:])>>11) + 0.5) / (1 << 53) // between 0 and 1
	return -float64(weight) / math.Log(u)
}

// Aliases returns the aliases without asterisks that have a service which the key
// may use: each as its first service, under the name of the alias.
func (r *Routes) Aliases(ctx context.Context, key Key) []model.Service {
	var out []model.Service
	for _, a := range r.aliases {
		if strings.Contains(a.Pattern, "*") {
			continue
		}
		if all, err := r.Targets(ctx, a.Pattern, key, func() string { return "" }); err == nil {
			s := *all[0]
			s.ID, s.Name = artel.ServiceID(a.Pattern), a.Pattern
			out = append(out, s)
		}
	}
	return out
}

// MaxCooldown is the longest cool-down, also if a service asks for more.
const MaxCooldown = 10 * time.Minute

// Defaults of cool-down.
const (
	defaultCooldown = 30 * time.Second
	failuresToCool  = 3 // requests that failed in a row
)

// health knows which services have failed lately. Each process finds that out for itself, by a
// few requests that are tried elsewhere after they failed. It is safe for concurrent use.
type health struct {
	cooldown time.Duration // negative: services never cool down
	now      func() time.Time
	mu       sync.Mutex
	byID     map[artel.ServiceID]*condition
}

type condition struct {
	failures int
	until    time.Time // the end of the cool-down; zero: none
}

// Failed notes that a request to a service failed because it was not available.
// After three requests in a row, or at once if the service asks to wait, the service
// cools down: [Routes.Targets] and [Routes.InOrder] put it behind the others. When
// that time is over, a single failure cools it down again.
func (r *Routes) Failed(id artel.ServiceID, err error) {
	h := r.health
	now := h.now()
	var wait time.Duration
	if c, ok := errors.AsType[*model.CallError](err); ok {
		wait = c.RetryAfter
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cooldown < 0 {
		return
	}
	c := h.byID[id]
	if c == nil {
		c = &condition{}
		h.byID[id] = c
	}
	if c.failures++; c.failures >= failuresToCool || wait > 0 {
		c.until = now.Add(min(max(h.cooldown, wait), MaxCooldown))
	}
}

// Succeeded notes that a service has answered a request.
func (r *Routes) Succeeded(id artel.ServiceID) {
	r.health.mu.Lock()
	defer r.health.mu.Unlock()
	delete(r.health.byID, id)
}

// InOrder returns services with those that are cooling down behind the others.
func (r *Routes) InOrder(all []*model.Service) []*model.Service {
	return r.health.sort(all)
}

func (h *health) sort(all []*model.Service) []*model.Service {
	if len(all) < 2 {
		return all
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	cooling := func(s *model.Service) int {
		if c := h.byID[s.ID]; c != nil && now.Before(c.until) {
			return 1
		}
		return 0
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y *model.Service) int { return cooling(x) - cooling(y) })
	return all
}

// Fallbacks returns the services with ids that the key may use, without s.
func (r *Routes) Fallbacks(ctx context.Context, s *model.Service, ids []artel.ServiceID, key Key) []*model.Service {
	var out []*model.Service
	for _, id := range ids {
		if other, err := r.b.service(ctx, string(id), key); err == nil && other.ID == id && id != s.ID {
			out = append(out, other)
		}
	}
	return out
}
