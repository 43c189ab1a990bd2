// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/store"
)

// The SDK gives a handler the context in which a session began. Who asks now is in the
// context of the HTTP request, which the handler finds by an id in its header.

// callHeader is the header with that id. Clients cannot set it.
const callHeader = "Artel-Call"

// A call is an HTTP request at work.
type call struct {
	ctx   context.Context
	at    string // the address of this server, as the client has it
	scope string // of its artifacts: the id or title of a conversation; "": the user's own
	alone bool   // without a session: the result cannot be delivered after the end of the request
}

// begin registers a request until end.
func (h *Handler) begin(r *http.Request) (_ *http.Request, end func()) {
	id := rand.Text()
	r = r.Clone(r.Context())
	r.Header.Set(callHeader, id)
	h.calls.Store(id, &call{ctx: r.Context(), at: peer.Of(r).Origin() + peer.Of(r).Prefix, scope: scopeOfRequest(r), alone: r.Header.Get("Mcp-Session-Id") == ""})
	return r, func() { h.calls.Delete(id) }
}

type scopeKey struct{}

// scopeOf returns the id or title of the conversation of a request; "": none was given.
func scopeOf(ctx context.Context) string {
	s, _ := ctx.Value(scopeKey{}).(string)
	return s
}

type originKey struct{}

// originOf returns the address of this server, as the client of a request has it; "": it
// has none.
func originOf(ctx context.Context) string {
	s, _ := ctx.Value(originKey{}).(string)
	return s
}

// A joined context has the end of one context, and the values of another as well.
type joined struct {
	context.Context
	values context.Context
}

// Value implements [context.Context].
func (j joined) Value(key any) any {
	if v := j.Context.Value(key); v != nil {
		return v
	}
	return j.values.Value(key)
}

// as returns the context in which a message is handled: with the actor of its HTTP
// request, until the message is cancelled, the token is revoked or, without a session,
// the client leaves.
func (h *Handler) as(ctx context.Context, c *call) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(joined{ctx, c.ctx})
	if a, ok := access.Of(c.ctx); ok { // not that of the request that began the session
		ctx = access.With(ctx, a)
	}
	stop := context.AfterFunc(c.ctx, func() {
		if c.alone || access.Refusal(c.ctx) != nil {
			cancel(context.Cause(c.ctx))
		}
	})
	closed := context.AfterFunc(h.base, func() { cancel(context.Cause(h.base)) })
	return context.WithValue(context.WithValue(ctx, scopeKey{}, c.scope), originKey{}, c.at), func() { stop(); closed(); cancel(nil) }
}

// acting is the middleware that gives every message its actor, and errors their form.
func (h *Handler) acting(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if extra := r.GetExtra(); extra != nil {
			if c, ok := h.calls.Load(extra.Header.Get(callHeader)); ok {
				var end context.CancelFunc
				ctx, end = h.as(ctx, c.(*call))
				defer end()
			}
		}
		if err := access.Require(ctx, store.ScopeRead); err != nil {
			return nil, h.failure(ctx, err)
		}
		res, err := next(ctx, method, r)
		if err != nil {
			return nil, h.failure(ctx, err)
		}
		return res, nil
	}
}

// failure returns the error of JSON-RPC for an error of a use case.
func (h *Handler) failure(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*artel.Error](err); !ok {
		return err // of the SDK, or of a context
	}
	e := &jsonrpc.Error{Code: codeRefused, Message: err.Error()}
	switch artel.KindOf(err) {
	case artel.Invalid, artel.TooLarge, artel.Unsupported, artel.NotFound:
		e.Code = jsonrpc.CodeInvalidParams
	case artel.Internal, artel.Unavailable:
		h.log.ErrorContext(ctx, "a request of an MCP client failed", "err", err)
		e.Code, e.Message = jsonrpc.CodeInternalError, "the server failed; the reason is in its log; try again"
	case artel.Canceled:
		e.Message = "the call was cancelled: " + err.Error()
	}
	return e
}

// ownScope is the title of the conversation of clients that name none.
const ownScope = "MCP"

// conversation returns the conversation with an id or title or, if none is given, that of
// the client: it is made once for everything that a client may write.
func (h *Handler) conversation(ctx context.Context, given string) (artel.Conversation, error) {
	if given != "" {
		c, err := h.app.Conversations.Named(ctx, given, false)
		if artel.KindOf(err) == artel.NotFound {
			err = artel.Errorf(artel.NotFound, "mcp", artel.Shorten(given, 80), "there is no conversation with this id or title; leave it out for your own, or look for others with search_artifacts")
		}
		return c, err
	}
	name := cmp.Or(scopeOf(ctx), ownScope)
	writes := access.Require(ctx, store.ScopeWrite) == nil
	c, err := h.app.Conversations.Named(ctx, name, writes)
	if artel.KindOf(err) == artel.NotFound && !writes {
		err = artel.Errorf(artel.NotFound, "mcp", artel.Shorten(name, 80), "there is no such conversation, and this token may not make one; name another (?conversation=, the header X-Artel-Conversation, or --conversation), or use a token with the scope write")
	}
	return c, err
}

// scopeOfRequest returns the conversation that a request names.
func scopeOfRequest(r *http.Request) string {
	return cmp.Or(r.URL.Query().Get("conversation"), r.Header.Get("X-Artel-Conversation"))
}
