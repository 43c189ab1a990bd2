// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// An Effect is what a call does outside the artifacts that agents made in the
// conversation, so that a user is asked first: a document that a model reads may
// have told it to make the call.
type Effect struct {
	Kind   string // one of those of [Effects]; "": none
	Scope  string // to which it is limited: a host, a conversation or an artifact
	Object string // what it is on, whole: the address, the ref or the id
}

// The kinds of effects.
const (
	EffectURL       = "url"                // sends an address to another machine
	EffectElsewhere = "other_conversation" // reads an artifact of another conversation
	EffectUsers     = "user_artifact"      // deletes what a user uploaded or wrote
)

// Effects returns the kinds of effects.
func Effects() []string { return []string{EffectURL, EffectElsewhere, EffectUsers} }

// Grant names the tool with an effect, as far as "always" allows it.
func (f Effect) Grant(tool string) string {
	return strings.TrimSpace(tool + "." + f.Kind + " " + f.Scope)
}

// Effect returns the effect of a call, or the zero Effect if it has none, if the
// tool is unknown or if the arguments do not match its schema.
func (b *Set) Effect(ctx context.Context, e *Env, name string, args json.RawMessage) (Effect, error) {
	t, ok := b.tools[name]
	if !ok || t.Effect == nil {
		return Effect{}, nil
	}
	raw, instance, err := arguments(args, t.schema.Schema().Required)
	if err != nil || t.schema.Validate(instance) != nil {
		return Effect{}, nil //nolint:nilerr // the call fails, and says why
	}
	return t.Effect(ctx, e, raw)
}

// effectOf makes the Effect of a tool from a function with typed arguments.
func effectOf[In any](t Tool, effect func(context.Context, *Env, In) (Effect, error)) Tool {
	t.Effect = func(ctx context.Context, e *Env, args json.RawMessage) (Effect, error) {
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return Effect{}, nil //nolint:nilerr // the call fails, and says why
		}
		return effect(ctx, e, in)
	}
	return t
}

// readsRef adds the effect of reading the ref in an argument.
func readsRef[In any](t Tool, ref func(In) string) Tool {
	return effectOf(t, func(_ context.Context, e *Env, in In) (Effect, error) { return refEffect(e, ref(in)), nil })
}

func refEffect(e *Env, s string) Effect {
	ref, err := artel.ParseRef(strings.TrimSpace(s))
	if err != nil || ref.IsBlob() || ref.Conversation == "" || ref.Conversation == e.Conversation {
		return Effect{}
	}
	return Effect{Kind: EffectElsewhere, Scope: string(ref.Conversation), Object: ref.String()}
}

// maxAddress is the longest address that is fetched, in bytes: a user reads all
// of it before.
const maxAddress = 4000

func urlEffect(address string) Effect {
	address = strings.TrimSpace(address)
	u, err := url.Parse(address)
	if err != nil || len(address) > maxAddress {
		return Effect{} // it is not fetched
	}
	return Effect{Kind: EffectURL, Scope: strings.ToLower(u.Host), Object: address}
}

// deleteEffect looks at the artifact without the mark that it was seen.
func deleteEffect(ctx context.Context, e *Env, in deleteArgs) (Effect, error) {
	id, err := parseID(e, in.ID)
	if err != nil || e.Workspace == nil {
		return Effect{}, nil //nolint:nilerr // the call fails, and says why
	}
	all, err := e.Workspace.List(ctx)
	i := slices.IndexFunc(all, func(a artel.Artifact) bool { return a.ID == id })
	if i >= 0 && (all[i].Source == artel.SourceUserUpload || all[i].Source == artel.SourceUser) {
		return Effect{Kind: EffectUsers, Scope: string(id), Object: string(id)}, nil
	}
	return Effect{}, err
}
