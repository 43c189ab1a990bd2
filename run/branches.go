// SPDX-License-Identifier: Apache-2.0

package run

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// An update keeps all other updates waiting, so it must not read a whole branch. An
// update that needs one fails with [*unreadError]; the branch is then read in a view,
// and the update runs again. What was read stays true, because messages keep their
// parents.

// branches are those that an execution has read. The zero value is for updates.
type branches struct {
	of     map[artel.MessageID]*branch // by last message
	inView bool                        // a branch may be read where it is needed
}

// A branch is what is asked about one.
type branch struct {
	has   map[artel.MessageID]bool
	media []artel.Media // of the messages that were not muted when it was read
}

// find returns the branch of c that ends in leaf, or an [*unreadError].
func (bs *branches) find(tx store.Tx, c artel.ConversationID, leaf artel.MessageID) (*branch, error) {
	if leaf == "" {
		return &branch{}, nil
	}
	if bs.of[leaf] == nil {
		read := func(tx store.Tx) error { return bs.read(tx, c, leaf) }
		if !bs.inView {
			return nil, &unreadError{read}
		}
		if err := read(tx); err != nil {
			return nil, err
		}
	}
	return bs.of[leaf], nil
}

func (bs *branches) read(tx store.Tx, c artel.ConversationID, leaf artel.MessageID) error {
	path, err := tx.Messages.Path(c, leaf, 0)
	if err != nil {
		return err
	}
	b := &branch{has: make(map[artel.MessageID]bool, len(path))}
	for _, m := range path {
		b.has[m.ID] = true
		if !m.Muted {
			b.media = append(b.media, artel.MediaOf(m.Parts)...)
		}
	}
	if bs.of == nil {
		bs.of = map[artel.MessageID]*branch{}
	}
	bs.of[leaf] = b
	return nil
}

// has reports whether m is on the branch of c that ends in leaf.
func (bs *branches) has(tx store.Tx, c artel.ConversationID, leaf, m artel.MessageID) (bool, error) {
	if m == leaf {
		return true, nil
	}
	b, err := bs.find(tx, c, leaf)
	return err == nil && b.has[m], err
}
