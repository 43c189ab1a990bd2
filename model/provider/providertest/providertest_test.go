// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/contracttest"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/openai"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
)

type sequence = iter.Seq2[model.Delta, error]

// dialect is the kit's view of package openai, whose own test runs it.
func dialect(wrap func(model.Provider) model.Provider) Dialect {
	return Dialect{
		Name: model.OpenAI,
		New: func(client *http.Client, blobs blob.Store) model.Provider {
			return wrap(openai.New(openai.Options{Client: client, Blobs: blobs}))
		},
		Stream: func(w io.Writer, deltas sequence) error {
			return openai.Answer{ID: "chatcmpl-1", Model: "kit-1", Created: time.Unix(1, 0), IncludeUsage: true}.Stream(w, nil, deltas)
		},
		Failure: func(status int, message string) []byte {
			return (&openai.APIError{Status: status, Message: message, Type: "some_error"}).MarshalBody()
		},
		Validate: func(body []byte) error {
			r, err := decode(body)
			if err != nil {
				return err
			}
			return rules.Validate(r, rules.Options{ToolMedia: true})
		},
		Native: Native{
			Decode: func(body []byte) (*model.Request, error) {
				r, err := decode(body)
				if err != nil {
					return nil, err
				}
				return r.Neutral(), nil
			},
			ToolTypes: []string{"image/png"},
			CallState: json.RawMessage(`{"google":{"thought_signature":"c2lnbmVk"}}`),
		},
	}
}

func decode(body []byte) (*openai.Request, error) {
	return openai.Decode(context.Background(), bytes.NewReader(body), provider.DecodeOptions{})
}

// twin is a provider that is broken on purpose.
type twin func(ctx context.Context, r *model.Request) sequence

func (t twin) Generate(ctx context.Context, r *model.Request) sequence { return t(ctx, r) }

// deltas breaks what is yielded; f returns nil to leave it out.
func deltas(f func(model.Delta) model.Delta) func(model.Provider) model.Provider {
	return func(p model.Provider) model.Provider {
		return twin(func(ctx context.Context, r *model.Request) sequence {
			return func(yield func(model.Delta, error) bool) {
				for d, err := range p.Generate(ctx, r) {
					if err == nil {
						if d = f(d); d == nil {
							continue
						}
					}
					if !yield(d, err) {
						return
					}
				}
			}
		})
	}
}

// fails breaks errors; f returns nil to swallow one and finish.
func fails(f func(error) error) func(model.Provider) model.Provider {
	return func(p model.Provider) model.Provider {
		return twin(func(ctx context.Context, r *model.Request) sequence {
			return func(yield func(model.Delta, error) bool) {
				for d, err := range p.Generate(ctx, r) {
					if err != nil {
						if err = f(err); err == nil {
							d = model.Finish{Reason: model.StopEnd}
						}
					}
					if !yield(d, err) {
						return
					}
				}
			}
		})
	}
}

// asks breaks the request.
func asks(f func(model.Message) model.Message) func(model.Provider) model.Provider {
	return func(p model.Provider) model.Provider {
		return twin(func(ctx context.Context, r *model.Request) sequence {
			c := *r
			c.Messages = nil
			for _, m := range r.Messages {
				c.Messages = append(c.Messages, f(m))
			}
			return p.Generate(ctx, &c)
		})
	}
}

func without[P artel.Part](m model.Message) model.Message {
	m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p artel.Part) bool { _, ok := p.(P); return ok })
	return m
}

func withoutToolMedia(m model.Message) model.Message {
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		if r, ok := p.(artel.ToolResult); ok {
			r.Parts = nil
			m.Parts[i] = r
		}
	}
	return m
}

// talkative tells the model what people are told.
func talkative(m model.Message) model.Message {
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		if r, ok := p.(artel.ToolResult); ok && r.Metadata != nil {
			told, err := json.Marshal(r.Metadata)
			if err != nil {
				panic(err)
			}
			r.Content += string(told)
			m.Parts[i] = r
		}
	}
	return m
}

func swallow(error) error { return nil }

func change(f func(e *artel.Error, c *model.CallError)) func(error) error {
	return func(err error) error {
		e, _ := errors.AsType[*artel.Error](err)
		c, _ := errors.AsType[*model.CallError](err)
		f(e, c)
		return err
	}
}

// patient reads the whole answer before it yields any of it.
func patient(p model.Provider) model.Provider {
	return twin(func(ctx context.Context, r *model.Request) sequence {
		return func(yield func(model.Delta, error) bool) {
			type item struct {
				d   model.Delta
				err error
			}
			var items []item
			for d, err := range p.Generate(ctx, r) {
				items = append(items, item{d, err})
			}
			for _, i := range items {
				if !yield(i.d, i.err) {
					return
				}
			}
		}
	})
}

func deaf(p model.Provider) model.Provider {
	return twin(func(ctx context.Context, r *model.Request) sequence { return p.Generate(context.WithoutCancel(ctx), r) })
}

func eager(p model.Provider) model.Provider {
	return twin(func(ctx context.Context, r *model.Request) sequence {
		for range p.Generate(ctx, r) {
			break
		}
		return p.Generate(ctx, r)
	})
}

// forwarder breaks what is forwarded.
type forwarder struct {
	*openai.Provider
	header func(http.Header) http.Header
	fail   func(error) error
}

func (f forwarder) Forward(ctx context.Context, s *model.Service, b *provider.Body, stream bool, h http.Header) (*http.Response, error) {
	if f.header != nil {
		h = f.header(h)
	}
	resp, err := f.Provider.Forward(ctx, s, b, stream, h)
	if err != nil && f.fail != nil {
		err = f.fail(err)
		resp = &http.Response{Body: http.NoBody}
	}
	return resp, err
}

func forwards(header func(http.Header) http.Header, fail func(error) error) func(model.Provider) model.Provider {
	return func(p model.Provider) model.Provider {
		return forwarder{p.(*openai.Provider), header, fail}
	}
}

// forgetful writes requests without their instructions.
type forgetful struct{ *openai.Provider }

func (f forgetful) Write(r *model.Request) (model.Body, error) {
	c := *r
	c.Messages = c.Messages[1:]
	return f.Provider.Write(&c)
}

// stateless drops opaque state.
func stateless(d model.Delta) model.Delta {
	switch d := d.(type) {
	case model.CallDelta:
		d.Opaque, d.Service = nil, ""
		return d
	case model.ReasoningDone:
		return model.ReasoningDone{}
	}
	return d
}

// changes breaks the settings of a request.
func changes(f func(*model.Request)) func(model.Provider) model.Provider {
	return func(p model.Provider) model.Provider {
		return twin(func(ctx context.Context, r *model.Request) sequence {
			c := *r
			f(&c)
			return p.Generate(ctx, &c)
		})
	}
}

// carried lets no media stand in tool results.
func carried(p model.Provider) model.Provider {
	return twin(func(ctx context.Context, r *model.Request) sequence {
		c := *r
		c.Service.Capabilities.ToolImage.Value = false
		return p.Generate(ctx, &c)
	})
}

// halved keeps the first half of every text, as a decoder that drops what
// comes in pieces.
func halved(d model.Delta) model.Delta {
	if t, ok := d.(model.TextDelta); ok {
		return t[:len(t)/2]
	}
	return d
}

func TestEachClauseFindsItsTwin(t *testing.T) {
	t.Parallel()
	noArguments := func(d model.Delta) model.Delta {
		if c, ok := d.(model.CallDelta); ok {
			c.Arguments = json.RawMessage("{}")
			return c
		}
		return d
	}
	onlyFirst := func(d model.Delta) model.Delta {
		if c, ok := d.(model.CallDelta); ok && c.ID != "call_1" {
			return nil
		}
		return d
	}
	noRefusal := func(d model.Delta) model.Delta {
		if f, ok := d.(model.Finish); ok {
			f.Reason = model.StopEnd
			return f
		}
		return d
	}
	kind := func(k artel.Kind) func(model.Provider) model.Provider {
		return fails(change(func(e *artel.Error, _ *model.CallError) { e.Kind = k }))
	}
	hurried := fails(change(func(_ *artel.Error, c *model.CallError) { c.RetryAfter = 0 }))
	final := fails(change(func(_ *artel.Error, c *model.CallError) { c.Transient = false }))
	leaky := fails(change(func(_ *artel.Error, c *model.CallError) { c.Message += Key }))
	twins := map[string]func(model.Provider) model.Provider{
		"text":                    deltas(halved),
		"lazy":                    eager,
		"tool call":               deltas(noArguments),
		"parallel tool calls":     deltas(onlyFirst),
		"history with tools":      asks(without[artel.ToolResult]),
		"not for models":          asks(talkative),
		"image":                   asks(without[artel.Media]),
		"PDF":                     asks(without[artel.Media]),
		"image from a tool":       asks(withoutToolMedia),
		"unsupported media":       asks(without[artel.Media]),
		"damaged media":           fails(swallow),
		"refusal":                 deltas(noRefusal),
		"stream breaks off":       fails(swallow),
		"cancel in mid-stream":    deaf,
		"leave in mid-stream":     patient,
		"rate limit":              hurried,
		"server error":            final,
		"bad request":             kind(artel.Unavailable),
		"context too long":        kind(artel.Invalid),
		"wrong key":               leaky,
		"unreachable":             kind(artel.Internal),
		"garbage":                 fails(swallow),
		"half JSON":               fails(swallow),
		"web page":                fails(swallow),
		"empty answer":            fails(swallow),
		"slow drip":               deltas(halved),
		"huge line":               fails(swallow),
		"written":                 func(p model.Provider) model.Provider { return forgetful{p.(*openai.Provider)} },
		"forward":                 forwards(func(h http.Header) http.Header { return nil }, nil),
		"forward what is refused": forwards(nil, swallow),

		"media in a tool result": carried,
		"state of calls":         deltas(stateless),
		"state of reasoning":     deltas(stateless),
		"tool choice":            changes(func(r *model.Request) { r.Choice = model.ToolChoice{} }),
		"settings":               changes(func(r *model.Request) { r.MaxOutput = 0 }),
	}
	contracttest.RunTwins(t, clauses(), twins, func(t *testing.T, cl clause, wrap func(model.Provider) model.Provider) error {
		t.Parallel()
		d := dialect
		if cl.Name == "state of reasoning" {
			d = thinking
		}
		ctx := t.Context()
		if strings.HasSuffix(cl.Name, " in mid-stream") { // waits in vain until its context ends
			limited, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			ctx = limited
		}
		return hold(ctx, cl, d(wrap))
	})
}

func TestAGoodProviderPasses(t *testing.T) {
	t.Parallel()
	good := func(p model.Provider) model.Provider { return p }
	Run(t, dialect(good))
	for _, cl := range clauses() {
		if cl.Name == "state of reasoning" {
			if err := hold(t.Context(), cl, thinking(good)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAnyHistory(t *testing.T) {
	t.Parallel()
	Histories(t, dialect(func(p model.Provider) model.Provider { return p }))
}
