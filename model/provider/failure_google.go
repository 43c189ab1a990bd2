// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel/model"
)

// details are what Google's APIs tell beside the words of an error.
//
// Source: google/rpc/error_details.proto of github.com/googleapis/googleapis.
type details struct {
	retry    time.Duration // when to try again; 0: not said
	daily    bool          // a quota of the day is used up
	wrongKey bool
}

// passes reports whether what keeps a service from answering passes soon.
// Google says that the quota is exceeded of limits of the minute too.
func (d details) passes(c *model.CallError) bool {
	switch {
	case d.daily:
		return false
	case d.retry > 0:
		return true
	}
	return !exhausted().MatchString(c.Code + " " + c.Message)
}

// readDetails reads the details of an error; what is none of it says nothing.
func readDetails(raw json.RawMessage) (d details) {
	var list []struct {
		RetryDelay string `json:"retryDelay"` // of RetryInfo
		Reason     string `json:"reason"`     // of ErrorInfo
		Metadata   struct {
			Limit string `json:"quota_limit"`
		} `json:"metadata"`
		Violations []struct {
			Quota string `json:"quotaId"`
		} `json:"violations"` // of QuotaFailure
	}
	if json.Unmarshal(raw, &list) != nil {
		return details{}
	}
	for _, one := range list {
		if wait, err := time.ParseDuration(one.RetryDelay); err == nil && wait > 0 {
			d.retry = wait
		}
		d.wrongKey = d.wrongKey || one.Reason == "API_KEY_INVALID"
		d.daily = d.daily || strings.Contains(one.Metadata.Limit, "PerDay")
		for _, v := range one.Violations {
			d.daily = d.daily || strings.Contains(v.Quota, "PerDay")
		}
	}
	return d
}

// rpcStatus gives the HTTP status of the words of google.rpc.Code; 0 for those
// that are none.
func rpcStatus(word string) int {
	switch word {
	case "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE":
		return http.StatusBadRequest
	case "UNAUTHENTICATED":
		return http.StatusUnauthorized
	case "PERMISSION_DENIED":
		return http.StatusForbidden
	case "NOT_FOUND":
		return http.StatusNotFound
	case "ABORTED", "ALREADY_EXISTS":
		return http.StatusConflict
	case "RESOURCE_EXHAUSTED":
		return http.StatusTooManyRequests
	case "UNIMPLEMENTED":
		return http.StatusNotImplemented
	case "INTERNAL", "UNKNOWN", "DATA_LOSS":
		return http.StatusInternalServerError
	case "UNAVAILABLE":
		return http.StatusServiceUnavailable
	case "DEADLINE_EXCEEDED":
		return http.StatusGatewayTimeout
	}
	return 0
}
