// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"cmp"
	"context"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/diff"
	"github.com/artelhq/artel/store"
)

// An Entry is one row of an artifact's history: a visible version, or an edit that
// is only in the journal.
type Entry struct {
	artel.Version
	Visible bool `json:"visible"`        // a visible version; otherwise an edit between versions
	Live    bool `json:"live,omitempty"` // journalled by a run that has not ended
}

// A Scope selects the states that a reader sees.
type Scope int

// The scopes.
const (
	Visible  Scope = iota // visible versions
	WithLive              // visible versions and edits of unfinished runs
	Journal               // every single edit
)

// History returns the states of an artifact on every branch, sorted by number;
// the artifact may be deleted. In scope Journal, the row of a version describes
// the single edit with its number; in the others, all edits folded into it.
func (vs *Versions) History(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID, scope Scope) ([]Entry, error) {
	var list []Entry
	err := vs.c.store.View(ctx, owner, func(tx store.Tx) error {
		visible, err := versions(tx, conv, id)
		if err != nil {
			return err
		}
		list = make([]Entry, 0, len(visible))
		if scope != Journal {
			for _, v := range visible {
				list = append(list, Entry{Version: v, Visible: true})
			}
		}
		if scope == Visible {
			return nil
		}
		edits, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: id, Unfolded: scope == WithLive, NoText: true})
		if err != nil {
			return err
		}
		seen := make(map[int]bool, len(visible))
		for _, v := range visible {
			seen[v.Number] = true
		}
		for _, e := range edits {
			list = append(list, Entry{Version: e.Version, Visible: seen[e.Number], Live: !e.Folded})
		}
		slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) })
		return nil
	})
	return list, failed("artifact.History", string(id), err)
}

// State returns state n of an artifact, and its text; nil for binary content.
// Outside scope Visible, n may be any number of the artifact.
func (vs *Versions) State(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID, n int, scope Scope) (Entry, *string, error) {
	var e Entry
	var text *string
	err := vs.c.store.View(ctx, owner, func(tx store.Tx) error {
		s, err := scoped(tx, conv, id, n, scope)
		if err != nil {
			return err
		}
		e = s
		if e.IsBinary() {
			return nil
		}
		t, err := textAt(tx, conv, id, n)
		text = &t
		return err
	})
	if err != nil {
		return Entry{}, nil, failed("artifact.State", string(id), err)
	}
	return e, text, nil
}

// scoped returns state n if it is in scope.
func scoped(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, n int, scope Scope) (Entry, error) {
	s, err := version(tx, conv, id, n)
	switch {
	case err != nil:
		return Entry{}, err
	case s.visible:
		return Entry{Version: s.Version, Visible: true}, nil
	case scope == Visible:
		return Entry{}, missing("version %d is not among the visible ones", n)
	}
	e, err := journalled(tx, conv, id, n)
	return Entry{Version: e.Version, Live: !e.Folded}, err
}

// A DiffQuery selects the states to compare.
type DiffQuery struct {
	From    int             // 0: the parent of To; the first version is compared with nothing
	To      int             // 0: the newest on the branch, even if deleted
	At      artel.MessageID // the branch
	Scope   Scope           // of From and To
	Context int             // equal lines around a change; 0: 3, negative: none
	Limit   int             // maximum number of lines; 0: no limit
}

// A Diff is the difference between two states of a text.
type Diff struct {
	From *Entry // nil: compared with nothing
	To   Entry
	diff.Diff
}

// Unified returns the diff in the format of patch and git apply.
func (d Diff) Unified(id artel.ArtifactID) string {
	from := ""
	if d.From != nil {
		from = "a/" + string(id)
	}
	return d.Diff.Unified(from, "b/"+string(id))
}

// Diff compares two states of a text. Binary content is of kind
// [artel.Unsupported].
func (vs *Versions) Diff(ctx context.Context, owner artel.Owner, conv artel.ConversationID, id artel.ArtifactID, q DiffQuery) (Diff, error) {
	var d Diff
	var texts [2]string
	err := vs.c.store.View(ctx, owner, func(tx store.Tx) error {
		d, texts = Diff{}, [2]string{}
		if q.To == 0 {
			a, err := lastHead(tx, conv, id, q.At)
			if err != nil {
				return err
			}
			q.To = a.Version
			if q.Scope == Visible {
				if q.To, err = newestVisible(tx, conv, id, q.To); err != nil {
					return err
				}
			}
		}
		var err error
		if d.To, err = scoped(tx, conv, id, q.To, q.Scope); err != nil {
			return err
		}
		if texts[1], err = textOf(tx, conv, id, d.To.Version); err != nil {
			return err
		}
		from := q.From
		if from == 0 {
			from = d.To.Parent
			if from != 0 && q.Scope == Visible {
				if from, err = newestVisible(tx, conv, id, from); err != nil {
					return err
				}
			}
		}
		if from == 0 {
			return nil
		}
		e, err := scoped(tx, conv, id, from, q.Scope)
		if err != nil {
			return err
		}
		d.From = &e
		texts[0], err = textOf(tx, conv, id, e.Version)
		return err
	})
	if err == nil {
		d.Diff, err = diff.Lines(ctx, texts[0], texts[1], diff.Options{Context: q.Context, Limit: q.Limit})
	}
	if err != nil {
		return Diff{}, failed("artifact.Diff", string(id), err)
	}
	return d, nil
}

// newestVisible follows the parents of state n to a visible version; 0 if there
// is none.
func newestVisible(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, n int) (int, error) {
	for n > 0 {
		s, err := version(tx, conv, id, n)
		if err != nil || s.visible {
			return n, err
		}
		n = s.Parent
	}
	return 0, nil
}

// Diff compares any two states of a text; for 0 see [DiffQuery].
func (w *Workspace) Diff(ctx context.Context, id artel.ArtifactID, from, to int) (Diff, error) {
	return w.c.Versions.Diff(ctx, w.cfg.Owner, w.cfg.Conversation, normal(id), DiffQuery{From: from, To: to, At: w.cfg.Message, Scope: WithLive})
}
