// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/artelhq/artel/model"
)

// details are the details of an error of Google's APIs.
//
// Source: google/rpc/error_details.proto of github.com/googleapis/googleapis.
type details struct {
	retry    time.Duration // when to try again; 0: not said
	daily    bool          // a quota of the day is used up
	wrongKey bool
}

// passes reports whether the cause of an unavailable service passes soon. Google
// says "exceeded your current quota" of limits per minute too.
func (d details) passes(c *model.CallError) bool {
	switch {
	case d.daily:
		return false
	case d.retry > 0:
		return true
	}
	return !exhausted().MatchString(c.Code + " " + c.Message)
}

// readDetails reads the details of an error; unknown ones are ignored.
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
