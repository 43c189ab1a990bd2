// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/pipeline/rule"
)

// A Replacing is a text that rules are tried out on.
type Replacing struct {
	Text   string
	Config rule.Config
	Stage  rule.Stage // "": as for a request
	Role   artel.Role // "": user
	Depth  *int       // nil: the bounds of rules are not looked at
	User   string     // what the macro user stands for
	Char   string     // what the macro char stands for
}

// Replaced is what rules have made of a text.
type Replaced struct {
	Text     string
	Applied  []string // names of the rules that have found something
	Problems []rule.Problem
}

// Replace tries out rules on a text, with the same engine that requests and
// pages go through.
func (m *Mechanisms) Replace(ctx context.Context, r Replacing) (Replaced, error) {
	return one(ctx, m, func() (Replaced, error) { return r.apply(ctx, m.core.rules) })
}

func (r Replacing) apply(ctx context.Context, engine *rule.Engine) (Replaced, error) {
	text := rule.Text{Text: r.Text, Role: cmp.Or(r.Role, artel.RoleUser), Depth: -1}
	if r.Depth != nil {
		text.Depth = *r.Depth
	}
	x := macro.New(macro.Context{Values: map[string]string{"user": r.User, "char": r.Char}, Now: time.Now()})
	out, err := engine.Compile(r.Config).Apply(ctx, cmp.Or(r.Stage, rule.Request), []rule.Text{text},
		func(text string, escape func(string) string) (string, error) {
			expanded, err := x.ExpandInto(text, escape)
			return expanded.Text, err
		})
	if err != nil {
		return Replaced{}, err
	}
	return Replaced{out.Texts[0], out.Applied[0], out.Problems}, nil
}

// ReplaceOffline is [Mechanisms.Replace] without a server.
func ReplaceOffline(ctx context.Context, r Replacing) (Replaced, error) {
	return r.apply(ctx, rule.New())
}

// An Expanding is a text with macros, and what they stand for.
type Expanding struct {
	Text         string
	Values       map[string]string // by the names that [macro.Values] lists
	Conversation string
	Now          time.Time // zero: the time that it is, in Zone
	Zone         string    // an IANA name; "": that of Now, or else of this machine
	Seed         string    // "": another one with every call
	Variables    map[string]string
	Globals      map[string]string // variables of the macros with global in their names
}

// Expanded is a text whose macros are expanded.
type Expanded struct {
	Text      string
	Problems  []macro.Problem   // of the macros that were left
	Unknown   []string          // their names, each once
	Variables map[string]string // after it
	Globals   map[string]string
}

// Expand expands the macros in a text. A zone that is not known is of kind
// Invalid, a text beyond the limits of package macro of kind TooLarge.
func (e Expanding) Expand() (Expanded, error) {
	now := e.Now
	if now.IsZero() {
		now = time.Now()
	}
	if e.Zone != "" {
		zone, err := time.LoadLocation(e.Zone)
		if err != nil {
			return Expanded{}, artel.Errorf(artel.Invalid, "app.Expand", "timezone", "%q is not known; give a name as Europe/Berlin", artel.Shorten(e.Zone, 60))
		}
		now = now.In(zone)
	}
	vars := macro.Variables{Local: maps.Clone(e.Variables), Global: maps.Clone(e.Globals)}
	r, err := macro.New(macro.Context{
		Values: e.Values, Now: now, Conversation: e.Conversation, Seed: cmp.Or(e.Seed, rand.Text()), Variables: &vars,
	}).Expand(e.Text)
	if err != nil {
		return Expanded{}, err
	}
	return Expanded{Text: r.Text, Problems: r.Problems, Unknown: r.Unknown(), Variables: vars.Local, Globals: vars.Global}, nil
}

// ImportRules makes rules of a file of SillyTavern; see
// [rule.FromSillyTavern].
func ImportRules(raw []byte) (rule.Config, []rule.Loss, error) {
	return rule.FromSillyTavern(raw, macro.FromSillyTavern)
}
