// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"context"
	"slices"
	"time"

	"github.com/artelhq/artel"
)

// MaxMatches bounds the matches in a [Traced] rule.
const MaxMatches = 1_000

// A Traced rule is the effect of one rule on a text.
type Traced struct {
	NamedRule
	Where Location

	Skipped      SkipReason // why the rule was not applied; "": it was
	Backtracking bool       // the pattern ran on the backtracking engine
	Took         time.Duration
	Count        int      // matches
	Matches      [][2]int // their byte offsets in Before; at most [MaxMatches]
	Before       string
	After        string
	Problem      string // why the rule cannot be used; "": it can
}

// A SkipReason is why a rule does not apply to a text.
type SkipReason string

// The reasons.
const (
	SkippedStage SkipReason = "stage"
	SkippedRole  SkipReason = "role"
	SkippedDepth SkipReason = "depth"
)

// Trace applies the rules of a stage to one text like [Set.Apply], with the
// same patterns, limits and macros, and returns the effect of each, in order.
// Disabled rules are left out. The error is that of ctx.
func (s *Set) Trace(ctx context.Context, stage Stage, t Text, expand Expander) ([]Traced, error) {
	p := &application{Set: s, stage: stage, expand: expand, spent: make(map[int]time.Duration), work: make(map[int]int), allowed: buildWork}
	out := make([]Traced, len(s.all))
	places := make([]int, len(s.all)) // in bound
	for i, r := range s.all {         // macros are expanded before any rule runs
		out[i] = Traced{NamedRule: NamedRule{r.name, r.Rule}, Where: r.where, Problem: s.refused[r.where]}
		places[i] = -1
		if !r.at(stage) {
			out[i].Skipped = SkippedStage
		} else if out[i].Problem == "" {
			b, err := p.bindOne(r)
			if err != nil {
				out[i].Problem = err.Error()
				continue
			}
			places[i] = len(p.bound)
			p.bound = append(p.bound, b)
		}
	}
	text := t.Text
	for i := range out {
		x := &out[i]
		x.Before, x.After = text, text
		switch {
		case x.Skipped != "" || places[i] < 0:
			continue
		case len(x.Rule.Roles) > 0 && !slices.Contains(x.Rule.Roles, t.Role):
			x.Skipped = SkippedRole
			continue
		case t.Depth >= 0 && !x.Rule.Depth.holds(t.Depth):
			x.Skipped = SkippedDepth
			continue
		}
		b := &p.bound[places[i]]
		x.Backtracking = b.linear == nil || !b.linear.takes(text)
		b.note = func(begin, end int) {
			if len(x.Matches) < MaxMatches {
				x.Matches = append(x.Matches, [2]int{begin, end})
			}
		}
		begin := p.engine.now()
		next, n, err := p.apply(ctx, places[i], text)
		x.Took = p.engine.now().Sub(begin)
		if ctx.Err() != nil {
			return nil, artel.Errorf(artel.Canceled, "rule.Trace", "", "%w", context.Cause(ctx))
		}
		if err != nil {
			x.Problem, x.Matches = err.Error(), nil
			continue
		}
		x.Count = n
		if n > 0 {
			x.After, text = next, next
		}
	}
	return out, nil
}

// An Explanation describes how a pattern is read.
type Explanation struct {
	Pattern, Flags string
	Backtracking   bool // it runs on the backtracking engine
	Groups         int
	MacrosPending  bool // its macros are expanded first, so the rest is unknown until then
}

// Explain describes how a rule is read. A rule that cannot be used is of kind
// Invalid. It checks like [Engine.Compile].
func (e *Engine) Explain(r Rule) (Explanation, error) {
	var x Explanation
	err := r.check()
	if err == nil {
		x.Pattern, x.Flags = r.source(r.Find)
		if x.MacrosPending = r.Expand == ExpandRaw || r.Expand == ExpandEscaped; x.MacrosPending {
			_, err = parseFlags(x.Flags)
		} else {
			wanted, named := groupsIn(r.Replace)
			var p *pattern
			if p, err = e.compile(x.Pattern, x.Flags, wanted, named); err == nil {
				x.Backtracking, x.Groups = p.linear == nil, p.groups
			}
		}
	}
	if err != nil {
		return x, artel.Errorf(artel.Invalid, "rule.Explain", artel.Shorten(r.ID, 80), "%w", err)
	}
	return x, nil
}
