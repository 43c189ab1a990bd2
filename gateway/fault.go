// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// A fault is an error for the client, independent of the dialect.
type fault struct {
	status     int
	message    string
	code       string        // the service's or ours; may be empty
	kind       string        // the dialect's type of error; empty: by status
	param      string        // the wrong field; may be empty
	retryAfter time.Duration // 0: unknown
}

// Error returns the message.
func (f *fault) Error() string { return f.message }

// statusClientGone is logged for requests whose client left before the
// response.
const statusClientGone = 499

// statusOf returns the status of an error that did not come from a service.
func statusOf(k artel.Kind) int {
	switch k {
	case artel.Invalid, artel.Conflict:
		return http.StatusBadRequest
	case artel.NotFound:
		return http.StatusNotFound
	case artel.Denied:
		return http.StatusUnauthorized
	case artel.TooLarge:
		return http.StatusRequestEntityTooLarge
	case artel.Unsupported:
		return http.StatusBadRequest
	case artel.Unavailable:
		return http.StatusBadGateway
	case artel.Canceled:
		return statusClientGone
	}
	return http.StatusInternalServerError
}

// faultOf converts an error for the client. A service's error keeps its status
// and message; a response that is no valid error becomes 502.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if l, ok := errors.AsType[*backend.KeyLimit](err); ok {
		return &fault{status: http.StatusTooManyRequests, message: l.Error(), code: "rate_limit_exceeded", retryAfter: l.After}
	}
	kind := artel.KindOf(err)
	if c, ok := errors.AsType[*model.CallError](err); ok {
		f := &fault{status: c.Status, message: c.Error(), code: c.Code, retryAfter: c.RetryAfter}
		if f.status < 400 || f.status > 599 {
			f.status, f.code = http.StatusBadGateway, ""
		}
		return f
	}
	if m, ok := errors.AsType[*provider.MediaError](err); ok {
		return &fault{status: http.StatusInternalServerError, message: m.Error()}
	}
	f := &fault{status: statusOf(kind), message: messageOf(err)}
	switch artel.CodeOf(err) {
	case provider.CodeTextTooLarge:
		f.status = http.StatusRequestEntityTooLarge
	case provider.CodeTooDeep:
		f.status = http.StatusBadRequest
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

// clientLeft reports whether the client has left.
func clientLeft(ctx context.Context) bool { return ctx.Err() != nil }

func modelNotFound(name string) *fault {
	return &fault{
		status: http.StatusNotFound, code: "model_not_found", param: "model",
		message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", artel.Shorten(name, 200)),
	}
}

func invalid(format string, args ...any) *fault {
	return &fault{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

func notAllowed(r *http.Request) *fault {
	return &fault{status: http.StatusMethodNotAllowed, message: "Not allowed to " + r.Method + " on " + artel.Shorten(r.URL.Path, 200)}
}
