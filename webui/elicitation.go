// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/elicit"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/run"
)

// An Elicitation is a question of a tool server to the user, or its answer.
type Elicitation struct {
	run.Elicitation
	Into   string // selector of the list of calls that contains it
	Before string // selector of the element after it; "": none
	Who    string // the agent that made the call
	Host   string // of the page to open
	Fields []ElicitField
}

// An ElicitField is a field of the form.
type ElicitField struct {
	elicit.Field
	ID, Post string // element id, form name
	Text     string // its value to begin with, or the answer
	HTMLType string // of its input
	On       bool   // of a boolean
	Choices  []ElicitOption
}

// An ElicitOption is an option of a field.
type ElicitOption struct {
	elicit.Option
	On bool
}

// Open reports whether it has no answer.
func (e Elicitation) Open() bool { return e.Action == "" }

// URLMode reports whether it asks to open a page.
func (e Elicitation) URLMode() bool { return e.Mode == artel.ElicitURL }

// PostURL is the address that the answer posts to.
func (e Elicitation) PostURL() string {
	return "/r/" + string(e.Run) + "/elicitations/" + string(e.ID)
}

// Says is the text of the answer.
func (e Elicitation) Says() phrase.Key {
	if e.Reason == artel.ResolvedByPerson {
		return phrase.Key("page.elicited_" + string(e.Action))
	}
	return phrase.Key("page.unelicited_" + string(e.Reason))
}

// Icon is the icon of the answer.
func (e Elicitation) Icon() string {
	if e.Action == artel.ElicitAccept {
		return "circle-check"
	}
	return "circle-x"
}

// Match is the pattern of an input, which compares the whole value.
func (f ElicitField) Match() string {
	if f.Pattern == "" {
		return ""
	}
	return ".*(?:" + f.Pattern + ").*"
}

// Long reports whether a text needs several lines.
func (f ElicitField) Long() bool {
	return f.Kind == elicit.Text && f.Format == "" && f.Bounds.Long != nil && *f.Bounds.Long > 200
}

// MaxLength is the longest text.
func (f ElicitField) MaxLength() int {
	if f.Bounds.Long != nil {
		return min(*f.Bounds.Long, elicit.MaxText)
	}
	return elicit.MaxText
}

// Step is the step of a number.
func (f ElicitField) Step() string {
	if f.Kind == elicit.Integer {
		return "1"
	}
	return "any"
}

// Answer is what was answered; "": nothing.
func (f ElicitField) Answer() string {
	switch f.Kind {
	case elicit.Choice, elicit.Choices:
		var on []string
		for _, o := range f.Choices {
			if o.On {
				on = append(on, o.Label())
			}
		}
		return strings.Join(on, ", ")
	case elicit.Boolean:
		if f.On {
			return "✓"
		}
		return "–"
	}
	return f.Text
}

// elicitation builds a question or its answer.
func (v view) elicitation(q run.Elicitation) Elicitation {
	e := Elicitation{
		Elicitation: q, Into: `.calls:has(> [id="t-` + cssString.Replace(string(q.Call)) + `"])`, Who: v.askerName(run.Permission{Within: q.Within, Agent: q.Agent}),
	}
	if u, err := url.Parse(q.URL); err == nil {
		e.Host = u.Host
	}
	form, err := elicit.Parse(q.Schema)
	if err != nil {
		return e // it was checked before it was asked
	}
	for i, f := range form.Fields {
		value := f.Default
		if !e.Open() {
			value = q.Content[f.Name]
		}
		e.Fields = append(e.Fields, elicitField(string(q.ID), i, f, value))
	}
	return e
}

func elicitField(id string, number int, f elicit.Field, value any) ElicitField {
	out := ElicitField{Field: f, ID: "q-" + id + "-" + strconv.Itoa(number), Post: elicitPost(number), HTMLType: "text"}
	switch f.Kind {
	case elicit.Number, elicit.Integer:
		out.HTMLType = "number"
	default:
		out.HTMLType = cmp.Or(map[string]string{"email": "email", "uri": "url", "date": "date", "date-time": "datetime-local"}[f.Format], "text")
	}
	var on []string
	switch x := value.(type) {
	case string:
		out.Text, on = x, []string{x}
		if t, err := time.Parse(time.RFC3339, x); err == nil && f.Format == "date-time" {
			out.Text = t.UTC().Format("2006-01-02T15:04")
		}
	case float64:
		out.Text = strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		out.On = x
	case []any:
		for _, one := range x {
			on = append(on, fmt.Sprint(one))
		}
	}
	for _, o := range f.Options {
		out.Choices = append(out.Choices, ElicitOption{o, slices.Contains(on, o.Value)})
	}
	return out
}

// elicitPost is the form name of a field; its own name may be anything.
func elicitPost(number int) string { return "f" + strconv.Itoa(number) }

// elicitations returns the questions of tool servers about the calls of a message.
func (v view) elicitations(m artel.Message, calls []Call) (out []Elicitation) {
	for _, q := range v.elicited {
		if q.Run == m.Run && q.Within == m.Within && slices.ContainsFunc(calls, func(c Call) bool { return c.ID == q.Call }) {
			out = append(out, v.elicitation(q))
		}
	}
	return out
}

// loadQuestions reads the questions of a conversation with their answers.
func (v *view) loadQuestions(ctx context.Context) (err error) {
	if v.asked, err = v.app.Permissions.List(ctx, v.conversation); err == nil {
		v.elicited, err = v.app.Elicitations.List(ctx, v.conversation)
	}
	return err
}

// asksIn reports whether a question is open in a thread or in a nested one.
func (v view) asksIn(id artel.RunID, within artel.CallPath) bool {
	return slices.ContainsFunc(v.asked, func(p run.Permission) bool { return p.Decision == "" && p.Run == id && p.Within.In(within) }) ||
		slices.ContainsFunc(v.elicited, func(q run.Elicitation) bool { return q.Action == "" && q.Run == id && q.Within.In(within) })
}

// progress returns what servers said last of the calls of a run at work.
func (v view) progress(id artel.RunID) map[artel.CallID]string { return run.Progress(v.app.Runs, id) }

// elicit stores the user's answer to a tool server.
func (ui *handler) elicit(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseRunID(r.PathValue("rid"))
	var question artel.ElicitationID
	if err == nil {
		question, err = artel.ParseElicitationID(r.PathValue("eid"))
	}
	var of artel.Run
	if err == nil {
		of, err = ui.app.Runs.Find(r.Context(), id)
	}
	if err == nil {
		r.Body = http.MaxBytesReader(w, r.Body, 8*maxField)
		if err = r.ParseForm(); err != nil {
			err = artel.Errorf(artel.TooLarge, "webui", "", "the form is too long: %w", err)
		}
	}
	if err == nil {
		err = ui.answerElicitation(r, of, question)
	}
	if wrong, ok := errors.AsType[*run.FormError](err); ok {
		err = artel.Errorf(artel.Invalid, "webui", "", "%s", ui.mistakes(r, of, question, wrong.Mistakes))
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.accepted(w, r, of.Conversation)
}

// form returns the form of a question; false: it has none.
func (ui *handler) form(ctx context.Context, of artel.Run, question artel.ElicitationID) (form elicit.Form, asks bool, err error) {
	all, err := ui.app.Elicitations.List(ctx, of.Conversation)
	at := slices.IndexFunc(all, func(q run.Elicitation) bool { return q.ID == question && q.Mode == artel.ElicitForm })
	if err != nil || at < 0 {
		return form, false, err
	}
	form, err = elicit.Parse(all[at].Schema)
	return form, true, err
}

func (ui *handler) answerElicitation(r *http.Request, of artel.Run, question artel.ElicitationID) error {
	action := artel.ElicitAction(r.PostFormValue("action"))
	var content map[string]any
	if action == artel.ElicitAccept {
		form, asks, err := ui.form(r.Context(), of, question)
		if err != nil {
			return err
		}
		if asks {
			content = form.Read(func(name string) []string {
				number := slices.IndexFunc(form.Fields, func(f elicit.Field) bool { return f.Name == name })
				return r.PostForm[elicitPost(number)]
			})
		}
	}
	_, err := ui.app.Elicitations.Answer(r.Context(), of.ID, question, action, content)
	return err
}

// mistakes tells what is wrong with an answer.
func (ui *handler) mistakes(r *http.Request, of artel.Run, question artel.ElicitationID, all []*elicit.Mistake) string {
	form, _, err := ui.form(r.Context(), of, question)
	if err != nil {
		ui.o.Log.WarnContext(r.Context(), "the labels of a form cannot be read", "run", of.ID, "err", err)
	}
	says := make([]string, len(all))
	for i, m := range all {
		name := m.Field
		if at := slices.IndexFunc(form.Fields, func(f elicit.Field) bool { return f.Name == m.Field }); at >= 0 {
			name = form.Fields[at].Label()
		}
		says[i] = locale(r).Say(phrase.Key("page.elicit_mistake_"+string(m.Code)), map[string]any{"Name": artel.Visible(artel.Shorten(name, 80)), "Want": m.Want})
	}
	return strings.Join(says, " ")
}

// elicitationRequested shows a question of a tool server, and marks the card of its call.
func (s *stream) elicitationRequested(ctx context.Context, e artel.Event) ([]part, error) {
	p, err := payload[artel.ElicitationRequested](e)
	if err != nil {
		return nil, err
	}
	q := run.Elicitation{
		ID: p.Elicitation, Run: e.Run, Agent: e.Agent, Within: e.Within, Call: p.Call, Name: p.Name, Server: p.Server, Mode: p.Mode,
		Message: p.Message, Schema: p.Schema, URL: p.URL, ExpiresAt: p.ExpiresAt,
	}
	said := part{"announcement", s.locale.Say(phrase.PageElicitAsked, map[string]any{"Server": p.Server})}
	return s.elicitationParts(ctx, e, q, stateWaiting, said)
}

// elicitationResolved shows the answer to a question of a tool server.
func (s *stream) elicitationResolved(ctx context.Context, e artel.Event) ([]part, error) {
	p, err := payload[artel.ElicitationResolved](e)
	if err != nil {
		return nil, err
	}
	list, err := s.app.Elicitations.List(ctx, s.conversation)
	if err != nil {
		return nil, err
	}
	state := stateRunning
	if p.Reason == artel.ResolvedByEnd {
		state = stateStopped
	}
	at := slices.IndexFunc(list, func(q run.Elicitation) bool { return q.ID == p.Elicitation })
	if at < 0 {
		return nil, nil
	}
	if slices.ContainsFunc(list, func(q run.Elicitation) bool { return q.Action == "" && q.Call == p.Call && q.Run == e.Run }) {
		state = stateWaiting
	}
	return s.elicitationParts(ctx, e, list[at], state)
}

func (s *stream) elicitationParts(ctx context.Context, e artel.Event, q run.Elicitation, state string, more ...part) ([]part, error) {
	status, err := s.statusAt(ctx, e)
	if err != nil {
		return nil, err
	}
	if on, err := s.follows(ctx, e.Run); err != nil || !on {
		return []part{{"status", status}}, err
	}
	heads, err := s.questionHeads(ctx, e, stateRunning)
	shown := s.elicitation(q)
	shown.Before = ".subagent"
	parts := append([]part{{"elicitation", shown}, {"status", status}}, more...)
	if card, ok := s.cards[q.Call]; ok { // otherwise the page has the card with its arguments
		card.State = state
		parts = append([]part{{"call", card}}, parts...)
	}
	return append(parts, heads...), err
}
