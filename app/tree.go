// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// A conversation is a tree. Editing a message or retrying makes a branch: a new
// message under the same parent. Artifacts, variables, permissions and summaries
// belong to a branch; other branches do not see them.

// Messages are the use cases of the messages of conversations.
type Messages struct{ core *core }

// A BranchMessage is one message of a branch, with its siblings.
type BranchMessage struct {
	artel.Message
	// Siblings are the messages under the same parent, oldest first, including this
	// one. If there are several, branches begin here.
	Siblings []artel.MessageID `json:"siblings"`
}

// Turns returns the messages of the branch that ends in leaf ("": the active
// one), root first, with their siblings: the last limit messages, or all if
// limit is 0.
func (ms *Messages) Turns(ctx context.Context, id artel.ConversationID, leaf artel.MessageID, limit int) ([]BranchMessage, error) {
	turns := []BranchMessage{}
	err := ms.core.view(ctx, func(tx store.Tx) error {
		c, err := tx.Conversations.Get(id)
		if err != nil {
			return err
		}
		if leaf == "" {
			leaf = c.Leaf
		}
		path, err := tx.Messages.Path(id, leaf, limit)
		if err != nil {
			return err
		}
		parents := make([]artel.MessageID, len(path))
		for i, m := range path {
			parents[i] = m.Parent
		}
		children, err := tx.Messages.Children(id, parents...)
		for _, m := range path {
			turns = append(turns, BranchMessage{m, children[m.Parent]})
		}
		return err
	})
	return turns, err
}

// childrenOf returns the messages under each message, oldest first, and the
// newest message of all.
func childrenOf(tx store.Tx, c artel.ConversationID) (children map[artel.MessageID][]artel.MessageID, newest map[artel.MessageID]int, err error) {
	children, newest = map[artel.MessageID][]artel.MessageID{}, map[artel.MessageID]int{}
	for cursor, n := "", 0; ; {
		list, next, err := tx.Messages.List(c, store.Page{Cursor: cursor, Limit: 500})
		if err != nil {
			return nil, nil, err
		}
		for _, m := range list {
			n++
			if m.Within != "" {
				continue // of a subagent, and on no branch
			}
			children[m.Parent] = append(children[m.Parent], m.ID)
			newest[m.ID] = n
		}
		if cursor = next; cursor == "" {
			return children, newest, nil
		}
	}
}

// Switch activates the branch through a message: down to its end, taking the
// newest message at each fork. An active run continues on its own branch.
func (cs *Conversations) Switch(ctx context.Context, id artel.ConversationID, through artel.MessageID) (artel.Conversation, error) {
	for {
		var leaf artel.MessageID
		err := cs.core.view(ctx, func(tx store.Tx) (err error) {
			leaf, err = leafBelow(tx, id, through)
			return err
		})
		if err != nil {
			return artel.Conversation{}, err
		}
		c, done, err := cs.setLeaf(ctx, id, leaf)
		if err != nil || done {
			return c, err
		}
	}
}

// leafBelow returns the newest message below a message, or the message itself.
// It reads all messages of the conversation.
func leafBelow(tx store.Tx, id artel.ConversationID, through artel.MessageID) (artel.MessageID, error) {
	if _, err := run.OnBranch(tx, id, through); err != nil {
		return "", err
	}
	children, newest, err := childrenOf(tx, id)
	leaf := through
	for open := []artel.MessageID{through}; len(open) > 0; {
		m := open[len(open)-1]
		open = append(open[:len(open)-1], children[m]...)
		if newest[m] > newest[leaf] {
			leaf = m
		}
	}
	return leaf, err
}

// setLeaf makes leaf the end of the active branch. It does nothing if a message
// has been added below leaf meanwhile.
func (cs *Conversations) setLeaf(ctx context.Context, id artel.ConversationID, leaf artel.MessageID) (c artel.Conversation, done bool, err error) {
	err = cs.core.update(ctx, func(tx store.Tx) error {
		done = false
		if c, err = tx.Conversations.Get(id); err != nil {
			return err
		}
		below, err := tx.Messages.Children(id, leaf)
		if err != nil || len(below[leaf]) > 0 {
			return err
		}
		if done = true; c.Leaf == leaf {
			return nil
		}
		c.Leaf = leaf
		if err := tx.Conversations.Update(c); err != nil {
			return err
		}
		return cs.core.events.Append(tx, id, artel.Event{}, artel.BranchSwitched{Leaf: leaf})
	})
	if err == nil && done {
		cs.core.log.Notifier().Notify(id)
	}
	return c, done, err
}

// Mute excludes a message from model requests or includes it again. Muting a
// summary brings back the messages it covers. The message itself stays.
func (ms *Messages) Mute(ctx context.Context, id artel.ConversationID, message artel.MessageID, muted bool) (m artel.Message, err error) {
	err = ms.core.update(ctx, func(tx store.Tx) error {
		m, err = run.NewSummaries(ms.core.runs).MuteTx(tx, id, message, muted)
		return err
	})
	if err == nil {
		ms.core.log.Notifier().Notify(id)
	}
	return m, err
}
