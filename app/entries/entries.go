// SPDX-License-Identifier: Apache-2.0

// Package entries keeps what administrators configure while the server runs: model
// services, MCP servers and HTTP tools. Each is an entry as in the configuration file,
// with the same keys and the same validation.
//
// Begin with [NewVault], which keeps the entries and their secrets, then [New] and
// [Services.Load] for services, [NewToolbox] and [Toolbox.Load] for tools. Secrets are
// encrypted and write-only: an entry that is read has in their place whether they are
// set, and how they end. A change takes effect before the call returns; calls of models
// and tools that run keep the service or server that they began with. What uses the
// environment, the credentials or the programs of the machine can only be configured in
// its files.
package entries

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// Options are what may be left out.
type Options struct {
	// OnSecrets receives whether the stored secrets can be decrypted, after each load.
	OnSecrets func(error)
	Log       *slog.Logger     // nil: slog.Default
	Now       func() time.Time // nil: time.Now
}

// A Vault keeps entries of all kinds, and their secrets. It is safe for concurrent use.
type Vault struct {
	store   store.Store
	secrets *secret.Box
	o       Options

	mu   sync.Mutex
	lost map[store.EntryKind]error // why secrets cannot be decrypted
}

// NewVault returns a vault. Without secrets, entries with secrets cannot be stored.
func NewVault(s store.Store, secrets *secret.Box, o Options) *Vault {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Vault{store: s, secrets: secrets, o: o, lost: map[store.EntryKind]error{}}
}

// Config has the parts that services need.
type Config struct {
	Vault    *Vault
	Registry *model.Registry
	Caller   *model.Caller
	Blobs    blob.Store
	HTTP     *http.Client // to services; nil: they are not asked
}

// Origin is the origin of services and tools that are stored here ([model.Service.Origin]).
const Origin = "added by an administrator"

// Codes of the refused change of an entry that comes from elsewhere.
const (
	CodeReadOnly     = "service_read_only"
	CodeToolReadOnly = "tool_read_only"
)

// Services are the use cases of stored services. They are safe for concurrent use.
type Services struct {
	*Vault
	c Config

	mu    sync.Mutex // held while entries are changed and applied
	named map[string]completed
}

// completed is an entry whose endpoint has been asked.
type completed struct {
	at       time.Time // UpdatedAt of the entry
	services []model.Service
}

// New returns the stored services of a deployment. They are in the registry after
// [Services.Load].
func New(c Config) *Services { return &Services{Vault: c.Vault, c: c, named: map[string]completed{}} }

// list reads the entries of a kind.
func (v *Vault) list(ctx context.Context, kind store.EntryKind) (all []store.Entry, err error) {
	err = v.store.People().View(ctx, func(tx store.PeopleTx) error {
		all, err = tx.Entries.List(kind)
		return err
	})
	return all, err
}

// entry reads one entry.
func (v *Vault) entry(ctx context.Context, kind store.EntryKind, id string) (e store.Entry, err error) {
	err = v.store.People().View(ctx, func(tx store.PeopleTx) error {
		e, err = tx.Entries.Get(kind, id)
		return err
	})
	return e, err
}

// get reads one entry of a service.
func (s *Services) get(ctx context.Context, id string) (store.Entry, error) {
	e, err := s.entry(ctx, store.ServiceEntry, id)
	if artel.KindOf(err) != artel.NotFound {
		return e, err
	}
	const op = "entries.Services.Get"
	if other, ok := s.c.Registry.Lookup(artel.ServiceID(id)); ok {
		return e, &artel.Error{
			Op: op, Subject: artel.Shorten(id, 60), Kind: artel.Denied, Code: CodeReadOnly,
			Err: fmt.Errorf("it can only be changed where it comes from: %s", other.Origin),
		}
	}
	return e, artel.Errorf(artel.NotFound, op, artel.Shorten(id, 60), "no service of this id was added")
}

// change runs fn in a transaction with an entry of the audit log.
func (v *Vault) change(ctx context.Context, act audit.Act, fn func(store.PeopleTx) error) error {
	return v.store.People().Update(ctx, func(tx store.PeopleTx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return audit.Record(ctx, store.Tx{Audit: tx.Audit}, v.now(), act)
	})
}

// report says whether the secrets of a kind can be decrypted. lost is the first error; nil:
// they can.
func (v *Vault) report(ctx context.Context, kind store.EntryKind, lost error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lost[kind] = lost
	if lost != nil {
		v.o.Log.ErrorContext(ctx, "stored secrets cannot be decrypted; what needs them stays off, and nothing is deleted", "of", kind, "err", lost)
	}
	if v.o.OnSecrets != nil {
		v.o.OnSecrets(cmp.Or(v.lost[store.ServiceEntry], v.lost[store.MCPServerEntry], v.lost[store.HTTPToolEntry]))
	}
}

func (v *Vault) now() time.Time { return v.o.Now().UTC().Truncate(time.Microsecond) }

func admin(ctx context.Context) error { return access.Require(ctx, store.ScopeAdmin) }
