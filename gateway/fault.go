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

// A fault is an error as a client is told it, in whatever dialect.
type fault struct {
	status     int
	message    string
	code       string        // the service's own, or ours; may be empty
	kind       string        // the dialect's type of error; empty: what it says for the status
	param      string        // the field that is wrong; may be empty
	retryAfter time.Duration // when to come back; 0: nobody knows
}

// Error returns the message.
func (f *fault) Error() string { return f.message }

// statusClientGone is what the log says of requests whose client did not wait.
const statusClientGone = 499

// statusOf is the answer to an error that no service has answered with.
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

// faultOf says an error to a client. What a service has said keeps its status
// and its words; where it has answered with something that is no answer, that
// is the fault of the gateway's side.
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

// plainly says an error without where it came from, and an internal one not at
// all: the log has it.
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

// gone reports whether the client has left.
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
