// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/artelhq/artel"
)

// Identities stores which accounts at OpenID providers belong to which users. They are
// removed with their users.
type Identities interface {
	// Create is of kind NotFound if there is no such user, and Conflict if the account
	// belongs to a user already, or the user has another account of this issuer.
	Create(i Identity) error
	// Find is of kind NotFound if the account belongs to no user.
	Find(issuer, subject string) (Identity, error)
	// List returns those of a user, in order of creation.
	List(user artel.Owner) ([]Identity, error)
}

// An Identity is an account at an OpenID provider.
type Identity struct {
	Issuer    string // the address of the provider
	Subject   string // the id of the account there
	User      artel.Owner
	CreatedAt time.Time
}
