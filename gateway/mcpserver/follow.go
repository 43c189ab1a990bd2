// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
)

// Notifications come from the logs of conversations. They are followed while a client
// listens: with an open GET in a session, with subscriptions/listen otherwise.

// Limits of one client.
const (
	maxSubscribed = 1000 // resources
	maxFollowed   = 16   // conversations of resources, beside the client's own
)

// A stream is the time in which a client listens.
type stream struct {
	server *server
	ctx    context.Context // of the HTTP request
	list   artel.ConversationID

	mu       sync.Mutex
	followed map[artel.ConversationID]bool
	work     sync.WaitGroup
}

// open begins a stream that ends with end, and with the request.
func (s *server) open(r *http.Request) (end func()) {
	ctx, cancel := context.WithCancel(r.Context())
	ctx, joined := s.h.as(ctx, &call{ctx: r.Context(), scope: scopeOfRequest(r), alone: true})
	st := &stream{server: s, ctx: ctx, followed: map[artel.ConversationID]bool{}}
	if c, err := s.h.conversation(ctx, ""); err == nil {
		st.list = c.ID
		st.follow(c.ID)
	}
	s.mu.Lock()
	s.stream = st
	subscribed := make([]string, 0, len(s.subscribed))
	for uri := range s.subscribed {
		subscribed = append(subscribed, uri)
	}
	s.mu.Unlock()
	for _, uri := range subscribed {
		if ref, err := refOf(uri); err == nil {
			st.follow(ref.Conversation)
		}
	}
	return func() {
		s.mu.Lock()
		if s.stream == st {
			s.stream = nil
		}
		s.mu.Unlock()
		cancel()
		joined()
		st.work.Wait()
	}
}

// listen serves subscriptions/listen.
func (h *Handler) listen(w http.ResponseWriter, r *http.Request, body []byte) {
	s := h.newServer("")
	var m struct {
		Params struct {
			Notifications struct {
				ResourceSubscriptions []string `json:"resourceSubscriptions"`
			} `json:"notifications"`
		} `json:"params"`
	}
	_ = json.Unmarshal(body, &m) // what is no message is refused by the SDK
	if len(m.Params.Notifications.ResourceSubscriptions) > maxSubscribed {
		writeError(w, http.StatusBadRequest, "one stream has at most 1000 subscriptions; open a second one")
		return
	}
	end := s.open(r)
	defer end()
	h.stateless.ServeHTTP(w, with(r, s))
}

// follow begins to follow a conversation, from now on. It reports whether it does.
func (st *stream) follow(c artel.ConversationID) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.followed[c] {
		return true
	}
	if len(st.followed) > maxFollowed || st.ctx.Err() != nil {
		return false
	}
	last, err := st.server.h.app.Events.Last(st.ctx, c)
	if err != nil {
		return false
	}
	st.followed[c] = true
	st.work.Go(func() {
		for e, err := range st.server.h.app.Events.Follow(st.ctx, c, last, 0) {
			if err != nil {
				if st.ctx.Err() == nil {
					st.server.h.log.WarnContext(st.ctx, "an MCP client gets no more notifications of a conversation", "conversation", c, "err", err)
				}
				return
			}
			st.tell(c, e)
		}
	})
	return true
}

// tell sends the notifications that an event causes.
func (st *stream) tell(c artel.ConversationID, e artel.Event) {
	listed := false
	var id artel.ArtifactID
	switch e.Type {
	case artel.EventArtifactCreated:
		var p artel.ArtifactCreated
		if json.Unmarshal(e.Data, &p) != nil {
			return
		}
		id, listed = p.Artifact.ID, true
	case artel.EventArtifactUpdated:
		var p artel.ArtifactUpdated
		if json.Unmarshal(e.Data, &p) != nil {
			return
		}
		id = p.ID
		listed = slices.Contains([]artel.UpdateType{artel.UpdateDelete, artel.UpdateRestore, artel.UpdateRename}, p.Update)
	default:
		return
	}
	s := st.server
	if listed && c == st.list {
		s.listChanged()
	}
	var changed []string
	s.mu.Lock()
	for uri := range s.subscribed {
		if ref, err := refOf(uri); err == nil && ref.Conversation == c && ref.Artifact == id {
			changed = append(changed, uri)
		}
	}
	s.mu.Unlock()
	for _, uri := range changed {
		_ = s.mcp.ResourceUpdated(st.ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}) // it returns none
	}
}

// listChanged notifies the client of s. The SDK does that only when a resource is added;
// the list itself is made by listResources.
func (s *server) listChanged() {
	s.mcp.AddResource(&mcp.Resource{URI: changedURI, Name: "changed"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	})
	s.mcp.RemoveResources(changedURI)
}

const changedURI = "artel:changed"

// subscribe is the handler of subscriptions.
func (s *server) subscribe(ctx context.Context, r *mcp.SubscribeRequest) error {
	uri := r.Params.URI
	ref, err := refOf(uri)
	if err == nil {
		_, err = s.h.app.Conversations.Find(ctx, ref.Conversation)
	}
	if err != nil {
		return mcp.ResourceNotFoundError(uri)
	}
	s.mu.Lock()
	if len(s.subscribed) >= maxSubscribed {
		s.mu.Unlock()
		return &jsonrpc.Error{Code: codeRefused, Message: "a client has at most 1000 subscriptions; end some with resources/unsubscribe"}
	}
	if !ref.Immutable() && !s.follows(ref.Conversation) { // also before the stream opens, which could refuse nothing
		s.mu.Unlock()
		return errFollowed()
	}
	s.subscribed[uri] = true
	st := s.stream
	s.mu.Unlock()
	if !ref.Immutable() && st != nil && !st.follow(ref.Conversation) {
		s.mu.Lock()
		delete(s.subscribed, uri)
		s.mu.Unlock()
		return errFollowed()
	}
	return nil
}

func errFollowed() error {
	return &jsonrpc.Error{Code: codeRefused, Message: "a client follows the resources of at most 16 conversations beside its own; end the subscriptions of others, or open a second connection"}
}

// follows reports whether the conversations of the subscriptions are few enough with one
// more. The caller holds s.mu.
func (s *server) follows(more artel.ConversationID) bool {
	all := map[artel.ConversationID]bool{more: true}
	for uri := range s.subscribed {
		if ref, err := refOf(uri); err == nil && !ref.Immutable() {
			all[ref.Conversation] = true
		}
	}
	return len(all) <= maxFollowed
}

func (s *server) unsubscribe(_ context.Context, r *mcp.UnsubscribeRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subscribed, r.Params.URI)
	return nil
}
