// SPDX-License-Identifier: Apache-2.0

// Package lore decides which entries of world books belong into a request.
//
// A [Book] is a list of entries, each with a text and the keys in whose
// presence the text is sent. Begin with [Activate], which returns the entries
// that fire, why, and which do not fit the budget. [Import] reads the books of
// other programs: World Info of SillyTavern, and the lorebooks of character
// cards (versions 2 and 3).
//
// The package is pure, and the same input gives the same result: chance is
// drawn from the message that is answered and the entry, so that a preview
// equals the call.
package lore

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// A Book is a list of entries with their common settings. Absent settings are
// those of [Defaults].
type Book struct {
	Name          string      `json:"name"`
	Description   string      `json:"description,omitempty"`
	ScanDepth     *int        `json:"scan_depth,omitempty"`   // messages in which keys are sought, counted from the newest; nil: the default
	TokenBudget   int         `json:"token_budget,omitempty"` // tokens that its entries may have together; 0: limited by the budget of all books only
	Recursive     *bool       `json:"recursive,omitempty"`    // texts of entries can make other entries fire; nil: the default
	CaseSensitive *bool       `json:"case_sensitive,omitempty"`
	WholeWords    *bool       `json:"whole_words,omitempty"`
	Entries       []BookEntry `json:"entries"`
}

// A BookEntry is a text and the conditions under which it is sent.
type BookEntry struct {
	ID        string   `json:"id"` // unique in the book
	Name      string   `json:"name,omitempty"`
	Keys      []string `json:"keys,omitempty"`           // one of them has to occur: a text, or /pattern/flags with JavaScript semantics
	Secondary []string `json:"secondary_keys,omitempty"` // further condition by Logic; none: no condition
	Logic     Logic    `json:"logic,omitempty"`          // "": any
	Content   string   `json:"content"`                  // with macros
	Enabled   *bool    `json:"enabled,omitempty"`        // nil: yes
	Constant  bool     `json:"constant,omitempty"`       // fires without keys

	Position Position   `json:"position,omitempty"` // "": before_prompt
	Depth    int        `json:"depth,omitempty"`    // of at_depth: 0 is after the newest message
	Role     artel.Role `json:"role,omitempty"`     // "": system
	Order    int        `json:"order,omitempty"`    // ascending at one position
	Priority *int       `json:"priority,omitempty"` // the lower ones are left out first if the budget is exceeded; nil: by order

	Probability   *float64 `json:"probability,omitempty"` // percent; nil: 100
	ScanDepth     *int     `json:"scan_depth,omitempty"`  // nil: the book's
	CaseSensitive *bool    `json:"case_sensitive,omitempty"`
	WholeWords    *bool    `json:"whole_words,omitempty"`
	IgnoreBudget  bool     `json:"ignore_budget,omitempty"`

	ExcludeRecursion    bool `json:"exclude_recursion,omitempty"`     // other entries cannot make it fire
	PreventRecursion    bool `json:"prevent_recursion,omitempty"`     // its text makes no other entry fire
	DelayUntilRecursion int  `json:"delay_until_recursion,omitempty"` // fires only by other entries, the smaller numbers first; 0: at once

	Sticky   int `json:"sticky,omitempty"`   // messages for which it stays after it fired
	Cooldown int `json:"cooldown,omitempty"` // messages for which it cannot fire again after that
	Delay    int `json:"delay,omitempty"`    // messages that the conversation has before it can fire

	Groups        []string `json:"groups,omitempty"`         // only one entry of a group fires
	GroupWeight   int      `json:"group_weight,omitempty"`   // chance within a group; 0: 100
	GroupOverride bool     `json:"group_override,omitempty"` // wins by order instead of by chance
}

// Logic combines the secondary keys of an entry.
type Logic string

// The logics.
const (
	Any    Logic = "any"     // at least one occurs
	All    Logic = "all"     // every one occurs
	NotAny Logic = "not_any" // none occurs
	NotAll Logic = "not_all" // at least one is missing
)

// A Position says where the text of an entry is sent.
type Position string

// The positions.
const (
	BeforePrompt Position = "before_prompt" // before the role prompt of the agent
	AfterPrompt  Position = "after_prompt"  // after it
	AtDepth      Position = "at_depth"      // among the messages
)

// The limits of a book.
const (
	MaxEntries   = 5_000
	MaxKeys      = 200     // of an entry, of each kind
	MaxKey       = 2_000   // bytes
	MaxContent   = 200_000 // bytes of the text of an entry
	MaxBook      = 8 << 20 // bytes of all texts and keys
	maxName      = 200     // code points
	maxScanDepth = 1_000
	maxNumber    = 1_000_000
)

// Check refuses (kind Invalid, TooLarge) a book that cannot be used, with the
// entry as subject.
func (b Book) Check() error {
	const op = "lore.Check"
	wrong := func(subject, format string, args ...any) error {
		return artel.Errorf(artel.Invalid, op, subject, format, args...)
	}
	switch {
	case strings.TrimSpace(b.Name) == "" || utf8.RuneCountInString(b.Name) > maxName || strings.ContainsAny(b.Name, "/\n\r\x00"):
		return wrong("name", "a book has a name of 1 to %d characters without / and line ends", maxName)
	case len(b.Entries) > MaxEntries:
		return artel.Errorf(artel.TooLarge, op, "entries", "%d entries, and at most %d are taken", len(b.Entries), MaxEntries)
	case b.TokenBudget < 0 || b.TokenBudget > 10*maxNumber:
		return wrong("token_budget", "%d is not a number of tokens", b.TokenBudget)
	case b.ScanDepth != nil && (*b.ScanDepth < 0 || *b.ScanDepth > maxScanDepth):
		return wrong("scan_depth", "%d is not from 0 to %d messages", *b.ScanDepth, maxScanDepth)
	}
	seen := make(map[string]bool, len(b.Entries))
	size := len(b.Name) + len(b.Description)
	for i := range b.Entries {
		e := &b.Entries[i]
		subject := fmt.Sprintf("entries[%d] %s", i, artel.Shorten(e.Title(), 60))
		if e.ID == "" || len(e.ID) > artel.MaxIDLength || seen[e.ID] {
			return wrong(subject, "an entry has an id of 1 to %d bytes that no other entry has, and this one has %q", artel.MaxIDLength, artel.Shorten(e.ID, 60))
		}
		seen[e.ID] = true
		if err := e.check(); err != nil {
			return artel.Errorf(artel.Invalid, op, subject, "%w", err)
		}
		size += len(e.Content) + len(e.Name)
		for _, k := range slices.Concat(e.Keys, e.Secondary, e.Groups) {
			size += len(k)
		}
	}
	if size > MaxBook {
		return artel.Errorf(artel.TooLarge, op, "entries", "the texts and keys have %d bytes, and a book has at most %d", size, MaxBook)
	}
	return nil
}

func (e *BookEntry) check() error {
	for _, n := range []struct {
		field  string
		n, max int
	}{
		{"depth", e.Depth, maxNumber},
		{"sticky", e.Sticky, maxNumber},
		{"cooldown", e.Cooldown, maxNumber},
		{"delay", e.Delay, maxNumber},
		{"delay_until_recursion", e.DelayUntilRecursion, maxNumber},
		{"group_weight", e.GroupWeight, maxNumber},
	} {
		if n.n < 0 || n.n > n.max {
			return fmt.Errorf("%s is %d: want 0 to %d", n.field, n.n, n.max)
		}
	}
	switch {
	case utf8.RuneCountInString(e.Name) > maxName:
		return fmt.Errorf("a name has at most %d characters", maxName)
	case len(e.Content) > MaxContent:
		return fmt.Errorf("the content has %d bytes, and at most %d are taken", len(e.Content), MaxContent)
	case len(e.Keys) > MaxKeys || len(e.Secondary) > MaxKeys || len(e.Groups) > MaxKeys:
		return fmt.Errorf("more than %d keys or groups", MaxKeys)
	case slices.ContainsFunc(slices.Concat(e.Keys, e.Secondary, e.Groups), func(k string) bool { return len(k) > MaxKey }):
		return fmt.Errorf("a key or group has more than %d bytes", MaxKey)
	case !slices.Contains([]Logic{"", Any, All, NotAny, NotAll}, e.Logic):
		return fmt.Errorf("logic is %q: want any, all, not_any or not_all", artel.Shorten(string(e.Logic), 40))
	case !slices.Contains([]Position{"", BeforePrompt, AfterPrompt, AtDepth}, e.Position):
		return fmt.Errorf("position is %q: want before_prompt, after_prompt or at_depth", artel.Shorten(string(e.Position), 40))
	case !slices.Contains([]artel.Role{"", artel.RoleSystem, artel.RoleUser, artel.RoleAssistant}, e.Role):
		return fmt.Errorf("role is %q: want system, user or assistant", artel.Shorten(string(e.Role), 40))
	case e.Probability != nil && !(*e.Probability >= 0 && *e.Probability <= 100):
		return fmt.Errorf("probability is %v: want 0 to 100", *e.Probability)
	case e.ScanDepth != nil && (*e.ScanDepth < 0 || *e.ScanDepth > maxScanDepth):
		return fmt.Errorf("scan_depth is %d: want 0 to %d messages", *e.ScanDepth, maxScanDepth)
	}
	return nil
}

// Title returns what users know the entry by: its name, its first key, or its
// id.
func (e *BookEntry) Title() string {
	if strings.TrimSpace(e.Name) != "" {
		return e.Name
	}
	if len(e.Keys) > 0 {
		return e.Keys[0]
	}
	return e.ID
}

// Active reports whether the entry is enabled and has a text.
func (e *BookEntry) Active() bool {
	return (e.Enabled == nil || *e.Enabled) && strings.TrimSpace(e.Content) != ""
}

// timed reports whether the entry depends on when it fired before.
func (e *BookEntry) timed() bool { return e.Sticky > 0 || e.Cooldown > 0 }

func valueOr[T any](p *T, standard T) T {
	if p != nil {
		return *p
	}
	return standard
}
