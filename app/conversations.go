// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// Conversations are the use cases of conversations and their messages.
type Conversations struct{ core *core }

// NewConversation is what a conversation is made from; all of it may be empty.
type NewConversation struct {
	Title   string
	Agent   artel.AgentName
	Service artel.ServiceID

	// Greeting is the position of the greeting of the agent that becomes the first
	// message; nil: the conversation is empty.
	Greeting *int
}

// maxTitle is the longest title in code points.
const maxTitle = 256

// Create makes a conversation. An unknown agent, service or greeting is of kind
// Invalid.
func (cs *Conversations) Create(ctx context.Context, n NewConversation) (artel.Conversation, error) {
	n.Title = scrub.Line(n.Title)
	if utf8.RuneCountInString(n.Title) > maxTitle {
		return artel.Conversation{}, artel.Errorf(artel.TooLarge, "app.Conversations.Create", "title", "longer than %d characters", maxTitle)
	}
	greeting := ""
	if n.Agent != "" || n.Greeting != nil {
		err := cs.core.view(ctx, func(tx store.Tx) (err error) {
			greeting, err = cs.core.greeting(tx, n)
			return err
		})
		if err != nil {
			return artel.Conversation{}, err
		}
	}
	if n.Service != "" && !cs.core.chooser().IsAuto(n.Service) {
		if _, err := cs.core.chooser().Callable(n.Service); err != nil {
			return artel.Conversation{}, err
		}
	}
	now := cs.core.now()
	c := artel.Conversation{
		ID: artel.NewConversationID(now), Title: strings.TrimSpace(n.Title), Agent: n.Agent, Service: n.Service,
		CreatedAt: now, UpdatedAt: now,
	}
	err := cs.core.update(ctx, func(tx store.Tx) error {
		if greeting == "" {
			return tx.Conversations.Create(c)
		}
		m := artel.Message{
			ID: artel.NewMessageID(now), Conversation: c.ID, Role: artel.RoleAssistant, Parts: artel.Parts{artel.Text{Text: greeting}}, Agent: n.Agent, CreatedAt: now,
		}
		if err := tx.Conversations.Create(c); err != nil {
			return err
		}
		if err := tx.Messages.Create(m); err != nil {
			return err
		}
		c.Leaf = m.ID
		return tx.Conversations.Update(c)
	})
	return c, err
}

// greeting returns the first message of a new conversation, with its macros
// expanded; "": none.
func (k *core) greeting(tx store.Tx, n NewConversation) (string, error) {
	d, err := k.settings.Reader.Agent(tx, n.Agent)
	if err != nil || n.Greeting == nil {
		return "", err
	}
	if i := *n.Greeting; i < 0 || i >= len(d.Greetings) {
		return "", artel.Errorf(artel.Invalid, "app.Conversations.Create", "greeting", "is %d, and the agent %s has %d greetings; the first is 0", i, d.Name, len(d.Greetings))
	}
	user, err := k.settings.Reader.Profile(tx)
	if err != nil {
		return "", err
	}
	text, err := d.Pipeline().ExpandGreeting(d.Greetings[*n.Greeting], user, macro.Context{Now: d.Time(k.now()), Seed: rand.Text()})
	return strings.TrimSpace(text), err
}

// Find returns one conversation.
func (cs *Conversations) Find(ctx context.Context, id artel.ConversationID) (c artel.Conversation, err error) {
	err = cs.core.view(ctx, func(tx store.Tx) error {
		c, err = tx.Conversations.Get(id)
		return err
	})
	return c, err
}

// List returns conversations, the newest updated first. A search selects those
// that hold all of its words, as [store.ConversationQuery] says.
func (cs *Conversations) List(ctx context.Context, q store.ConversationQuery) (items []store.Listed, next string, err error) {
	err = cs.core.view(ctx, func(tx store.Tx) error {
		items, next, err = tx.Conversations.List(q)
		return err
	})
	return items, next, err
}

// Rename gives a conversation the title that a person wants: 1 to 256
// characters that can be seen, without the white space around them. Messages
// do not change it any more. It is no activity: the conversation stays where
// it is in the list, so that tidying up old ones does not bring them to the
// top.
func (cs *Conversations) Rename(ctx context.Context, id artel.ConversationID, title string) (c artel.Conversation, err error) {
	const op = "app.Conversations.Rename"
	title = strings.TrimSpace(scrub.Line(title))
	switch n := utf8.RuneCountInString(title); {
	case strings.ContainsFunc(title, breaksLine):
		return c, artel.Errorf(artel.Invalid, op, "title", "has control characters; a title is one line of text")
	case n == 0:
		return c, artel.Errorf(artel.Invalid, op, "title", "is empty, want 1 to %d characters", maxTitle)
	case n > maxTitle:
		return c, artel.Errorf(artel.TooLarge, op, "title", "has %d characters, want at most %d", n, maxTitle)
	}
	err = cs.core.update(ctx, func(tx store.Tx) error {
		if c, err = tx.Conversations.Get(id); err != nil {
			return err
		}
		c.Title = title
		return tx.Conversations.Update(c)
	})
	return c, err
}

func breaksLine(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// keptDeleted is how long a deleted conversation can be restored. An hour is
// time to notice a mistake, also after the page with the way back is closed;
// and who deletes something because it must not be kept does not wait long.
const keptDeleted = time.Hour

// Delete removes a conversation with everything in it. For an hour,
// [Conversations.Restore] brings it back. While a run works on it, it is of
// kind Conflict.
func (cs *Conversations) Delete(ctx context.Context, id artel.ConversationID) error {
	return cs.core.update(ctx, func(tx store.Tx) error {
		switch r, err := tx.Runs.Active(id); {
		case err == nil:
			return &artel.Error{
				Op: "app.Conversations.Delete", Subject: string(id), Kind: artel.Conflict, Code: run.CodeRunActive,
				Err: fmt.Errorf("the run %s is working on it; cancel it first", r.ID),
			}
		case !errors.Is(err, artel.NotFound):
			return err
		}
		if err := tx.Conversations.Delete(id, cs.core.now()); err != nil {
			return err
		}
		return audit.Record(ctx, tx, cs.core.now(), audit.Act{Action: audit.ConversationDeleted, Target: string(id)})
	})
}

// Restore restores a deleted conversation. It is of kind NotFound if it was not
// deleted, or too long ago.
func (cs *Conversations) Restore(ctx context.Context, id artel.ConversationID) (c artel.Conversation, err error) {
	err = cs.core.update(ctx, func(tx store.Tx) error {
		if err := tx.Conversations.Restore(id); err != nil {
			return err
		}
		if err := audit.Record(ctx, tx, cs.core.now(), audit.Act{Action: audit.ConversationRestored, Target: string(id)}); err != nil {
			return err
		}
		c, err = tx.Conversations.Get(id)
		return err
	})
	return c, err
}

// List returns the messages of all branches, oldest first.
func (ms *Messages) List(ctx context.Context, id artel.ConversationID, p store.Page) (items []artel.Message, next string, err error) {
	err = ms.core.view(ctx, func(tx store.Tx) error {
		if _, err := tx.Conversations.Get(id); err != nil {
			return err
		}
		items, next, err = tx.Messages.List(id, p)
		return err
	})
	return items, next, err
}

// Branch returns the messages of the branch that ends in leaf, root first: of
// them the last limit, or all where limit is 0.
func (ms *Messages) Branch(ctx context.Context, id artel.ConversationID, leaf artel.MessageID, limit int) (branch []artel.Message, err error) {
	err = ms.core.view(ctx, func(tx store.Tx) error {
		branch, err = tx.Messages.Path(id, leaf, limit)
		return err
	})
	return branch, err
}

// Nested returns what the subagents of a run have written, in the order in
// which they did.
func (ms *Messages) Nested(ctx context.Context, id artel.ConversationID, run artel.RunID) (list []artel.Message, err error) {
	err = ms.core.view(ctx, func(tx store.Tx) error {
		list, err = tx.Messages.Nested(id, run)
		return err
	})
	return list, err
}

// Usage returns what all runs of a conversation took, on whatever branch; that
// of a run at work as far as it has come.
func (cs *Conversations) Usage(ctx context.Context, id artel.ConversationID) (u artel.Usage, err error) {
	err = cs.core.view(ctx, func(tx store.Tx) error {
		u, err = tx.Runs.Usage(id)
		return err
	})
	return u, err
}
