// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// How a search finds what it looks for. Text is folded: composed, and each
// character in one case. Of every message, the table grams holds which runs of
// one to three characters its words have. So it says for a word of the search,
// however short, which messages may hold it; their text decides, and gives the
// excerpt.

// fold makes texts equal that a search must not tell apart. It keeps the
// number of characters of text that is composed (NFC).
func fold(text string) string {
	return strings.Map(foldRune, norm.NFC.String(text))
}

func foldRune(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// letters returns a folded word in the letters of grams, none of which the
// tokenizer takes for a separator: it does so with what is not a letter or
// digit in ASCII.
func letters(word string) []rune {
	rs := []rune(word)
	for i, r := range rs {
		if r < utf8.RuneSelf && !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') {
			rs[i] = 0xe000 + r
		}
	}
	return rs
}

// longest is the length of the longest gram that begins with r. Two characters
// of a script of thousands say as much as three of an alphabet.
func longest(r rune) int {
	if r >= 0x2e80 && r < 0xe000 {
		return 2
	}
	return 3
}

// gramsOf returns the grams of a text, each once, as the tokenizer reads them.
func gramsOf(text string) string {
	var found []uint64 // up to three characters of 21 bits
	for word := range strings.FieldsSeq(fold(text)) {
		rs := letters(word)
		for i, r := range rs {
			var gram uint64
			for k := range min(longest(r), len(rs)-i) {
				gram = gram<<21 | uint64(rs[i+k])
				found = append(found, gram)
			}
		}
	}
	slices.Sort(found)
	var b strings.Builder
	for _, gram := range slices.Compact(found) {
		for shift := 42; shift >= 0; shift -= 21 {
			if r := rune(gram >> shift & (1<<21 - 1)); r != 0 {
				b.WriteRune(r)
			}
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// maxGrams is how many grams of a word are looked up. More would hardly make
// fewer messages of the matches.
const maxGrams = 12

// lookup returns the expression for messages that may hold a folded word.
func lookup(word string) string {
	rs := letters(word)
	var grams []string
	for i, r := range rs {
		if n := longest(r); i+n <= len(rs) && len(grams) < maxGrams {
			grams = append(grams, `"`+string(rs[i:i+n])+`"`)
		}
	}
	if len(grams) == 0 { // a gram is not longer than this word
		grams = append(grams, `"`+string(rs)+`"`)
	}
	return strings.Join(grams, " AND ")
}

// wordsOf returns the words of a search without those that others contain.
func wordsOf(op, search string) ([]string, error) {
	if err := checkText(op, "search", search); err != nil {
		return nil, err
	}
	if n := utf8.RuneCountInString(search); n > store.MaxSearch {
		return nil, artel.Errorf(artel.Invalid, op, "search", "has %d characters, want at most %d", n, store.MaxSearch)
	}
	all := strings.Fields(fold(search))
	var words []string
	for i, word := range all {
		implied := func(other string) bool { return other != word && strings.Contains(other, word) }
		if !slices.Contains(all[:i], word) && !slices.ContainsFunc(all, implied) {
			words = append(words, word)
		}
	}
	return words, nil
}

// A sought word is a folded word of a search, with the rowids of the grams of
// the messages that may hold it, in order.
type sought struct {
	word     string
	messages []int64
	spread   int // conversations that may have it; set where it is asked for
}

// seek looks a word up. All rowids come as one value: row by row they would
// take several times as long.
func (t conversations) seek(op, word string) (sought, error) {
	w := sought{word: word}
	var list *string
	if _, err := t.row(op, "", "SELECT group_concat(rowid) FROM grams WHERE grams MATCH ?", []any{lookup(word)}, &list); err != nil || list == nil {
		return w, err
	}
	w.messages = make([]int64, 0, strings.Count(*list, ",")+1)
	for id := range strings.SplitSeq(*list, ",") {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return w, t.fail(op, "", err)
		}
		w.messages = append(w.messages, n)
	}
	slices.Sort(w.messages)
	return w, nil
}

// conversations returns their numbers as a JSON array.
func (w sought) conversations() string {
	list := []byte{'['}
	last := int64(0)
	for _, n := range w.messages {
		if n >>= 32; n != last {
			if last != 0 {
				list = append(list, ',')
			}
			list = strconv.AppendInt(list, n, 10)
			last = n
		}
	}
	return string(append(list, ']'))
}

// A candidate is a conversation that a search may have to list.
type candidate struct {
	store.Listed
	number      int64
	foldedTitle string
}

// searchBatch is how many candidates are read at once.
const searchBatch = 200

// search returns what holds all words, from a place in the list, until there
// are most or the list ends.
func (t conversations) search(op string, words []string, us int64, tie string, most int) ([]store.Listed, error) {
	query := "SELECT " + conversationColumns + `, number, folded_title FROM conversations
		WHERE owner = ? AND (updated_at, id) < (?, ?) AND deleted_at IS NULL`
	args := []any{t.owner, us, tie}
	var all []sought
	for _, word := range words {
		w, err := t.seek(op, word)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
		query += " AND (instr(folded_title, ?) > 0 OR number IN (SELECT value FROM json_each(?)))"
		args = append(args, word, w.conversations())
	}
	query += " ORDER BY updated_at DESC, id DESC LIMIT ?"
	args = append(args, searchBatch)
	var items []store.Listed
	for {
		var batch []candidate
		err := t.rows(op, "", query, args, func(rows *sql.Rows) error {
			var c candidate
			err := scanConversation(rows, &c.Conversation, &c.number, &c.foldedTitle)
			batch = append(batch, c)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, c := range batch {
			holds, err := t.holds(op, &c, all)
			if err != nil {
				return nil, err
			}
			if holds {
				items = append(items, c.Listed)
			}
			if len(items) == most {
				return items, nil
			}
		}
		if len(batch) < searchBatch {
			return items, nil
		}
		last := batch[len(batch)-1]
		args[1], args[2] = micros(last.UpdatedAt), last.ID
	}
}

// holds reports whether a conversation holds all words, and excerpts it.
func (t conversations) holds(op string, c *candidate, words []sought) (bool, error) {
	for _, w := range words {
		if strings.Contains(c.foldedTitle, w.word) {
			continue
		}
		text, err := t.written(op, c.number, w)
		if text == "" || err != nil {
			return false, err
		}
		if c.Excerpt == "" {
			c.Excerpt = excerpt(text, w.word)
		}
	}
	return true, nil
}

// written returns the text of the first message of a conversation that holds a
// word, "" if none does.
func (t conversations) written(op string, number int64, w sought) (string, error) {
	from, _ := slices.BinarySearch(w.messages, number<<32)
	for _, id := range w.messages[from:] {
		if id>>32 != number {
			break
		}
		var raw []byte
		if _, err := t.row(op, "", "SELECT parts FROM messages WHERE n = ?", []any{id & 0xffffffff}, &raw); err != nil {
			return "", err
		}
		var parts artel.Parts
		if err := json.Unmarshal(raw, &parts); err != nil {
			return "", t.fail(op, "", err)
		}
		if text := artel.TextOf(parts); strings.Contains(fold(text), w.word) {
			return text, nil
		}
	}
	return "", nil
}

// Of an excerpt: code points altogether, and before the word.
const (
	excerptLength = 120
	excerptBefore = 40
)

// excerpt cuts out of a text the place where it holds a folded word.
func excerpt(text, word string) string {
	text = strings.Join(strings.Fields(norm.NFC.String(text)), " ")
	at := utf8.RuneCountInString(before(fold(text), word))
	rs := []rune(text)
	from := max(0, at-excerptBefore)
	to := min(len(rs), from+excerptLength)
	from = max(0, min(from, to-excerptLength))
	// A mark belongs to the character before it.
	for from > 0 && from < at && unicode.Is(unicode.M, rs[from]) {
		from++
	}
	for to < len(rs) && to > at && unicode.Is(unicode.M, rs[to]) {
		to--
	}
	out := strings.TrimSpace(artel.Visible(string(rs[from:to])))
	if from > 0 {
		out = "…" + out
	}
	if to < len(rs) {
		out += "…"
	}
	return out
}

func before(text, word string) string {
	head, _, _ := strings.Cut(text, word)
	return head
}

// indexMessage lets searches find a message by its text.
func (t *tx) indexMessage(op string, n int64, m artel.Message) error {
	if !searched(m.Role) {
		return nil
	}
	grams := gramsOf(artel.TextOf(m.Parts))
	if grams == "" {
		return nil
	}
	_, err := t.change(op, string(m.ID), "INSERT INTO grams (rowid, text) VALUES (?, ?)", t.lastNumber<<32|n, grams)
	return err
}

func searched(r artel.Role) bool { return r == artel.RoleUser || r == artel.RoleAssistant }

// indexAll is the migration that lets searches find what was there before
// there were searches.
func indexAll(ctx context.Context, tx *sql.Tx) error {
	type row struct {
		n, number int64
		owner, id string
		text      string
	}
	read := func(query string, scan func(*sql.Rows) error, args ...any) error {
		rows, err := tx.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
	var titles []row
	err := read("SELECT owner, id, title FROM conversations", func(rows *sql.Rows) error {
		var r row
		err := rows.Scan(&r.owner, &r.id, &r.text)
		titles = append(titles, r)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range titles {
		if _, err := tx.ExecContext(ctx, "UPDATE conversations SET folded_title = ? WHERE owner = ? AND id = ?", fold(r.text), r.owner, r.id); err != nil {
			return err
		}
	}
	const atOnce = 500
	last := int64(0)
	for {
		var messages []row
		err := read(`SELECT m.n, c.number, m.parts FROM messages m JOIN conversations c ON c.owner = m.owner AND c.id = m.conversation
			WHERE m.n > ? AND m.role IN (?, ?) AND m.parts IS NOT NULL ORDER BY m.n LIMIT ?`, func(rows *sql.Rows) error {
			var r row
			var raw []byte
			var parts artel.Parts
			if err := rows.Scan(&r.n, &r.number, &raw); err != nil {
				return err
			}
			if err := json.Unmarshal(raw, &parts); err != nil {
				return err
			}
			r.text = artel.TextOf(parts)
			messages = append(messages, r)
			return nil
		}, last, artel.RoleUser, artel.RoleAssistant, atOnce)
		if err != nil {
			return err
		}
		for _, r := range messages {
			last = r.n
			if grams := gramsOf(r.text); grams != "" {
				if _, err := tx.ExecContext(ctx, "INSERT INTO grams (rowid, text) VALUES (?, ?)", r.number<<32|r.n, grams); err != nil {
					return err
				}
			}
		}
		if len(messages) < atOnce {
			return nil
		}
	}
}
