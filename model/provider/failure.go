// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Failures makes the errors of a call of one service: an [*artel.Error] that names
// the service and wraps a [*model.CallError]. Texts of the service are shortened,
// and its key is removed from them.
type Failures struct {
	Op      string         // "openai.Generate"
	Service *model.Service // shared, never nil
}

// maxErrorBody limits how much of an error's body is read.
const maxErrorBody = 64 << 10

// Response classifies the error response resp; see [Failures.Status]. It does not
// close the body.
func (f Failures) Response(resp *http.Response, now time.Time) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return f.Status(resp.StatusCode, resp.Header, body, now)
}

// Status classifies a response without success:
//
//	401 402 403           Denied; 400 too, if Google reports an invalid key
//	413                   TooLarge
//	400 404 422 500       TooLarge if the text is about the length of the context or of
//	                      the request, Unsupported if it is about media (see
//	                      [model.Classify])
//	405 415 501           Unsupported
//	408 409 425 429 5xx   Unavailable, transient (except an exhausted quota)
//	other 4xx             Invalid
//	others                Unavailable
func (f Failures) Status(status int, h http.Header, body []byte, now time.Time) error {
	c, more := describe(body)
	c.Status, c.Body = status, body
	c.Header = returnedHeader(h)
	c.RetryAfter = cmp.Or(retryAfter(h, now), more.retry)
	c.Refusal = refusalOf(status, c)
	kind := kindOf(status, c)
	if more.wrongKey {
		kind = artel.Denied
	}
	c.Transient = kind == artel.Unavailable && status >= 400 && more.passes(c)
	if c.Message == "" {
		c.Message = strings.ToLower(strings.TrimSpace("status " + strconv.Itoa(status) + " " + http.StatusText(status)))
	}
	return f.fail(kind, c)
}

// Reported classifies an error object inside a successful response. If it has no
// status and no known meaning, it is Unavailable and transient.
func (f Failures) Reported(body []byte) error {
	c, more := describe(body)
	status, err := strconv.Atoi(c.Code)
	if err != nil || status < 400 || status > 599 {
		status = cmp.Or(rpcStatuses[c.Code], statuses[c.Code])
	}
	if status == 0 {
		status = http.StatusBadGateway
		if model.Classify(0, c.Code, c.Message) != (model.Refusal{}) {
			status = http.StatusBadRequest
		}
	}
	c.Status, c.Refusal, c.RetryAfter, c.Body = status, refusalOf(status, c), more.retry, f.errorBody(body)
	kind := kindOf(status, c)
	c.Transient = kind == artel.Unavailable && more.passes(c)
	if c.Message == "" {
		c.Message = "the service reported an error without a message"
	}
	return f.fail(kind, c)
}

// errorBody returns the body that an error response has for an error inside a successful
// one: the error alone, without the members of the event or answer that has it. An error
// event of Anthropic has the form of an error response.
func (f Failures) errorBody(body []byte) []byte {
	e := gjson.GetBytes(body, "error")
	if !e.IsObject() || f.Service.Dialect == model.Anthropic {
		return body
	}
	return []byte(`{"error":` + e.Raw + `}`)
}

// Transport classifies an error of sending the request or reading the response:
// Canceled if ctx has ended, the body's own error if a blob could not be read,
// otherwise Unavailable and transient.
func (f Failures) Transport(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return f.wrap(artel.Canceled, context.Cause(ctx))
	}
	if e, ok := errors.AsType[*MediaError](err); ok {
		return &artel.Error{
			Op: f.Op, Subject: string(f.Service.ID), Kind: artel.Unavailable, Code: CodeMediaUnreadable, Err: e,
		}
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the address may hold a key
	}
	what := "the service cannot be reached: "
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		what = "the stream broke off: "
	}
	return f.fail(artel.Unavailable, &model.CallError{Message: what + err.Error(), Transient: true})
}

// Broken is the error of a response that makes no sense: Unavailable and transient.
func (f Failures) Broken(message string) error {
	return f.fail(artel.Unavailable, &model.CallError{Status: http.StatusOK, Message: message, Transient: true})
}

// Wrong is like Broken, but not transient: a retry would fail the same way.
func (f Failures) Wrong(message string) error {
	return f.fail(artel.Unavailable, &model.CallError{Status: http.StatusOK, Message: message})
}

// Refuse is the error of a request that cannot be sent.
func (f Failures) Refuse(kind artel.Kind, format string, args ...any) error {
	return artel.Errorf(kind, f.Op, string(f.Service.ID), format, args...)
}

func (f Failures) fail(kind artel.Kind, c *model.CallError) error {
	c.Service = f.Service.ID
	c.Message = artel.Shorten(redact(c.Message, f.Service), 500)
	c.Code = artel.Shorten(redact(c.Code, f.Service), 100)
	c.Dialect = f.Service.Dialect
	for _, values := range c.Header {
		for i, v := range values {
			values[i] = redact(v, f.Service)
		}
	}
	if c.Body = bytes.TrimSpace(c.Body); json.Valid(c.Body) {
		c.Body = []byte(redact(string(c.Body), f.Service))
	} else {
		c.Body = nil
	}
	return f.wrap(kind, c)
}

func (f Failures) wrap(kind artel.Kind, err error) error {
	return &artel.Error{Op: f.Op, Subject: string(f.Service.ID), Kind: kind, Err: err}
}

// IsReturned reports whether a field of a response's header is sent on to clients
// of the same dialect: what their libraries act on, and what identifies a request.
func IsReturned(name string) bool {
	switch name {
	case "X-Request-Id", "Request-Id", "Retry-After", "Retry-After-Ms", "X-Should-Retry":
		return true
	}
	return strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-") || strings.HasPrefix(name, "Openai-")
}

// returnedHeader returns a copy of the fields that are returned.
func returnedHeader(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		if IsReturned(name) {
			out[name] = slices.Clone(values)
		}
	}
	return out
}

// minKey is the shortest key that is redacted: placeholders such as "none" would
// remove ordinary words from messages.
const minKey = 6

func redact(s string, service *model.Service) string {
	for _, key := range append(slices.Collect(maps.Values(service.Extra.Header)), service.APIKey) {
		k := key.Reveal()
		if len(k) < minKey {
			continue
		}
		mark := key.String()
		s = strings.ReplaceAll(strings.ReplaceAll(s, k, mark), url.QueryEscape(k), mark)
	}
	return s
}

// exhausted matches the errors of used-up quotas.
var exhausted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)insufficient_quota|exceeded your current quota|billing`)
})

// statuses are the HTTP statuses of error codes and types.
var statuses = map[string]int{
	"invalid_request_error": http.StatusBadRequest, "invalid_prompt": http.StatusBadRequest, "context_length_exceeded": http.StatusBadRequest,
	"authentication_error": http.StatusUnauthorized, "invalid_api_key": http.StatusUnauthorized,
	"billing_error":     http.StatusPaymentRequired,
	"permission_error":  http.StatusForbidden,
	"not_found_error":   http.StatusNotFound,
	"request_too_large": http.StatusRequestEntityTooLarge,
	"rate_limit_error":  http.StatusTooManyRequests, "rate_limit_exceeded": http.StatusTooManyRequests, "insufficient_quota": http.StatusTooManyRequests,
	"server_error": http.StatusInternalServerError, "api_error": http.StatusInternalServerError,
	"timeout_error":    http.StatusGatewayTimeout,
	"overloaded_error": 529, // of Anthropic's API
}

// rpcStatuses are the HTTP statuses of google.rpc.Code.
var rpcStatuses = map[string]int{
	"INVALID_ARGUMENT": http.StatusBadRequest, "FAILED_PRECONDITION": http.StatusBadRequest, "OUT_OF_RANGE": http.StatusBadRequest,
	"UNAUTHENTICATED":   http.StatusUnauthorized,
	"PERMISSION_DENIED": http.StatusForbidden,
	"NOT_FOUND":         http.StatusNotFound,
	"ABORTED":           http.StatusConflict, "ALREADY_EXISTS": http.StatusConflict,
	"RESOURCE_EXHAUSTED": http.StatusTooManyRequests,
	"UNIMPLEMENTED":      http.StatusNotImplemented,
	"INTERNAL":           http.StatusInternalServerError, "UNKNOWN": http.StatusInternalServerError, "DATA_LOSS": http.StatusInternalServerError,
	"UNAVAILABLE":       http.StatusServiceUnavailable,
	"DEADLINE_EXCEEDED": http.StatusGatewayTimeout,
}

func kindOf(status int, c *model.CallError) artel.Kind {
	switch status {
	case 401, 402, 403:
		return artel.Denied
	case 413:
		return artel.TooLarge
	case 405, 415, 501:
		return artel.Unsupported
	case 408, 409, 425, 429:
		return artel.Unavailable
	}
	switch {
	case status < 400 || status > 500:
		return artel.Unavailable
	case c.Refusal.Class == model.RefusedContext, c.Refusal.Class == model.RefusedRequest:
		return artel.TooLarge
	case c.Refusal.Class != "" && c.Refusal.Class != model.RefusedThought && c.Refusal.Class != model.RefusedFilter:
		return artel.Unsupported
	case status == 500:
		return artel.Unavailable
	}
	return artel.Invalid
}

// refusalOf classifies the refusal of statuses that refuse requests.
func refusalOf(status int, c *model.CallError) model.Refusal {
	switch status {
	case 400, 404, 413, 415, 422, 500:
		return model.Classify(status, c.Code, c.Message)
	}
	return model.Refusal{}
}

// describe finds the message and the code in the error bodies that servers write:
// {"error":{…}}, {"error":"…"}, {"message":…}, {"detail":…}, any of these in a
// list, {"response":{"error":{…}}}, or plain text.
func describe(body []byte) (*model.CallError, details) {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		if bytes.HasPrefix(body, []byte("<")) {
			return &model.CallError{Message: "the answer is a web page, not the API's; check the base URL"}, details{}
		}
		return &model.CallError{Message: strings.ToValidUTF8(string(body), "\uFFFD")}, details{}
	}
	var failed struct {
		Response struct{ Error json.RawMessage }
	} // an event of Responses
	if fields["error"] == nil && json.Unmarshal(body, &failed) == nil && len(failed.Response.Error) > 0 {
		fields["error"] = failed.Response.Error
	}
	if inner := fields["error"]; len(inner) > 0 {
		var nested map[string]json.RawMessage
		if json.Unmarshal(inner, &nested) == nil && nested != nil {
			fields = nested
		} else if fields["message"] == nil {
			fields["message"] = inner
		}
	}
	c := &model.CallError{Message: plain(fields["message"])}
	if c.Message == "" {
		c.Message = plain(fields["detail"])
	}
	for _, k := range []string{"code", "type", "status"} {
		if c.Code = plain(fields[k]); c.Code != "" {
			break
		}
	}
	if status := plain(fields["status"]); rpcStatuses[status] != 0 {
		c.Code = status // says more than its number
	}
	return c, readDetails(fields["details"])
}

// plain returns the text of a JSON string, and other JSON unchanged.
func plain(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// retryAfter reads Retry-After as seconds or a date (RFC 9110, section 10.2.3), or
// the more precise Retry-After-Ms.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e10 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e7 {
		return time.Duration(s * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}
