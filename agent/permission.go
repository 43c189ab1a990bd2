// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
)

// A Permission says whether a tool may be called.
type Permission string

// The permissions, each stricter than the one before.
const (
	Auto Permission = "auto" // without a question
	Ask  Permission = "ask"  // after a user has allowed it
	Deny Permission = "deny" // never; the agent does not get the tool
)

// Permissions map the names of tools to permissions; [AnyTool] is for all
// others. The default is [Auto]. "tool.effect" names an effect of a tool; see
// [Permissions.OfEffect].
type Permissions map[string]Permission

// AnyTool stands for all tools that are not named.
const AnyTool = "*"

// Of returns the permission of a tool.
func (p Permissions) Of(name string) Permission {
	for _, n := range []string{name, AnyTool} {
		if level, ok := p[n]; ok {
			return level
		}
	}
	return Auto
}

// OfEffect returns the permission of an effect of a tool, which is named by
// "tool.effect" or "*.effect", or otherwise if it is not named.
func (p Permissions) OfEffect(name, effect string, otherwise Permission) Permission {
	for _, n := range []string{name, AnyTool} {
		if level, ok := p[n+"."+effect]; ok {
			return level
		}
	}
	return otherwise
}

// Permission returns the agent's own permission of a tool.
func (d Definition) Permission(name string) Permission { return d.Permissions.Of(name) }

// Check refuses unknown permissions and effects, with kind Invalid.
func (p Permissions) Check() error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if _, effect, ok := strings.Cut(name, "."); ok && !slices.Contains(tool.Effects(), effect) {
			return artel.Errorf(artel.Invalid, "agent.Permissions", artel.Shorten(name, 80), "there is no effect %q: want %s", artel.Shorten(effect, 40), strings.Join(tool.Effects(), ", "))
		}
		switch p[name] {
		case Auto, Ask, Deny:
		default:
			return artel.Errorf(artel.Invalid, "agent.Permissions", artel.Shorten(name, 80), "is %q: want auto, ask or deny", artel.Shorten(string(p[name]), 40))
		}
	}
	return nil
}

// stricter returns the stricter of both.
func stricter(a, b Permission) Permission {
	for _, p := range []Permission{Deny, Ask} {
		if a == p || b == p {
			return p
		}
	}
	return Auto
}

// AnswerTime is the time that users have to answer a question of permission.
func (l Limits) AnswerTime() time.Duration {
	return time.Duration(l.Full().Answer) * time.Second
}

// A Verdict is the answer to a question of permission.
type Verdict struct {
	Decision artel.Decision
	Reason   artel.Resolution
	Comment  string // of the user who denied it, for the model; empty: none
}

// permission returns the stricter of the agent's and the deployment's
// permission. Those in the place of deferred tools need none.
func (r *run) permission(name string) Permission {
	if r.tools.deferral != nil && (name == FindTool || name == CallTool) {
		return Auto
	}
	return stricter(r.in.Agent.Permissions.Of(name), r.in.Permissions.Of(name))
}

// allowed returns the agent's tools without the denied ones.
func (r *run) allowed() *tool.Set {
	own := cmp.Or(r.in.Tools, r.Engine.tools).Only(r.in.Agent.Tools...)
	var names []string
	for _, n := range own.Names() { // includes the tools of "x*"
		if r.permission(n) != Deny {
			names = append(names, n)
		}
	}
	return own.Only(names...)
}

// callPermission returns the permission of a call with its effect. Effects are
// asked about unless the deployment says otherwise; an agent's definition can
// only be stricter, because definitions are imported.
func (r *run) callPermission(ctx context.Context, c artel.ToolCall) (Permission, tool.Effect, error) {
	level := r.permission(c.Name)
	env := r.in.Env
	env.Call = c.ID
	effect, err := r.tools.Effect(ctx, &env, c.Name, r.arguments(c))
	if err != nil || effect.Kind == "" {
		return level, tool.Effect{}, err
	}
	return stricter(level, stricter(
		r.in.Agent.Permissions.OfEffect(c.Name, effect.Kind, Auto),
		r.in.Permissions.OfEffect(c.Name, effect.Kind, Ask),
	)), effect, nil
}

// A Question asks whether a call may be made.
type Question struct {
	artel.ToolCall
	Effect tool.Effect // why it is asked about, if the tool itself needs no permission
}

// permitted asks about the calls that need permission, all at once, and returns
// the results of refused calls; nil: the call may be made.
func (r *run) permitted(ctx context.Context, calls []artel.ToolCall) ([]*tool.Result, error) {
	refused := make([]*tool.Result, len(calls))
	var asked []Question
	var places []int
	for i, c := range calls {
		if !r.tools.Has(c.Name) {
			continue
		}
		level, effect, err := r.callPermission(ctx, c)
		if err != nil {
			return nil, err
		}
		switch level {
		case Ask:
			asked, places = append(asked, Question{c, effect}), append(places, i)
		case Deny:
			result := tool.Failed("%s", r.in.Env.Locale.Say(phrase.ToolEffectDenied, map[string]any{"Name": strings.TrimSpace(c.Name), "Effect": effect.Kind}))
			result.Metadata["permission"] = string(Deny)
			refused[i] = &result
		}
	}
	if len(asked) == 0 {
		return refused, nil
	}
	verdicts, err := r.host.Permit(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i, v := range verdicts {
		if v.Decision == artel.Allow || v.Decision == artel.Always {
			continue
		}
		key := phrase.ToolDenied
		switch {
		case v.Reason != artel.ResolvedByPerson:
			key = phrase.ToolUnanswered
		case v.Comment != "":
			key = phrase.ToolDeniedBecause
		}
		result := tool.Failed("%s", r.in.Env.Locale.Say(key, map[string]any{"Name": strings.TrimSpace(asked[i].Name), "Comment": v.Comment}))
		result.Metadata["permission"] = string(artel.Deny)
		refused[places[i]] = &result
	}
	return refused, nil
}

// readInbox appends new messages of the user, compacts if the user asked for
// it, and reports whether there is a message to answer.
func (r *run) readInbox(ctx context.Context) (said bool, err error) {
	if len(r.history) == 0 {
		return false, nil
	}
	in, err := r.host.Inbox(ctx, r.history[len(r.history)-1].ID)
	if err != nil {
		return false, err
	}
	r.history = append(r.history, in.Said...)
	r.muteSummaries(in.Muted)
	if in.Compact {
		err = r.compactAsked(ctx, in.Focus)
	}
	return len(in.Said) > 0, err
}
