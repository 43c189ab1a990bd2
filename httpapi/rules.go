// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/pipeline/rule"
)

// A RegexPreset is a list of rules that run one after the other.
type RegexPreset rule.Preset

// A RegexError is the reason why a rule was skipped.
type RegexError rule.Problem

// A RegexLoss is something that an import could not represent exactly.
type RegexLoss rule.Loss

// A RegexConfig is a configuration of the regex-processor.
type RegexConfig struct {
	Rules   []rule.Rule   `json:"rules,omitempty"`
	Presets []RegexPreset `json:"presets,omitempty"`
}

// A RegexText is the body of POST /regex/apply.
type RegexText struct {
	Text    string        `json:"text"`
	Rules   []rule.Rule   `json:"rules" nullable:"false" maxItems:"1000"`
	Presets []RegexPreset `json:"presets,omitempty" nullable:"false" maxItems:"1000"`
	Stage   string        `json:"stage,omitempty" enum:"request,display" default:"request" doc:"what is sent to a model, or what people see"`
	Role    string        `json:"role,omitempty" enum:"system,user,assistant,tool" default:"user" doc:"of the message that the text is from"`
	Depth   *int          `json:"depth,omitempty" minimum:"0" doc:"how far the message is from the newest one, which is 0; absent: the bounds of rules are not looked at"`
	User    string        `json:"user,omitempty" doc:"what the macro user stands for"`
	Char    string        `json:"char,omitempty" doc:"what the macro char stands for"`
}

// A RegexApplied is the answer of POST /regex/apply.
type RegexApplied struct {
	Text    string       `json:"text"`
	Applied []string     `json:"applied" nullable:"false" doc:"the rules that have found something, in the order in which they ran"`
	Errors  []RegexError `json:"errors" nullable:"false" doc:"rules that were left out, and why"`
}

// RegexAppliedOf converts the result of applying rules.
func RegexAppliedOf(r app.Replaced) RegexApplied {
	return RegexApplied{Text: r.Text, Applied: nonNil(r.Applied), Errors: mapSlice(r.Problems, func(p rule.Problem) RegexError { return RegexError(p) })}
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// mapSlice converts the elements of a list.
func mapSlice[T, U any](list []T, shape func(T) U) []U {
	out := make([]U, len(list))
	for i, x := range list {
		out[i] = shape(x)
	}
	return out
}

// A MacroText is the body of POST /macros/expand. Absent values expand to
// nothing.
type MacroText struct {
	Text           string            `json:"text"`
	User           string            `json:"user,omitempty"`
	Char           string            `json:"char,omitempty"`
	Description    string            `json:"description,omitempty"`
	Persona        string            `json:"persona,omitempty"`
	ConversationID string            `json:"conversation_id,omitempty" doc:"what the macro pick is stable in"`
	LastMessage    string            `json:"last_message,omitempty" doc:"the newest message of the user"`
	LastReply      string            `json:"last_reply,omitempty"`
	Input          string            `json:"input,omitempty"`
	Clock          string            `json:"clock,omitempty" doc:"what time it is, as RFC 3339 has it; absent: the time that it is"`
	Timezone       string            `json:"timezone,omitempty" maxLength:"100" doc:"an IANA name, as Europe/Berlin; absent: that of the clock"`
	Seed           string            `json:"seed,omitempty" doc:"of all that is random; absent: another one each time"`
	Variables      map[string]string `json:"variables,omitempty"`
	Globals        map[string]string `json:"globals,omitempty" doc:"variables of the macros with global in their names"`
}

// A MacroExpanded is the answer of POST /macros/expand.
type MacroExpanded struct {
	Text      string            `json:"text"`
	Unknown   []string          `json:"unknown" nullable:"false" doc:"names of macros that were left as they are: unknown ones, and those with arguments that they do not take"`
	Variables map[string]string `json:"variables" nullable:"false"`
	Globals   map[string]string `json:"globals,omitempty"`
}

// Expanding converts the body. A bad clock is of kind Invalid.
func (m MacroText) Expanding() (app.Expanding, error) {
	var now time.Time
	if m.Clock != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, m.Clock); err != nil {
			return app.Expanding{}, artel.Errorf(artel.Invalid, "httpapi.MacroText", "clock", "%q is no time as 2026-01-02T15:04:05Z", artel.Shorten(m.Clock, 40))
		}
	}
	return app.Expanding{
		Text: m.Text, Conversation: m.ConversationID, Now: now, Zone: m.Timezone, Seed: m.Seed,
		Variables: m.Variables, Globals: m.Globals,
		Values: map[string]string{
			"user": m.User, "char": m.Char, "description": m.Description, "persona": m.Persona, "input": m.Input,
			"lastMessage": m.LastMessage, "lastUserMessage": m.LastMessage, "lastCharMessage": m.LastReply,
		},
	}, nil
}

// MacroExpandedOf converts an expanded text.
func MacroExpandedOf(e app.Expanded) MacroExpanded {
	out := MacroExpanded{Text: e.Text, Unknown: nonNil(e.Unknown), Variables: e.Variables, Globals: e.Globals}
	if out.Variables == nil {
		out.Variables = map[string]string{}
	}
	return out
}

// RegexImported is the answer of POST /regex/import.
type RegexImported struct {
	Config RegexConfig `json:"config"`
	Losses []RegexLoss `json:"losses" nullable:"false" doc:"every field of the file that does not do here what it does there"`
}

// RegexImportedOf converts imported rules.
func RegexImportedOf(c rule.Config, losses []rule.Loss) RegexImported {
	return RegexImported{
		Config: RegexConfig{c.Rules, mapSlice(c.Presets, func(p rule.Preset) RegexPreset { return RegexPreset(p) })},
		Losses: mapSlice(losses, func(l rule.Loss) RegexLoss { return RegexLoss(l) }),
	}
}

// maxRuleFile is the size of the largest file of rules, in bytes: character
// cards have some megabytes.
const maxRuleFile = 16 << 20

func (f *server) rules() {
	register(f, f.op(http.MethodPost, "/regex/apply", "apply-rules", "Try out find-and-replace rules on a text", http.StatusOK, maxBody(textBody)),
		func(ctx context.Context, in *struct{ Body RegexText }) (*body[RegexApplied], error) {
			b := in.Body
			presets := mapSlice(b.Presets, func(p RegexPreset) rule.Preset { return rule.Preset(p) })
			r, err := f.app.Mechanisms.Replace(ctx, app.Replacing{
				Text: b.Text, Config: rule.Config{Rules: b.Rules, Presets: presets}, Stage: rule.Stage(b.Stage), Role: artel.Role(b.Role),
				Depth: b.Depth, User: b.User, Char: b.Char,
			})
			return answer(RegexAppliedOf(r), err)
		})

	register(f, f.op(http.MethodPost, "/macros/expand", "expand-macros", "Expand the macros in a text", http.StatusOK, maxBody(textBody)),
		func(_ context.Context, in *struct{ Body MacroText }) (*body[MacroExpanded], error) {
			e, err := in.Body.Expanding()
			if err != nil {
				return nil, err
			}
			x, err := e.Expand()
			return answer(MacroExpandedOf(x), err)
		})

	op := f.op(http.MethodPost, "/regex/import", "import-rules", "Make rules of regex scripts of SillyTavern", http.StatusOK)
	op.Description = "The body is a script, a list of scripts, or a settings file or character card that holds some."
	register(f, op, func(_ context.Context, in *ruleFile) (*body[RegexImported], error) {
		raw, err := io.ReadAll(io.LimitReader(form.Sent(in.request.Body), maxRuleFile+1))
		if err != nil {
			return nil, err
		}
		if len(raw) > maxRuleFile {
			return nil, artel.Errorf(artel.TooLarge, "httpapi.Import", "body", "more than the limit of %d bytes", maxRuleFile)
		}
		config, losses, err := app.ImportRules(raw)
		return answer(RegexImportedOf(config, losses), err)
	})
	f.describeBody(op, map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{}},
	})
}

// A ruleFile takes a file as a stream.
type ruleFile struct {
	Format string `query:"format" enum:"sillytavern" default:"sillytavern" doc:"whose scripts they are"`
	RawRequest
}

// ApplyRules applies rules to a text.
func (c *Client) ApplyRules(ctx context.Context, t RegexText) (out RegexApplied, err error) {
	return out, c.json(ctx, http.MethodPost, "/regex/apply", t, &out)
}

// ExpandMacros expands the macros in a text.
func (c *Client) ExpandMacros(ctx context.Context, t MacroText) (out MacroExpanded, err error) {
	return out, c.json(ctx, http.MethodPost, "/macros/expand", t, &out)
}

// ImportRules converts a file of SillyTavern to rules.
func (c *Client) ImportRules(ctx context.Context, file []byte) (out RegexImported, err error) {
	return out, c.json(ctx, http.MethodPost, "/regex/import", json.RawMessage(file), &out)
}
