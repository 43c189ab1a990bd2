// SPDX-License-Identifier: Apache-2.0

package lore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// Defaults are the settings of books and entries that have none of their own.
type Defaults struct {
	ScanDepth     int
	Recursive     bool
	CaseSensitive bool
	WholeWords    bool
}

// A Message is a message in which keys are sought.
type Message struct {
	ID   string
	User bool   // of the user, so that a request was made for it
	Name string // of its author, sought with the text; "": none
	Text string
}

// Input is the input of [Activate].
type Input struct {
	Books    []Book
	Messages []Message // oldest first; the last is the one to answer
	Defaults Defaults
	Budget   int                 // tokens of all entries together; 0: no limit
	Count    func(string) int    // tokens of a text; nil: none are counted
	Expand   func(string) string // expands macros in keys, and in texts in which keys are sought; nil: none

	// Find returns the first match of /pattern/flags in a text; nil: patterns
	// match nothing.
	Find func(ctx context.Context, pattern, text string) (match string, ok bool, err error)
}

const maxProblems = 100

// maxSought bounds the texts in which keys are sought, in bytes: each counts for each key.
// It takes some seconds.
const maxSought = 8 << 30

// maxRounds bounds how often entries make other entries fire.
const maxRounds = 100

// Activate returns the entries to send, in the order in which they stand at one
// position, and those whose keys were found but that are left out. The error is
// that of ctx.
func Activate(ctx context.Context, in Input) (Result, error) {
	a := &activation{Input: in, state: map[*BookEntry]state{}, spent: make([]int, len(in.Books)), fullBook: make([]bool, len(in.Books)), groups: map[string]string{}}
	for i := range in.Books {
		for k := range in.Books[i].Entries {
			e := &in.Books[i].Entries[k]
			if e.Active() {
				a.all = append(a.all, candidate{BookEntry: e, book: &in.Books[i], bookIndex: i, index: k})
			}
		}
	}
	// The most important first, as the budget is spent in this order.
	slices.SortStableFunc(a.all, func(x, y candidate) int {
		return cmp.Or(boolCompare(y.Constant, x.Constant), cmp.Compare(y.priority(), x.priority()), cmp.Compare(y.Order, x.Order))
	})
	a.texts = a.expandMessages(len(in.Messages))
	if err := a.run(ctx); err != nil {
		return Result{}, err
	}
	slices.SortStableFunc(a.result.Fired, func(x, y Fired) int {
		return cmp.Or(cmp.Compare(x.Rule.Order, y.Rule.Order), cmp.Compare(x.book, y.book), cmp.Compare(x.index, y.index))
	})
	slices.SortStableFunc(a.result.Left, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(x.book, y.book), cmp.Compare(x.index, y.index))
	})
	return a.result, nil
}

func boolCompare(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}

// A candidate is an active entry.
type candidate struct {
	*BookEntry
	book             *Book
	bookIndex, index int
}

func (c candidate) priority() int { return valueOr(c.Priority, math.MinInt32) }

// state is whether an entry was decided about.
type state int

const (
	open state = iota
	fired
	rejected
)

// An activation is one call of Activate.
type activation struct {
	Input
	all      []candidate
	texts    []haystack // of the messages, newest first
	recursed []haystack // texts of entries that fired
	state    map[*BookEntry]state
	groups   map[string]string // winner by group
	spent    []int             // tokens by book
	total    int               // tokens
	full     bool              // the budget was exceeded
	fullBook []bool            // the budget of the book was
	level    int               // of DelayUntilRecursion that may fire
	result   Result
	tried    map[string]bool // keys that are problems
	sought   int64           // bytes of texts in which keys were sought
}

// A haystack is a text in which keys are sought.
type haystack struct {
	text, lower string
	message     string
	back        int
	by          string
	book        int // of an entry
}

func (a *activation) expandMessages(n int) []haystack {
	out := make([]haystack, 0, n)
	for i := n - 1; i >= 0; i-- {
		m := a.Messages[i]
		text := m.Text
		if m.Name != "" {
			text = m.Name + ": " + text
		}
		out = append(out, haystack{text: text, message: m.ID, back: n - 1 - i, book: -1})
	}
	return out
}

func (h *haystack) folded() string {
	if h.lower == "" {
		h.lower = strings.ToLower(h.text)
	}
	return h.lower
}

func (a *activation) expand(s string) string {
	if a.Expand == nil || !strings.Contains(s, "{{") {
		return s
	}
	return a.Expand(s)
}

// run fires entries until no further one does.
func (a *activation) run(ctx context.Context) error {
	for round := range maxRounds {
		var news []found
		for _, c := range a.all {
			if err := ctx.Err(); err != nil {
				return artel.Errorf(artel.Canceled, "lore.Activate", "", "%w", err)
			}
			if a.state[c.BookEntry] != open || round == 0 && c.DelayUntilRecursion > 0 || c.DelayUntilRecursion > max(a.level, 0) && round > 0 {
				continue
			}
			f, ok := a.try(ctx, c, round)
			if ok {
				news = append(news, f)
			}
		}
		if again := a.admit(news); again {
			continue
		}
		if !a.nextLevel() {
			break
		}
	}
	return nil
}

// nextLevel lets the entries fire that wait for recursion, the next ones of
// DelayUntilRecursion. It is false if there are none.
func (a *activation) nextLevel() bool {
	next := 0
	for _, c := range a.all {
		if n := c.DelayUntilRecursion; a.state[c.BookEntry] == open && n > a.level && (next == 0 || n < next) {
			next = n
		}
	}
	a.level = next
	return next > 0 && len(a.recursed) > 0
}

// found is an entry whose conditions hold.
type found struct {
	candidate
	Finding
}

func (a *activation) finding(c candidate, r Reason) Finding {
	return Finding{Book: c.book.Name, Entry: c.ID, Name: c.Title(), Reason: r, Tokens: a.count(c.Content), book: c.bookIndex, index: c.index}
}

func (a *activation) count(text string) int {
	if a.Count == nil {
		return 0
	}
	return a.Count(text)
}

// reject leaves an entry out for good.
func (a *activation) reject(c candidate, f Finding) {
	a.state[c.BookEntry] = rejected
	a.result.Left = append(a.result.Left, f)
}

// try checks the conditions of one entry, except for groups, chance and budget.
func (a *activation) try(ctx context.Context, c candidate, round int) (found, bool) {
	newest := len(a.Messages) - 1
	switch a.timing(ctx, c, newest) {
	case BySticky:
		return found{c, a.finding(c, BySticky)}, true
	case NoCooldown:
		a.state[c.BookEntry] = rejected
		if f, ok, _ := a.occurs(ctx, c, a.window(c, newest), nil); ok {
			f.Reason = NoCooldown
			a.result.Left = append(a.result.Left, f)
		}
		return found{}, false
	}
	if c.Delay > len(a.Messages) {
		a.state[c.BookEntry] = rejected
		if f, ok, _ := a.occurs(ctx, c, a.window(c, newest), nil); ok || c.Constant {
			if !ok {
				f = a.finding(c, NoDelay)
			}
			f.Reason = NoDelay
			a.result.Left = append(a.result.Left, f)
		}
		return found{}, false
	}
	if c.Constant {
		return found{c, a.finding(c, ByConstant)}, true
	}
	var recursed []haystack
	if round > 0 && !c.ExcludeRecursion && valueOr(c.book.Recursive, a.Defaults.Recursive) {
		recursed = a.recursed
	}
	f, ok, keyed := a.occurs(ctx, c, a.window(c, newest), recursed)
	if !ok && keyed && round == 0 {
		f.Reason = NoSecondary
		a.result.Left = append(a.result.Left, f)
	}
	if ok {
		a.result.Left = slices.DeleteFunc(a.result.Left, func(l Finding) bool {
			return l.Reason == NoSecondary && l.book == c.bookIndex && l.index == c.index
		})
	}
	return found{c, f}, ok
}

// window returns the messages in which keys of an entry are sought if the
// message at an index is to be answered, newest first.
func (a *activation) window(c candidate, at int) []haystack {
	depth := valueOr(c.ScanDepth, valueOr(c.book.ScanDepth, a.Defaults.ScanDepth))
	from := min(len(a.texts)-1-at, len(a.texts))
	return a.texts[from:min(from+depth, len(a.texts))]
}

// timing reports whether an entry that fired before is still sent (BySticky) or
// cannot fire (NoCooldown). It follows the keys and chances of the entry through
// the messages of the user.
func (a *activation) timing(ctx context.Context, c candidate, newest int) Reason {
	if !c.timed() {
		return ""
	}
	active, cooling := -1, -1
	for at := range a.Messages[:newest+1] {
		if !a.Messages[at].User || ctx.Err() != nil {
			continue
		}
		switch {
		case at <= active:
			if at == newest {
				return BySticky
			}
			continue
		case at <= cooling:
			if at == newest {
				return NoCooldown
			}
			continue
		case at == newest || c.Delay > at+1:
			continue
		}
		_, ok, _ := a.occurs(ctx, c, a.window(c, at), nil)
		if p := valueOr(c.Probability, 100); (ok || c.Constant) && (p >= 100 || a.spend(c, "", len(a.Messages[at].Text)) && a.drawn(c, at, "chance") < p) {
			active, cooling = at+c.Sticky, at+c.Sticky+c.Cooldown
			if c.Sticky == 0 {
				active = -1
			}
		}
	}
	return ""
}

// occurs seeks the keys of an entry. keyed reports whether a key was found,
// whatever the secondary keys say.
func (a *activation) occurs(ctx context.Context, c candidate, messages, recursed []haystack) (f Finding, ok, keyed bool) {
	for _, key := range c.Keys {
		h, match, ok := a.seek(ctx, c, key, messages, recursed)
		if !ok {
			continue
		}
		sure := a.secondary(ctx, c, messages, recursed)
		if a.sought > maxSought {
			break
		}
		f = a.finding(c, ByKey)
		f.Key, f.Match, f.Message, f.Back, f.By = key, match, h.message, h.back, h.by
		if h.by != "" {
			f.Reason = ByEntry
		}
		return f, sure, true
	}
	return f, false, false
}

// secondary evaluates the secondary keys.
func (a *activation) secondary(ctx context.Context, c candidate, messages, recursed []haystack) bool {
	if len(c.Secondary) == 0 {
		return true
	}
	hits := 0
	for _, key := range c.Secondary {
		if _, _, ok := a.seek(ctx, c, key, messages, recursed); ok {
			hits++
		}
	}
	switch c.Logic {
	case All:
		return hits == len(c.Secondary)
	case NotAny:
		return hits == 0
	case NotAll:
		return hits < len(c.Secondary)
	}
	return hits > 0
}

// seek returns the first text in which a key occurs.
func (a *activation) seek(ctx context.Context, c candidate, key string, lists ...[]haystack) (h *haystack, match string, ok bool) {
	key = strings.TrimSpace(a.expand(key))
	if key == "" {
		return nil, "", false
	}
	pattern := isPattern(key)
	sensitive := valueOr(c.CaseSensitive, valueOr(c.book.CaseSensitive, a.Defaults.CaseSensitive))
	words := valueOr(c.WholeWords, valueOr(c.book.WholeWords, a.Defaults.WholeWords)) && !strings.ContainsAny(key, " \t\n")
	if !sensitive && !pattern {
		key = strings.ToLower(key)
	}
	for _, list := range lists {
		for i := range list {
			h := &list[i]
			if !a.spend(c, key, len(h.text)) {
				return nil, "", false
			}
			switch {
			case pattern:
				if match, ok = a.matches(ctx, c, key, h.text); ok {
					return h, match, true
				}
			case sensitive:
				if contains(h.text, key, words) {
					return h, "", true
				}
			default:
				if contains(h.folded(), key, words) {
					return h, "", true
				}
			}
		}
	}
	return nil, "", false
}

// spend counts n bytes in which a key is sought, and reports whether they are within
// maxSought.
func (a *activation) spend(c candidate, key string, n int) bool {
	if a.sought > maxSought {
		return false
	}
	if a.sought += int64(n) + 64; a.sought <= maxSought { // a short text costs as much as 64 bytes
		return true
	}
	const problem = "keys are sought in too much text: from this entry on, entries with keys are not sent; lower scan_depth, or choose fewer books"
	a.result.Problems = append(a.result.Problems, Problem{c.book.Name, c.Title(), artel.Shorten(key, 80), problem})
	return false
}

// isPattern reports whether a key is written as /pattern/flags.
func isPattern(key string) bool {
	end := strings.LastIndexByte(key, '/')
	return end > 1 && key[0] == '/' && strings.Trim(key[end+1:], "gimsuy") == ""
}

func (a *activation) matches(ctx context.Context, c candidate, pattern, text string) (string, bool) {
	if a.Find == nil || a.tried[pattern] {
		return "", false
	}
	match, ok, err := a.Find(ctx, pattern, text)
	if err != nil {
		if a.tried == nil {
			a.tried = map[string]bool{}
		}
		a.tried[pattern] = true
		if len(a.result.Problems) < maxProblems {
			a.result.Problems = append(a.result.Problems, Problem{c.book.Name, c.Title(), artel.Shorten(pattern, 80), artel.Shorten(err.Error(), 300)})
		}
	}
	return artel.Shorten(match, 80), ok && err == nil
}

// contains reports whether key occurs in text, with no letter, digit or _ of
// ASCII beside it if words is set.
func contains(text, key string, words bool) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], key)
		if i < 0 {
			return false
		}
		begin, end := from+i, from+i+len(key)
		if !words || (begin == 0 || !wordByte(text[begin-1])) && (end == len(text) || !wordByte(text[end])) {
			return true
		}
		from = begin + 1
	}
}

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// admit fires those of news that win their groups, have luck and fit, and
// reports whether they can make others fire.
func (a *activation) admit(news []found) (again bool) {
	news = a.groupWinners(news)
	for _, f := range news {
		if p := valueOr(f.Probability, 100); p < 100 && f.Reason != BySticky {
			if drawn := a.drawn(f.candidate, len(a.Messages)-1, "chance"); drawn >= p {
				f.Finding.Reason, f.Chance = NoChance, int(math.Ceil(drawn))
				a.reject(f.candidate, f.Finding)
				continue
			}
		}
		if budget := a.exceeded(f); budget > 0 {
			f.Finding.Reason, f.Budget = NoBudget, budget
			a.reject(f.candidate, f.Finding)
			continue
		}
		a.state[f.candidate.BookEntry] = fired
		for _, g := range f.Groups {
			a.groups[g] = f.Title()
		}
		a.total += f.Tokens
		a.spent[f.bookIndex] += f.Tokens
		a.result.Fired = append(a.result.Fired, Fired{f.Finding, *f.candidate.BookEntry})
		if !f.PreventRecursion && valueOr(f.candidate.book.Recursive, a.Defaults.Recursive) {
			a.recursed = append(a.recursed, haystack{text: a.expand(f.Content), by: f.Title(), book: f.bookIndex})
			again = true
		}
	}
	return again
}

// exceeded returns the budget that an entry would exceed; 0: none. After the
// first such entry none fires, of its book or of all, except for those that
// ignore budgets.
func (a *activation) exceeded(f found) int {
	if f.IgnoreBudget {
		return 0
	}
	own := f.candidate.book.TokenBudget
	if a.fullBook[f.bookIndex] = a.fullBook[f.bookIndex] || own > 0 && a.spent[f.bookIndex]+f.Tokens > own; a.fullBook[f.bookIndex] {
		return own
	}
	if a.full = a.full || a.Budget > 0 && a.total+f.Tokens > a.Budget; a.full {
		return a.Budget
	}
	return 0
}

// groupWinners leaves one entry of each group.
func (a *activation) groupWinners(news []found) []found {
	groups := map[string][]found{}
	var names []string
	for _, f := range news {
		for _, g := range f.Groups {
			if groups[g] == nil {
				names = append(names, g)
			}
			groups[g] = append(groups[g], f)
		}
	}
	out := map[*BookEntry]string{} // the winner that an entry lost to
	for _, g := range names {
		members := slices.DeleteFunc(groups[g], func(f found) bool { return out[f.candidate.BookEntry] != "" })
		if len(members) == 0 {
			continue
		}
		winner := a.groups[g]
		if winner == "" {
			best := a.best(g, members)
			winner = best.Title()
			members = slices.DeleteFunc(members, func(f found) bool { return f.candidate.BookEntry == best.candidate.BookEntry })
		}
		for _, f := range members {
			out[f.candidate.BookEntry] = winner
		}
	}
	return slices.DeleteFunc(news, func(f found) bool {
		winner, lost := out[f.candidate.BookEntry]
		if lost {
			f.Finding.Reason, f.Finding.By = NoGroup, winner
			a.reject(f.candidate, f.Finding)
		}
		return lost
	})
}

// best returns the entry of a group that fires: a sticky one, the last by order
// of those that override chance, or one by weight.
func (a *activation) best(group string, members []found) found {
	for _, f := range members {
		if f.Reason == BySticky {
			return f
		}
	}
	var first *found
	total := 0.0
	for i := range members {
		f := &members[i]
		if f.GroupOverride && (first == nil || f.Order > first.Order) {
			first = f
		}
		total += float64(cmp.Or(f.GroupWeight, 100))
	}
	if first != nil {
		return *first
	}
	at := draw(a.seed(len(a.Messages)-1), "group", group) / 100 * total
	for _, f := range members {
		if at -= float64(cmp.Or(f.GroupWeight, 100)); at < 0 {
			return f
		}
	}
	return members[len(members)-1]
}

// seed identifies the message at an index by the message before it and its text,
// which are known before it is stored.
func (a *activation) seed(at int) string {
	if at < 0 {
		return ""
	}
	before := ""
	if at > 0 {
		before = a.Messages[at-1].ID
	}
	return before + "\x00" + a.Messages[at].Text
}

func (a *activation) drawn(c candidate, at int, what string) float64 {
	return draw(a.seed(at), what, c.book.Name, c.ID)
}

// draw returns a number from 0 to below 100 that is the same for the same texts.
func draw(texts ...string) float64 {
	h := sha256.New()
	for _, t := range texts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(t)))
		h.Write([]byte(t))
	}
	return float64(binary.BigEndian.Uint64(h.Sum(nil))>>11) / (1 << 53) * 100
}
