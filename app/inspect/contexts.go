// SPDX-License-Identifier: Apache-2.0

// Package inspect answers what models were sent and why: the record of each
// model call, the request as the model's API received it, how two requests
// differ, and what became of a message or a file on its way into one.
//
// Begin with [Contexts]. It only reads.
package inspect

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// Contexts are the use cases of records of model calls. Each conversation has a
// bounded number of them.
type Contexts struct {
	store    store.Store
	services *model.Registry
	caller   *model.Caller
}

// New returns the contexts in a store. Requests are made again for the services
// as they are now, by the caller's codecs.
func New(s store.Store, services *model.Registry, caller *model.Caller) *Contexts {
	return &Contexts{s, services, caller}
}

// A BuiltContext is the whole record of one model call.
type BuiltContext struct {
	record.ContextSummary
	Record   pipeline.Record
	Manifest pipeline.Manifest
}

// A SentRequest is a request as it went to the model's API, with the digests of
// bytes in their place, and stars in that of what is signed in addresses.
type SentRequest struct {
	record.ContextKey
	Dialect model.Dialect   `json:"dialect"`
	Model   string          `json:"model"`
	Digest  artel.Digest    `json:"digest,omitempty"` // of the body, as [model.Body] says
	Bytes   int64           `json:"bytes"`            // of the body as it is sent, with all bytes in it
	Body    json.RawMessage `json:"body"`
}

// List returns the contexts of a run, the oldest first.
func (cs *Contexts) List(ctx context.Context, run artel.RunID) (out []record.ContextSummary, err error) {
	err = cs.store.View(ctx, artel.OwnerOf(ctx), func(tx store.Tx) error {
		r, err := tx.Runs.Get(run)
		if err != nil {
			return err
		}
		rows, err := tx.Contexts.List(store.ContextQuery{Conversation: r.Conversation, Run: run, Limit: 500})
		if err != nil {
			return err
		}
		out = make([]record.ContextSummary, len(rows))
		for i, row := range rows {
			if out[len(rows)-1-i], err = record.SummaryOf(row); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// with calls fn with the record of a model call, in one view.
func (cs *Contexts) with(ctx context.Context, key record.ContextKey, fn func(store.Tx, BuiltContext, *record.Call) error) error {
	return cs.store.View(ctx, artel.OwnerOf(ctx), func(tx store.Tx) error {
		if _, err := tx.Runs.Get(key.Run); err != nil {
			return err
		}
		row, err := tx.Contexts.Get(key.Run, key.Number)
		if err != nil {
			return err
		}
		c, err := record.Load(tx, key)
		if err != nil {
			return err
		}
		s, err := record.SummaryOf(row)
		if err != nil {
			return err
		}
		return fn(tx, BuiltContext{s, c.Content.Record, c.Content.Manifest}, c)
	})
}

// Find returns the context of one model call; kind NotFound where there is
// none, or no longer.
func (cs *Contexts) Find(ctx context.Context, key record.ContextKey) (out BuiltContext, err error) {
	err = cs.with(ctx, key, func(_ store.Tx, c BuiltContext, _ *record.Call) error {
		out = c
		return nil
	})
	return out, err
}

// Blocks returns the messages of a request with the processors that made them.
// One that is no longer stored has no parts.
func (cs *Contexts) Blocks(ctx context.Context, key record.ContextKey) (out []record.Block, err error) {
	err = cs.with(ctx, key, func(tx store.Tx, _ BuiltContext, c *record.Call) error {
		out, err = blocks(c, c.Contents(tx))
		return err
	})
	return out, err
}

func blocks(c *record.Call, p pipeline.Contents) ([]record.Block, error) {
	out := make([]record.Block, len(c.Content.Manifest.Messages))
	for i, x := range c.Content.Manifest.Messages {
		m, _, err := x.Message(c.Facts.Service, p)
		missing := errors.Is(err, artel.NotFound)
		if err != nil && !missing {
			return nil, err
		}
		added, changed := record.Authors(c.Content.Record, x.ID)
		out[i] = record.Block{ManifestMessage: x, Parts: m.Parts, Processor: added, Changed: changed, Incomplete: missing}
		if out[i].Parts == nil {
			out[i].Parts = artel.Parts{}
		}
	}
	return out, nil
}

// Request returns the request of a model call as the model's API received it. It
// is rebuilt from the record; the error is of kind Conflict if its service has
// changed or a message is gone.
func (cs *Contexts) Request(ctx context.Context, key record.ContextKey) (SentRequest, error) {
	req, err := cs.Rebuild(ctx, key)
	if err != nil {
		return SentRequest{}, err
	}
	out := SentRequest{ContextKey: key, Dialect: req.Service.Dialect, Model: req.Service.Model}
	body, err := cs.caller.Body(req)
	if errors.Is(err, artel.Unsupported) { // the service has no wire format
		type message struct {
			Role  artel.Role  `json:"role"`
			Parts artel.Parts `json:"parts"`
		}
		plain := struct {
			Model    string           `json:"model"`
			Messages []message        `json:"messages"`
			Tools    []model.ToolSpec `json:"tools,omitempty"`
		}{req.Service.Model, make([]message, len(req.Messages)), req.Tools}
		for i, m := range req.Messages {
			plain.Messages[i] = message(m)
		}
		out.Body, err = json.Marshal(plain)
		out.Bytes = int64(len(out.Body))
		return out, err
	}
	if err != nil {
		return out, err
	}
	out.Digest, out.Bytes, out.Body = body.Hash(), body.Len(), body.Redacted()
	return out, nil
}

// Rebuild makes the request of a model call again byte for byte, with stars in
// place of the signatures of addresses.
func (cs *Contexts) Rebuild(ctx context.Context, key record.ContextKey) (req *model.Request, err error) {
	err = cs.with(ctx, key, func(tx store.Tx, s BuiltContext, c *record.Call) error {
		if s.Error != nil {
			return artel.Errorf(artel.Conflict, "inspect.Contexts.Request", string(key.Run), "there was no request: %s", s.Error.Message)
		}
		service, ok := cs.services.Lookup(s.Service)
		if !ok {
			return artel.Errorf(artel.Conflict, "inspect.Contexts.Request", string(s.Service), "the service is not configured any more")
		}
		if req, err = c.Content.Manifest.Rebuild(service.OnWire(), c.Contents(tx), s.RequestHash); err == nil {
			req.Names = record.NamesOf(s.Media)
		}
		if errors.Is(err, artel.NotFound) {
			err = artel.Errorf(artel.Conflict, "inspect.Contexts.Request", string(key.Run), "a message of the request is gone: %w", err)
		}
		return err
	})
	return req, err
}
