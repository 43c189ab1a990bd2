// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/artelhq/artel"
)

// A Ledger stores what model calls have used, and what limits have counted.
type Ledger interface {
	// Add adds the counts of rows to those of the same day, user, key, service,
	// model, agent and source. The time of a Day is ignored.
	Add(rows ...UsageRow) error
	// Sum returns the rows of a query, by what it groups them, in that order.
	Sum(q UsageQuery) ([]UsageRow, error)
	// Mark returns the mark of a subject, zero if there is none.
	Mark(subject string) (UsageMark, error)
	// SetMark stores the mark of a subject.
	SetMark(m UsageMark) error
	// Stored returns what [Storage.Used] returns for each owner that stores something.
	Stored() (map[artel.Owner]int64, error)
}

// A UsageRow is what the model calls of one kind and day have used.
type UsageRow struct {
	Day     time.Time // in UTC
	User    artel.Owner
	Key     string // id of the key or token of the gateway's client; "": none
	Service artel.ServiceID
	Model   string
	Agent   artel.AgentName // "": none
	Source  string          // "gateway" or "run"
	Counts  UsageCounts
}

// UsageCounts are sums over model calls.
type UsageCounts struct {
	Calls     int64
	Input     int64 // tokens
	Cached    int64 // tokens of Input that the provider read from its cache
	Output    int64 // tokens, with Reasoning
	Reasoning int64 // tokens
	Cost      int64 // in billionths of a US dollar, of the calls with a known cost
	Unknown   int64 // calls without a known cost
}

// Plus returns the sum of two counts.
func (c UsageCounts) Plus(o UsageCounts) UsageCounts {
	return UsageCounts{c.Calls + o.Calls, c.Input + o.Input, c.Cached + o.Cached, c.Output + o.Output, c.Reasoning + o.Reasoning, c.Cost + o.Cost, c.Unknown + o.Unknown}
}

// A UsageQuery selects rows. Zero fields select all.
type UsageQuery struct {
	From, To time.Time // days, with both
	User     artel.Owner
	Key      string
	By       []UsageField // the fields with values in the rows; nil: none, which makes one row of all
}

// A UsageField groups rows.
type UsageField string

// The fields.
const (
	ByDay     UsageField = "day"
	ByUser    UsageField = "user"
	ByKey     UsageField = "key"
	ByService UsageField = "service"
	ByModel   UsageField = "model"
	ByAgent   UsageField = "agent"
)

// A UsageMark is an amount that the calls of a subject do not exceed in the period
// that began at Begin.
type UsageMark struct {
	Subject string
	Begin   time.Time
	Amount  int64
}
