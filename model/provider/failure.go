// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Failures makes the errors of a call of one service: an [*artel.Error] that names
// the service and wraps a [*model.CallError]. Texts of the service are shortened,
// and its key is removed from them.
type Failures struct {
	Op      string // "openai.Generate"
	Service model.Service
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
	c.Status = status
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
		status = statusOf(c.Code)
	}
	if status == 0 {
		status = http.StatusBadGateway
		if model.Classify(0, c.Code, c.Message) != (model.Refusal{}) {
			status = http.StatusBadRequest
		}
	}
	c.Refusal, c.RetryAfter = refusalOf(status, c), more.retry
	kind := kindOf(status, c)
	c.Transient = kind == artel.Unavailable && more.passes(c)
	if c.Message == "" {
		c.Message = "the service reported an error without a message"
	}
	return f.fail(kind, c)
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
	c.Message = artel.Shorten(redact(c.Message, f.Service.APIKey), 500)
	c.Code = artel.Shorten(redact(c.Code, f.Service.APIKey), 100)
	return f.wrap(kind, c)
}

func (f Failures) wrap(kind artel.Kind, err error) error {
	return &artel.Error{Op: f.Op, Subject: string(f.Service.ID), Kind: kind, Err: err}
}

// minKey is the shortest key that is redacted: placeholders such as "none" would
// remove ordinary words from messages.
const minKey = 6

func redact(s string, key model.Secret) string {
	k := key.Reveal()
	if len(k) < minKey {
		return s
	}
	mark := key.String()
	return strings.ReplaceAll(strings.ReplaceAll(s, k, mark), url.QueryEscape(k), mark)
}

// exhausted matches the errors of used-up quotas.
var exhausted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)insufficient_quota|exceeded your current quota|billing`)
})

// statusOf returns the HTTP status of an error code or type; 0 for unknown ones.
func statusOf(word string) int {
	if status := rpcStatus(word); status != 0 {
		return status
	}
	switch word {
	case "invalid_request_error", "invalid_prompt", "context_length_exceeded":
		return http.StatusBadRequest
	case "authentication_error", "invalid_api_key":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error", "rate_limit_exceeded", "insufficient_quota":
		return http.StatusTooManyRequests
	case "overloaded_error":
		return http.StatusServiceUnavailable
	}
	return 0
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
	case c.Refusal.Class != "" && c.Refusal.Class != model.RefusedThought:
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
// list, or plain text.
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
	if status := plain(fields["status"]); rpcStatus(status) != 0 {
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
