// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// An APIError is a refusal in the API's own form. Its Error is the message.
type APIError struct {
	Code    int    `json:"code"` // the HTTP status
	Message string `json:"message"`
	Status  string `json:"status"` // the word for it: INVALID_ARGUMENT, …
	Details []any  `json:"details,omitempty"`
}

// Error returns the message.
func (e *APIError) Error() string { return e.Message }

// MarshalBody returns the body of the HTTP response.
func (e *APIError) MarshalBody() []byte {
	b, err := json.Marshal(map[string]*APIError{"error": e})
	if err != nil { // Details has no JSON
		return []byte(`{"error":{"message":"` + http.StatusText(e.Code) + `"}}`)
	}
	return b
}

// Fail makes an error of an HTTP status, with the API's name for it.
func Fail(status int, format string, args ...any) *APIError {
	return &APIError{Code: status, Message: fmt.Sprintf(format, args...), Status: statusWord(status)}
}

// Bad makes an error of status 400.
func Bad(format string, args ...any) *APIError { return Fail(http.StatusBadRequest, format, args...) }

// RetryIn adds the time to wait, in seconds, and returns e.
func (e *APIError) RetryIn(seconds int) *APIError {
	e.Details = append(e.Details, map[string]any{
		"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", seconds),
	})
	return e
}

// A Violation is a field that the API refuses.
type Violation struct {
	Field       string `json:"field,omitempty"`
	Description string `json:"description"`

	name string // of an unknown field
}

// Violated makes the error of refused fields.
func Violated(vs []Violation) *APIError {
	texts := make([]string, len(vs))
	for i, v := range vs {
		texts[i] = v.Description
	}
	e := Bad("%s", strings.Join(texts, "\n"))
	e.Details = []any{map[string]any{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": vs}}
	return e
}

// statusWords are the codes of google.rpc.Code for HTTP statuses.
var statusWords = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusRequestEntityTooLarge: "INVALID_ARGUMENT",
	http.StatusUnauthorized:       "UNAUTHENTICATED",
	http.StatusForbidden:          "PERMISSION_DENIED",
	http.StatusNotFound:           "NOT_FOUND",
	http.StatusConflict:           "ABORTED",
	http.StatusTooManyRequests:    "RESOURCE_EXHAUSTED",
	499:                           "CANCELLED",
	http.StatusNotImplemented:     "UNIMPLEMENTED",
	http.StatusServiceUnavailable: "UNAVAILABLE", 529: "UNAVAILABLE",
	http.StatusGatewayTimeout: "DEADLINE_EXCEEDED",
}

// statusWord returns the code of google.rpc.Code for an HTTP status.
func statusWord(status int) string {
	if word, ok := statusWords[status]; ok {
		return word
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "FAILED_PRECONDITION"
}

// failure returns err in the API's form.
func failure(err error) *APIError {
	if e, ok := errors.AsType[*APIError](err); ok {
		return e
	}
	status := http.StatusInternalServerError
	if c, ok := errors.AsType[*model.CallError](err); ok && c.Status >= 400 {
		status = c.Status
	}
	return Fail(status, "%v", err)
}

// fault returns an [*APIError] as a [*provider.Fault], and other errors unchanged.
func fault(err error) error {
	if e, ok := errors.AsType[*APIError](err); ok {
		return &provider.Fault{Status: e.Code, Message: e.Message}
	}
	return err
}
