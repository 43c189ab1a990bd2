// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"slices"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Limits of the branches that are kept in memory, so that the next run in a conversation reads
// only what is new.
const (
	maxKeptBranches = 64
	maxKeptBytes    = 64 << 20 // of all texts
	maxKeptEvents   = 500      // after which a branch is read again
)

// histories keeps the branches that runs have read last. Messages never change but for being muted,
// which appends an event. It is safe for concurrent use.
type histories struct {
	mu   sync.Mutex
	kept []keptBranch // the one that was used last at the end
}

// A keptBranch is a branch as it was after an event. Its messages are shared and never changed.
type keptBranch struct {
	owner        artel.Owner
	conversation artel.ConversationID
	after        artel.Seq
	messages     []artel.Message
	position     map[artel.MessageID]int
	bytes        int
}

// branch returns the branch of c that ends in leaf. The messages are shared: they must not be
// changed.
func (hs *histories) branch(tx store.Tx, o artel.Owner, c artel.ConversationID, leaf artel.MessageID) ([]artel.Message, error) {
	last, err := tx.Events.Last(c)
	if err != nil {
		return nil, err
	}
	known, err := hs.find(tx, o, c, last)
	if err != nil {
		return nil, err
	}
	var branch []artel.Message
	if known != nil {
		branch, err = known.extended(tx, leaf)
	}
	if err == nil && branch == nil {
		branch, err = tx.Messages.Path(c, leaf, 0)
	}
	if err == nil {
		hs.keep(keptBranch{owner: o, conversation: c, after: last, messages: branch})
	}
	return branch, err
}

// find returns the branch that is kept of a conversation whose newest event is last; nil if there is
// none, or a message was muted since.
func (hs *histories) find(tx store.Tx, o artel.Owner, c artel.ConversationID, last artel.Seq) (*keptBranch, error) {
	hs.mu.Lock()
	i := slices.IndexFunc(hs.kept, func(k keptBranch) bool { return k.owner == o && k.conversation == c })
	var found keptBranch
	if i >= 0 {
		found = hs.kept[i]
	}
	hs.mu.Unlock()
	if i < 0 || found.after > last || last-found.after > maxKeptEvents {
		return nil, nil
	}
	for after := found.after; after < last; {
		events, err := tx.Events.Read(c, after, int(last-after))
		if err != nil || len(events) == 0 {
			return nil, err
		}
		for _, e := range events {
			if e.Type == artel.EventMessageMuted {
				return nil, nil
			}
		}
		after = events[len(events)-1].Seq
	}
	return &found, nil
}

// extended returns the branch that ends in leaf, of which it reads the end that k does not have; nil
// if it has little in common with k.
func (k *keptBranch) extended(tx store.Tx, leaf artel.MessageID) ([]artel.Message, error) {
	for n := 8; n <= 512; n *= 4 {
		end, err := tx.Messages.Path(k.conversation, leaf, n)
		if err != nil {
			return nil, err
		}
		for i, m := range slices.Backward(end) {
			if at, ok := k.position[m.ID]; ok {
				return slices.Concat(k.messages[:at+1], end[i+1:]), nil
			}
		}
		if len(end) < n {
			return end, nil
		}
	}
	return nil, nil
}

// keep keeps a branch in the place of the one before of its conversation.
func (hs *histories) keep(k keptBranch) {
	k.position = make(map[artel.MessageID]int, len(k.messages))
	for i, m := range k.messages {
		k.position[m.ID] = i
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Text:
				k.bytes += len(p.Text)
			case artel.Reasoning:
				k.bytes += len(p.Text) + len(p.Opaque)
			case artel.ToolCall:
				k.bytes += len(p.Arguments) + len(p.Opaque)
			case artel.ToolResult:
				k.bytes += len(p.Content) + len(artel.TextOf(p.Parts))
			}
		}
		k.bytes += 500 // of the message itself
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.kept = slices.DeleteFunc(hs.kept, func(o keptBranch) bool { return o.owner == k.owner && o.conversation == k.conversation })
	if k.bytes > maxKeptBytes {
		return
	}
	hs.kept = append(hs.kept, k)
	total := 0
	for i, o := range slices.Backward(hs.kept) {
		if total += o.bytes; total > maxKeptBytes || len(hs.kept)-i > maxKeptBranches {
			hs.kept = slices.Delete(hs.kept, 0, i+1)
			break
		}
	}
}

// history returns the branch that ends in the newest message of the run, and how
// many of its messages precede the run.
func (x *execution) history(tx store.Tx) (branch []artel.Message, before int, err error) {
	branch, err = x.runs.histories.branch(tx, x.owner, x.run.Conversation, cmp.Or(x.continuesAfter, x.run.Message))
	before = slices.IndexFunc(branch, func(m artel.Message) bool { return m.ID == x.run.Message })
	return branch, max(0, before), err
}
