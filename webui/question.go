// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/render"
	"github.com/artelhq/artel/run"
)

// A Question asks the user for permission to call a tool, or shows the
// decision.
type Question struct {
	run.Permission
	Into    string // selector of the list of calls that contains it
	Before  string // selector of the element after it; "": none
	Who     string // asking agent
	Subject string // object of the call
	Shown   []Value
	About   string // description of a tool that the page has no text for
}

// Open reports whether it is undecided.
func (q Question) Open() bool { return q.Decision == "" }

// URL is the address that the answer posts to.
func (q Question) URL() string { return "/r/" + string(q.Run) + "/permissions/" + string(q.ID) }

// Asks is the text of the question.
func (q Question) Asks() phrase.Key {
	if q.Effect != "" {
		return phrase.Key("page.asks_effect_" + q.Effect)
	}
	if slices.Contains(explained, q.Name) {
		return phrase.Key("page.asks_" + q.Name)
	}
	return phrase.PageAsksOther
}

// Warns is the text that says why the call needs permission, before what the call
// names.
func (q Question) Warns() phrase.Key {
	if q.Effect == "" {
		return ""
	}
	return phrase.Key("page.effect_" + q.Effect)
}

// Says is the text of the decision.
func (q Question) Says() phrase.Key {
	if q.Reason == artel.ResolvedByPerson {
		return phrase.Key("page.decided_" + string(q.Decision))
	}
	return phrase.Key("page.undecided_" + string(q.Reason))
}

// Icon is the icon of the decision.
func (q Question) Icon() string {
	if q.Decision == artel.Deny {
		return "circle-x"
	}
	return "circle-check"
}

// explained are the tools with question texts of their own.
var explained = []string{
	"create_artifact", "update_artifact", "rewrite_artifact", "rename_artifact", "restore_artifact", "delete_artifact", "put_artifact",
	"read_artifact", "get_artifact", "list_artifacts", "grep_artifacts", "diff_artifact",
	"list_versions", "search_artifacts", "search_history", delegateTool,
}

// question builds a question; the card of the call has all arguments.
func (v view) question(ctx context.Context, p run.Permission) Question {
	var args struct {
		ID, Ref, URL, Title, Agent, Content, Instruction string
		MediaType                                        string          `json:"media_type"`
		Edits                                            json.RawMessage `json:"edits"`
		Old                                              string          `json:"old_str"`
		New                                              string          `json:"new_str"`
	}
	_ = json.Unmarshal(p.Arguments, &args)
	q := Question{
		Permission: p, Into: `.calls:has(> [id="t-` + cssString.Replace(string(p.Call)) + `"])`, Who: v.askerName(p),
		Subject: artel.Shorten(cmp.Or(args.Agent, args.Title, args.ID, args.Ref, args.URL), 80),
	}
	switch {
	case p.Effect != "": // the whole address and not a title beside it, which the model chose
		q.Subject = artel.Shorten(hostOrAll(p.Object), 80)
		q.Shown = append(q.Shown, v.plain(p.Object))
	case p.Name == "create_artifact" || p.Name == "rewrite_artifact":
		q.Shown = append(q.Shown, v.written(args.Content, args.MediaType))
	case p.Name == "update_artifact":
		q.Shown = v.edits(args.Edits, args.Old, args.New)
	case p.Name == delegateTool:
		q.Shown = append(q.Shown, v.plain(args.Instruction))
	case !slices.Contains(explained, p.Name):
		q.Shown = append(q.Shown, v.arguments(p.Arguments))
		for _, s := range v.app.Tools.List(ctx) {
			if s.Name == p.Name {
				q.About, _, _ = strings.Cut(strings.TrimSpace(s.Description), "\n\n")
			}
		}
	}
	return q
}

// hostOrAll returns the host of an address, and other texts unchanged.
func hostOrAll(object string) string {
	if u, err := url.Parse(object); err == nil && u.Host != "" {
		return u.Host
	}
	return object
}

// askerName names the asking agent.
func (v view) askerName(p run.Permission) string {
	if p.Within == "" {
		return v.locale.Say(phrase.PageAskerAgent, nil)
	}
	return v.locale.Say(phrase.PageAskerSubagent, map[string]any{"Name": artel.Visible(string(p.Agent))})
}

// cssString escapes a quoted string in a selector.
var cssString = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\a `)

// written renders a text that a model wants to write.
func (v view) written(text, mediaType string) Value {
	text, _ = shorten(text)
	if mediaType == "" || mediaType == "text/markdown" {
		return Value{Kind: valueHTML, HTML: render.Markdown(text, v.options())}
	}
	return Value{Kind: valueHTML, HTML: render.Code(text, render.LanguageOf("", mediaType))}
}

// edits renders the replacements of an edit. Arguments too long for events may
// arrive as a truncated string.
func (v view) edits(raw json.RawMessage, before, after string) []Value {
	var list []struct{ Old, New string }
	if json.Unmarshal(raw, &list) != nil && before == "" {
		return []Value{v.arguments(raw)}
	}
	if before != "" || after != "" {
		list = append(list, struct{ Old, New string }{before, after})
	}
	var out []Value
	for _, e := range list {
		var b strings.Builder
		prefixLines(&b, "-", e.Old)
		prefixLines(&b, "+", e.New)
		out = append(out, Value{Kind: valueHTML, HTML: render.Diff(b.String(), v.options())})
	}
	return out
}

// prefixLines writes the lines of a text, each after a sign.
func prefixLines(b *strings.Builder, sign, text string) {
	if text == "" {
		return
	}
	for line := range strings.Lines(text) {
		b.WriteString(sign + strings.TrimSuffix(line, "\n") + "\n")
	}
}

// questions returns the questions about the calls of a message.
func (v view) questions(ctx context.Context, m artel.Message, calls []Call) []Question {
	var out []Question
	for _, p := range v.asked {
		if p.Run == m.Run && p.Within == m.Within && slices.ContainsFunc(calls, func(c Call) bool { return c.ID == p.Call }) {
			out = append(out, v.question(ctx, p))
		}
	}
	return out
}

// decide stores the user's decision.
func (ui *handler) decide(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseRunID(r.PathValue("rid"))
	var question artel.PermissionID
	if err == nil {
		question, err = artel.ParsePermissionID(r.PathValue("pid"))
	}
	var run artel.Run
	if err == nil {
		run, err = ui.app.Runs.Find(r.Context(), id)
	}
	if err == nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxField)
		_, err = ui.app.Permissions.Decide(r.Context(), id, question, artel.Decision(r.PostFormValue("decision")), r.PostFormValue("comment"))
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.accepted(w, r, run.Conversation)
}

// accepted answers a request whose result the event stream renders.
func (ui *handler) accepted(w http.ResponseWriter, r *http.Request, c artel.ConversationID) {
	if wantsFragment(r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, conversationURL(c), http.StatusSeeOther)
}

// permissionRequested shows a question, and marks the card of its call.
func (s *stream) permissionRequested(ctx context.Context, e artel.Event) ([]part, error) {
	p, err := payload[artel.PermissionRequested](e)
	if err != nil {
		return nil, err
	}
	card, ok := s.cards[p.Call]
	if !ok {
		card = s.call(p.Call, p.Name, p.Arguments)
	}
	card.State = stateWaiting
	status, err := s.statusAt(ctx, e)
	if err != nil {
		return nil, err
	}
	if on, err := s.follows(ctx, e.Run); err != nil || !on {
		return []part{{"status", status}}, err
	}
	q := s.question(ctx, run.Permission{
		ID: p.Permission, Run: e.Run, Agent: e.Agent, Within: e.Within, Call: p.Call, Name: p.Name, Arguments: p.Arguments, ExpiresAt: p.ExpiresAt, Effect: p.Effect, Object: p.Object,
	})
	q.Before = ".subagent"
	heads, err := s.questionHeads(ctx, e, stateRunning)
	return append([]part{
		{"call", card},
		{"question", q},
		{"status", status},
		{"announcement", s.locale.Say(phrase.PageAsked, map[string]any{"Who": q.Who, "Name": p.Name})},
	}, heads...), err
}

// questionHeads are the headers of the subagent threads around a question, which show
// it while the threads are folded.
func (s *stream) questionHeads(ctx context.Context, e artel.Event, state string) ([]part, error) {
	if e.Within == "" {
		return nil, nil
	}
	v := s.view
	if err := v.loadQuestions(ctx); err != nil {
		return nil, err
	}
	all, err := s.app.Messages.Nested(ctx, s.conversation, e.Run)
	if err != nil {
		return nil, err
	}
	var out []part
	for within := e.Within; within != ""; within = within.Outer() {
		first := slices.IndexFunc(all, func(m artel.Message) bool { return m.Within == within })
		if first < 0 {
			continue
		}
		out = append(out, part{"subagent head", Subagent{
			ID: subagentID(e.Run, within), Agent: all[first].Agent, State: state, Asks: v.asksIn(e.Run, within),
		}})
	}
	return out, nil
}

// permissionResolved shows the decision of a question.
func (s *stream) permissionResolved(ctx context.Context, e artel.Event) ([]part, error) {
	p, err := payload[artel.PermissionResolved](e)
	if err != nil {
		return nil, err
	}
	status, err := s.statusAt(ctx, e)
	if err != nil {
		return nil, err
	}
	list, err := s.app.Permissions.List(ctx, s.conversation)
	if err != nil {
		return nil, err
	}
	on, err := s.follows(ctx, e.Run)
	if err != nil {
		return nil, err
	}
	for _, q := range list {
		if q.ID != p.Permission || !on {
			continue
		}
		card, ok := s.cards[q.Call]
		if !ok {
			card = s.call(q.Call, q.Name, q.Arguments)
		}
		if card.State = stateRunning; q.Reason == artel.ResolvedByEnd {
			card.State = stateStopped
		}
		heads, err := s.questionHeads(ctx, e, card.State)
		return append([]part{{"call", card}, {"question", s.question(ctx, q)}, {"status", status}}, heads...), err
	}
	return []part{{"status", status}}, nil
}
