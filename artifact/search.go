// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
)

// A Query looks for artifacts by words.
type Query struct {
	// Words are separated by white space. An artifact matches if its title, id, file name
	// and text together contain all of them, also inside longer words. Case and the
	// encoding of accents are ignored. More than [store.MaxSearch] code points are of kind
	// Invalid.
	Words        string
	Conversation artel.ConversationID // "": all of the owner
	Limit        int                  // of matches; 0: 20
	Bytes        int64                // of texts that are read; 0: 64 MB
}

// Found is the result of [Search].
type Found struct {
	Matches []Match // titles first, then the newest
	// Incomplete: there are more matches than the limit, or artifacts that were not
	// searched because of the limit of bytes.
	Incomplete bool
	Unread     int // texts that were not searched
}

// A Match is an artifact with all words of a query.
type Match struct {
	artel.Artifact
	Line    int    // with the first word that the text has, from 1; 0: the words are in the title
	Excerpt string // of that line
}

const (
	maxExcerpt      = 160 // characters
	defaultMatches  = 20
	defaultSearched = 64 << 20
)

// Search looks for words in the newest states of artifacts, on the active branches of
// conversations: the newest conversations first, one after the other.
func Search(ctx context.Context, c *Collection, owner artel.Owner, q Query) (Found, error) {
	words := strings.Fields(fold(q.Words))
	switch n := utf8.RuneCountInString(q.Words); {
	case len(words) == 0:
		return Found{}, failed("artifact.Search", "words", artel.Errorf(artel.Invalid, "", "", "there are none; give what to look for"))
	case n > store.MaxSearch:
		return Found{}, failed("artifact.Search", "words", artel.Errorf(artel.Invalid, "", "", "they have %d characters, want at most %d", n, store.MaxSearch))
	}
	s := searcher{c: c, owner: owner, words: words, left: cmp.Or(q.Bytes, defaultSearched)}
	var err error
	if q.Conversation != "" {
		err = s.conversation(ctx, q.Conversation)
	} else {
		err = s.all(ctx)
	}
	if err != nil {
		return Found{}, failed("artifact.Search", "", err)
	}
	slices.SortStableFunc(s.found.Matches, func(a, b Match) int {
		return cmp.Or(cmp.Compare(min(a.Line, 1), min(b.Line, 1)), b.UpdatedAt.Compare(a.UpdatedAt))
	})
	if limit := cmp.Or(q.Limit, defaultMatches); len(s.found.Matches) > limit {
		s.found.Matches, s.found.Incomplete = s.found.Matches[:limit], true
	}
	s.found.Incomplete = s.found.Incomplete || s.found.Unread > 0
	return s.found, nil
}

// fold removes the differences that a search ignores.
func fold(text string) string { return strings.ToLower(norm.NFC.String(text)) }

// A searcher is one search.
type searcher struct {
	c     *Collection
	owner artel.Owner
	words []string // folded
	left  int64    // bytes of texts to read
	found Found
}

// all searches every conversation of the owner.
func (s *searcher) all(ctx context.Context) error {
	for cursor := ""; ; {
		var list []store.Listed
		err := s.c.store.View(ctx, s.owner, func(tx store.Tx) (err error) {
			list, cursor, err = tx.Conversations.List(store.ConversationQuery{Page: store.Page{Cursor: cursor, Limit: 100}})
			return err
		})
		if err != nil {
			return err
		}
		for _, c := range list {
			if err := s.conversation(ctx, c.ID); err != nil && !errors.Is(err, artel.NotFound) { // it was deleted meanwhile
				return err
			}
		}
		if cursor == "" {
			return nil
		}
	}
}

// conversation searches one conversation.
func (s *searcher) conversation(ctx context.Context, id artel.ConversationID) error {
	var heads []artel.Artifact
	err := s.c.store.View(ctx, s.owner, func(tx store.Tx) error {
		c, err := tx.Conversations.Get(id)
		if err == nil {
			heads, err = tx.Artifacts.Heads(id, c.Leaf)
		}
		return err
	})
	for _, a := range heads {
		if a.Deleted {
			continue
		}
		if err := s.artifact(ctx, a); err != nil {
			return err
		}
	}
	return err
}

func (s *searcher) artifact(ctx context.Context, a artel.Artifact) error {
	if err := ctx.Err(); err != nil {
		return artel.Errorf(artel.Canceled, "", "", "%w", err)
	}
	named := fold(a.Title + "\n" + string(a.ID) + "\n" + a.Filename)
	missing := slices.DeleteFunc(slices.Clone(s.words), func(w string) bool { return strings.Contains(named, w) })
	if len(missing) == 0 {
		s.found.Matches = append(s.found.Matches, Match{Artifact: a})
		return nil
	}
	if a.Binary || a.IsLargeText() {
		return nil
	}
	if a.Size > s.left {
		s.found.Unread++
		return nil
	}
	s.left -= a.Size
	var text string
	err := s.c.store.View(ctx, s.owner, func(tx store.Tx) (err error) {
		text, err = textAt(tx, a.Conversation, a.ID, a.Version)
		return err
	})
	if errors.Is(err, artel.NotFound) { // it was deleted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	folded := fold(text)
	if slices.ContainsFunc(missing, func(w string) bool { return !strings.Contains(folded, w) }) {
		return nil
	}
	line, excerpt := lineWith(text, missing)
	s.found.Matches = append(s.found.Matches, Match{a, line, excerpt})
	return nil
}

// lineWith returns the first line that contains one of the words, and what is around the
// word.
func lineWith(text string, words []string) (number int, excerpt string) {
	for n, line := range edit.Lines(text).All() {
		folded := fold(line)
		at := -1
		for _, w := range words {
			if i := strings.Index(folded, w); i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
		if at < 0 {
			continue
		}
		r := []rune(strings.TrimSpace(line))
		begin := min(max(0, utf8.RuneCountInString(folded[:at])-maxExcerpt/4), max(0, len(r)-maxExcerpt))
		end := min(len(r), begin+maxExcerpt)
		excerpt = string(r[begin:end])
		if begin > 0 {
			excerpt = "…" + excerpt
		}
		if end < len(r) {
			excerpt += "…"
		}
		return n, excerpt
	}
	return 1, "" // a word that spans lines cannot be, as words have no white space
}
