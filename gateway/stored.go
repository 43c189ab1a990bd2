// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/responses"
	"github.com/artelhq/artel/pipeline"
)

// Headers of requests whose conversation is stored here.
const (
	// ConversationHeader names the conversation whose newest message the request follows, or is
	// "new". The body holds only what is new. The answer names the conversation in the same header.
	ConversationHeader = "X-Artel-Conversation"
	// AgentHeader names the agent whose prompt and tools the model gets beside those of the request.
	AgentHeader = "X-Artel-Agent"
	// DedupeHeader set to true says that the body holds the whole conversation. What is stored of it
	// is found, and only the rest becomes new messages.
	DedupeHeader = "X-Artel-Dedupe"
)

// newConversation is the value of [ConversationHeader] for a conversation that begins.
const newConversation = "new"

// A storedRequest is a request whose conversation is stored here.
type storedRequest struct {
	start  backend.TurnStart
	stored responses.Stored
	whole  bool           // the body holds the whole conversation
	prefix backend.Prefix // of the whole conversation

	// Of a request that is answered without a run.
	id      artel.RunID
	body    json.RawMessage // its settings
	said    backend.Said
	history []artel.Message // before the new messages, if the body does not have it
}

// runs reports whether a request becomes a run of a stored conversation: it names one in its header,
// or it is to be answered in the background. Then what agents have works for it: their tools, rules,
// compaction and records.
func (x *exchange) runs() bool {
	return x.r.Header.Get(ConversationHeader) != "" || x.dedupes() || x.d.Dialect() == model.OpenAIResponses && gjson.Get(x.text, "background").Bool() && !x.hasForeignID()
}

// keeps reports whether a request of Responses is answered as others are, and stored then. A service
// of that dialect stores what it is asked to itself, unless the request names what is stored here.
func (x *exchange) keeps(s *model.Service) bool {
	if x.d.Dialect() != model.OpenAIResponses {
		return false
	}
	body := gjson.Parse(x.text)
	if _, ok := runOf(body.Get("previous_response_id").String()); ok {
		return true
	}
	if _, ok := conversationOf(conversationParameter(body)); ok {
		return true
	}
	if s.Dialect == model.OpenAIResponses {
		return false
	}
	switch body.Get("store").Type {
	case gjson.True:
		return true
	case gjson.False:
		return false
	}
	return !x.gw.o.Unstored
}

// hasForeignID reports whether a request names a response that is not stored here.
func (x *exchange) hasForeignID() bool {
	id := gjson.Get(x.text, "previous_response_id").String()
	_, ours := runOf(id)
	return id != "" && !ours
}

// dedupes reports whether the request says so with its header, or its key does and it is not to be
// left unstored.
func (x *exchange) dedupes() bool {
	if said := x.r.Header.Get(DedupeHeader); said != "" {
		on, _ := strconv.ParseBool(said)
		return on
	}
	return x.request.Texts.Dedupes() && gjson.Get(x.text, "store").Type != gjson.False
}

// conversationParameter returns the conversation that a request of Responses names; "": none.
func conversationParameter(body gjson.Result) string {
	c := body.Get("conversation")
	if c.IsObject() {
		c = c.Get("id")
	}
	return c.String()
}

// Ids of stored responses and conversations are those of runs and conversations with the prefixes
// of the API.
const (
	responsePrefix     = "resp_"
	conversationPrefix = "conv_"
	idLength           = 26
)

func responseID(id artel.RunID) string {
	return responsePrefix + strings.TrimPrefix(string(id), "run_")
}

func conversationName(id artel.ConversationID) string {
	return conversationPrefix + strings.TrimPrefix(string(id), "cnv_")
}

func runOf(response string) (artel.RunID, bool) {
	id, ok := strings.CutPrefix(response, responsePrefix)
	return artel.RunID("run_" + id), ok && len(id) == idLength
}

// conversationOf reads an id of the API, or one of a conversation itself.
func conversationOf(name string) (artel.ConversationID, bool) {
	id, ok := strings.CutPrefix(name, conversationPrefix)
	if !ok {
		id, ok = strings.CutPrefix(name, "cnv_")
	}
	return artel.ConversationID("cnv_" + id), ok && len(id) == idLength
}

// askStored starts a turn of a stored conversation and answers with it.
func (x *exchange) askStored(ctx context.Context, s *model.Service) error {
	x.setService(s)
	if err := x.fetchMedia(ctx); err != nil {
		return err
	}
	q := storedRequest{start: backend.TurnStart{Service: s.ID, Agent: artel.AgentName(x.r.Header.Get(AgentHeader))}, stored: responses.Stored{After: -1}}
	answer, neutral, err := x.readStored(ctx, &q)
	if err != nil {
		return err
	}
	for _, dropped := range neutral.Dropped {
		if err := x.noteDrop(dropped); err != nil {
			return err
		}
	}
	if err := x.place(ctx, &q, neutral); err != nil {
		return err
	}
	t, err := x.gw.backend.Turns.Start(ctx, q.start, withoutInput(x.text))
	if err != nil {
		return err
	}
	x.conversation = t.Run.Conversation
	if q.stored.Background && !x.head.Stream {
		body, err := x.storedAnswer(t, q.stored, answer).Unfinished(statusOf(t.Run))
		if err != nil {
			return err
		}
		return x.writeBody(body)
	}
	if x.head.Stream {
		x.startKeepAlive()
		ctx = x.r.Context()
	}
	err = x.writeStored(ctx, t, q, answer, neutral.Reasoning)
	if clientLeft(ctx) && !q.stored.Background {
		_, _ = x.gw.backend.Turns.Cancel(context.WithoutCancel(ctx), t) // it may have ended
	}
	return err
}

// readStored reads the request without what names stored responses, which it puts into q. The
// answer is nil for other dialects than Responses.
func (x *exchange) readStored(ctx context.Context, q *storedRequest) (*responses.Request, *model.Request, error) {
	if x.d.Dialect() != model.OpenAIResponses {
		if err := x.decode(ctx); err != nil {
			return nil, nil, err
		}
		return nil, x.call.Neutral(), nil
	}
	if err := x.resolveItems(ctx); err != nil {
		return nil, nil, err
	}
	body := gjson.Parse(x.text)
	q.stored.Previous, q.stored.Background = body.Get("previous_response_id").String(), body.Get("background").Bool()
	if c := conversationParameter(body); c != "" {
		if q.stored.Previous != "" {
			return nil, nil, provider.InvalidRequest("Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Name one of them.")
		}
		q.stored.Conversation = c
	}
	edits := x.unnamed()
	req, err := responses.Decode(ctx, x.extraction.Reader([]byte(provider.ApplyEdits(x.text, edits))), provider.DecodeOptions{})
	if err == nil {
		err = req.Check()
	}
	if err != nil {
		return nil, nil, provider.OpenAIFault(err)
	}
	return req, req.Neutral(), nil
}

// place finds the message that the request follows, and puts its new messages into q.
func (x *exchange) place(ctx context.Context, q *storedRequest, r *model.Request) error {
	messages := slices.DeleteFunc(slices.Clone(r.Messages), func(m model.Message) bool { return len(m.Parts) == 0 })
	var instructions []string
	for len(messages) > 1 && messages[0].Role == artel.RoleSystem { // one alone is what is answered
		instructions, messages = append(instructions, artel.TextOf(messages[0].Parts)), messages[1:]
	}
	q.start.Messages, q.start.Instructions = messages, strings.Join(instructions, "\n\n")
	q.start.Tools, q.start.Settings = r.Tools, pipeline.SettingsOf(r)
	header := x.r.Header.Get(ConversationHeader)
	switch {
	case q.stored.Previous != "":
		return x.placeAfter(ctx, q)
	case q.stored.Conversation != "" || header != "" && header != newConversation:
		name := q.stored.Conversation
		if name == "" {
			name = header
		}
		id, ok := conversationOf(name)
		if ok {
			_, err := x.gw.backend.Conversations.Find(ctx, id)
			ok = !errors.Is(err, artel.NotFound)
			if err != nil && ok {
				return err
			}
		}
		if !ok {
			return &provider.Fault{Status: http.StatusNotFound, Code: "conversation_not_found", Param: "conversation", Message: "Conversation with id '" + artel.Shorten(name, 100) + "' not found."}
		}
		q.start.Conversation = id
		return nil
	case header == newConversation:
		return nil
	}
	q.whole = true
	q.prefix = backend.NewPrefix(messages)
	known, at, n, err := x.gw.backend.Turns.Known(ctx, q.prefix)
	if err == nil && n > 0 {
		q.start.Conversation, q.start.Parent, q.start.Messages = known, &at, messages[n:]
	}
	return err
}

// placeAfter has the request follow the response that it names.
func (x *exchange) placeAfter(ctx context.Context, q *storedRequest) error {
	id, ok := runOf(q.stored.Previous)
	var before backend.Turn
	if ok {
		var err error
		before, err = x.gw.backend.Turns.Find(ctx, id)
		if ok = !errors.Is(err, artel.NotFound); err != nil && ok {
			return err
		}
	}
	if !ok {
		return &provider.Fault{
			Status: http.StatusBadRequest, Code: "previous_response_not_found", Param: "previous_response_id",
			Message: "Previous response with id '" + artel.Shorten(q.stored.Previous, 100) + "' not found.",
		}
	}
	if !before.Run.State.Final() {
		return &provider.Fault{
			Status: http.StatusBadRequest, Code: "previous_response_in_progress", Param: "previous_response_id",
			Message: "Previous response with id '" + q.stored.Previous + "' is still in progress. Wait until its status is completed, or cancel it.",
		}
	}
	last := before.Last()
	q.start.Conversation, q.start.Parent = before.Run.Conversation, &last
	return nil
}

// withoutInput returns the settings of a request: what a stored response repeats of it.
func withoutInput(text string) []byte {
	out := []byte{'{'}
	gjson.Parse(text).ForEach(func(key, value gjson.Result) bool {
		switch key.String() {
		case "input", "messages", "contents":
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key.Raw...), ':'), value.Raw...)
		return true
	})
	return append(out, '}')
}

// statusOf returns the status of a response.
func statusOf(r artel.Run) string {
	switch r.State {
	case artel.RunQueued:
		return "queued"
	case artel.RunDone:
		return "completed"
	case artel.RunCancelled:
		return "cancelled"
	case artel.RunFailed, artel.RunInterrupted, artel.RunTimedOut:
		return "failed"
	}
	return "in_progress"
}

// storedAnswer writes the answer of a turn as a response.
func (x *exchange) storedAnswer(t backend.Turn, k responses.Stored, req *responses.Request) responses.Answer {
	return responses.Answer{ID: responseID(t.Run.ID), Model: x.head.Model, Created: t.Run.StartedAt, Request: req, Service: t.Run.Service, Stored: &k}
}

// writeStored writes the answer of a turn in the client's dialect, from its beginning.
func (x *exchange) writeStored(ctx context.Context, t backend.Turn, q storedRequest, req *responses.Request, reasoning model.Reasoning) error {
	next, stop := iter.Pull2(x.gw.backend.Turns.Deltas(ctx, t))
	defer stop()
	first, err, ok := next()
	switch {
	case err != nil && !q.stored.Background:
		return err
	case !ok:
		return artel.Errorf(artel.Unavailable, "gateway", string(t.Run.Service), "the run has ended without an answer")
	}
	var failed error
	deltas := func(yield func(model.Delta, error) bool) {
		next := pushBack(first, err, ok, next)
		said := backend.Said{}
		for {
			d, err, ok := next()
			if !ok {
				return
			}
			if err != nil {
				failed = err
				yield(nil, clientError(err))
				return
			}
			said.Add(t.Run.Service, d)
			if end, is := d.(model.Finish); is {
				if x.service != nil { // otherwise the answer was logged with the request that asked for it
					x.entry.Usage = end.Usage
				}
				if q.whole { // before the client knows that it has ended
					if err := x.gw.backend.Turns.Remember(ctx, q.prefix, &said, t); err != nil {
						x.gw.o.Log.WarnContext(ctx, "a conversation will not be recognised", "conversation", t.Run.Conversation, "err", err)
					}
				}
			}
			if !hidden(d, reasoning, x.d.Dialect()) && !yield(d, nil) {
				return
			}
		}
	}
	answerer := provider.Answerer(x.storedAnswer(t, q.stored, req))
	if req == nil {
		answerer = dialectAnswer{x, t.Run.Service}
	}
	if !x.head.Stream {
		body, err := answerer.Body(deltas)
		if err = errors.Join(failed, err); err != nil {
			return err
		}
		return x.writeBody(body)
	}
	x.w.begin(http.StatusOK, x.streamHeader)
	err = answerer.Stream(x.events(), x.w.FlushError, deltas)
	switch unwritten := x.w.failure(); {
	case failed != nil:
		return failed
	case err != nil && unwritten != nil:
		return writeError(unwritten)
	}
	return err
}

// dialectAnswer writes answers in the dialect of an exchange.
type dialectAnswer struct {
	x  *exchange
	by artel.ServiceID
}

// Body implements [provider.Answerer].
func (a dialectAnswer) Body(deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
	return a.x.call.Body(a.x.head.Model, a.by, deltas)
}

// Stream implements [provider.Answerer].
func (a dialectAnswer) Stream(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	return a.x.call.Stream(a.x.head.Model, a.by, w, flush, deltas)
}
