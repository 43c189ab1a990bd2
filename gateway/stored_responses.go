// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/responses"
)

// nameConversation names the conversation that stores the request.
func (x *exchange) nameConversation(h http.Header) {
	if x.conversation != "" {
		h.Set(ConversationHeader, string(x.conversation))
	}
}

// resolveItems replaces the references to items of stored responses in the input by the items.
func (x *exchange) resolveItems(ctx context.Context) error {
	outputs := map[artel.RunID]gjson.Result{}
	var edits []provider.Edit
	var failed error
	provider.EachElement(gjson.Get(x.text, "input"), func(_, item gjson.Result) bool {
		if item.Get("type").String() != "item_reference" {
			return true
		}
		name := item.Get("id").String()
		found, err := x.findItem(ctx, name, outputs)
		if failed = err; err != nil {
			return false
		}
		edits = append(edits, provider.Edit{Span: provider.SpanOf(item), With: found})
		return true
	})
	if failed != nil || len(edits) == 0 {
		return failed
	}
	x.text, x.call = provider.ApplyEdits(x.text, edits), nil
	return nil
}

// findItem returns an item of the output of a stored response, whose id is in that of the item.
func (x *exchange) findItem(ctx context.Context, name string, outputs map[artel.RunID]gjson.Result) (string, error) {
	lost := &provider.Fault{
		Status: http.StatusNotFound, Code: "item_not_found", Param: "input",
		Message: "Item with id '" + artel.Shorten(name, 100) + "' not found. Only items of responses that were stored here can be referred to; send others themselves.",
	}
	_, rest, _ := strings.Cut(name, "_")
	id, _, _ := strings.Cut(rest, "_")
	runID, ok := runOf(responsePrefix + id)
	if !ok {
		return "", lost
	}
	output, known := outputs[runID]
	if !known {
		t, err := x.gw.backend.Turns.Find(ctx, runID)
		if errors.Is(err, artel.NotFound) {
			return "", lost
		}
		if err != nil {
			return "", err
		}
		body, err := x.whole(ctx, t)
		if err != nil {
			return "", err
		}
		output = gjson.GetBytes(body, "output")
		outputs[runID] = output
	}
	for _, item := range output.Array() {
		if item.Get("id").String() == name {
			return item.Raw, nil
		}
	}
	return "", lost
}

// whole returns a stored response as it is now.
func (x *exchange) whole(ctx context.Context, t backend.Turn) (json.RawMessage, error) {
	a, reasoning, err := x.answerOf(ctx, t)
	if err != nil {
		return nil, err
	}
	switch status := statusOf(t.Run); status {
	case "queued", "in_progress", "cancelled":
		return a.Unfinished(status)
	case "failed":
		f := provider.Fault{Status: http.StatusInternalServerError, Message: "the run has failed"}
		if t.Run.Error != nil {
			f = *faultOf(backend.ErrorOf(t.Run.Error))
		}
		return a.Failed(f.Status, f.Message)
	}
	return a.Whole(func(yield func(model.Delta, error) bool) {
		for d, err := range x.gw.backend.Turns.Deltas(ctx, t) {
			if err == nil && hidden(d, reasoning, x.d.Dialect()) {
				continue
			}
			if !yield(d, err) {
				return
			}
		}
	})
}

// answerOf returns what writes a stored response.
func (x *exchange) answerOf(ctx context.Context, t backend.Turn) (a responses.Answer, r model.Reasoning, err error) {
	body := gjson.ParseBytes(t.Body())
	k := responses.Stored{After: -1, Previous: body.Get("previous_response_id").String(), Conversation: conversationParameter(body), Background: body.Get("background").Bool()}
	// What the response repeats of its request; its input is in the conversation.
	req, err := responses.Decode(ctx, bytes.NewReader(t.Body()), provider.DecodeOptions{})
	if err != nil {
		return a, r, artel.Errorf(artel.Internal, "gateway", string(t.Run.ID), "the request of a stored response cannot be read: %w", err)
	}
	x.head.Model = body.Get("model").String()
	return x.storedAnswer(t, k, req), req.Neutral().Reasoning, nil
}

// serveStored serves the paths of stored responses and conversations; false if the path names
// none.
func (s *server) serveStored(w http.ResponseWriter, r *http.Request, path string) bool {
	if rest, ok := strings.CutPrefix(path, "/v1/responses/"); ok {
		id, verb, _ := strings.Cut(rest, "/")
		x := s.newExchange(w, r, responses.Editor())
		x.finish(x.admitted(func() error { return x.storedResponse(id, verb) }))
		return true
	}
	if path != "/v1/conversations" && !strings.HasPrefix(path, "/v1/conversations/") {
		return false
	}
	name, verb, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, "/v1/conversations"), "/"), "/")
	x := s.newExchange(w, r, responses.Editor())
	x.finish(x.admitted(func() error { return x.storedConversation(name, verb) }))
	return true
}

// admitted runs fn for a client that is let in.
func (x *exchange) admitted(fn func() error) error {
	leave, err := x.admit()
	if err != nil {
		return err
	}
	defer leave()
	return fn()
}

// storedResponse serves one stored response.
func (x *exchange) storedResponse(name, verb string) error {
	ctx, turns := x.r.Context(), x.gw.backend.Turns
	id, ours := runOf(name)
	t, err := turns.Find(ctx, id)
	if !ours || errors.Is(err, artel.NotFound) {
		return &provider.Fault{Status: http.StatusNotFound, Code: "response_not_found", Message: "Response with id '" + artel.Shorten(name, 100) + "' not found."}
	}
	if err != nil {
		return err
	}
	method := x.r.Method
	switch {
	case verb == "" && method == http.MethodGet:
		if stream, _ := strconv.ParseBool(x.r.URL.Query().Get("stream")); stream {
			return x.followStored(ctx, t)
		}
		body, err := x.whole(ctx, t)
		if err != nil {
			return err
		}
		return x.writeBody(body)
	case verb == "" && method == http.MethodDelete:
		return x.deleteStored(ctx, name, t)
	case verb == "cancel" && method == http.MethodPost:
		return x.cancelStored(ctx, name, t)
	case verb == "input_items" && method == http.MethodGet:
		items := responses.InputItems(t.Client.Messages, strings.TrimPrefix(name, responsePrefix))
		return x.writeItems(items)
	case slices.Contains([]string{"", "cancel", "input_items"}, verb):
		return notAllowed(x.r)
	}
	return &provider.Fault{Status: http.StatusNotFound, Message: "Invalid URL (" + method + " " + artel.Shorten(x.r.URL.Path, 200) + ")"}
}

// followStored streams a stored response from its beginning, or after a sequence number.
func (x *exchange) followStored(ctx context.Context, t backend.Turn) error {
	a, reasoning, err := x.answerOf(ctx, t)
	if err != nil {
		return err
	}
	if text := x.r.URL.Query().Get("starting_after"); text != "" {
		if a.Stored.After, err = strconv.Atoi(text); err != nil {
			return provider.InvalidRequest("Invalid 'starting_after': '%s' is no sequence number.", artel.Shorten(text, 40))
		}
	}
	x.head.Stream, x.conversation = true, t.Run.Conversation
	x.startKeepAlive()
	return x.writeStored(x.r.Context(), t, storedRequest{stored: *a.Stored}, a.Request, reasoning)
}

// deleteStored deletes the answer of a response, if nothing follows it, or says why not.
func (x *exchange) deleteStored(ctx context.Context, name string, t backend.Turn) error {
	if !t.Run.State.Final() {
		return &provider.Fault{Status: http.StatusConflict, Code: "response_in_progress", Message: "Response with id '" + name + "' is still in progress. Cancel it first."}
	}
	if err := x.gw.backend.Turns.Forget(ctx, t); err != nil {
		return err
	}
	return x.writeJSON(map[string]any{"id": name, "object": "response", "deleted": true})
}

// cancelStored ends a background response.
func (x *exchange) cancelStored(ctx context.Context, name string, t backend.Turn) (err error) {
	if !gjson.GetBytes(t.Body(), "background").Bool() {
		return provider.InvalidRequest("Only background responses can be cancelled: '%s' was not created with 'background' set to true. To end another one, close its connection.", name)
	}
	if !t.Run.State.Final() {
		if t.Run, err = x.gw.backend.Turns.Cancel(ctx, t); err != nil && artel.KindOf(err) != artel.Conflict {
			return err
		}
	}
	body, err := x.whole(ctx, t)
	if err != nil {
		return err
	}
	return x.writeBody(body)
}

// writeItems writes a page of a list of items.
func (x *exchange) writeItems(items []any) error {
	query := x.r.URL.Query()
	idOf := func(item any) string {
		if m, ok := item.(map[string]any); ok {
			id, _ := m["id"].(string)
			return id
		}
		return ""
	}
	if query.Get("order") != "asc" { // the API's default is the newest first
		items = slices.Clone(items)
		slices.Reverse(items)
	}
	if after := query.Get("after"); after != "" {
		at := slices.IndexFunc(items, func(i any) bool { return idOf(i) == after })
		if at < 0 {
			return provider.InvalidRequest("Invalid 'after': there is no item '%s' in this list.", artel.Shorten(after, 100))
		}
		items = items[at+1:]
	}
	limit := 20
	if text := query.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 100 {
			return provider.InvalidRequest("Invalid 'limit': '%s' is no number from 1 to 100.", artel.Shorten(text, 40))
		}
	}
	more := len(items) > limit
	items = items[:min(len(items), limit)]
	list := map[string]any{"object": "list", "data": items, "has_more": more, "first_id": nil, "last_id": nil}
	if len(items) > 0 {
		list["first_id"], list["last_id"] = idOf(items[0]), idOf(items[len(items)-1])
	}
	return x.writeJSON(list)
}

// storedConversation serves conversations; name is empty for all of them.
func (x *exchange) storedConversation(name, verb string) error {
	ctx, conversations, method := x.r.Context(), x.gw.backend.Conversations, x.r.Method
	if name == "" {
		if method != http.MethodPost {
			return notAllowed(x.r)
		}
		return x.beginConversation(ctx)
	}
	id, ok := conversationOf(name)
	var c artel.Conversation
	var err error
	if ok {
		c, err = conversations.Find(ctx, id)
	}
	if !ok || errors.Is(err, artel.NotFound) {
		return &provider.Fault{Status: http.StatusNotFound, Code: "conversation_not_found", Message: "Conversation with id '" + artel.Shorten(name, 100) + "' not found."}
	}
	if err != nil {
		return err
	}
	switch {
	case verb == "" && method == http.MethodGet:
		return x.writeJSON(conversationObject(c))
	case verb == "" && method == http.MethodDelete:
		if err := conversations.Delete(ctx, id); err != nil {
			return err
		}
		return x.writeJSON(map[string]any{"id": conversationName(id), "object": "conversation.deleted", "deleted": true})
	case verb == "items" && method == http.MethodGet:
		branch, err := conversations.Branch(ctx, id, "")
		if err != nil {
			return err
		}
		var items []any
		for _, m := range branch {
			suffix := strings.TrimPrefix(string(m.ID), "msg_")
			items = append(items, responses.InputItems([]model.Message{{Role: m.Role, Parts: m.Parts}}, suffix)...)
		}
		return x.writeItems(items)
	case verb == "" || verb == "items":
		return notAllowed(x.r)
	}
	return &provider.Fault{Status: http.StatusNotFound, Message: "Invalid URL (" + method + " " + artel.Shorten(x.r.URL.Path, 200) + ")"}
}

// maxConversationBody is the size of a request for a new conversation, in bytes.
const maxConversationBody = 64 << 10

// beginConversation makes a conversation.
func (x *exchange) beginConversation(ctx context.Context) error {
	text, err := io.ReadAll(io.LimitReader(x.r.Body, maxConversationBody+1))
	if err != nil {
		return unread(err)
	}
	body := gjson.ParseBytes(text)
	switch {
	case len(text) > maxConversationBody:
		return &provider.Fault{Status: http.StatusRequestEntityTooLarge, Message: "A request for a new conversation has at most 64 KB."}
	case len(text) > 0 && (!gjson.ValidBytes(text) || !body.IsObject()):
		return provider.InvalidRequest("We could not parse the JSON body of your request.")
	case len(body.Get("items").Array()) > 0:
		f := provider.InvalidRequest("Unsupported parameter: 'items' is not supported. Send them in the 'input' of the first response of the conversation.")
		f.Param = "items"
		return f
	case len(body.Get("metadata").Map()) > 0:
		f := provider.InvalidRequest("Unsupported parameter: 'metadata' is not supported for conversations here. Leave it out, or keep it with the id of the conversation.")
		f.Param = "metadata"
		return f
	}
	c, err := x.gw.backend.Conversations.Begin(ctx, app.NewConversation{})
	if err != nil {
		return err
	}
	return x.writeJSON(conversationObject(c))
}

func conversationObject(c artel.Conversation) map[string]any {
	return map[string]any{"id": conversationName(c.ID), "object": "conversation", "created_at": c.CreatedAt.Unix(), "metadata": map[string]any{}}
}
