// SPDX-License-Identifier: Apache-2.0

package lore

// A Reason says why an entry fires or does not.
type Reason string

// The reasons to fire.
const (
	ByKey       Reason = "key"       // a key occurs in a message
	ByEntry     Reason = "recursion" // a key occurs in the text of another entry
	ByConstant  Reason = "constant"
	BySticky    Reason = "sticky" // it fired shortly before
	NoBudget    Reason = "budget"
	NoChance    Reason = "probability"
	NoGroup     Reason = "group" // another entry of its group fires
	NoCooldown  Reason = "cooldown"
	NoDelay     Reason = "delay"
	NoSecondary Reason = "secondary_keys"
)

// A Finding is what [Activate] found out about an entry.
type Finding struct {
	Book    string `json:"book"`
	Entry   string `json:"entry"` // id
	Name    string `json:"name"`
	Reason  Reason `json:"reason"`
	Key     string `json:"key,omitempty"`     // that was found
	Match   string `json:"match,omitempty"`   // of a pattern
	Message string `json:"message,omitempty"` // in which it was found
	Back    int    `json:"back"`              // of that message: 0 is the newest
	By      string `json:"by,omitempty"`      // the entry in whose text it was found, or that won the group
	Tokens  int    `json:"tokens"`
	Budget  int    `json:"budget,omitempty"` // that would be exceeded
	Chance  int    `json:"chance,omitempty"` // percent that was drawn; it has to be at most the entry's probability

	book, index int
}

// Result is what [Activate] returns.
type Result struct {
	Fired    []Fired
	Left     []Finding // entries whose keys were found and that do not fire
	Problems []Problem
}

// A Fired entry is to be sent.
type Fired struct {
	Finding
	Rule BookEntry // the whole entry
}

// A Problem is a key that cannot be used.
type Problem struct {
	Book, Entry, Key, Message string
}
