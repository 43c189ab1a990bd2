// SPDX-License-Identifier: Apache-2.0

// Package logctx adds to lines of the log what their context is about: the ids of
// the request, the run and the conversation.
//
// [With] puts attributes into a context, and [Handler] writes them with every line
// that is logged with it. A line that has an attribute of the same name keeps its
// own.
package logctx

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
)

type contextKey struct{}

// A node is one call of With.
type node struct {
	parent *node
	attrs  []slog.Attr
	lazy   func() slog.Attr // nil: attrs
}

// With returns a context whose lines have attributes.
func With(ctx context.Context, attrs ...slog.Attr) context.Context {
	return context.WithValue(ctx, contextKey{}, &node{of(ctx), attrs, nil})
}

// WithLazy returns a context whose lines have the attribute that make returns, which is
// called for each of them.
func WithLazy(ctx context.Context, make func() slog.Attr) context.Context {
	return context.WithValue(ctx, contextKey{}, &node{of(ctx), nil, make})
}

// WithRequest returns the context of a new request. Its id is made with its first
// line, since most requests log nothing.
func WithRequest(ctx context.Context) context.Context {
	return WithLazy(ctx, sync.OnceValue(func() slog.Attr { return slog.String("request", rand.Text()[:12]) }))
}

func of(ctx context.Context) *node {
	n, _ := ctx.Value(contextKey{}).(*node)
	return n
}

// Handler returns a handler that adds the attributes of contexts to the lines of
// next.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	n := of(ctx)
	if n == nil {
		return h.Handler.Handle(ctx, r)
	}
	r = r.Clone()
	known := map[string]bool{}
	r.Attrs(func(a slog.Attr) bool {
		known[a.Key] = true
		return true
	})
	for ; n != nil; n = n.parent {
		attrs := n.attrs
		if n.lazy != nil {
			attrs = []slog.Attr{n.lazy()}
		}
		for _, a := range slices.Backward(attrs) { // the innermost wins
			if !known[a.Key] {
				known[a.Key] = true
				r.AddAttrs(a)
			}
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
