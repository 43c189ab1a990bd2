// SPDX-License-Identifier: Apache-2.0

// Package entries keeps what administrators configure while the server runs: model
// services. Each is an entry as in the configuration file, with the same keys and the
// same validation.
//
// Begin with [New] and [Services.Load]. Secrets are encrypted and write-only: an entry
// that is read has in their place whether they are set, and how they end. A change takes
// effect before the call returns; model calls that run keep the service that they began
// with. What uses the environment or the credentials of the machine can only be
// configured in its files.
package entries

import (
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

// Config has the parts that entries need.
type Config struct {
	Store    store.Store
	Secrets  *secret.Box // nil: services with secrets cannot be stored
	Registry *model.Registry
	Caller   *model.Caller
	Blobs    blob.Store
	HTTP     *http.Client // to services; nil: they are not asked
	Options  Options
}

// Options are what may be left out.
type Options struct {
	// OnSecrets receives whether the stored secrets can be decrypted, after each load.
	OnSecrets func(error)
	Log       *slog.Logger     // nil: slog.Default
	Now       func() time.Time // nil: time.Now
}

// Origin is the origin of services that are stored here ([model.Service.Origin]).
const Origin = "added by an administrator"

// CodeReadOnly is the code of a refused change of a service that comes from elsewhere.
const CodeReadOnly = "service_read_only"

// Services are the use cases of stored services. They are safe for concurrent use.
type Services struct {
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
func New(c Config) *Services {
	if c.Options.Log == nil {
		c.Options.Log = slog.Default()
	}
	if c.Options.Now == nil {
		c.Options.Now = time.Now
	}
	return &Services{c: c, named: map[string]completed{}}
}

// list reads the entries of services.
func (s *Services) list(ctx context.Context) (all []store.Entry, err error) {
	err = s.c.Store.People().View(ctx, func(tx store.PeopleTx) error {
		all, err = tx.Entries.List(store.ServiceEntry)
		return err
	})
	return all, err
}

// get reads one entry.
func (s *Services) get(ctx context.Context, id string) (e store.Entry, err error) {
	err = s.c.Store.People().View(ctx, func(tx store.PeopleTx) error {
		e, err = tx.Entries.Get(store.ServiceEntry, id)
		return err
	})
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
func (s *Services) change(ctx context.Context, act audit.Act, fn func(store.PeopleTx) error) error {
	return s.c.Store.People().Update(ctx, func(tx store.PeopleTx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return audit.Record(ctx, store.Tx{Audit: tx.Audit}, s.now(), act)
	})
}

func (s *Services) now() time.Time { return s.c.Options.Now().UTC().Truncate(time.Microsecond) }

func admin(ctx context.Context) error { return access.Require(ctx, store.ScopeAdmin) }
