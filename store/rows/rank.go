// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A ranked search scores the candidates from the index and the titles, and reads
// the texts in order of the scores.
//
// A word's weight is its rarity among the conversations. It is multiplied by
// where the word occurs: as a word of the title, as a part of one, or in
// messages, where each doubling of their number adds a little. A title therefore
// outranks any number of messages. Ties are ordered by time.

const (
	rankTitleWord = 12
	rankTitlePart = 8
	rankMessage   = 4
	rankDoubled   = 1 // for each doubling of the number of messages
	rankMost      = 3 // maximum number of doublings
	rankScale     = 1000
)

// A standing is the position of a conversation in a ranked list.
type standing struct {
	score  int64
	us     int64
	id     string
	number int64
}

// compare orders by score, then newest first.
func (p standing) compare(q standing) int {
	return cmp.Or(cmp.Compare(q.score, p.score), cmp.Compare(q.us, p.us), cmp.Compare(q.id, p.id))
}

// ranked returns the conversations that contain all words, best first, after a
// position, at most a given number, and their positions.
func (t conversations) ranked(op string, q store.ConversationQuery, words []string, after *standing, most int) ([]store.Listed, []standing, error) {
	query := "SELECT number, id, updated_at, folded_title FROM conversations WHERE owner = ? AND deleted_at IS NULL"
	where, more := filled(q)
	query += where
	args := append([]any{t.owner}, more...)
	var all []sought
	for _, word := range words {
		w, err := t.seek(op, word)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, w)
		query += " AND (" + t.Position + "(folded_title, ?) > 0 OR number " + t.InJSON + ")"
		args = append(args, word, w.conversations())
	}
	var places []standing
	var titles []string
	for i := range all {
		if err := t.spread(op, &all[i], len(all)); err != nil {
			return nil, nil, err
		}
	}
	err := t.rows(op, "", query, args, func(rows Row) error {
		var p standing
		var title string
		err := rows.Scan(&p.number, &p.id, &p.us, &title)
		places, titles = append(places, p), append(titles, title)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	for i := range places {
		places[i].score = score(all, places[i].number, titles[i])
	}
	slices.SortFunc(places, standing.compare)
	var items []store.Listed
	var at []standing
	for _, p := range places {
		if after != nil && p.compare(*after) <= 0 {
			continue
		}
		c := candidate{number: p.number}
		err := t.rows(op, "", "SELECT "+conversationColumns+", folded_title FROM conversations WHERE owner = ? AND id = ?", []any{t.owner, p.id}, func(rows Row) error {
			return scanConversation(rows, &c.Conversation, &c.foldedTitle)
		})
		if err != nil {
			return nil, nil, err
		}
		holds, err := t.holds(op, &c, all)
		if err != nil {
			return nil, nil, err
		}
		if !holds {
			continue
		}
		items, at = append(items, c.Listed), append(at, p)
		if len(items) == most {
			break
		}
	}
	return items, at, nil
}

// spread counts the owner's conversations whose messages may contain a word. For a
// search of one word it is not needed.
func (t conversations) spread(op string, w *sought, words int) error {
	if words == 1 {
		return nil
	}
	_, err := t.row(op, "", "SELECT count(*) FROM conversations WHERE owner = ? AND deleted_at IS NULL AND number "+t.InJSON,
		[]any{t.owner, w.conversations()}, &w.spread)
	return err
}

// score returns how well a conversation matches a search.
func score(words []sought, number int64, title string) int64 {
	sum := 0.0
	for _, w := range words {
		where := 0
		switch {
		case hasWord(title, w.word):
			where = rankTitleWord
		case strings.Contains(title, w.word):
			where = rankTitlePart
		}
		if n := w.before(number+1) - w.before(number); n > 0 {
			where += rankMessage + rankDoubled*min(rankMost, bits.Len(uint(n))-1)
		}
		sum += float64(where) / math.Log2(2+float64(w.spread))
	}
	return int64(sum * rankScale)
}

// hasWord reports whether a folded title contains word as a whole word. In
// scripts written without spaces every occurrence counts.
func hasWord(title, word string) bool {
	for at := 0; ; {
		i := strings.Index(title[at:], word)
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(title[:at+i])
		behind, _ := utf8.DecodeRuneInString(title[at+i+len(word):])
		if !inWord(before) && !inWord(behind) {
			return true
		}
		_, size := utf8.DecodeRuneInString(title[at+i:])
		at += i + size
	}
}

func inWord(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r)) && r != utf8.RuneError && longest(r) == 3
}

const rankedList = "ranked"

// cursor encodes the standing as a page cursor.
func (p standing) cursor() string {
	return cursor(rankedList, p.score, strconv.FormatInt(p.us, 10)+" "+p.id)
}

func parseStanding(op, s string) (*standing, error) {
	score, tie, err := parseCursor(op, rankedList, s)
	if err != nil {
		return nil, err
	}
	us, id, ok := strings.Cut(tie, " ")
	p := &standing{score: score, id: id}
	if p.us, err = strconv.ParseInt(us, 10, 64); !ok || err != nil {
		return nil, artel.Errorf(artel.Invalid, op, "cursor", "is not a cursor of this list: leave it out to begin again")
	}
	return p, nil
}
