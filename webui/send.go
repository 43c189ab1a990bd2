// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/run"
)

// A Draft is the state of the composer.
type Draft struct {
	Action   string          // URL of the form
	Text     string          // kept after a failed request
	Error    string          // of the failed request
	Agent    artel.AgentName // chosen agent
	Agents   []AgentChoice   // agents to choose from; empty: the agent is fixed
	Models   Models
	Status   Status
	Last     LastCall
	Returned Returned
	Servers  bool  // tool servers have resources or prompts
	Quiet    bool  // another field of the page takes the focus
	Window   Gauge // context window estimate; zero until something is typed
}

// An AgentChoice is an agent for a new conversation.
type AgentChoice struct {
	Name    string
	Value   string // form value; "": the default agent
	About   string
	Service artel.ServiceID // its own; "": the default
	Model   string          // display name of Service, if set
	Chosen  bool
}

// leadAgent is the default agent.
const leadAgent = "lead_agent"

// agentChoices returns the agents to choose from.
func (ui *handler) agentChoices(r *http.Request, chosen artel.AgentName) ([]AgentChoice, error) {
	all, err := ui.app.Agents.List(r.Context())
	var out []AgentChoice
	for _, a := range all {
		c := AgentChoice{Name: string(a.Name), Value: string(a.Name), About: a.Description, Service: a.Service, Chosen: a.Name == cmp.Or(chosen, leadAgent)}
		if a.Service != "" {
			c.Model = cmp.Or(a.Runs.Name, string(a.Service))
		}
		if a.Name == leadAgent {
			c.Value = ""
			out = append([]AgentChoice{c}, out...)
		} else {
			out = append(out, c)
		}
	}
	return out, err
}

// begin starts a conversation with its first message.
func (ui *handler) begin(w http.ResponseWriter, r *http.Request) {
	var c artel.Conversation
	// The agent field precedes the files in the form, and the files need the
	// conversation.
	open := func(m *message) (id artel.ConversationID, err error) {
		if c.ID == "" {
			c, err = ui.app.Conversations.Create(r.Context(), app.NewConversation{Agent: m.Agent})
		}
		return c.ID, err
	}
	m, err := ui.readMessage(r, open)
	defer m.stored()
	if err == nil {
		_, err = open(&m)
	}
	if err == nil {
		_, err = ui.app.Runs.Send(r.Context(), c.ID, m.Input)
	}
	if err != nil {
		if c.ID != "" {
			ui.abandon(r, c.ID)
		}
		ui.showRefused(w, r, Draft{Action: "/c", Text: m.Text, Agent: m.Agent}, err)
		return
	}
	ui.sent(w, r, c.ID)
}

// abandon deletes a conversation without messages, even if the request was
// cancelled.
func (ui *handler) abandon(r *http.Request, id artel.ConversationID) {
	if err := ui.app.Conversations.Delete(context.WithoutCancel(r.Context()), id); err != nil {
		ui.o.Log.WarnContext(r.Context(), "an empty conversation stays", "conversation", id, "err", err)
	}
}

// send adds a message to a conversation.
func (ui *handler) send(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	if err == nil {
		_, err = ui.app.Conversations.Find(r.Context(), id)
	}
	if err != nil && wantsJSON(r) {
		ui.showRefused(w, r, Draft{}, err)
		return
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	m, err := ui.readMessage(r, func(*message) (artel.ConversationID, error) { return id, nil })
	defer m.stored()
	if err == nil {
		err = ui.deliver(r, id, m)
	}
	if err != nil {
		ui.showRefused(w, r, Draft{Action: conversationURL(id), Text: m.Text}, err)
		return
	}
	ui.sent(w, r, id)
}

// deliver sends a message. During a run it is queued or, if requested, sent to the
// run.
func (ui *handler) deliver(r *http.Request, id artel.ConversationID, m message) error {
	if m.now {
		active, err := ui.app.Runs.Active(r.Context(), id)
		if err == nil && len(m.Uploads)+len(m.Attachments) > 0 {
			return artel.Errorf(artel.Invalid, "webui", "", "%s", locale(r).Say(phrase.PageTellFiles, nil))
		}
		if err == nil {
			_, err = ui.app.Runs.Inject(r.Context(), active.ID, m.Text)
		}
		if !errors.Is(err, artel.NotFound) && artel.CodeOf(err) != run.CodeRunNotActive {
			return err
		}
		// The run has ended: the message starts the next one.
	}
	m.Queue = true
	_, err := ui.app.Runs.Send(r.Context(), id, m.Input)
	return err
}

func (ui *handler) sent(w http.ResponseWriter, r *http.Request, id artel.ConversationID) {
	url := conversationURL(id)
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, map[string]string{"url": ui.place.Prefix + url})
		return
	}
	http.Redirect(w, r, url, http.StatusSeeOther)
}

// showRefused shows the composer again with the message and the error.
func (ui *handler) showRefused(w http.ResponseWriter, r *http.Request, d Draft, err error) {
	status, text := ui.explain(r, err)
	d.Error = text
	if wantsJSON(r) {
		writeJSON(w, status, map[string]string{"error": text})
		return
	}
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.showHome(w, r, status, f, d)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

const maxField = 1_000_000 // bytes of one text field

// A message is the content of the composer.
type message struct {
	run.Input
	now       bool // to the active run, not queued
	resources int  // of tool servers

	uploading context.Context // with what the files may store; nil: there were none
	release   func()          // may be nil
}

// stored gives back what was reserved for the files.
func (m *message) stored() {
	if m.release != nil {
		m.release()
	}
}

// reserve admits the files of a form, before the first of them is read.
func (ui *handler) reserve(r *http.Request, in *message) (err error) {
	if in.uploading != nil {
		return nil
	}
	in.uploading, in.release, err = ui.app.Storage.Reserve(r.Context(), r.ContentLength, min(max(r.ContentLength, 0), maxField))
	return err
}

// readMessage parses the form as a stream: files are stored as they arrive, in the
// conversation returned by open.
func (ui *handler) readMessage(r *http.Request, open func(*message) (artel.ConversationID, error)) (message, error) {
	var in message
	for part, err := range form.Parts(r.Body, r.Header.Get("Content-Type")) {
		if err == nil {
			err = ui.readPart(r, open, part, &in)
		}
		if artel.CodeOf(err) == form.CodeMalformed {
			err = brokenForm(r, err)
		}
		if err != nil {
			return in, err
		}
	}
	if strings.TrimSpace(in.Text) == "" && len(in.Uploads)+len(in.Attachments) == 0 {
		return in, artel.Errorf(artel.Invalid, "webui", "", "%s", locale(r).Say(phrase.PageEmpty, nil))
	}
	return in, nil
}

func brokenForm(r *http.Request, err error) error {
	return artel.Errorf(artel.Invalid, "webui", "", "%s (%w)", locale(r).Say(phrase.PageBrokenForm, nil), err)
}

// readPart handles one part; unknown fields, such as those of browser
// extensions, are skipped.
func (ui *handler) readPart(r *http.Request, open func(*message) (artel.ConversationID, error), part form.Part, in *message) error {
	var err error
	switch part.Name {
	case "text":
		in.Text, err = field(part)
		if artel.KindOf(err) == artel.TooLarge {
			err = artel.Errorf(artel.TooLarge, "webui", "", "%s", locale(r).Say(phrase.PageTooLong, nil))
		}
	case "service":
		var s string
		s, err = field(part)
		in.Service = artel.ServiceID(s)
	case "agent":
		var s string
		s, err = field(part)
		in.Agent = artel.AgentName(s)
	case "how":
		var s string
		s, err = field(part)
		in.now = s == "tell"
	case "attachment":
		var s string
		s, err = field(part)
		in.Attachments = append(in.Attachments, s)
	case "resource":
		var s string
		if s, err = field(part); err == nil {
			err = ui.readResource(r, open, s, in)
		}
	case "file":
		if part.Filename == "" {
			return nil // browsers send an empty file input as a part without a name
		}
		if err := ui.reserve(r, in); err != nil {
			return err
		}
		id, err := open(in)
		if err != nil {
			return err
		}
		var s artifact.Staged
		s, err = ui.app.Artifacts.Stage(in.uploading, id, app.Upload{Body: part, Filename: part.Filename, DeclaredType: part.ContentType})
		in.Uploads = append(in.Uploads, s)
		return err
	}
	return err
}

// mostResources is how many resources of tool servers a message attaches.
const mostResources = 20

// readResource attaches a resource, which is named by its server and its address.
func (ui *handler) readResource(r *http.Request, open func(*message) (artel.ConversationID, error), name string, in *message) error {
	if in.resources++; in.resources > mostResources {
		return artel.Errorf(artel.TooLarge, "webui", "", "%s", locale(r).Say(phrase.PageServerContentsMost, map[string]any{"Count": mostResources}))
	}
	if err := ui.reserve(r, in); err != nil {
		return err
	}
	if _, err := open(in); err != nil {
		return err
	}
	server, uri, _ := strings.Cut(name, " ")
	staged, err := ui.app.Library.Stage(artel.WithOwner(in.uploading, artel.OwnerOf(r.Context())), server, uri)
	in.Uploads = append(in.Uploads, staged...)
	return err
}

func field(part form.Part) (string, error) {
	b, err := io.ReadAll(io.LimitReader(part, maxField+1))
	switch {
	case err != nil:
		return "", err
	case len(b) > maxField:
		return "", artel.Errorf(artel.TooLarge, "webui", part.Name, "more than %d bytes", maxField)
	case !utf8.Valid(b):
		return "", artel.Errorf(artel.Invalid, "webui", part.Name, "not UTF-8")
	}
	return string(b), nil
}
