// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/meter"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// statusClientGone is logged for requests whose client left before the
// response.
const statusClientGone = 499

// statuses are those of errors that did not come from a service; others are internal.
var statuses = map[artel.Kind]int{
	artel.Invalid: http.StatusBadRequest, artel.Conflict: http.StatusBadRequest,
	artel.NotFound:        http.StatusNotFound,
	artel.Denied:          http.StatusForbidden,
	artel.Unauthenticated: http.StatusUnauthorized,
	artel.TooLarge:        http.StatusRequestEntityTooLarge,
	artel.Unsupported:     http.StatusBadRequest,
	artel.Unavailable:     http.StatusBadGateway,
	artel.Canceled:        statusClientGone,
}

// faultOf converts an error for the client. A service's error keeps its status
// and message; a response that is no valid error becomes 502.
func faultOf(err error) *provider.Fault {
	if f, ok := errors.AsType[*provider.Fault](err); ok {
		return f
	}
	if l, ok := errors.AsType[*backend.KeyLimit](err); ok {
		return &provider.Fault{Status: http.StatusTooManyRequests, Message: l.Error(), Code: "rate_limit_exceeded", RetryAfter: l.After}
	}
	if e, ok := errors.AsType[*meter.Exceeded](err); ok {
		return &provider.Fault{Status: http.StatusTooManyRequests, Message: e.Error(), Code: e.Code, RetryAfter: e.After}
	}
	if e, ok := errors.AsType[*artifact.Full](err); ok {
		f := &provider.Fault{Status: http.StatusRequestEntityTooLarge, Message: e.Error(), Code: artifact.CodeStorage, RetryAfter: e.RetryAfter()}
		if e.Reserved {
			f.Status = http.StatusTooManyRequests
		}
		return f
	}
	kind := artel.KindOf(err)
	if c, ok := errors.AsType[*model.CallError](err); ok {
		f := &provider.Fault{Status: c.Status, Message: c.Error(), RetryAfter: c.RetryAfter, Call: c}
		if f.Status < 400 || f.Status > 599 {
			f.Status = http.StatusBadGateway
		}
		return f
	}
	if m, ok := errors.AsType[*provider.MediaError](err); ok {
		return &provider.Fault{Status: http.StatusInternalServerError, Message: m.Error()}
	}
	f := &provider.Fault{Status: cmp.Or(statuses[kind], http.StatusInternalServerError), Message: messageOf(err)}
	switch kind {
	case artel.Unauthenticated:
		f.Code = "invalid_api_key"
	case artel.Denied:
		f.Code = "insufficient_permissions"
	}
	switch artel.CodeOf(err) {
	case artel.CodeLimitCostUnknown:
		f.Code = artel.CodeLimitCostUnknown
	case provider.CodeTextTooLarge:
		f.Status = http.StatusRequestEntityTooLarge
	case backend.CodeRunLimit:
		f.Status = http.StatusTooManyRequests
	case provider.CodeTooDeep:
		f.Status = http.StatusBadRequest
	}
	return f
}

// messageOf returns the innermost message of an error. Internal errors are only
// logged.
func messageOf(err error) string {
	if artel.KindOf(err) == artel.Internal {
		return "internal error; the log of the gateway says more"
	}
	for {
		e, ok := errors.AsType[*artel.Error](err)
		if !ok || e.Err == nil {
			return err.Error()
		}
		err = e.Err
	}
}

// clientLeft reports whether the answer is not wanted any more: the client has left, or may not have it
// any more (see [access.Refusal]).
func clientLeft(ctx context.Context) bool { return ctx.Err() != nil }

func modelNotFound(name string) *provider.Fault {
	return &provider.Fault{
		Status: http.StatusNotFound, Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it. GET /v1/models lists those that this key can use.", artel.Shorten(name, 200)),
	}
}

func notAllowed(r *http.Request) *provider.Fault {
	return &provider.Fault{Status: http.StatusMethodNotAllowed, Message: "Not allowed to " + r.Method + " on " + artel.Shorten(r.URL.Path, 200)}
}
