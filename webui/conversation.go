// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/phrase"
	"github.com/artelhq/artel/render"
)

// A Message is one entry of the thread as the page shows it.
type Message struct {
	ID          artel.MessageID
	Role        artel.Role
	Body        template.HTML // the text, rendered
	Attachments []Attachment
	Calls       []Call
	Writing     bool // it is being written
	Partial     bool // it broke off
}

// An Attachment is a file that a message sends.
type Attachment struct {
	Name, Kind, Size string
	URL              string // of its page
	Image            string // of the picture itself; empty: it is none
}

// A Call is one tool call as a card.
type Call struct {
	ID        artel.CallID
	Name      string
	Subject   string // what it is about
	Arguments string // indented JSON
	Result    string
	State     string // running, done, failed
}

// A Notice is said between the messages.
type Notice struct {
	ID   artel.RunID
	Text string
}

// A Status is the state of the run that works on the conversation.
type Status struct {
	Run    artel.RunID // "": none
	Active bool
}

// A Thread is the conversation page.
type Thread struct {
	frame
	Draft
	Conversation artel.Conversation
	Messages     []Message
	Status       Status
	Panel        Panel
	After        artel.Seq // events up to this one are in the page
}

func (ui *face) conversation(w http.ResponseWriter, r *http.Request) {
	t, err := ui.thread(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.show(w, r, http.StatusOK, "conversation.html", t)
}

func (ui *face) thread(r *http.Request) (Thread, error) {
	ctx := r.Context()
	var t Thread
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	if err != nil {
		return t, err
	}
	if t.Conversation, err = ui.app.Conversations.Find(ctx, id); err != nil {
		return t, err
	}
	if t.frame, err = ui.frame(r, id); err != nil {
		return t, err
	}
	// The number first: what happens while the rest is read comes again as a
	// fragment, and changes nothing the second time.
	if t.After, err = ui.app.Events.Last(ctx, id); err != nil {
		return t, err
	}
	branch, err := ui.app.Conversations.Branch(ctx, id, t.Conversation.Leaf)
	if err != nil {
		return t, err
	}
	t.Title, t.Draft.Action = t.Conversation.Title, "/c/"+string(id)
	run, err := ui.app.Runs.Active(ctx, id)
	switch {
	case err == nil:
		t.Status = Status{Run: run.ID, Active: true}
	case !errors.Is(err, artel.NotFound):
		return t, err
	}
	t.Messages = messagesOf(id, branch, run.ID)
	if t.Panel, err = ui.panel(ctx, id, locale(r)); err != nil {
		return t, err
	}
	return t, nil
}

// messagesOf joins tool results to the cards of their calls. A call without a
// result runs if its run is the active one, else it was interrupted.
func messagesOf(c artel.ConversationID, branch []artel.Message, active artel.RunID) []Message {
	var out []Message
	cards := map[artel.CallID][2]int{}
	for _, m := range branch {
		if m.Role == artel.RoleTool {
			for _, p := range m.Parts {
				res, ok := p.(artel.ToolResult)
				if at, found := cards[res.CallID]; ok && found {
					out[at[0]].Calls[at[1]].finish(res)
				}
			}
			continue
		}
		v := messageOf(c, m)
		for i := range v.Calls {
			if m.Run != active {
				v.Calls[i].State = stateFailed
			}
			cards[v.Calls[i].ID] = [2]int{len(out), i}
		}
		out = append(out, v)
	}
	return out
}

// The states of a card.
const (
	stateRunning = "running"
	stateDone    = "done"
	stateFailed  = "failed"
)

func (c *Call) finish(res artel.ToolResult) {
	c.Result, c.State = res.Content, stateDone
	if res.IsError {
		c.State = stateFailed
	}
}

func messageOf(c artel.ConversationID, m artel.Message) Message {
	v := Message{ID: m.ID, Role: m.Role}
	var texts []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case artel.Text:
			texts = append(texts, p.Text)
		case artel.Media:
			v.Attachments = append(v.Attachments, attachmentOf(c, p))
		case artel.ToolCall:
			v.Calls = append(v.Calls, callOf(p.ID, p.Name, p.Arguments))
		}
	}
	text := strings.Join(texts, "\n\n")
	if m.Role == artel.RoleUser {
		v.Body = render.Text(text)
	} else {
		v.Body = markdown(c, text)
	}
	return v
}

func callOf(id artel.CallID, name string, args json.RawMessage) Call {
	var about struct{ ID, Ref string }
	_ = json.Unmarshal(args, &about)
	subject := about.ID
	if subject == "" {
		subject = about.Ref
	}
	shown, err := json.MarshalIndent(args, "", "  ")
	if err != nil {
		shown = args
	}
	return Call{ID: id, Name: name, Subject: artel.Shorten(subject, 80), Arguments: string(shown), State: stateRunning}
}

func attachmentOf(c artel.ConversationID, m artel.Media) Attachment {
	a := Attachment{Name: artel.Visible(m.Filename), Kind: string(m.Kind), Size: phrase.Size(m.Size)}
	if m.Ref.Artifact != "" {
		a.URL = artifactURL(c, m.Ref)
	}
	if m.Kind == artel.KindImage {
		a.Image = app.FileURL(m.Ref)
	}
	return a
}

// markdown renders what a model wrote; its links to artifacts lead to their
// pages.
func markdown(c artel.ConversationID, text string) template.HTML {
	return render.Markdown(text, render.Options{ArtifactURL: func(ref artel.Ref) string {
		if ref.IsBlob() {
			return app.FileURL(ref)
		}
		return artifactURL(c, ref)
	}})
}

func artifactURL(c artel.ConversationID, ref artel.Ref) string {
	if ref.Conversation != "" {
		c = ref.Conversation
	}
	u := "/c/" + string(c) + "/a/" + url.PathEscape(string(ref.Artifact))
	if ref.Version > 0 {
		u += "?v=" + itoa(ref.Version)
	}
	return u
}

// A Panel is the list of artifacts with the plan on top.
type Panel struct {
	Plan      *Plan
	Artifacts []Item
}

// A Plan is the task plan with its progress.
type Plan struct {
	URL         string
	Body        template.HTML
	Done, Total int
}

// An Item is one artifact of the list.
type Item struct {
	artel.Artifact
	URL      string
	SizeText string
	SaidBy   string
}

func (ui *face) panel(ctx context.Context, c artel.ConversationID, l phrase.Locale) (Panel, error) {
	var p Panel
	list, err := ui.app.Artifacts.List(ctx, c, "")
	if err != nil {
		return p, err
	}
	for _, a := range list {
		if a.ID == artel.TaskPlan && !a.Binary {
			_, text, err := ui.app.Artifacts.Find(ctx, c, a.ID, "")
			if err != nil {
				return p, err
			}
			p.Plan = planOf(c, *text)
		}
		p.Artifacts = append(p.Artifacts, Item{a, artifactURL(c, artel.Ref{Artifact: a.ID}), phrase.Size(a.Size), sourceName(l, a.Source)})
	}
	return p, nil
}

func planOf(c artel.ConversationID, text string) *Plan {
	p := &Plan{URL: artifactURL(c, artel.Ref{Artifact: artel.TaskPlan}), Body: markdown(c, text)}
	p.Done, p.Total = artel.PlanProgress(text)
	return p
}

func sourceName(l phrase.Locale, s artel.Source) string {
	switch s {
	case artel.SourceUserUpload, artel.SourceUser:
		return l.Say(phrase.PageByUser, nil)
	case artel.SourceAgent:
		return l.Say(phrase.PageByAgent, nil)
	}
	return string(s)
}
