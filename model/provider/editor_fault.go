// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"net/http"
	"time"

	"github.com/artelhq/artel/model"
)

// A Fault is an error for a client, independent of the dialect.
type Fault struct {
	Status  int // HTTP
	Message string
	Code    string           // may be empty
	Kind    string           // the dialect's type of error; empty: by status
	Param   string           // the wrong field; may be empty
	Call    *model.CallError // of a service; nil: it is our own

	RetryAfter time.Duration // 0: unknown
}

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

// InvalidRequest returns a fault of status 400.
func InvalidRequest(format string, args ...any) *Fault {
	return &Fault{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}
