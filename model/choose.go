// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// AutoService stands for the service that suits a message best: one that takes
// what the message holds and, of several, the one that the selector picks.
const AutoService artel.ServiceID = "auto"

// A Chooser resolves the ids by which messages, conversations and agents name
// services.
type Chooser struct{ services *Registry }

// NewChooser returns a chooser among the services of r.
func NewChooser(r *Registry) Chooser { return Chooser{r} }

// Callable returns the service with an id; of kind Invalid if it is unknown or
// cannot be called.
func (c Chooser) Callable(id artel.ServiceID) (Service, error) {
	s, ok := c.services.Lookup(id)
	if !ok {
		return s, c.Unknown(id)
	}
	if !s.Callable() {
		return s, artel.Errorf(artel.Invalid, "model.Chooser", "service "+string(id), "it serves for routing only: its entry has no baseURL or no model")
	}
	return s, nil
}

// Unknown returns the error of kind Invalid for an id without a service.
func (c Chooser) Unknown(id artel.ServiceID) error {
	var known []string
	for _, s := range c.services.All() {
		known = append(known, string(s.ID))
	}
	return artel.Errorf(artel.Invalid, "model.Chooser", "service "+artel.Shorten(string(id), 80),
		"there is no such service; there are: %s", strings.Join(known, ", "))
}

// Resolve returns the first service that is named: by the message, the
// conversation, the agent, or the deployment. auto reports that a service is
// to be chosen for the message; s is then the first that can be called.
func (c Chooser) Resolve(candidates ...artel.ServiceID) (s Service, auto bool, err error) {
	if want := c.services.ConfiguredDefault(); c.IsAuto(want) {
		candidates = append(candidates, want)
	}
	for _, id := range candidates {
		if c.IsAuto(id) {
			if list := c.Automatic(); len(list) > 0 {
				return list[0], true, nil
			}
			return c.services.Default(), true, nil
		}
		if id != "" {
			s, err = c.Callable(id)
			return s, false, err
		}
	}
	return c.services.Default(), false, nil
}

// IsAuto reports whether id is [AutoService] and no service has that id.
func (c Chooser) IsAuto(id artel.ServiceID) bool {
	_, named := c.services.Lookup(id)
	return id == AutoService && !named
}

// Automatic returns the services that may be chosen for a message: those that
// can be called, and the built-in demo only if there is no other.
func (c Chooser) Automatic() []Service {
	var out, scripted []Service
	builtIn := DemoService().ID
	for _, s := range c.services.All() {
		switch {
		case !s.Callable() || s.Problem != "":
		case s.ID == builtIn:
			scripted = append(scripted, s.OnWire())
		default:
			out = append(out, s.OnWire())
		}
	}
	if len(out) == 0 {
		return scripted
	}
	return out
}

// Suitable returns the services that lack the least of what the message needs
// and, of these, those that lack the least of what its branch needs, in their
// order.
func Suitable(services []Service, message, branch []artel.Media) []Service {
	lacks := func(s Service, media []artel.Media) (n int) {
		for _, m := range media {
			if !s.Capabilities.Takes(m.Kind.Needs(), m.MediaType) {
				n++
			}
		}
		return n
	}
	for _, media := range [][]artel.Media{message, branch} {
		least := -1
		for _, s := range services {
			if n := lacks(s, media); least < 0 || n < least {
				least = n
			}
		}
		services = slices.DeleteFunc(slices.Clone(services), func(s Service) bool { return lacks(s, media) > least })
	}
	return services
}
