// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"cmp"
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

// Text is indexed and compared in folded form: composed (NFC) and in one case.
// The index [Grams] holds, for each message, the runs of one to three characters
// in its words. For a search word of any length it yields the messages that may
// contain the word; their text then decides, and provides the excerpt.

// fold removes the differences that a search ignores. It does not change the
// number of characters of composed (NFC) text.
func fold(text string) string {
	return strings.Map(foldRune, norm.NFC.String(text))
}

func foldRune(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// letters returns a folded word in the alphabet of grams, which contains no
// separator of tokenizers: those separate at ASCII characters other than letters
// and digits.
func letters(word string) []rune {
	rs := []rune(word)
	for i, r := range rs {
		if r < utf8.RuneSelf && !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') {
			rs[i] = 0xe000 + r
		}
	}
	return rs
}

// longest returns the length of the longest gram that begins with r. Two
// characters of a script with thousands of them are as selective as three of an
// alphabet.
func longest(r rune) int {
	if r >= 0x2e80 && r < 0xe000 {
		return 2
	}
	return 3
}

// gramsOf returns the grams of a text, each once, with a space behind each.
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

// maxGrams is the number of grams of a word that are looked up. More would hardly
// exclude more messages.
const maxGrams = 12

// lookup returns grams that messages have which contain a folded word.
func lookup(word string) []string {
	rs := letters(word)
	var grams []string
	for i, r := range rs {
		if n := longest(r); i+n <= len(rs) && len(grams) < maxGrams {
			grams = append(grams, string(rs[i:i+n]))
		}
	}
	if len(grams) == 0 { // a gram is not longer than this word
		grams = append(grams, string(rs))
	}
	return grams
}

// wordsOf returns the words of a search, without those contained in others.
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

// A sought is a folded word of a search, with the sorted places of the messages
// that may contain it.
type sought struct {
	word     string
	messages []Place
	spread   int // conversations that may contain it; set by ranked searches
}

// seek looks up a word.
func (t conversations) seek(op, word string) (w sought, err error) {
	w.word = word
	if err := t.usable(op, false); err != nil {
		return w, err
	}
	if w.messages, err = t.Grams.Find(t.conn, t.owner, lookup(word)); err != nil {
		return w, t.fail(op, "", err)
	}
	return w, nil
}

// conversations returns the numbers of the conversations as a JSON array.
func (w sought) conversations() string {
	list := []byte{'['}
	last := int64(0)
	for _, m := range w.messages {
		if n := m.Conversation; n != last {
			if last != 0 {
				list = append(list, ',')
			}
			list = strconv.AppendInt(list, n, 10)
			last = n
		}
	}
	return string(append(list, ']'))
}

// before returns the index of the first message of a conversation, or where it would be.
func (w sought) before(number int64) int {
	i, _ := slices.BinarySearchFunc(w.messages, number, func(m Place, number int64) int { return cmp.Compare(m.Conversation, number) })
	return i
}

// A candidate is a conversation that may match a search.
type candidate struct {
	store.Listed
	number      int64
	foldedTitle string
}

// searchBatch is the number of candidates read at once.
const searchBatch = 200

// search returns the conversations that contain all words, from a position in
// the list, at most a given number.
func (t conversations) search(op string, q store.ConversationQuery, words []string, us int64, tie string, most int) ([]store.Listed, error) {
	query := "SELECT " + conversationColumns + `, number, folded_title FROM conversations
		WHERE owner = ? AND (updated_at, id) < (?, ?) AND deleted_at IS NULL`
	where, more := filled(q)
	query += where
	args := append([]any{t.owner, us, tie}, more...)
	var all []sought
	for _, word := range words {
		w, err := t.seek(op, word)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
		query += " AND (" + t.Position + "(folded_title, ?) > 0 OR number " + t.InJSON + ")"
		args = append(args, word, w.conversations())
	}
	query += " ORDER BY updated_at DESC, id DESC LIMIT ?"
	args = append(args, searchBatch)
	var items []store.Listed
	for {
		var batch []candidate
		err := t.rows(op, "", query, args, func(rows Row) error {
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

// holds reports whether a conversation contains all words, and sets its excerpt.
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

// written returns the text of the first message of a conversation that contains
// a word, or "".
func (t conversations) written(op string, number int64, w sought) (string, error) {
	for _, m := range w.messages[w.before(number):] {
		if m.Conversation != number {
			break
		}
		var raw []byte
		if _, err := t.row(op, "", "SELECT parts FROM messages WHERE n = ?", []any{m.Message}, &raw); err != nil {
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

// Code points of an excerpt: in total, and before the word.
const (
	excerptLength = 120
	excerptBefore = 40
)

// excerpt returns the part of a text around a folded word.
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

// indexMessage adds a message to the search index.
func (t *Tx) indexMessage(op string, n int64, m artel.Message) error {
	if !searched(m.Role) {
		return nil
	}
	grams := gramsOf(artel.TextOf(m.Parts))
	if grams == "" {
		return nil
	}
	if err := t.usable(op, true); err != nil {
		return err
	}
	if err := t.Grams.Add(t.conn, t.owner, Place{t.lastNumber, n}, grams); err != nil {
		return t.fail(op, string(m.ID), err)
	}
	return nil
}

func searched(r artel.Role) bool { return r == artel.RoleUser || r == artel.RoleAssistant }
