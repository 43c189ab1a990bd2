// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// ToolNames are the rules of a dialect on the names of tools. Names consist of
// ASCII letters, digits, underscores and the characters of Also.
type ToolNames struct {
	Max         int    // characters at most
	Also        string // further characters
	LetterFirst bool   // the first character is a letter or an underscore
}

// hashLength is the length of what makes a fitted name unique.
const hashLength = 12

// Legal reports whether the API takes name.
func (n ToolNames) Legal(name string) bool {
	return name != "" && len(name) <= n.Max && !strings.ContainsFunc(name, func(r rune) bool { return !n.allows(r) }) &&
		(!n.LetterFirst || isLetter(rune(name[0])))
}

func (n ToolNames) allows(r rune) bool {
	return isLetter(r) || r >= '0' && r <= '9' || strings.ContainsRune(n.Also, r)
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' }

// Fit returns name if it is legal. Otherwise it returns the legal characters of the
// name, shortened, and a hash of the whole: always the same name, which no other
// name gets.
func (n ToolNames) Fit(name string) string {
	if n.Legal(name) {
		return name
	}
	fitted := strings.Map(func(r rune) rune {
		if n.allows(r) {
			return r
		}
		return '_'
	}, name)
	if n.LetterFirst && fitted != "" && !isLetter(rune(fitted[0])) {
		fitted = "_" + fitted
	}
	sum := sha256.Sum256([]byte(name))
	return fitted[:min(len(fitted), n.Max-hashLength-1)] + "_" + hex.EncodeToString(sum[:])[:hashLength]
}

// Fitted returns r with legal names of tools: of its tools, its choice and the calls
// of its messages. It returns r itself if all are legal, and never changes it.
func (n ToolNames) Fitted(r *model.Request) *model.Request {
	out := *r
	changed := false
	for i, t := range r.Tools {
		if n.Legal(t.Name) {
			continue
		}
		if !changed {
			out.Tools, changed = slices.Clone(r.Tools), true
		}
		out.Tools[i].Name = n.Fit(t.Name)
	}
	if r.Choice.Name != "" && !n.Legal(r.Choice.Name) {
		out.Choice.Name, changed = n.Fit(r.Choice.Name), true
	}
	own := false // out.Messages is a copy
	for i, m := range r.Messages {
		parts := n.fittedCalls(m.Parts)
		if parts == nil {
			continue
		}
		if !own {
			out.Messages, own, changed = slices.Clone(r.Messages), true, true
		}
		out.Messages[i].Parts = parts
	}
	if !changed {
		return r
	}
	return &out
}

// fittedCalls returns a copy of parts whose calls have legal names; nil if they have
// them already.
func (n ToolNames) fittedCalls(parts artel.Parts) (out artel.Parts) {
	for i, p := range parts {
		c, ok := p.(artel.ToolCall)
		if !ok || n.Legal(c.Name) {
			continue
		}
		if out == nil {
			out = slices.Clone(parts)
		}
		c.Name = n.Fit(c.Name)
		out[i] = c
	}
	return out
}

// Restored returns a yield that gives the calls of an answer the names of tools as
// the request has them, and passes them to yield.
func (n ToolNames) Restored(tools []model.ToolSpec, yield func(model.Delta, error) bool) func(model.Delta, error) bool {
	names := map[string]string{}
	for _, t := range tools {
		if !n.Legal(t.Name) {
			names[n.Fit(t.Name)] = t.Name
		}
	}
	if len(names) == 0 {
		return yield
	}
	return func(d model.Delta, err error) bool {
		switch c := d.(type) {
		case model.CallPiece:
			if name, ok := names[c.Name]; ok {
				c.Name = name
				return yield(c, err)
			}
		case model.CallDelta:
			if name, ok := names[c.Name]; ok {
				c.Name = name
				return yield(c, err)
			}
		}
		return yield(d, err)
	}
}
