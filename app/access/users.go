// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// Users are the use cases of people.
type Users struct {
	core      *core
	byAddress *limiter
}

const (
	maxEmail = 254 // bytes, by RFC 5321

	// InvitationLife is how long an invitation is valid.
	InvitationLife = 7 * 24 * time.Hour
)

// A Setup makes the first user.
type Setup struct{ Code, Name, Email, Password string }

// A NewUser is invited.
type NewUser struct {
	Name, Email string
	Role        store.Role // "": member
}

// A UserPatch changes the fields that are not nil.
type UserPatch struct {
	Name, Email *string
	Role        *store.Role
	Disabled    *bool
}

// FoldEmail returns an address, or a part of one, in lower case, the form in which
// addresses are compared and stored. Letters outside of ASCII do not become those of ASCII,
// as the Kelvin sign would become k: an address with one belongs to another person.
func FoldEmail(email string) string {
	return strings.Map(func(r rune) rune {
		if l := unicode.ToLower(r); r <= unicode.MaxASCII || l > unicode.MaxASCII {
			return l
		}
		return r
	}, strings.TrimSpace(email))
}

// address returns an address in the form in which it is stored.
func address(op, email string) (string, error) {
	email = FoldEmail(email)
	if a, err := mail.ParseAddress(email); err != nil || a.Address != email || len(email) > maxEmail {
		return "", artel.Errorf(artel.Invalid, op, "email", "want an address such as ann@example.org")
	}
	return email, nil
}

func checkRole(op string, r store.Role) error {
	if len(scopesOf(r)) == 0 {
		return artel.Errorf(artel.Invalid, op, "role", "there is no %q; there are admin, member and viewer", artel.Shorten(string(r), 40))
	}
	return nil
}

// Setup makes the first user, an administrator, who becomes the owner
// [artel.Local] and so has what was made before. It needs the code of
// [Access.NewSetupCode] unless who asks acts as the operator already. It is of kind
// Conflict if there is a user, and Denied with a wrong code.
func (us *Users) Setup(ctx context.Context, s Setup) (u store.User, err error) {
	const op = "access.Users.Setup"
	k := us.core
	email, err := address(op, s.Email)
	if err == nil {
		err = errors.Join(checkName(op, s.Name), checkPassword(op, s.Password))
	}
	if err == nil && k.hasUsers() {
		err = &artel.Error{Op: op, Subject: "", Kind: artel.Conflict, Code: CodeIsSetUp, Err: errors.New("there is an administrator already; ask for an invitation")}
	}
	if err != nil {
		return u, err
	}
	_, operator := Of(ctx)
	if !operator && !k.validSetup(s.Code) {
		return u, artel.Errorf(artel.Denied, op, "code", "this code is not valid; the server prints one when it starts, and it is valid for an hour")
	}
	password, err := k.hashPassword(ctx, s.Password)
	if err != nil {
		return u, err
	}
	now := k.now()
	u = store.User{ID: artel.Local, Name: s.Name, Email: email, Role: store.Admin, Password: password, CreatedAt: now, UpdatedAt: now}
	err = k.people.Update(ctx, func(tx store.PeopleTx) error {
		all, err := tx.Users.List()
		if err == nil && len(all) > 0 {
			err = &artel.Error{Op: op, Subject: "", Kind: artel.Conflict, Code: CodeIsSetUp, Err: errors.New("there is an administrator already; ask for an invitation")}
		}
		if err == nil {
			err = tx.Users.Create(u)
		}
		if err == nil {
			err = k.record(ctx, tx, audit.Act{Action: audit.UserCreated, Target: string(u.ID), Detail: email, Actor: u.ID})
		}
		return err
	})
	if err != nil {
		return store.User{}, err
	}
	k.peopled.Store(true)
	k.counted.Store(true)
	if k.options.Mode != OpenMode {
		k.endOpen()
	}
	k.mu.Lock()
	k.setup = ""
	k.mu.Unlock()
	return u, nil
}

// validSetup reports whether code is the newest set-up code.
func (k *core) validSetup(code string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.setup != "" && k.now().Before(k.setupEnds) && subtle.ConstantTimeCompare([]byte(hashOf(code)), []byte(k.setup)) == 1
}

// List returns all users, for administrators.
func (us *Users) List(ctx context.Context) (all []store.User, err error) {
	if err := Require(ctx, store.ScopeAdmin); err != nil {
		return nil, err
	}
	err = us.core.people.View(ctx, func(tx store.PeopleTx) (err error) { all, err = tx.Users.List(); return err })
	return all, err
}

// Me returns the acting user. It is of kind NotFound while there are none.
func (us *Users) Me(ctx context.Context) (u store.User, err error) {
	a, ok := Of(ctx)
	if !ok {
		return u, Unknown()
	}
	err = us.core.people.View(ctx, func(tx store.PeopleTx) (err error) { u, err = tx.Users.Get(a.Owner); return err })
	return u, err
}

// Invite makes a user without a password, and returns the code with which the user
// sets one; see [Users.Accept].
func (us *Users) Invite(ctx context.Context, n NewUser) (u store.User, code string, err error) {
	const op = "access.Users.Invite"
	k := us.core
	if err := Require(ctx, store.ScopeAdmin); err != nil {
		return u, "", err
	}
	if n.Role == "" {
		n.Role = store.Member
	}
	email, err := address(op, n.Email)
	if err == nil {
		err = errors.Join(checkName(op, n.Name), checkRole(op, n.Role))
	}
	if err == nil && !k.hasUsers() {
		err = artel.Errorf(artel.Conflict, op, "", "there is no administrator yet; POST /api/v1/setup makes one")
	}
	if err != nil {
		return u, "", err
	}
	if err := loginFor(ctx, op, n.Role); err != nil {
		return u, "", err
	}
	now := k.now()
	code = rand.Text()
	u = store.User{ID: artel.Owner(newID("usr_")), Name: n.Name, Email: email, Role: n.Role, CreatedAt: now, UpdatedAt: now}
	err = k.people.Update(ctx, func(tx store.PeopleTx) error {
		if err := tx.Users.Create(u); errors.Is(err, artel.Conflict) {
			return &artel.Error{Op: op, Subject: email, Kind: artel.Conflict, Code: CodeEmailTaken, Err: errors.New("there is a user with this address")}
		} else if err != nil {
			return err
		}
		if err := tx.Invitations.Put(store.Invitation{Hash: hashOf(code), User: u.ID, ExpiresAt: now.Add(InvitationLife)}); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.UserCreated, Target: string(u.ID), Detail: email})
	})
	if err != nil {
		return store.User{}, "", err
	}
	return u, code, nil
}

// InviteAgain returns a new code for a user whose invitation has ended or who has
// forgotten the password. An earlier one is no longer valid.
func (us *Users) InviteAgain(ctx context.Context, id artel.Owner) (code string, err error) {
	const op = "access.Users.InviteAgain"
	k := us.core
	if err := Require(ctx, store.ScopeAdmin); err != nil {
		return "", err
	}
	code = rand.Text()
	err = k.people.Update(ctx, func(tx store.PeopleTx) error {
		u, err := tx.Users.Get(id)
		if err == nil {
			err = loginFor(ctx, op, u.Role)
		}
		if err != nil {
			return err
		}
		if err := tx.Invitations.Put(store.Invitation{Hash: hashOf(code), User: id, ExpiresAt: k.now().Add(InvitationLife)}); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.UserInvited, Target: string(id)})
	})
	if err != nil {
		return "", err
	}
	return code, nil
}

// loginFor returns Denied if a token acts on a user of a role that only a login may give
// or change. A token of an administrator could otherwise make a session of one, which
// has no end that is the token's.
func loginFor(ctx context.Context, op string, r store.Role) error {
	if a, _ := Of(ctx); r == store.Admin && a.Scopes != nil {
		return needsLogin(op, "invite, reset, change or delete administrators")
	}
	return nil
}

// Invited returns the user of a code that can still be accepted; otherwise the error is
// the one of [Users.Accept].
func (us *Users) Invited(ctx context.Context, code string) (u store.User, err error) {
	k := us.core
	err = k.people.View(ctx, func(tx store.PeopleTx) error {
		i, err := tx.Invitations.Find(hashOf(code), k.now())
		if err == nil {
			u, err = tx.Users.Get(i.User)
		}
		return err
	})
	if errors.Is(err, artel.NotFound) || err == nil && u.Disabled {
		return store.User{}, invitationEnded("access.Users.Invited")
	}
	return u, err
}

func invitationEnded(op string) error {
	return &artel.Error{Op: op, Subject: "code", Kind: artel.Denied, Code: CodeInvitationEnded, Err: errors.New("this invitation is not valid: it was used, replaced or is older than 7 days")}
}

// Accept sets the password of an invited user, and ends the sessions, tokens and keys of
// the gateway of that user. A wrong, used or ended code is of kind Denied, and costs no hash. Tries from one
// address wait longer and longer if they fail, together with logins; the error is a
// [*Delay].
func (us *Users) Accept(ctx context.Context, code, password string) (u store.User, err error) {
	const op = "access.Users.Accept"
	k := us.core
	if err := checkPassword(op, password); err != nil {
		return u, err
	}
	refused := invitationEnded(op)
	address := networkOf(audit.Address(ctx))
	if wait := us.byAddress.enter(address); wait > 0 {
		return u, &artel.Error{Op: op, Kind: artel.Denied, Code: CodeTooManyLogins, Err: &Delay{wait}}
	}
	err = k.people.View(ctx, func(tx store.PeopleTx) error { _, err := tx.Invitations.Find(hashOf(code), k.now()); return err })
	if errors.Is(err, artel.NotFound) {
		return u, refused
	}
	if err != nil {
		return u, err
	}
	hash, err := k.hashPassword(ctx, password)
	if err != nil {
		return u, err
	}
	err = k.people.Update(ctx, func(tx store.PeopleTx) error {
		i, err := tx.Invitations.Take(hashOf(code), k.now())
		if errors.Is(err, artel.NotFound) {
			return refused
		}
		if err == nil {
			u, err = tx.Users.Get(i.User)
		}
		if err == nil && u.Disabled {
			return refused
		}
		if err == nil {
			u.Password, u.UpdatedAt = hash, k.now()
			err = tx.Users.Update(u)
		}
		ended := ""
		if err == nil {
			ended, err = endCredentials(tx, u.ID, false, false)
		}
		if err == nil {
			err = k.record(ctx, tx, audit.Act{Action: audit.PasswordSet, Target: string(u.ID), Detail: ended, Actor: u.ID})
		}
		return err
	})
	if err != nil {
		return store.User{}, err
	}
	us.byAddress.forget(address)
	k.forgetUser(u.ID)
	return u, nil
}

// Update changes a user. It is of kind Conflict if no administrator would be left
// who can log in, with the code [CodeLastAdmin]. The work of a user who may no longer
// have it done ends.
func (us *Users) Update(ctx context.Context, id artel.Owner, p UserPatch) (u store.User, err error) {
	const op = "access.Users.Update"
	k := us.core
	if err := Require(ctx, store.ScopeAdmin); err != nil {
		return u, err
	}
	if p.Name != nil {
		err = checkName(op, *p.Name)
	}
	if p.Role != nil {
		err = errors.Join(err, checkRole(op, *p.Role))
	}
	if p.Email != nil {
		email, bad := address(op, *p.Email)
		p.Email, err = &email, errors.Join(err, bad)
	}
	if err != nil {
		return u, err
	}
	err = k.people.Update(ctx, func(tx store.PeopleTx) (err error) {
		if u, err = tx.Users.Get(id); err != nil {
			return err
		}
		if err := loginFor(ctx, op, u.Role); err != nil {
			return err
		}
		var changed []string
		set(&u.Name, p.Name, "name", &changed)
		set(&u.Email, p.Email, "email", &changed)
		set(&u.Role, p.Role, "role", &changed)
		set(&u.Disabled, p.Disabled, "disabled", &changed)
		if len(changed) == 0 {
			return nil
		}
		if err := loginFor(ctx, op, u.Role); err != nil {
			return err
		}
		u.UpdatedAt = k.now()
		if err := tx.Users.Update(u); errors.Is(err, artel.Conflict) {
			return &artel.Error{Op: op, Subject: u.Email, Kind: artel.Conflict, Code: CodeEmailTaken, Err: errors.New("another user has this address")}
		} else if err != nil {
			return err
		}
		if err := anAdminIsLeft(op, tx); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.UserChanged, Target: string(id), Detail: strings.Join(changed, ", ")})
	})
	if err != nil {
		return store.User{}, err
	}
	k.forgetUser(id)
	k.stopWork(ctx, id, whyNot(u))
	return u, nil
}

func set[T comparable](field, value *T, name string, changed *[]string) {
	if value != nil && *value != *field {
		*field = *value
		*changed = append(*changed, name)
	}
}

// Error codes of users.
const (
	CodeIsSetUp         = "set_up_already"   // there is an administrator
	CodeEmailTaken      = "email_taken"      // another user has the address
	CodeInvitationEnded = "invitation_ended" // or it was never one
)

// CodeLastAdmin is the error code of a change after which no administrator could log
// in.
const CodeLastAdmin = "last_admin"

// anAdminIsLeft returns Conflict unless an administrator can log in.
func anAdminIsLeft(op string, tx store.PeopleTx) error {
	all, err := tx.Users.List()
	if err == nil && !slices.ContainsFunc(all, func(u store.User) bool {
		return u.Role == store.Admin && !u.Disabled && (u.Password != "" || linked(tx, u.ID))
	}) {
		err = &artel.Error{Op: op, Kind: artel.Conflict, Code: CodeLastAdmin, Err: errors.New("no administrator would be left who can log in; make another one first")}
	}
	return err
}

// Delete removes a user with sessions and tokens, and ends the user's work. What the
// user made stays in the database, and no later user gets it.
func (us *Users) Delete(ctx context.Context, id artel.Owner) error {
	const op = "access.Users.Delete"
	k := us.core
	if err := Require(ctx, store.ScopeAdmin); err != nil {
		return err
	}
	err := k.people.Update(ctx, func(tx store.PeopleTx) error {
		u, err := tx.Users.Get(id)
		if err == nil {
			err = loginFor(ctx, op, u.Role)
		}
		if err == nil {
			err = tx.Users.Delete(id)
		}
		if err != nil {
			return err
		}
		if err := anAdminIsLeft(op, tx); err != nil {
			return err
		}
		return k.record(ctx, tx, audit.Act{Action: audit.UserDeleted, Target: string(id)})
	})
	if err == nil {
		k.forgetUser(id)
		k.stopWork(ctx, id, whyDeleted)
		if k.removed != nil {
			k.removed(context.WithoutCancel(ctx), id)
		}
	}
	return err
}
