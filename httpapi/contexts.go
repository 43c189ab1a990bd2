// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run/record"
)

// A ContextPath names a model call.
type ContextPath struct {
	Run    string `path:"rid" doc:"a run"`
	Number int    `path:"n" minimum:"1" doc:"the number of the model call in the run, from 1"`
}

func (p ContextPath) key() (record.ContextKey, error) {
	id, err := artel.ParseRunID(p.Run)
	return record.ContextKey{Run: id, Number: p.Number}, err
}

// A ContextView is the record of one model call.
type ContextView struct {
	record.ContextSummary
	Record pipeline.Record `json:"record"`
}

// A PreviewView is the answer of POST /conversations/{cid}/preview.
type PreviewView struct {
	record.ContextFacts
	Exact    bool                    `json:"exact" doc:"sending the message with this clock and seed gives this request"`
	Pending  []artel.AttachmentRoute `json:"pending,omitempty" doc:"what is put into words only when it is sent"`
	Messages []record.Block          `json:"blocks"`
	Record   pipeline.Record         `json:"record"`
}

// NewClock is the time of a preview.
type NewClock struct {
	Now string `json:"now" format:"date-time"`
}

const contextPath = "/runs/{rid}/contexts/{n}"

func (f *server) contexts() {
	register(f, f.op(http.MethodGet, "/runs/{rid}/contexts", "list-contexts", "List what the model calls of a run were sent", http.StatusOK),
		func(ctx context.Context, in *RunPath) (*body[List[record.ContextSummary]], error) {
			return listFor(ctx, in.run, f.app.Contexts.List)
		})
	register(f, f.op(http.MethodGet, contextPath, "read-context", "Read the record of a model call", http.StatusOK),
		func(ctx context.Context, in *ContextPath) (*body[ContextView], error) {
			key, err := in.key()
			if err != nil {
				return nil, err
			}
			c, err := f.app.Contexts.Find(ctx, key)
			return answer(ContextView{c.ContextSummary, c.Record}, err)
		})
	register(f, f.op(http.MethodGet, contextPath+"/messages", "list-context-messages", "List the messages that a model call was sent, with the processors that they come from", http.StatusOK),
		func(ctx context.Context, in *ContextPath) (*body[List[record.Block]], error) {
			return listFor(ctx, in.key, f.app.Contexts.Blocks)
		})
	register(f, f.op(http.MethodGet, contextPath+"/request", "read-request", "Read the request of a model call as the model's API got it, with digests in the place of media", http.StatusOK),
		func(ctx context.Context, in *ContextPath) (*body[inspect.SentRequest], error) {
			return answerFor(ctx, in.key, f.app.Contexts.Request)
		})
	register(f, f.op(http.MethodGet, contextPath+"/diff", "diff-contexts", "Say how the request of a model call differs from an earlier one", http.StatusOK),
		func(ctx context.Context, in *struct {
			ContextPath
			With string `query:"with" maxLength:"256" doc:"another call of the conversation, as RUN/N; absent: the one before"`
		},
		) (*body[inspect.ContextDiff], error) {
			key, err := in.key()
			if err != nil {
				return nil, err
			}
			with, err := ParseContextKey(in.With)
			if err != nil {
				return nil, err
			}
			return answer(f.app.Contexts.Diff(ctx, key, with))
		})
	register(f, f.op(http.MethodGet, contextPath+"/why", "explain-context", "Say why a model call saw a message or a file, or did not", http.StatusOK),
		func(ctx context.Context, in *struct {
			ContextPath
			About  string `query:"about" required:"true" maxLength:"512" doc:"the id of a message, or the id, the ref or the name of a file"`
			Locale string `query:"locale" maxLength:"35" doc:"of the texts: en or zh"`
		},
		) (*body[inspect.Why], error) {
			key, err := in.key()
			if err != nil {
				return nil, err
			}
			return answer(f.app.Contexts.Why(ctx, key, in.About, phrase.ParseLocale(in.Locale)))
		})
	register(f, f.op(http.MethodPost, "/conversations/{cid}/preview", "preview-message", "Build the context of a message that is being written; nothing is sent, and no model is called", http.StatusOK),
		func(ctx context.Context, in *MessageInput) (*body[PreviewView], error) {
			id, input, err := in.parse()
			if err != nil {
				return nil, err
			}
			p, err := f.app.Previews.Build(ctx, id, input)
			if p.Blocks == nil {
				p.Blocks = []record.Block{}
			}
			return answer(PreviewView{p.ContextFacts, p.Exact, p.Pending, p.Blocks, p.Record}, err)
		})
}

// ParseContextKey reads "RUN/N"; "" is the zero key.
func ParseContextKey(s string) (record.ContextKey, error) {
	if s == "" {
		return record.ContextKey{}, nil
	}
	run, number, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return record.ContextKey{}, artel.Errorf(artel.Invalid, "httpapi", "with", "%q is no model call: want RUN/N, as in run_…/1", artel.Shorten(s, 80))
	}
	id, err := artel.ParseRunID(run)
	return record.ContextKey{Run: id, Number: n}, err
}
