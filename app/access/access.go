// SPDX-License-Identifier: Apache-2.0

// Package access knows who may use the deployment: its users, their sessions in
// browsers and tokens of programs, and what each of them may do.
//
// Begin with [New]. Every request is given an [Actor], by [Access.Identify] from a
// session or token, or [Operator] while [Access.Open] reports that no login is
// needed. [With] puts the actor, and with it the owner of rows, into the context, and
// [Require] is the one check of rights.
//
// Secrets are stored as SHA-256 hashes, passwords as argon2id. What was identified
// is remembered; ending a session, revoking a token and changing a user forgets it
// before the call returns, and ends the requests that are being served.
package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// A Mode says when requests need a login.
type Mode string

// The modes.
const (
	// Auto needs one as soon as there are users, and always if the server can be
	// reached from other machines.
	Auto Mode = ""
	// OpenMode never needs one: everyone who reaches the server is its operator.
	OpenMode Mode = "open"
	// Required always needs one.
	Required Mode = "required"
)

// Options are the settings of a deployment.
type Options struct {
	Mode     Mode
	Exposed  bool          // the server can be reached from other machines
	Idle     time.Duration // without a request, after which a session ends; 0: 7 days
	SetupKey string        // a secret of processes that share a database; "": there is one process
	Absolute time.Duration // after which a session ends in any case; 0: 30 days
}

// Config has the parts of an [Access].
type Config struct {
	Store   store.Store
	Options Options
	Log     *slog.Logger
	Now     func() time.Time

	// CheckKey refuses keys of the gateway that the deployment cannot serve; may be
	// nil.
	CheckKey func(store.GatewayKey) error
	// Stop ends the work that was begun for a user who may no longer have it done,
	// such as runs; why is for the reader of their log. It is called after the change
	// is stored. nil: nothing is begun for users.
	Stop func(ctx context.Context, user artel.Owner, why string) error
	// Removed ends what a removed user had elsewhere. It is called after the change is
	// stored; nil: nothing is elsewhere.
	Removed func(ctx context.Context, user artel.Owner)
}

// An Access is safe for concurrent use.
type Access struct {
	Users    *Users
	Sessions *Sessions
	Tokens   *Tokens
	Keys     *Keys

	core *core
}

// New returns the access to a deployment.
func New(c Config) *Access {
	k := &core{people: c.Store.People(), options: c.Options, log: c.Log, now: c.Now, stop: c.Stop, removed: c.Removed, known: map[artel.Digest]*credential{}, hashing: make(chan struct{}, maxHashing), argon: argon2.IDKey}
	if k.options.Idle <= 0 {
		k.options.Idle = 7 * 24 * time.Hour
	}
	if k.options.Absolute <= 0 {
		k.options.Absolute = 30 * 24 * time.Hour
	}
	k.open, k.endOpen = context.WithCancel(context.Background())
	byAddress := newLimiter(c.Now, 20)
	return &Access{
		Users: &Users{core: k, byAddress: byAddress}, Tokens: &Tokens{k}, Keys: &Keys{k, c.CheckKey}, core: k,
		Sessions: &Sessions{core: k, byAddress: byAddress, byAccount: newLimiter(c.Now, 5)},
	}
}

// Open reports whether requests need no login.
func (a *Access) Open() bool { return a.core.isOpen() }

func (k *core) isOpen() bool {
	switch o := k.options; o.Mode {
	case OpenMode:
		return true
	case Required:
		return false
	default:
		return !o.Exposed && !k.hasUsers()
	}
}

// HasUsers reports whether there are users, which it reads once. If they cannot be
// read, there may be some.
func (a *Access) HasUsers() bool { return a.core.hasUsers() }

func (k *core) hasUsers() bool {
	if k.counted.Load() {
		return k.peopled.Load()
	}
	k.counting.Lock()
	defer k.counting.Unlock()
	if k.counted.Load() {
		return k.peopled.Load()
	}
	was := k.peopled.Load()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	err := k.people.View(ctx, func(tx store.PeopleTx) error {
		all, err := tx.Users.List()
		k.peopled.Store(len(all) > 0)
		return err
	})
	if err != nil {
		k.log.Error("it could not be read whether there are users; a login is needed until then", "err", err)
		return true
	}
	if k.peopled.Load() && !was {
		k.endOpen()
	}
	// Another process may make the first user.
	k.counted.Store(k.peopled.Load() || k.options.SetupKey == "")
	return k.peopled.Load()
}

// SetupLife is how long a set-up code is valid.
const SetupLife = time.Hour

// NewSetupCode returns a code for [Users.Setup], which replaces earlier ones. Processes with
// the same [Options.SetupKey] have the same code.
func (a *Access) NewSetupCode() string {
	code := rand.Text()
	k := a.core
	if k.options.SetupKey != "" {
		mac := hmac.New(sha256.New, []byte(k.options.SetupKey))
		mac.Write([]byte("artel set-up code"))
		code = base32.StdEncoding.EncodeToString(mac.Sum(nil))[:len(code)]
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.setup, k.setupEnds = hashOf(code), k.now().Add(SetupLife)
	return code
}

// Close waits for what is written in the background.
func (a *Access) Close() { a.core.writing.Wait() }

// MayWork returns why work may not be done for a user, such as a run, of kind Denied:
// the user was deleted or disabled, or may only read. Without users everyone may.
func (a *Access) MayWork(ctx context.Context, user artel.Owner) error {
	return a.core.may(ctx, "access.Access.MayWork", user, whyNot)
}

// MayLogIn returns why a user may not log in any more, of kind Denied: the user was
// deleted or disabled. Without users everyone may.
func (a *Access) MayLogIn(ctx context.Context, user artel.Owner) error {
	return a.core.may(ctx, "access.Access.MayLogIn", user, func(u store.User) string {
		if u.Disabled {
			return whyDisabled
		}
		return ""
	})
}

// may returns why something may not be done for a user, as why says of the stored one.
func (k *core) may(ctx context.Context, op string, user artel.Owner, why func(store.User) string) error {
	if k.options.Mode == OpenMode || !k.hasUsers() {
		return nil
	}
	var u store.User
	err := k.people.View(ctx, func(tx store.PeopleTx) (err error) { u, err = tx.Users.Get(user); return err })
	if errors.Is(err, artel.NotFound) {
		return artel.Errorf(artel.Denied, op, "", whyDeleted)
	}
	if why := why(u); err == nil && why != "" {
		err = artel.Errorf(artel.Denied, op, "", "%s", why)
	}
	return err
}

// stopping is how long a change of a user waits for the end of the user's work.
const stopping = 10 * time.Second

// Reasons why work for a user ends.
const (
	whyDeleted  = "the user was deleted"
	whyDisabled = "the user was disabled"
	whyReads    = "the user may only read now"
)

// whyNot returns why no work may be done for u; empty: it may.
func whyNot(u store.User) string {
	switch {
	case u.Disabled:
		return whyDisabled
	case !slices.Contains(scopesOf(u.Role), store.ScopeWrite):
		return whyReads
	}
	return ""
}

// stopWork ends what was begun for a user. The change that made it necessary is stored,
// so an error does not undo it; the work ends at its next step, see [Access.MayWork].
func (k *core) stopWork(ctx context.Context, user artel.Owner, why string) {
	if k.stop == nil || why == "" {
		return
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), stopping)
	defer end()
	if err := k.stop(ctx, user, why); err != nil {
		k.log.ErrorContext(ctx, "the runs of a user could not be ended", "user", user, "err", err)
	}
}

// core is what the parts share.
type core struct {
	people  store.People
	options Options
	log     *slog.Logger
	now     func() time.Time
	stop    func(ctx context.Context, user artel.Owner, why string) error // may be nil
	removed func(ctx context.Context, user artel.Owner)                   // may be nil
	counted atomic.Bool                                                   // peopled is known
	peopled atomic.Bool                                                   // there are users, who never become none
	hashing chan struct{}                                                 // has an element for each password that is hashed now
	argon   func(password, salt []byte, time, memory uint32, threads uint8, length uint32) []byte
	writing sync.WaitGroup
	open    context.Context // ends when a login is needed from now on
	endOpen context.CancelFunc

	counting sync.Mutex // held while users are counted

	mu        sync.Mutex
	known     map[artel.Digest]*credential
	forgotten uint64 // how often credentials were forgotten
	setup     artel.Digest
	setupEnds time.Time
}

func hashOf(secret string) artel.Digest { return artel.NewDigest(sha256.Sum256([]byte(secret))) }

// newID mints an identifier.
func newID(prefix string) string { return prefix + rand.Text() }

// record adds an act to the audit log, in the transaction of the act.
func (k *core) record(ctx context.Context, tx store.PeopleTx, a audit.Act) error {
	return audit.Record(ctx, store.Tx{Audit: tx.Audit}, k.now(), a)
}
