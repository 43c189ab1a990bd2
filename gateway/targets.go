// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Reasons of [DidFallBack].
const (
	ReasonUnavailable artel.Reason = "unavailable" // the service was not available, or refused its key
	ReasonTooLong     artel.Reason = "too_long"    // the request was too long for the service
	ReasonFiltered    artel.Reason = "filtered"    // a content filter refused the request
)

// findTargets returns the services of the request's model, in the order in which
// they are asked.
func (x *exchange) findTargets(ctx context.Context) ([]*model.Service, error) {
	all, err := x.gw.backend.Routes.Targets(ctx, x.head.Model, x.key, x.beginning)
	if err != nil {
		return nil, modelNotFound(x.head.Model)
	}
	return all, nil
}

// payloadMark matches the marks of payloads, which differ from request to request.
var payloadMark = regexp.MustCompile(`payload:[0-9a-f]{16}:`)

// beginning returns what all requests of a conversation begin with: the elements up
// to the first one of the user, or else the whole request.
func (x *exchange) beginning() string {
	from := x.text
	elements := x.scan(x.text).Elements
	if i := slices.IndexFunc(elements, func(e provider.Element) bool { return e.Role == artel.RoleUser && !e.Result }); i >= 0 {
		from = x.text[elements[0].From:elements[i].To]
	}
	return x.key.Name + "\x00" + payloadMark.ReplaceAllString(from, "")
}

// An askFunc asks one service.
type askFunc func(context.Context, *model.Service) error

// askTargets asks the services of a model, then their fallbacks, until one answers.
// Services that are cooling down come last. The client gets the first error, unless
// a later service is not available either, or, of several services behind an alias,
// refuses the request.
func (x *exchange) askTargets(ctx context.Context, targets []*model.Service, ask askFunc) error {
	has := func(list []*model.Service, id artel.ServiceID) bool {
		return slices.ContainsFunc(list, func(s *model.Service) bool { return s.ID == id })
	}
	line := slices.Clone(targets)
	for _, s := range targets {
		for _, other := range x.gw.backend.Routes.Fallbacks(ctx, s, s.Fallbacks, x.key) {
			if !has(line, other.ID) {
				line = append(line, other)
			}
		}
	}
	line = x.gw.backend.Routes.InOrder(line)
	var failed error
	for i, s := range line {
		x.lastTry = len(targets) < 2 || i+1 == len(line)
		err := x.askOne(ctx, s, ask)
		kind := artel.KindOf(err)
		switch {
		case err == nil, x.w.hasSent(), clientLeft(ctx):
			return err
		case kind == artel.Unavailable:
			failed = err
		case kind == artel.Denied && len(targets) > 1: // the service refuses our key
			x.gw.backend.Routes.Failed(s.ID, err)
			failed = err
		case failed != nil && !has(targets, s.ID):
			x.gw.o.Log.WarnContext(ctx, "a fallback refused a request", "service", s.ID, "err", err)
		default:
			return x.askInstead(ctx, s, err, ask)
		}
		if i+1 < len(line) {
			x.noteFallback(s, line[i+1], ReasonUnavailable, err)
		}
	}
	return failed
}

// askInstead asks the services that s names for requests that are too long for it or
// that a content filter refuses. It returns refused if that is an error of another
// kind, or if none of them answers.
func (x *exchange) askInstead(ctx context.Context, s *model.Service, refused error, ask askFunc) error {
	c, ok := errors.AsType[*model.CallError](refused)
	if !ok {
		return refused
	}
	var ids []artel.ServiceID
	var reason artel.Reason
	switch c.Refusal.Class {
	case model.RefusedContext:
		ids, reason = s.ForContext, ReasonTooLong
	case model.RefusedFilter:
		ids, reason = s.ForFilter, ReasonFiltered
	default:
		return refused
	}
	others := x.gw.backend.Routes.Fallbacks(ctx, s, ids, x.key)
	from, err := s, refused
	for i, other := range others {
		x.noteFallback(from, other, reason, err)
		x.lastTry, x.lastFilter = true, i+1 == len(others)
		if err = x.askOne(ctx, other, ask); err == nil || x.w.hasSent() || clientLeft(ctx) {
			return err
		}
		from = other
	}
	return refused
}

// askOne asks one service and notes whether it was available.
func (x *exchange) askOne(ctx context.Context, s *model.Service, ask askFunc) error {
	err := ask(ctx, s)
	switch {
	case err == nil:
		x.gw.backend.Routes.Succeeded(s.ID)
	case artel.KindOf(err) == artel.Unavailable && !clientLeft(ctx):
		x.gw.backend.Routes.Failed(s.ID, err)
	}
	return err
}

func (x *exchange) noteFallback(from, to *model.Service, why artel.Reason, err error) {
	x.gw.o.Log.WarnContext(x.r.Context(), "a service did not answer a request, another one is asked", "service", from.ID, "fallback", to.ID, "reason", why, "err", err)
	x.logChange(Change{Did: DidFallBack, Reason: why, Service: from.ID})
}

// caller returns the caller for the next call. While other services behind the same
// alias are left, each gets one attempt.
func (x *exchange) caller() *model.Caller {
	if x.lastTry {
		return x.gw.backend.Caller()
	}
	return x.gw.backend.Routes.CallerOnce()
}

// filtered is filteredBy for the JSON of an answer, or of the event with which it
// begins.
func (x *exchange) filtered(data []byte) error {
	if len(x.service.ForFilter) == 0 {
		return nil
	}
	stopped, empty := x.d.FilterStop(data)
	return x.filteredBy(x.service, stopped, empty)
}

// noteFilterStop logs that the data of an event, after others were passed on, say that a
// content filter stopped the answer.
func (x *exchange) noteFilterStop(data []byte) {
	if len(x.service.ForFilter) > 0 {
		stopped, _ := x.d.FilterStop(data)
		_ = x.filteredBy(x.service, stopped, false)
	}
}

// filteredBy returns an error if a content filter has stopped an answer of which
// nothing was passed on, and another service is left to ask for it.
func (x *exchange) filteredBy(s *model.Service, stopped, empty bool) error {
	switch {
	case !stopped || len(s.ForFilter) == 0:
		return nil
	case x.lastFilter || !empty:
		if !x.stopNoted {
			x.stopNoted = true
			x.gw.o.Log.WarnContext(x.r.Context(), "a content filter stopped an answer that is passed on", "service", s.ID)
		}
		return nil
	}
	return &artel.Error{
		Op: "gateway", Subject: string(s.ID), Kind: artel.Invalid,
		Err: &model.CallError{
			Service: s.ID, Status: http.StatusBadRequest, Code: "content_filter",
			Message: "a content filter of the service refused the request", Refusal: model.Refusal{Class: model.RefusedFilter},
		},
	}
}
