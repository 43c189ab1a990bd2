// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A Client is what a client of the gateway brings to a run in the place of a text: the messages of
// its request that the conversation does not have yet, and its settings. The last message is
// answered. Media in them have blob refs to stored bytes, and become artifacts.
type Client struct {
	Messages []model.Message     `json:"messages"`
	Request  agent.ClientRequest `json:"request"`
	Sent     json.RawMessage     `json:"sent,omitempty"` // what the caller wants back from [Clients.Of]; not read here
}

// noteClient is the kind of the note of a run that a client has asked for. Its body is a Client,
// with refs of artifacts; it is never open.
const noteClient = "client"

// copied returns a copy of c whose messages may be replaced; nil for nil.
func (c *Client) copied() *Client {
	if c == nil {
		return nil
	}
	out := *c
	return &out
}

// check returns an error unless there is something to answer.
func (c *Client) check() error {
	const op = "run.Runs.Send"
	if len(c.Messages) == 0 {
		return artel.Errorf(artel.Invalid, op, "messages", "a request needs at least one new message")
	}
	size := 0
	for i, m := range c.Messages {
		if !slices.Contains([]artel.Role{artel.RoleSystem, artel.RoleUser, artel.RoleAssistant, artel.RoleTool}, m.Role) || len(m.Parts) == 0 {
			return artel.Errorf(artel.Invalid, op, "messages", "message %d has the role %q and %d parts: want a system, user, assistant or tool message with content", i+1, artel.Shorten(string(m.Role), 20), len(m.Parts))
		}
		size += len(artel.TextOf(m.Parts))
	}
	if size > maxMessageText*maxAttachments {
		return artel.Errorf(artel.TooLarge, op, "messages", "the new messages have more than %d bytes of text", maxMessageText*maxAttachments)
	}
	return nil
}

// Clients are the use cases of runs that clients of the gateway have asked for, with
// [Input.Client].
type Clients struct{ runs *Runs }

// NewClients returns those of rs.
func NewClients(rs *Runs) *Clients { return &Clients{rs} }

// Of returns what a client of the gateway has brought to a run, with the refs of the
// artifacts that its media have become. A run without a client is of kind NotFound.
func (cs *Clients) Of(ctx context.Context, id artel.RunID) (c Client, err error) {
	err = cs.runs.config.view(ctx, func(tx store.Tx) error {
		found, err := clientOf(tx, id)
		if err == nil && found == nil {
			err = artel.Errorf(artel.NotFound, "run.Clients.Of", string(id), "no client of the gateway has asked for this run")
		}
		if err == nil {
			c = *found
		}
		return err
	})
	return c, err
}

// Forget deletes what [Clients.Of] returns of a run that has ended.
func (cs *Clients) Forget(ctx context.Context, id artel.RunID) error {
	return cs.runs.config.update(ctx, func(tx store.Tx) error {
		r, err := tx.Runs.Get(id)
		if err != nil {
			return err
		}
		if !r.State.Final() {
			return artel.Errorf(artel.Conflict, "run.Clients.Forget", string(id), "the run has not ended: it is %s", r.State)
		}
		return tx.Notes.Delete(clientNoteID(id))
	})
}

// clientNoteID is the id of the note of a run.
func clientNoteID(id artel.RunID) string { return noteClient + "/" + string(id) }

// clientOf returns the client of a run; nil: it has none.
func clientOf(tx store.Tx, id artel.RunID) (*Client, error) {
	n, err := tx.Notes.Get(clientNoteID(id))
	if errors.Is(err, artel.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := bodyOf[Client](n)
	return &c, err
}

// stageClient reads the media of a client's messages and replaces what is media in their texts,
// outside of a transaction.
func (k *Config) stageClient(ctx context.Context, c *Client, f *StagedMedia) (*Client, error) {
	out := *c
	out.Messages = make([]model.Message, len(c.Messages))
	for i, m := range c.Messages {
		out.Messages[i] = model.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
		if err := k.stageParts(ctx, out.Messages[i].Parts, f); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

func (k *Config) stageParts(ctx context.Context, parts artel.Parts, f *StagedMedia) (err error) {
	for i, p := range parts {
		switch p := p.(type) {
		case artel.Text:
			p.Text, err = scrub.Text(ctx, p.Text, f.Keep)
			parts[i] = p
		case artel.ToolResult:
			if p.Content, err = scrub.Text(ctx, p.Content, f.Keep); err == nil {
				p.Parts = slices.Clone(p.Parts)
				err = k.stageParts(ctx, p.Parts, f)
			}
			parts[i] = p
		case artel.Media:
			if p.Ref.IsBlob() {
				err = k.stageMedia(ctx, p, f)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stageMedia stages bytes that are in the blob store.
func (k *Config) stageMedia(ctx context.Context, m artel.Media, f *StagedMedia) error {
	if slices.ContainsFunc(f.staged, func(s artifact.Staged) bool { return s.Digest == m.Ref.Digest }) {
		return nil
	}
	r, err := k.Blobs.Open(ctx, m.Ref.Digest)
	if err != nil {
		return err
	}
	defer r.Close()
	name := m.Filename
	if name != "" {
		name = path.Base("/" + name)
	}
	s, err := k.Artifacts.Uploads.Stage(ctx, r, media.Hint{DeclaredType: m.MediaType, Filename: name})
	if err == nil {
		f.staged = append(f.staged, s)
	}
	return err
}

// withArtifacts returns the messages of c with the artifacts that its staged media have become.
func (c *Client) withArtifacts(f *StagedMedia, made []artel.Artifact) []model.Message {
	byDigest := map[artel.Digest]artel.Artifact{}
	for i, a := range made {
		byDigest[f.staged[i].Digest] = a
	}
	texts := f.Replacer(made)
	var replace func(parts artel.Parts) artel.Parts
	replace = func(parts artel.Parts) artel.Parts {
		out := slices.Clone(parts)
		for i, p := range out {
			switch p := p.(type) {
			case artel.Text:
				p.Text = texts.Replace(p.Text)
				out[i] = p
			case artel.ToolResult:
				p.Content, p.Parts = texts.Replace(p.Content), replace(p.Parts)
				out[i] = p
			case artel.Media:
				if a, ok := byDigest[p.Ref.Digest]; ok && p.Ref.IsBlob() {
					detail := p.Detail
					p = a.MediaPart()
					p.Detail = detail
					out[i] = p
				}
			}
		}
		return out
	}
	out := make([]model.Message, len(c.Messages))
	for i, m := range c.Messages {
		out[i] = model.Message{Role: m.Role, Parts: replace(m.Parts)}
	}
	return out
}

// keepClient stores what a client has brought, so that the run can be resumed and its request can
// be shown.
func (x *execution) keepClient(tx store.Tx, c artel.ConversationID) error {
	return putNote(tx, store.Note{ID: clientNoteID(x.run.ID), Conversation: c, Run: x.run.ID, Kind: noteClient, CreatedAt: x.config.Now()}, x.client)
}

// startClient stores the messages of the client after parent, of which the last one has an id that
// is given, and starts the run that answers it.
func (x *execution) startClient(tx store.Tx, c artel.Conversation, parent, last artel.MessageID, messages []model.Message) error {
	m, title, event, err := x.addClientMessages(tx, c, parent, last, messages, true)
	if err != nil {
		return err
	}
	return x.startAt(tx, c, m, title, event)
}

// addClientMessages stores the messages of the client after parent. It returns the last one and its
// event, and a title for the conversation. With strict, a result has to be of a call that has none.
func (x *execution) addClientMessages(tx store.Tx, c artel.Conversation, parent, last artel.MessageID, messages []model.Message, strict bool) (m artel.Message, title string, event artel.Payload, err error) {
	x.client.Messages = messages
	if err := x.keepClient(tx, c.ID); err != nil {
		return m, "", nil, err
	}
	var open openCalls
	if slices.ContainsFunc(messages, func(m model.Message) bool { return len(artel.ResultsOf(m.Parts)) > 0 }) {
		if open, err = openCallsAt(tx, c.ID, parent); err != nil {
			return m, "", nil, err
		}
	}
	var all []model.Message // with one result each, as runs store them
	for _, m := range messages {
		all = append(all, splitResults(m)...)
	}
	for i, one := range all {
		event = nil
		if result, ok := one.Parts[0].(artel.ToolResult); ok {
			call, err := open.answer(&result)
			if err != nil && strict {
				return m, "", nil, err
			}
			one.Parts = artel.Parts{result}
			event = artel.ToolCompleted{Call: result.CallID, Name: call.Name, OK: !result.IsError}
		}
		now := x.config.Now()
		m = artel.Message{ID: last, Conversation: c.ID, Parent: parent, Role: one.Role, Parts: one.Parts, Run: x.run.ID, CreatedAt: now}
		before := i < len(all)-1
		if before {
			m.ID, m.Run = artel.NewMessageID(now), ""
		} else if x.selection != nil {
			if err := x.shortlist(tx, m); err != nil {
				return m, "", nil, err
			}
		}
		if err := addMessage(tx, m); err != nil {
			return m, "", nil, err
		}
		if m.Role == artel.RoleAssistant {
			open = append(open, artel.CallsOf(m.Parts)...)
		}
		if m.Role == artel.RoleUser && title == "" {
			title = titleOf(artel.TextOf(m.Parts))
		}
		switch done, ok := event.(artel.ToolCompleted); {
		case ok:
			done.Message = m
			event = done
		case m.Role == artel.RoleAssistant:
			event = artel.MessageCompleted{Message: m}
		default:
			event = artel.UserInput{Message: m}
		}
		parent = m.ID
		if before {
			if err := x.config.Events.Append(tx, c.ID, artel.Event{Agent: x.agent.Name}, event); err != nil {
				return m, "", nil, err
			}
		}
	}
	return m, title, event, nil
}

// addMessage stores a message, which claims the artifacts of its media.
func addMessage(tx store.Tx, m artel.Message) error {
	if err := tx.Messages.Create(m); err != nil {
		return err
	}
	var ids []artel.ArtifactID
	for _, p := range artel.MediaOf(m.Parts) {
		if p.Ref.Artifact != "" {
			ids = append(ids, p.Ref.Artifact)
		}
	}
	return tx.Versions.Claim(m.Conversation, ids, m.ID)
}

// openCalls are the calls that the results of a client may answer.
type openCalls []artel.ToolCall

// openCallsAt returns the calls of the newest answer at a message that have no result there.
func openCallsAt(tx store.Tx, c artel.ConversationID, at artel.MessageID) (openCalls, error) {
	for n := 8; at != ""; n *= 2 {
		end, err := tx.Messages.Path(c, at, n)
		if err != nil {
			return nil, err
		}
		for i, m := range slices.Backward(end) {
			if m.Role == artel.RoleAssistant {
				return agent.Unanswered(end[i:]), nil
			}
		}
		if len(end) < n {
			break
		}
	}
	return nil, nil
}

// answer takes the call out that a result is of. Gemini's API may leave out the ids of calls: then
// it is the oldest one.
func (o *openCalls) answer(r *artel.ToolResult) (artel.ToolCall, error) {
	at := slices.IndexFunc(*o, func(c artel.ToolCall) bool { return c.ID == r.CallID || r.CallID == "" })
	if at < 0 {
		return artel.ToolCall{}, artel.Errorf(artel.Invalid, "run.Runs.Send", artel.Shorten(string(r.CallID), 100), "the result is of a call that the conversation does not wait for")
	}
	call := (*o)[at]
	*o = slices.Delete(slices.Clone(*o), at, at+1)
	r.CallID = call.ID
	return call, nil
}

// splitResults returns a message as messages with one result of a tool each, before the rest.
func splitResults(m model.Message) (out []model.Message) {
	var rest artel.Parts
	for _, p := range m.Parts {
		if _, ok := p.(artel.ToolResult); ok {
			out = append(out, model.Message{Role: artel.RoleTool, Parts: artel.Parts{p}})
		} else {
			rest = append(rest, p)
		}
	}
	if len(rest) > 0 {
		role := m.Role
		if role == artel.RoleTool {
			role = artel.RoleUser
		}
		out = append(out, model.Message{Role: role, Parts: rest})
	}
	return out
}

// waitsForClient reports whether the run ends with calls that its client makes.
func (x *execution) waitsForClient(tx store.Tx) (bool, error) {
	if x.client == nil || x.run.State != artel.RunDone {
		return false, nil
	}
	tip, err := x.newestMessage(tx)
	if err != nil {
		return false, err
	}
	own, err := x.newestStep(tx, tip)
	return err == nil && len(agent.Unanswered(own)) > 0, err
}
