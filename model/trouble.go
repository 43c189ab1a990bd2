// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
)

// A Trouble is a cause why a service cannot be used.
type Trouble string

// The causes.
const (
	NoTrouble        Trouble = ""
	BadAddress       Trouble = "bad_address"       // not an http or https URL
	UnknownHost      Trouble = "unknown_host"      // the name is not in DNS
	NothingListens   Trouble = "nothing_listens"   // the connection was refused or not possible
	AddressForbidden Trouble = "address_forbidden" // metadata addresses and the like
	TLSFailed        Trouble = "tls_failed"        // certificate, or no TLS at this port
	TookTooLong      Trouble = "took_too_long"
	KeyMissing       Trouble = "key_missing" // 401 without a key
	KeyRefused       Trouble = "key_refused" // 401 or 403 with a key
	WrongPath        Trouble = "wrong_path"  // 404, or no API at this path
	ModelUnknown     Trouble = "model_unknown"
	NoModels         Trouble = "no_models" // it lists none, and none is named
	QuotaUsedUp      Trouble = "quota_used_up"
	ServerFailed     Trouble = "server_failed" // status 5xx
	RequestRefused   Trouble = "request_refused"
	SomethingElse    Trouble = "other"
)

// Troubles returns all causes but [NoTrouble].
func Troubles() []Trouble {
	return []Trouble{
		BadAddress, UnknownHost, NothingListens, AddressForbidden, TLSFailed, TookTooLong, KeyMissing, KeyRefused, WrongPath, ModelUnknown, NoModels,
		QuotaUsedUp, ServerFailed, RequestRefused, SomethingElse,
	}
}

var modelUnknown = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)model.{0,120}(not found|does not exist|not exist|is not (?:a )?(?:valid|supported|available)|unknown|no such)|(unknown|no such) model|model_not_found`)
})

// TroubleOf returns the cause of a failed query or call of s, and what the server said,
// if it said something; it holds no key.
func TroubleOf(s Service, err error) (cause Trouble, said string) {
	if err == nil {
		return NoTrouble, ""
	}
	status, message := 0, ""
	if e, ok := errors.AsType[*CallError](err); ok {
		status, message = e.Status, e.Error()
	} else if e, ok := errors.AsType[*statusError](err); ok {
		status, message = e.code, err.Error()
		if _, after, ok := strings.Cut(message, e.line+": "); ok {
			message = messageIn(after)
		}
		if status == http.StatusNotFound {
			return WrongPath, artel.Shorten(hide(s, message), quoted)
		}
	}
	if status != 0 {
		return troubleOfStatus(s, status, message), artel.Shorten(hide(s, message), quoted)
	}
	said = err.Error()
	if u, ok := errors.AsType[*url.Error](err); ok { // its own text has the address
		said = u.Err.Error()
	}
	return troubleOfConnection(err), artel.Shorten(hide(s, said), quoted)
}

// messageIn returns the message in the JSON of an error, or the JSON itself.
func messageIn(body string) string {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(body), &e) == nil && json.Unmarshal(e.Error, &inner) == nil && inner.Message != "" {
		return inner.Message
	}
	return body
}

// hide removes the secrets of s from what a server says.
func hide(s Service, message string) string {
	secrets := []Secret{s.APIKey}
	for _, v := range s.Extra.Header {
		secrets = append(secrets, v)
	}
	for _, v := range secrets {
		if len(v) >= 4 {
			message = strings.ReplaceAll(message, v.Reveal(), "…")
		}
	}
	return message
}

func troubleOfStatus(s Service, status int, message string) Trouble {
	switch {
	case status == http.StatusUnauthorized && s.APIKey == "":
		return KeyMissing
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusBadRequest && strings.Contains(strings.ToLower(message), "api key not valid"):
		return KeyRefused
	case status/100 == 4 && modelUnknown().MatchString(message):
		return ModelUnknown
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return WrongPath
	case status == http.StatusPaymentRequired, status == http.StatusTooManyRequests:
		return QuotaUsedUp
	case status == http.StatusBadRequest && strings.Contains(message, "HTTP request to an HTTPS server"):
		return TLSFailed
	case status >= 500:
		return ServerFailed
	}
	return RequestRefused
}

func troubleOfConnection(err error) Trouble {
	if d, ok := errors.AsType[*net.DNSError](err); ok && !d.IsTimeout {
		return UnknownHost
	}
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	switch {
	case record, certificate, authority, alert, strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return TLSFailed
	case errors.Is(err, artel.Denied):
		return AddressForbidden
	case errors.Is(err, artel.Invalid), strings.Contains(err.Error(), "unsupported protocol scheme"):
		return BadAddress
	case errors.Is(err, context.DeadlineExceeded), artel.KindOf(err) == artel.Canceled:
		return TookTooLong
	case fetch.Unreachable(err):
		return NothingListens
	case errors.Is(err, errNoModels):
		return NoModels
	case errors.Is(err, errOther):
		return WrongPath
	}
	return SomethingElse
}

// originOf returns scheme, host and port; "" if base is no address.
func originOf(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
