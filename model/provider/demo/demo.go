// SPDX-License-Identifier: Apache-2.0

// Package demo is a stand-in for a model: it follows a script that depends on
// nothing but the request, and says so in its first words and in what it writes. It
// speaks the dialect [model.Demo].
//
// Begin with [New]. Without a [Scenario] the provider acts like a small agent: it
// writes a plan, opens every attachment, ticks off the plan, writes a report and
// links it. It reads the media from the blob store, so that its statements about
// them are true. Before the plan it streams one sentence as reasoning, which says
// that no model thinks. It answers Chinese in Chinese and everything else in
// English.
//
// The next step follows from the request alone: from the events since the newest
// user message. A run can therefore be interrupted anywhere and continue. If a
// message mentions subagents and there are any, it delegates work to two of them in
// parallel.
package demo

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// A Provider answers by script. It is safe for concurrent use.
type Provider struct {
	blobs blob.Store
	o     Options
}

var _ model.Provider = (*Provider)(nil)

// Options of a [Provider].
type Options struct {
	Delay    time.Duration // before each delta, so that users see it stream; zero: none
	Scenario *Scenario     // replaces the built-in script; nil: none
}

// New returns a provider that opens media from blobs.
func New(blobs blob.Store, o Options) *Provider { return &Provider{blobs: blobs, o: o} }

// Generate implements [model.Provider]. The usage is an estimate: four characters
// to a token.
func (p *Provider) Generate(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		moves, err := p.moves(ctx, r)
		if err != nil {
			yield(nil, fail(r, err))
			return
		}
		stop, output := model.StopEnd, 0
		send := func(d model.Delta) bool {
			if err := sleep(ctx, p.o.Delay); err != nil {
				yield(nil, fail(r, err))
				return false
			}
			return yield(d, nil)
		}
		for _, m := range moves {
			switch m := m.(type) {
			case say:
				output += utf8.RuneCountInString(string(m))
				for piece := range pieces(string(m)) {
					if !send(model.TextDelta(piece)) {
						return
					}
				}
			case think:
				output += utf8.RuneCountInString(string(m))
				for piece := range pieces(string(m)) {
					if !send(model.ReasoningDelta(piece)) {
						return
					}
				}
			case call:
				stop = model.StopTools
				output += len(m.Arguments)
				if !send(model.CallDelta(m)) {
					return
				}
			case wait:
				if err := sleep(ctx, time.Duration(m)); err != nil {
					yield(nil, fail(r, err))
					return
				}
			case hang:
				<-ctx.Done()
				yield(nil, fail(r, context.Cause(ctx)))
				return
			case fault:
				yield(nil, m.err(r))
				return
			case end:
				stop = model.StopReason(m)
			}
		}
		send(model.Finish{Reason: stop, Usage: artel.Usage{
			Calls: 1, InputTokens: int64(size(r)+3) / 4, OutputTokens: int64(output+3) / 4,
		}})
	}
}

func (p *Provider) moves(ctx context.Context, r *model.Request) ([]move, error) {
	h := read(r)
	if h.summaryRequested {
		if s := p.o.Scenario; s != nil && s.summary != nil {
			return s.summary, nil
		}
		return h.summary(), nil
	}
	if p.o.Scenario != nil {
		return p.o.Scenario.turn(h)
	}
	return p.act(ctx, h)
}

// A move is one action of an answer.
type move interface{ move() }

type (
	say   string           // text, streamed in pieces
	think string           // reasoning
	call  artel.ToolCall   // a tool call
	wait  time.Duration    // a pause
	hang  struct{}         // silence until the end of the context
	end   model.StopReason // the reason to stop
	fault struct {         // a failure; status 0: the stream breaks
		status  int
		message string
	}
)

func (say) move()   {}
func (think) move() {}
func (call) move()  {}
func (wait) move()  {}
func (hang) move()  {}
func (end) move()   {}
func (fault) move() {}

func (f fault) err(r *model.Request) error {
	if f.status != 0 {
		return failures(r).Status(f.status, nil, []byte(f.message), time.Time{})
	}
	return fail(r, io.ErrUnexpectedEOF)
}

func failures(r *model.Request) provider.Failures {
	return provider.Failures{Op: "demo.Generate", Service: &r.Service}
}

// fail returns err as an error of a provider.
func fail(r *model.Request, err error) error {
	if _, ok := errors.AsType[*artel.Error](err); ok {
		return err
	}
	out := &artel.Error{Op: "demo.Generate", Subject: string(r.Service.ID), Kind: artel.Unavailable, Err: err}
	switch {
	case artel.KindOf(err) == artel.Canceled:
		out.Kind = artel.Canceled
	case errors.Is(err, io.ErrUnexpectedEOF):
		out.Err = &model.CallError{Service: r.Service.ID, Message: "the stream broke off", Transient: true}
	}
	return out
}

// sleep waits for d; it fails when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pieces cuts text as models stream it: into words or a few characters.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, n := 0, 0
		for i, r := range text {
			n++
			if n < 16 && (n < 6 || r != ' ' && r != '\n') {
				continue
			}
			next := i + utf8.RuneLen(r)
			if r == utf8.RuneError {
				_, w := utf8.DecodeRuneInString(text[i:])
				next = i + w
			}
			if !yield(text[start:next]) {
				return
			}
			start, n = next, 0
		}
		if start < len(text) {
			yield(text[start:])
		}
	}
}

// size counts the characters of a request.
func size(r *model.Request) int {
	n := 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Text:
				n += utf8.RuneCountInString(p.Text)
			case artel.ToolCall:
				n += len(p.Arguments)
			case artel.ToolResult:
				n += utf8.RuneCountInString(p.Content)
			}
		}
	}
	return n
}
