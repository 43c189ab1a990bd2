// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// An APIError is a refusal in the API's own form. Its Error is the message.
type APIError struct {
	Status  int    `json:"-"` // HTTP
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Error returns the message.
func (e *APIError) Error() string { return e.Message }

// MarshalBody returns the body of the HTTP response, and the data of an error
// event. requestID may be empty.
func (e *APIError) MarshalBody(requestID string) []byte {
	b, err := json.Marshal(struct {
		Type      string    `json:"type"`
		Error     *APIError `json:"error"`
		RequestID *string   `json:"request_id,omitempty"`
	}{"error", e, optional(requestID)})
	if err != nil { // of strings alone
		return []byte(`{"type":"error","error":{"type":"api_error","message":"` + http.StatusText(e.Status) + `"}}`)
	}
	return b
}

// StatusOverloaded is the API's status of an overloaded service.
const StatusOverloaded = 529

// errorTypes are the types of errors by their statuses.
var errorTypes = map[int]string{
	http.StatusUnauthorized:          "authentication_error",
	http.StatusPaymentRequired:       "billing_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusGatewayTimeout:        "timeout_error",
	http.StatusServiceUnavailable:    "overloaded_error",
	StatusOverloaded:                 "overloaded_error",
}

// Refused makes the error of a status, with the matching type.
func Refused(status int, format string, args ...any) *APIError {
	kind := errorTypes[status]
	switch {
	case kind != "":
	case status/100 == 4:
		kind = "invalid_request_error"
	default:
		kind = "api_error"
	}
	return &APIError{Status: status, Type: kind, Message: fmt.Sprintf(format, args...)}
}

// Bad makes an "invalid_request_error" of status 400. at is the place in the
// request, such as "messages.0.content.1"; it may be empty.
func Bad(at, format string, args ...any) *APIError {
	if at != "" {
		format = "%s: " + format
		args = append([]any{at}, args...)
	}
	return Refused(http.StatusBadRequest, format, args...)
}

// tooLong begins the message of a request that is longer than the context. Clients
// such as Claude Code shorten the conversation when they read it.
const tooLong = "prompt is too long"

// ErrorOf returns err in the API's form: an [*APIError] inside it unchanged, and a
// refusal of a service with its status and message.
func ErrorOf(err error) *APIError {
	if e, ok := errors.AsType[*APIError](err); ok {
		return e
	}
	if c, ok := errors.AsType[*model.CallError](err); ok && c.Status >= 400 {
		message := c.Error()
		if c.Refusal.Class == model.RefusedContext && !strings.Contains(message, tooLong) {
			message = tooLong + ": " + message
		}
		return Refused(c.Status, "%s", message)
	}
	status := http.StatusInternalServerError
	switch artel.KindOf(err) {
	case artel.Invalid, artel.Unsupported, artel.Conflict:
		status = http.StatusBadRequest
	case artel.NotFound:
		status = http.StatusNotFound
	case artel.Denied, artel.Unauthenticated:
		status = http.StatusForbidden
	case artel.TooLarge:
		status = http.StatusRequestEntityTooLarge
	case artel.Unavailable:
		status = http.StatusBadGateway
	}
	return Refused(status, "%s", err.Error())
}

// fault returns an [*APIError] as a [*provider.Fault], and other errors unchanged.
func fault(err error) error {
	if e, ok := errors.AsType[*APIError](err); ok {
		return &provider.Fault{Status: e.Status, Message: e.Message, Kind: e.Type}
	}
	return err
}
