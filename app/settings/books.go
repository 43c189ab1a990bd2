// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/lore"
	"github.com/artelhq/artel/pipeline/rule"
	"github.com/artelhq/artel/store"
)

// Books are the use cases of world books, which each user has for themselves.
// Agents use those that the configuration of the processor [pipeline.Lore] names.
type Books struct{ config *Config }

// A Book is a world book with its revision.
type Book struct {
	lore.Book
	Revision  int
	UpdatedAt time.Time
	Agents    []artel.AgentName // that use it
}

// books is the prefix of the settings in which books are stored, as JSON.
const books = "book/"

// maxBooks is how many books a user can have.
const maxBooks = 200

// CodeBookExists is the error code of making a book whose name is taken.
const CodeBookExists = "book_exists"

// A bookCache holds decoded books by the hash of their JSON, because every
// request of an agent with books reads them. The books are never changed.
type bookCache struct {
	mu    sync.Mutex
	books map[[sha256.Size]byte]lore.Book
}

// maxCachedBooks bounds the cache; it is emptied when it is full.
const maxCachedBooks = 50

func (c *bookCache) decode(s store.Setting) (lore.Book, error) {
	key := sha256.Sum256(s.Value)
	c.mu.Lock()
	b, ok := c.books[key]
	c.mu.Unlock()
	if ok {
		return b, nil
	}
	b, err := decoded[lore.Book](s)
	if err != nil {
		return b, err
	}
	b.Name = strings.TrimPrefix(s.Name, books)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.books == nil || len(c.books) >= maxCachedBooks {
		c.books = map[[sha256.Size]byte]lore.Book{}
	}
	c.books[key] = b
	return b, nil
}

// Books returns the world books of these names; missing ones are left out. The
// caller does not change them.
func (r *Reader) Books(tx store.Tx, names []string) ([]lore.Book, error) {
	var out []lore.Book
	for _, name := range names {
		s, err := tx.Settings.Get(books + name)
		if errors.Is(err, artel.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		b, err := r.config.cache.decode(s)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// List returns the books by name, with the agents that use them.
func (bs *Books) List(ctx context.Context) (all []Book, err error) {
	err = bs.config.view(ctx, func(tx store.Tx) error {
		list, err := tx.Settings.List(books)
		if err != nil {
			return err
		}
		users, err := bs.users(tx)
		for _, s := range list {
			b, err := bs.config.cache.decode(s)
			if err != nil {
				bs.config.Logger.ErrorContext(ctx, "a world book is left out", "err", err)
				continue
			}
			all = append(all, Book{b, s.Revision, s.UpdatedAt, users[b.Name]})
		}
		return err
	})
	return all, err
}

// users returns the agents that use each book.
func (bs *Books) users(tx store.Tx) (map[string][]artel.AgentName, error) {
	agents, err := bs.config.allAgents(tx)
	out := map[string][]artel.AgentName{}
	for _, a := range agents {
		settings, err := bs.config.settings(tx, a.Definition, bs.config.withService(a).Runs)
		if err != nil {
			return nil, err
		}
		for _, name := range settings.Books() {
			out[name] = append(out[name], a.Name)
		}
	}
	return out, err
}

// Find returns one book; kind NotFound if there is none of the name.
func (bs *Books) Find(ctx context.Context, name string) (b Book, err error) {
	err = bs.config.view(ctx, func(tx store.Tx) error {
		b, err = bs.find(tx, name)
		return err
	})
	return b, err
}

func (bs *Books) find(tx store.Tx, name string) (Book, error) {
	s, err := tx.Settings.Get(books + name)
	if errors.Is(err, artel.NotFound) {
		return Book{}, artel.Errorf(artel.NotFound, "settings.Books", artel.Shorten(name, 80), "there is no such world book")
	}
	if err != nil {
		return Book{}, err
	}
	b, err := bs.config.cache.decode(s)
	if err != nil {
		return Book{}, err
	}
	users, err := bs.users(tx)
	return Book{b, s.Revision, s.UpdatedAt, users[b.Name]}, err
}

// Save stores a book in place of a revision, or [AnyRevision]; 0 makes a new one,
// and a name that is taken is then of kind Conflict, code [CodeBookExists].
// Another revision is of kind Conflict, code [artifact.CodeStale]. See
// [lore.Book.Check] for books that are refused.
func (bs *Books) Save(ctx context.Context, b lore.Book, revision int) (saved Book, err error) {
	const op = "settings.Books.Save"
	if err := b.Check(); err != nil {
		return saved, err
	}
	if b.Entries == nil {
		b.Entries = []lore.BookEntry{}
	}
	err = bs.config.update(ctx, func(tx store.Tx) error {
		revision := revision // the update may run again
		now, err := tx.Settings.Get(books + b.Name)
		switch {
		case err != nil && !errors.Is(err, artel.NotFound):
			return err
		case err == nil && revision == 0:
			return &artel.Error{Op: op, Subject: artel.Shorten(b.Name, 80), Kind: artel.Conflict, Code: CodeBookExists, Err: errors.New("there is a world book of this name; take another name, or replace that one")}
		case err == nil && revision == AnyRevision:
			revision = now.Revision
		case err != nil && revision > 0:
			return &artel.Error{Op: op, Subject: artel.Shorten(b.Name, 80), Kind: artel.Conflict, Code: artifact.CodeStale, Err: errStaleSettings}
		case err != nil:
			revision = 0
			list, err := tx.Settings.List(books)
			if err == nil && len(list) >= maxBooks {
				err = artel.Errorf(artel.TooLarge, op, artel.Shorten(b.Name, 80), "there are %d world books, and more are not taken; delete one", len(list))
			}
			if err != nil {
				return err
			}
		}
		if _, err := bs.config.putTx(tx, books+b.Name, b, revision); err != nil {
			return err
		}
		saved, err = bs.find(tx, b.Name)
		return err
	})
	return saved, err
}

// Delete removes a book; see [Books.Save] for the revision. Agents that use it
// continue without it.
func (bs *Books) Delete(ctx context.Context, name string, revision int) error {
	return bs.config.update(ctx, func(tx store.Tx) error {
		if _, err := bs.find(tx, name); errors.Is(err, artel.NotFound) {
			return err
		}
		if _, err := bs.config.putTx(tx, books+name, nil, revision); err != nil {
			return err
		}
		return audit.Record(ctx, tx, bs.config.Now(), audit.Act{Action: audit.BookDeleted, Target: name})
	})
}

// Use makes an agent use a book, or no longer. It changes the setting of the
// processor at the agent's level alone.
func (bs *Books) Use(ctx context.Context, name string, agent artel.AgentName, on bool) error {
	p := &Pipeline{bs.config}
	at := LevelAt{Agent: agent}
	l, err := p.Level(ctx, at)
	if err != nil {
		return err
	}
	if _, err := bs.Find(ctx, name); on && err != nil {
		return err
	}
	next := slices.Clone(l.Settings)
	i := slices.IndexFunc(next, func(s pipeline.Setting) bool { return s.ID == pipeline.Lore })
	if i < 0 {
		if !on {
			return nil
		}
		i, next = len(next), append(next, pipeline.Setting{ID: pipeline.Lore})
	}
	fields := map[string]json.RawMessage{}
	if len(next[i].Config) > 0 {
		if err := json.Unmarshal(next[i].Config, &fields); err != nil {
			return artel.Errorf(artel.Invalid, "settings.Books.Use", string(agent), "the configuration of %s is no object: %w", pipeline.Lore, err)
		}
	}
	var names []string
	_ = json.Unmarshal(fields["books"], &names) // the processor refuses another type
	names = slices.DeleteFunc(names, func(n string) bool { return n == name })
	if on {
		names = append(names, name)
		next[i].Enabled = nil
	}
	if fields["books"], err = json.Marshal(names); err != nil {
		return err
	}
	if next[i].Config, err = json.Marshal(fields); err != nil {
		return err
	}
	_, err = p.SetLevel(ctx, at, next, l.Revision)
	return err
}

// A BookTrial is a conversation on which a book is tried out.
type BookTrial struct {
	Book     lore.Book
	Messages []lore.Message // oldest first; the last is answered
	Budget   int            // tokens; 0: no limit
	User     string         // what the macro user stands for
	Char     string         // what the macro char stands for
}

// Try returns which entries fire, and why, with the defaults of the processor.
func (bs *Books) Try(ctx context.Context, t BookTrial, count func(string) int) (lore.Result, error) {
	if err := t.Book.Check(); err != nil {
		return lore.Result{}, err
	}
	names := strings.NewReplacer("{{user}}", t.User, "{{char}}", t.Char)
	return lore.Activate(ctx, lore.Input{
		Books: []lore.Book{t.Book}, Messages: t.Messages, Budget: t.Budget, Count: count, Expand: names.Replace,
		Defaults: pipeline.LoreDefaults(), Find: pipeline.FindPattern(rule.New()),
	})
}
