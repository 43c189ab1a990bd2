// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"github.com/artelhq/artel"
)

// A Role says what a user may do.
type Role string

// The roles.
const (
	Admin  Role = "admin"  // manages the deployment and its people
	Member Role = "member" // has conversations of their own
	Viewer Role = "viewer" // reads
)

// A Scope is a group of operations. Tokens are limited to theirs.
type Scope string

// The scopes.
const (
	ScopeRead    Scope = "read"    // read what the owner has
	ScopeWrite   Scope = "write"   // change it
	ScopeGateway Scope = "gateway" // call models through the gateway
	ScopeAdmin   Scope = "admin"   // manage the deployment
)

// People stores who may use the deployment. These rows belong to no owner.
type People interface {
	// View is [Store.View] for them.
	View(ctx context.Context, fn func(PeopleTx) error) error
	// Update is [Store.Update] for them.
	Update(ctx context.Context, fn func(PeopleTx) error) error
}

// A PeopleTx gives access to the people of a deployment and what they have
// configured for it, like a [Tx].
type PeopleTx struct {
	Users       Users
	Invitations Invitations
	Identities  Identities
	Sessions    Sessions
	Tokens      Tokens
	Keys        GatewayKeys
	Entries     Entries
	Ledger      Ledger
	Webhooks    Webhooks
	Deliveries  Deliveries
	Schedules   Schedules
	Starts      Starts
	Audit       Audit
}

// Users stores the users.
type Users interface {
	// Create is of kind Conflict if the id or the address exists.
	Create(u User) error
	// Get is of kind NotFound if there is no such user, like all that follow.
	Get(id artel.Owner) (User, error)
	// ByEmail finds a user by the exact address.
	ByEmail(email string) (User, error)
	// List returns all, in order of creation.
	List() ([]User, error)
	// Update replaces all fields but ID and CreatedAt. It is of kind Conflict if
	// another user has the address.
	Update(u User) error
	// Delete removes the user with invitation, sessions, tokens, keys, webhooks and schedules. What the
	// user owns stays.
	Delete(id artel.Owner) error
}

// A User is a person who may use the deployment.
type User struct {
	ID        artel.Owner // owns the rows that the user makes
	Name      string
	Email     string // in lower case
	Role      Role
	Password  string // its hash; empty: none is set
	Disabled  bool
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Invitations stores the links by which users set a password.
type Invitations interface {
	// Put stores an invitation and replaces an earlier one of the user. It is of
	// kind NotFound if there is no such user.
	Put(i Invitation) error
	// Find returns the invitation with a hash. It is of kind NotFound if there is
	// none or it has ended at now.
	Find(hash artel.Digest, now time.Time) (Invitation, error)
	// Take is Find that removes the invitation.
	Take(hash artel.Digest, now time.Time) (Invitation, error)
}

// An Invitation lets its bearer set the password of a user, once.
type Invitation struct {
	Hash      artel.Digest // of its code
	User      artel.Owner
	ExpiresAt time.Time
}

// Sessions stores the logins of browsers.
type Sessions interface {
	// Create is of kind NotFound if there is no such user, and Conflict if the id
	// or the hash exists.
	Create(s Session) error
	// Find is of kind NotFound if there is no session with this hash.
	Find(hash artel.Digest) (Session, error)
	// List returns those of a user, newest first.
	List(user artel.Owner) ([]Session, error)
	// Touch sets UsedAt. Nothing happens if there is no such session.
	Touch(id string, at time.Time) error
	// Delete removes a session of a user, and all of them if the id is empty. It
	// is of kind NotFound if the user has no session of this id.
	Delete(user artel.Owner, id string) error
	// Prune removes the sessions that ended before now or were last used before
	// idle.
	Prune(now, idle time.Time) error
}

// A Session is one login.
type Session struct {
	ID        string
	Hash      artel.Digest // of the secret in the cookie
	User      artel.Owner
	Client    string // the program, as it names itself
	Address   string // from which it logged in
	CreatedAt time.Time
	UsedAt    time.Time
	ExpiresAt time.Time
}

// Tokens stores the tokens of programs.
type Tokens interface {
	// Create is of kind NotFound if there is no such user, or the user has no such
	// parent, and Conflict if the id or the hash exists.
	Create(t Token) error
	// Find is of kind NotFound if there is no token with this hash.
	Find(hash artel.Digest) (Token, error)
	// List returns those of a user, newest first.
	List(user artel.Owner) ([]Token, error)
	// Touch sets UsedAt. Nothing happens if there is no such token.
	Touch(id string, at time.Time) error
	// Delete removes a token of a user with all tokens and keys that descend from it,
	// and all tokens of the user if the id is empty. It is of kind NotFound if the user has no
	// token of this id.
	Delete(user artel.Owner, id string) error
}

// A Token lets a program act for a user.
type Token struct {
	ID        string
	Hash      artel.Digest // of the token
	User      artel.Owner
	Name      string
	Scopes    []Scope
	Parent    string // id of the token that it was made with; empty: none
	CreatedAt time.Time
	UsedAt    time.Time // zero: never
	ExpiresAt time.Time // zero: never
}
