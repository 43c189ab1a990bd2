// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/artelhq/artel"
)

// GatewayKeys stores the keys of clients of the gateway that users have made.
type GatewayKeys interface {
	// Create is of kind Conflict if the id or the hash exists, and NotFound if the
	// user has no such parent. The user need not exist: a deployment without users
	// has keys, too.
	Create(k GatewayKey) error
	// Find is of kind NotFound if there is no key with this hash.
	Find(hash artel.Digest) (GatewayKey, error)
	// List returns those of a user, newest first, and those of all users if user
	// is empty.
	List(user artel.Owner) ([]GatewayKey, error)
	// Touch sets UsedAt. Nothing happens if there is no such key.
	Touch(id string, at time.Time) error
	// Update replaces the fields from Name on. It is of kind NotFound if the
	// user has no key of this id.
	Update(k GatewayKey) error
	// Delete removes a key, and all keys of the user if the id is empty. It is of
	// kind NotFound if the user has no key of this id.
	Delete(user artel.Owner, id string) error
}

// A GatewayKey lets a program call models for a user, within limits.
type GatewayKey struct {
	ID        string
	Hash      artel.Digest // of the key
	User      artel.Owner
	Parent    string    // id of the token that it was made with, and ends with; empty: none
	UsedAt    time.Time // zero: never
	CreatedAt time.Time

	Name      string
	Services  []artel.ServiceID // nil: all
	Limits    KeyLimits
	ExpiresAt time.Time // zero: never
	Disabled  bool
}

// KeyLimits limit what the client with a key may do; 0: no limit.
type KeyLimits struct {
	Requests   int   // in any minute
	Tokens     int64 // in any minute, of requests and answers
	Concurrent int   // requests at once
	Budget     Budget
}

// A Budget limits the cost of calls. The zero value is none.
type Budget struct {
	USD    float64
	Period Period
}

// A Period is the time for which a budget is. It begins and ends in UTC.
type Period string

// The periods.
const (
	PerDay   Period = "day"
	PerMonth Period = "month"
)

// Begin returns when the period of a time began. An unknown period is a day.
func (p Period) Begin(at time.Time) time.Time {
	y, m, d := at.UTC().Date()
	if p == PerMonth {
		d = 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// End returns when the period of a time ends, and the next one begins.
func (p Period) End(at time.Time) time.Time {
	b := p.Begin(at)
	if p == PerMonth {
		return b.AddDate(0, 1, 0)
	}
	return b.AddDate(0, 0, 1)
}
