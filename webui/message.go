// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"context"
	"encoding/json"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/render"
	"github.com/artelhq/artel/run"
)

// A Message is an entry of the thread.
type Message struct {
	ID         artel.MessageID
	Role       artel.Role
	At         time.Time
	Reasoning  string
	Body       Blocks        // of an agent
	UserText   template.HTML // of the user
	Rest       template.HTML // end of UserText, if that is very long
	Files      []File
	Calls      []Call
	Questions  []Question // permission questions of its calls
	Elicits    []Elicitation
	Subagents  []Subagent // started by its calls
	Into       string     // element that contains it; "": the thread
	Writing    bool       // in progress
	Thinking   bool       // in progress, with reasoning only
	Partial    bool       // cut off
	Injected   bool       // sent to a running agent
	Muted      bool       // hidden from models
	Edited     bool       // an answer written by a person
	Editing    bool       // its text is in an input
	Text       string     // value of that input
	URL        string     // of its editor
	Siblings   Siblings
	Usage      *Usage // of the answer; nil: not the end of one
	Summary    bool   // Body is a summary of the messages above
	Summarised Summarised
	Before     []Change // model changes before it
	After      []Change // model changes after the last message of a run
	Notice     *Notice  // shown after it; nil: none
	Original   string   // text before the display rules; "": unchanged
	Context    string   // URL of the inspector; "": no model call
	TryRules   string   // URL to try rules on its text; "": no text
	run        artel.RunID
}

// Blocks is rendered Markdown, one element per block, so that a stream replaces
// only changed blocks.
type Blocks struct {
	ID    string // element id of the container
	From  int    // number of the first block
	Items []template.HTML
}

// Number is the number of the i-th item in the whole text.
func (b Blocks) Number(i int) int { return b.From + i }

// A File is a file shown as a card.
type File struct {
	Name, Icon string
	About      string       // kind and size
	URL        string       // of its viewer; "": none
	Thumb      string       // of a picture
	Download   template.URL // of its bytes; "": none
	Delivery   Delivery     // how a model received it
}

// A Call is a tool call shown as a card.
type Call struct {
	ID        artel.CallID
	Name      string
	Verb      string // what a built-in tool does, for people; "": another tool
	Subject   string // the artifact or other object of the call
	Arguments Value
	Result    []Value
	State     string // running, waiting, done, stopped, failed
	Took      string
	Progress  string // what the server said last of a running call
	Connect   string // an MCP server that the user has to connect first; "": none
	App       *AppFrame
}

// The states of a card.
const (
	stateRunning = "running"
	stateWaiting = "waiting" // for an answer of the user
	stateDone    = "done"
	stateStopped = "stopped" // by the end of its run
	stateFailed  = "failed"
)

// A Notice is shown between messages.
type Notice struct {
	ID   artel.RunID
	Text string
	Hint phrase.Key // suggestion for the user
}

// A view shows one conversation in one language.
type view struct {
	*handler
	conversation artel.ConversationID
	locale       phrase.Locale
	deliveries   map[place]Delivery // how attachments were sent
	asked        []run.Permission
	elicited     []run.Elicitation
	events       threadEvents
	siblings     map[artel.MessageID]Siblings
	originals    map[artel.MessageID]string
}

// changed records the texts that display rules have changed.
func (v *view) changed(stored, shown []artel.Message) {
	for i, m := range stored {
		if text := shownText(m); text != shownText(shown[i]) {
			if v.originals == nil {
				v.originals = map[artel.MessageID]string{}
			}
			v.originals[m.ID] = text
		}
	}
}

// shownText joins the texts of a message as they are shown.
func shownText(m artel.Message) string {
	var texts []string
	for _, p := range m.Parts {
		if t, ok := p.(artel.Text); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// deliveryOf returns how the n-th media part of a message was sent, or an empty
// placeholder.
func (v view) deliveryOf(m artel.MessageID, n int) Delivery {
	w := v.deliveries[place{m, n}]
	w.ID = deliveryID(m, n)
	return w
}

// messages joins tool results to the cards of their calls. A call without a
// result is running if its run is active, otherwise interrupted. The last
// message of a run that ended early gets a notice.
func (v *view) messages(ctx context.Context, branch []artel.Message, active artel.RunID) ([]Message, error) {
	var out []Message
	var run artel.Run
	cards := map[artel.CallID][2]int{}
	for _, m := range branch {
		if m.Run != "" && m.Run != run.ID {
			var err error
			if run, err = v.app.Runs.Find(ctx, m.Run); err != nil {
				return nil, err
			}
		}
		if m.Role == artel.RoleTool {
			first := 0
			for _, res := range artel.ResultsOf(m.Parts) {
				if at, found := cards[res.CallID]; found {
					v.finish(&out[at[0]].Calls[at[1]], m.ID, first, res)
				}
				first += mediaIn(res)
			}
			continue
		}
		shown := v.message(m)
		if run.ID == m.Run && run.Reply == m.ID && run.State.Final() {
			shown.Usage = v.runUsage(ctx, m.ID, run.Service, run.Usage)
		}
		shown.Injected = m.Role == artel.RoleUser && m.Run != "" && m.Within == "" && run.Message != m.ID
		shown.Questions, shown.Elicits = v.questions(ctx, m, shown.Calls), v.elicitations(m, shown.Calls)
		if run.Error != nil && run.ID == m.Run && (run.Reply == m.ID || run.Reply == "" && run.Message == m.ID) {
			n := v.notice(run.ID, run.State, run.Error)
			shown.Notice = &n
			shown.Partial = m.Role == artel.RoleAssistant && len(shown.Calls) == 0
		}
		if n := len(out); n > 0 && m.Run != "" && out[n-1].run == m.Run && out[n-1].Notice != nil {
			shown.Notice, out[n-1].Notice = out[n-1].Notice, nil // the run was sent this and did not answer it
		}
		if slices.ContainsFunc(shown.Calls, func(c Call) bool { return c.Name == delegateTool }) {
			var err error
			if shown.Subagents, err = v.subagents(ctx, m, active); err != nil {
				return nil, err
			}
		}
		progress := v.progress(active)
		for i := range shown.Calls {
			shown.Calls[i].Progress = progress[shown.Calls[i].ID]
			if m.Run != active {
				shown.Calls[i].State = stateStopped
			}
			if slices.ContainsFunc(shown.Questions, func(q Question) bool { return q.Open() && q.Call == shown.Calls[i].ID }) ||
				slices.ContainsFunc(shown.Elicits, func(q Elicitation) bool { return q.Open() && q.Call == shown.Calls[i].ID }) {
				shown.Calls[i].State = stateWaiting
			}
			cards[shown.Calls[i].ID] = [2]int{len(out), i}
		}
		out = append(out, shown)
	}
	for _, m := range out {
		m.endThreads()
	}
	markCovered(out)
	if len(branch) > 0 {
		v.insertChanges(ctx, out, branch[0].Within)
	}
	return out, nil
}

// longText is how many code points of a user message are shown at once.
const longText = 3000

func (v view) message(m artel.Message) Message {
	out := Message{
		ID: m.ID, Role: m.Role, At: m.CreatedAt, Original: v.originals[m.ID], Muted: m.Muted, Edited: m.Edited, Siblings: v.siblings[m.ID],
		URL: conversationURL(v.conversation) + "/m/" + string(m.ID), run: m.Run,
	}
	if m.Run != "" {
		out.Context = inspectURL(m.Run, m.ID)
	}
	if m.Conversation != "" && artel.TextOf(m.Parts) != "" {
		out.TryRules = "/rules?" + url.Values{"agent": {string(m.Agent)}, "conversation": {string(m.Conversation)}, "message": {string(m.ID)}}.Encode() + "#try"
	}
	var thoughts []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case artel.Reasoning:
			thoughts = append(thoughts, p.Text)
		case artel.Media:
			f := v.file(p)
			f.Delivery = v.deliveryOf(m.ID, len(out.Files))
			out.Files = append(out.Files, f)
		case artel.ToolCall:
			out.Calls = append(out.Calls, v.call(p.ID, p.Name, p.Arguments))
		}
	}
	out.Reasoning = strings.TrimSpace(strings.Join(thoughts, "\n\n"))
	text := shownText(m)
	if m.Summary {
		out.Summary, out.Body = true, v.blocks(bodyID(m.ID), text)
		out.Summarised = v.summarised(m, v.events.summaries[m.ID])
		return out
	}
	if m.Role == artel.RoleUser {
		head, rest := text, ""
		if runes := []rune(text); len(runes) > longText*5/4 {
			head, rest = string(runes[:longText]), string(runes[longText:])
		}
		out.UserText, out.Rest = render.Text(head), render.Text(rest)
	} else {
		out.Body = v.blocks(bodyID(m.ID), text)
	}
	return out
}

func bodyID(m artel.MessageID) string { return "m-" + string(m) + "-b" }

// blocks renders the Markdown of a model.
func (v view) blocks(id, text string) Blocks {
	if text == "" {
		return Blocks{ID: id}
	}
	return Blocks{ID: id, Items: v.withCopyButtons(render.Blocks(text, v.options()))}
}

// withCopyButtons adds a copy button to each block of code.
func (v view) withCopyButtons(blocks []template.HTML) []template.HTML {
	const end = "</figcaption>" // only package render writes it: user text is escaped
	label := string(render.Text(v.locale.Say(phrase.PageCopy, nil)))
	button := `<button class="plain" type="button" data-copy="code">` + string(v.icon("copy")) + label + "</button>" + end
	for i, b := range blocks {
		blocks[i] = template.HTML(strings.ReplaceAll(string(b), end, button)) //nolint:gosec // safe parts put together
	}
	return blocks
}

// options link the refs of a text to their viewers, and describe omissions.
func (v view) options() render.Options {
	return render.Options{
		ArtifactURL: func(ref artel.Ref) string {
			if ref.IsBlob() {
				return app.FileURL(ref)
			}
			return artifactURL(v.conversation, ref)
		},
		Cut: func(n int, unit render.Unit) string {
			return v.locale.Say(phrase.Key("page.cut_"+string(unit)), map[string]any{"Count": n})
		},
	}
}

func (v view) file(m artel.Media) File {
	f := File{
		Name: artel.Visible(m.Filename), Icon: iconOf(m.Kind, m.MediaType),
		About: typeName(v.locale, m.MediaType) + " · " + phrase.Size(m.Size),
	}
	if m.Ref.Artifact != "" {
		f.URL = artifactURL(v.conversation, m.Ref)
	}
	f.Thumb = v.thumb(m)
	return f
}

// thumb is the URL of a thumbnail; "": none.
func (ui *handler) thumb(m artel.Media) string {
	switch {
	case tooLarge(m.Width, m.Height):
	case ui.app.Files.HasThumbnail(m.MediaType):
		return app.FileURL(m.Ref) + "?width=128" // twice the displayed width, for high-density screens
	case slices.Contains(pictures, m.MediaType) && m.MediaType != "image/svg+xml":
		return app.FileURL(m.Ref)
	}
	return ""
}

// iconOf is the icon of a kind of file.
func iconOf(kind artel.MediaKind, mediaType string) string {
	switch kind {
	case artel.KindImage:
		return "image"
	case artel.KindAudio:
		return "audio-lines"
	case artel.KindVideo:
		return "film"
	case artel.KindArchive:
		return "archive"
	case artel.KindDocument:
		return "file-text"
	case artel.KindText:
		if mediaType == "text/markdown" || mediaType == "text/plain" {
			return "file-text"
		}
		return "file-code"
	}
	return "file"
}

// verb says what a built-in tool does; "" for other tools.
func (v view) verb(tool string) string {
	key := phrase.Key("page.call_of_" + tool)
	if s := v.locale.Say(key, nil); s != string(key) {
		return s
	}
	return ""
}

func (v view) call(id artel.CallID, name string, args json.RawMessage) Call {
	var about struct{ ID, Ref, Title, Agent string }
	_ = json.Unmarshal(args, &about)
	subject := about.ID
	for _, s := range []string{about.Ref, about.Title, about.Agent} {
		if subject == "" {
			subject = s
		}
	}
	return Call{ID: id, Name: name, Verb: v.verb(name), Subject: artel.Shorten(subject, 80), Arguments: v.arguments(args), State: stateRunning}
}

// finish puts the result of a call on its card; before is the number of earlier
// media in message m.
func (v view) finish(c *Call, m artel.MessageID, before int, res artel.ToolResult) {
	c.Result, c.State = v.result(m, before, res), stateDone
	switch {
	case res.Metadata["interrupted"] == true, res.Metadata["not_made"] == true:
		c.State = stateStopped
	case res.IsError:
		c.State = stateFailed
		c.Connect, _ = res.Metadata["connect"].(string)
	}
	c.App = v.appFrame(m, res)
	if res.Millis > 0 {
		c.Took = duration(time.Duration(res.Millis) * time.Millisecond)
	}
}

// mediaIn counts the media of a result.
func mediaIn(res artel.ToolResult) (n int) {
	for _, p := range res.Parts {
		if _, ok := p.(artel.Media); ok {
			n++
		}
	}
	return n
}

// duration formats a duration: "85 ms", "1.2 s", "3 min 5 s".
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return itoa(int(d.Milliseconds())) + " ms"
	case d < time.Minute:
		return strings.TrimSuffix(d.Round(100*time.Millisecond).String(), "s") + " s"
	}
	d = d.Round(time.Second)
	return itoa(int(d/time.Minute)) + " min " + itoa(int(d%time.Minute/time.Second)) + " s"
}
