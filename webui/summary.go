// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/run"
)

// Summarised is what the card of a summary shows beside its text.
type Summarised struct {
	Replaces int    // number of messages; 0: unknown
	Before   int    // tokens of the messages; 0: unknown
	After    int    // tokens of the summary
	Focus    string // what it keeps in detail, in the user's words; "": nothing in particular
	Again    bool   // it was made because a user has undone another
	Newer    bool   // a newer summary stands in its place
	URL      string // of the summary as an artifact; "": none
	agent    artel.AgentName
}

// summarised returns what the event of a summary says about it.
func (v view) summarised(m artel.Message, p artel.CompactionCompleted) Summarised {
	out := Summarised{Replaces: p.Replaced, Before: p.Before, After: p.After, Focus: p.Focus, Again: p.Undone != "", agent: m.Agent}
	if p.Artifact != nil {
		out.URL = artifactURL(v.conversation, artel.Ref{Artifact: p.Artifact.ID})
	}
	return out
}

// markCovered marks the summaries of a thread that have a newer one of the same agent in
// their place.
func markCovered(thread []Message) {
	active := map[artel.AgentName]bool{}
	for i := len(thread) - 1; i >= 0; i-- {
		if m := &thread[i]; m.Summary {
			m.Summarised.Newer = active[m.Summarised.agent]
			active[m.Summarised.agent] = active[m.Summarised.agent] || !m.Muted
		}
	}
}

// markCoveredBelow is markCovered for an older page of a thread: the newer summaries are below it.
func (v view) markCoveredBelow(ctx context.Context, page []Message) error {
	if !slices.ContainsFunc(page, func(m Message) bool { return m.Summary }) {
		return nil
	}
	all, err := v.app.Summaries.List(ctx, v.conversation)
	if err != nil {
		return err
	}
	active, newer := map[artel.AgentName]bool{}, map[artel.MessageID]bool{}
	for _, s := range slices.Backward(all) {
		newer[s.ID] = active[s.Agent]
		active[s.Agent] = active[s.Agent] || s.State == run.SummaryActive
	}
	for i := range page {
		if m := &page[i]; m.Summary {
			m.Summarised.Newer = m.Summarised.Newer || newer[m.ID]
		}
	}
	return nil
}

// severalSummaries reports whether the conversation has more than one.
func (s *stream) severalSummaries(ctx context.Context) (bool, error) {
	events, err := s.loadEvents(ctx)
	return len(events.summaries) > 1, err
}

// A CoveredList shows the messages that a summary stands for.
type CoveredList struct {
	Summary  artel.MessageID
	Messages []CoveredMessage
	More     int // messages that are not shown
}

// A CoveredMessage is one of them.
type CoveredMessage struct {
	Role artel.Role
	At   time.Time
	Text string
	Rest string // end of Text, if that is long
}

// Bounds of what is shown of the messages at once.
const (
	maxCovered   = 300
	shortCovered = 400  // code points of one
	longCovered  = 5000 // code points of one that is opened
)

// covered shows the messages that a summary stands for.
func (ui *handler) covered(w http.ResponseWriter, r *http.Request) {
	v, id, err := ui.messageOfPath(r)
	var all []artel.Message
	if err == nil {
		all, err = ui.app.Summaries.Messages(r.Context(), v.conversation, id)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if !wantsFragment(r) {
		http.Redirect(w, r, conversationURL(v.conversation), http.StatusSeeOther)
		return
	}
	list := CoveredList{Summary: id}
	for i, m := range all {
		if i == maxCovered {
			list.More = len(all) - i
			break
		}
		text := v.plainText(m)
		short := artel.Beginning(text, shortCovered)
		list.Messages = append(list.Messages, CoveredMessage{m.Role, m.CreatedAt, short, artel.Beginning(text[len(short):], longCovered)})
	}
	ui.fragments(w, r, http.StatusOK, part{"covered", list})
}

// plainText is what a message says, with the names of its calls and its results.
func (v view) plainText(m artel.Message) string {
	var out []string
	if text := shownText(m); text != "" {
		out = append(out, text)
	}
	for _, p := range artel.MediaOf(m.Parts) {
		out = append(out, artel.Visible(p.Filename))
	}
	for _, c := range artel.CallsOf(m.Parts) {
		verb := v.verb(c.Name)
		if verb == "" {
			verb = c.Name
		}
		out = append(out, verb+": "+string(c.Arguments))
	}
	for _, res := range artel.ResultsOf(m.Parts) {
		out = append(out, res.Content)
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// changeSummary undoes or redoes a summary, and tells what the next request has then.
func (ui *handler) changeSummary(w http.ResponseWriter, r *http.Request) {
	v, id, err := ui.messageOfPath(r)
	var done run.SummaryChange
	if err == nil {
		do := ui.app.Summaries.Redo
		if strings.HasSuffix(r.URL.Path, "/undo") {
			do = ui.app.Summaries.Undo
		}
		done, err = do(r.Context(), v.conversation, id)
	}
	if err != nil || !wantsFragment(r) {
		ui.showDone(w, r, v, err)
		return
	}
	ui.fragments(w, r, http.StatusOK, part{"toast", Toast{ID: "toast-summary", Text: v.summaryChange(done)}})
}

// summaryChange tells what a change of a summary does.
func (v view) summaryChange(done run.SummaryChange) string {
	key := phrase.PageSummaryRedone
	if done.State == run.SummaryUndone {
		key = phrase.PageSummaryUndone
	}
	said := []string{v.locale.Say(key, map[string]any{"Count": done.Messages})}
	if done.Tokens > 0 {
		said = append(said, v.locale.Say(phrase.PageSummaryNext, map[string]any{"Count": thousands(done.Tokens)}))
	}
	switch {
	case done.Compacts:
		said = append(said, v.locale.Say(phrase.PageSummaryTooLong, nil))
	case done.Dropped > 0:
		said = append(said, v.locale.Say(phrase.PageSummaryDropped, map[string]any{"Count": done.Dropped}))
	}
	return strings.Join(said, " ")
}
