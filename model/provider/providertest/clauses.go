// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/contracttest"
	"github.com/artelhq/artel/model"
)

type clause = contracttest.Clause[*check]

func clauses() []clause {
	return []clause{
		{"text", text},
		{"lazy", lazy},
		{"tool call", toolCall},
		{"parallel tool calls", parallelCalls},
		{"history with tools", history},
		{"not for models", notForModels},
		{"image", userMedia("image/png", artel.KindImage, "a.png")},
		{"PDF", userMedia("application/pdf", artel.KindDocument, "a.pdf")},
		{"image from a tool", toolImage},
		{"unsupported media", unsupported},
		{"damaged media", damaged},
		{"refusal", refusal},
		{"stream breaks off", brokenStream},
		{"cancel in mid-stream", cancel},
		{"leave in mid-stream", leave},
		{"rate limit", rateLimit},
		{"server error", failure(http.StatusInternalServerError, "the server had an error", artel.Unavailable, true)},
		{"bad request", failure(http.StatusBadRequest, "messages: wrong", artel.Invalid, false)},
		{"context too long", failure(http.StatusBadRequest, "This model's maximum context length is 8 tokens.", artel.TooLarge, false)},
		{"wrong key", failure(http.StatusUnauthorized, "Incorrect API key provided: "+Key, artel.Denied, false)},
		{"unreachable", unreachable},
		{"garbage", nonsense("text/event-stream", "data: {\"a\":\n\ndata: }{\n\n")},
		{"half JSON", nonsense("application/json", `{"id":"x","choi`)},
		{"web page", nonsense("text/html", "<!doctype html><p>hello")},
		{"empty answer", nonsense("text/event-stream", "")},
		{"slow drip", slowStream},
		{"huge line", hugeLine},
		{"written", written},
		{"forward", forward},
		{"forward what is refused", forwardRefused},
		{"media in a tool result", nativeMedia},
		{"state of calls", callState},
		{"state of reasoning", thoughtState},
		{"tool choice", toolChoice},
		{"settings", settings},
	}
}

var usage = artel.Usage{Calls: 1, InputTokens: 11, OutputTokens: 7}

func text(c *check) {
	s := c.answers(model.StopEnd, model.TextDelta("Hello, "), model.TextDelta("世界\n\"x\""))
	a := s.ask(s.request(say(artel.RoleSystem, artel.Text{Text: "Be brief."}), hello()))
	s.answered(a, "Hello, 世界\n\"x\"", model.StopEnd)
	c.Want(a.finish.Usage == usage, "the usage is %+v, want %+v", a.finish.Usage, usage)
	s.sentOnce()
}

func lazy(c *check) {
	s := c.answers(model.StopEnd, model.TextDelta("x"))
	seq := s.provider.Generate(c.Context(), s.request(hello()))
	if n := len(s.requests()); n != 0 {
		c.Stopf("a request was sent before the sequence was ranged over")
	}
	for range 2 {
		for _, err := range seq {
			c.Must("Generate", err)
		}
	}
	if n := len(s.requests()); n != 2 {
		c.Stopf("ranging twice made %d requests, want 2", n)
	}
}

func toolCall(c *check) {
	calls(c, artel.ToolCall{ID: "call_1", Name: "look", Arguments: json.RawMessage(`{"q":"世界 \"quoted\""}`)})
}

func parallelCalls(c *check) {
	calls(
		c,
		artel.ToolCall{ID: "call_1", Name: "look", Arguments: json.RawMessage(`{"q":"one"}`)},
		artel.ToolCall{ID: "call_2", Name: "look", Arguments: json.RawMessage(`{}`)},
		artel.ToolCall{ID: "call_3", Name: "look", Arguments: json.RawMessage(`{"q":"three"}`)},
	)
}

func calls(c *check, want ...artel.ToolCall) {
	deltas := []model.Delta{model.TextDelta("I look.")}
	for _, c := range want {
		deltas = append(deltas, model.CallDelta(c))
	}
	s := c.answers(model.StopTools, deltas...)
	a := s.ask(s.request(hello()))
	s.answered(a, "I look.", model.StopTools)
	c.Want(len(a.calls) == len(want), "%d calls, want %d", len(a.calls), len(want))
	for i, got := range a.calls {
		c.Want(got.ID == want[i].ID && got.Name == want[i].Name && sameJSON(got.Arguments, want[i].Arguments),
			"call %d is %s %s %s, want %s %s %s", i, got.ID, got.Name, got.Arguments, want[i].ID, want[i].Name, want[i].Arguments)
	}
}

func history(c *check) {
	s := c.answers(model.StopEnd, model.TextDelta("ok"))
	a := s.ask(s.request(
		hello(),
		say(
			artel.RoleAssistant, artel.Reasoning{Text: "hm"}, artel.Text{Text: "I look."},
			artel.ToolCall{ID: "a", Name: "look", Arguments: json.RawMessage(`{}`)},
			artel.ToolCall{ID: "b", Name: "look", Arguments: json.RawMessage(`"{ broken"`)},
			artel.ToolCall{ID: "c", Name: "look"},
		),
		say(artel.RoleTool, artel.ToolResult{CallID: "b", Content: "bad arguments", IsError: true}),
		say(artel.RoleUser, artel.Text{Text: "and?"}),
		say(artel.RoleTool, artel.ToolResult{CallID: "a", Content: "seen"}), // c has no result
		say(artel.RoleTool, artel.ToolResult{CallID: "gone", Content: "no call"}),
	))
	s.answered(a, "ok", model.StopEnd)
	s.sentOnce()
	for _, want := range []string{"I look.", "bad arguments", "seen", "and?", "no call", "broken"} {
		c.Want(bytes.Contains(s.requests()[0], []byte(want)), "the request has lost %q", want)
	}
}

// notForModels: a request does not contain parts for users, nor reasoning of
// another service.
func notForModels(c *check) {
	s := c.answers(model.StopEnd, model.TextDelta("ok"))
	a := s.ask(s.request(
		hello(),
		say(
			artel.RoleAssistant, artel.Reasoning{Text: "thought-elsewhere", Service: "another"},
			artel.ToolCall{
				ID: "a", Name: "look", Arguments: json.RawMessage(`{}`),
				Opaque: json.RawMessage(`{"signed":"elsewhere-too"}`), Service: "another",
			},
		),
		say(artel.RoleTool, artel.ToolResult{
			CallID: "a", Content: "seen", Millis: 987654321, Metadata: map[string]any{"told-to": "people-alone"},
		}),
	))
	s.answered(a, "ok", model.StopEnd)
	s.sentOnce()
	for _, private := range []string{"thought-elsewhere", "elsewhere-too", "987654321", "told-to", "people-alone"} {
		if bytes.Contains(s.requests()[0], []byte(private)) {
			c.Stopf("the request holds %q, which is not for the model", private)
		}
	}
}

// picture returns bytes, of no image format, whose size is not a multiple of three.
func picture(seed byte) []byte {
	b := make([]byte, 100_001)
	for i := range b {
		b[i] = byte(i*i>>3) ^ seed
	}
	return b
}

func userMedia(mediaType string, kind artel.MediaKind, name string) func(*check) {
	return func(c *check) {
		s := c.answers(model.StopEnd, model.TextDelta("nice"))
		m := s.media(mediaType, kind, name, picture(1))
		again := say(artel.RoleUser, artel.Text{Text: "look again"}, m) // repeated: sent once
		a := s.ask(s.request(say(artel.RoleUser, artel.Text{Text: "look"}, m), say(artel.RoleAssistant, artel.Text{Text: "yes"}), again))
		s.answered(a, "nice", model.StopEnd)
		s.sentOnce(picture(1))
	}
}

func toolImage(c *check) {
	s := c.answers(model.StopEnd, model.TextDelta("nice"))
	one := s.media("image/png", artel.KindImage, "one.png", picture(1))
	two := s.media("image/jpeg", artel.KindImage, "two.jpg", picture(2))
	a := s.ask(s.request(
		hello(),
		say(artel.RoleAssistant, artel.ToolCall{ID: "a", Name: "look"}, artel.ToolCall{ID: "b", Name: "look"}),
		say(artel.RoleTool, artel.ToolResult{CallID: "a", Content: "first", Parts: artel.Parts{one}}),
		say(artel.RoleTool, artel.ToolResult{CallID: "b", Content: "second", Parts: artel.Parts{two, one}}),
		say(artel.RoleUser, artel.Text{Text: "well?"}),
	))
	s.answered(a, "nice", model.StopEnd)
	s.sentOnce(picture(1), picture(2))
}

func unsupported(c *check) {
	s := c.answers(model.StopEnd, model.TextDelta("ok"))
	m := s.media("application/x-nobody-takes-this", artel.KindOther, "a.bin", picture(1))
	a := s.ask(s.request(say(artel.RoleUser, m)))
	c.Want(artel.KindOf(a.err) == artel.Unsupported, "media that the API has no place for: error %v, want one of kind unsupported", a.err)
	c.Want(len(s.requests()) == 0, "a request was sent all the same")
}

func damaged(c *check) {
	s := c.answers(model.StopEnd, model.TextDelta("ok"))
	m := s.media("image/png", artel.KindImage, "a.png", picture(1))
	shorter, longer, gone := m, m, m
	shorter.Size += 4096
	longer.Size -= 4096
	gone.Ref = artel.BlobRef(artel.NewDigest([32]byte{1}))
	for _, bad := range []artel.Media{shorter, longer, gone} {
		a := s.ask(s.request(say(artel.RoleUser, bad)))
		c.Want(a.err != nil, "a blob that is not what was promised was sent without an error")
		c.Want(len(s.requests()) == 0, "a request with a damaged body came through whole")
	}
}

func refusal(c *check) {
	s := c.answers(model.StopRefusal, model.TextDelta("I will not."))
	a := s.ask(s.request(hello()))
	s.answered(a, "I will not.", model.StopRefusal)
}

func brokenStream(c *check) {
	whole := c.streamed(model.StopEnd, model.TextDelta("one"), model.TextDelta("two"), model.TextDelta("three"))
	for _, abort := range []bool{true, false} {
		for _, part := range []int{4, 3, 2} {
			cut := whole[:len(whole)/part]
			s := c.open(func(w http.ResponseWriter, r *http.Request) {
				play(cut)(w, r)
				if abort {
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
			})
			s.failed(s.ask(s.request(hello())), artel.Unavailable, true)
		}
	}
}

// stall starts a server that plays the first half of an answer and waits until the
// client leaves or the clause ends. It sends whether the client left.
func (c *check) stall() (session, <-chan bool) {
	whole := c.streamed(model.StopEnd, model.TextDelta("one"), model.TextDelta("two"), model.TextDelta("three"))
	gone := make(chan bool, 1)
	return c.open(func(w http.ResponseWriter, r *http.Request) {
		play(whole[:len(whole)*2/3])(w, r)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			gone <- true
		case <-c.Context().Done():
			gone <- false
		}
	}), gone
}

func cancel(c *check) {
	s, gone := c.stall()
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	var last error
	for _, err := range s.provider.Generate(ctx, s.request(hello())) {
		stop()
		last = err
	}
	c.Want(artel.KindOf(last) == artel.Canceled, "the last error is %v, want one of kind canceled", last)
	c.Want(<-gone, "the server never saw the client go")
	c.Must("the last error", checkError(last))
}

func leave(c *check) {
	s, gone := c.stall()
	for _, err := range s.provider.Generate(c.Context(), s.request(hello())) {
		c.Must("Generate", err)
		break
	}
	c.Want(<-gone, "the server never saw the client go")
}

func failure(status int, message string, kind artel.Kind, transient bool) func(*check) {
	return func(c *check) {
		s := c.open(send(status, "application/json", c.Failure(status, message)))
		a := s.ask(s.request(hello()))
		s.failed(a, kind, transient)
		e, _ := errors.AsType[*model.CallError](a.err)
		c.Want(e.Status == status && e.Service == s.service.ID && e.Message != "",
			"the error says status %d, service %q and message %q", e.Status, e.Service, e.Message)
	}
}

func rateLimit(c *check) {
	s := c.open(send(http.StatusTooManyRequests, "application/json", c.Failure(http.StatusTooManyRequests, "slow down"), "Retry-After", "7"))
	a := s.ask(s.request(hello()))
	s.failed(a, artel.Unavailable, true)
	e, _ := errors.AsType[*model.CallError](a.err)
	c.Want(e.RetryAfter == 7*time.Second, "the API asked for 7 s, the error says %v", e.RetryAfter)
}

func unreachable(c *check) {
	s := c.open(play(nil))
	s.close()
	a := s.ask(s.request(hello()))
	s.failed(a, artel.Unavailable, true)
}

func nonsense(mediaType, body string) func(*check) {
	return func(c *check) {
		s := c.open(send(http.StatusOK, mediaType, []byte(body)))
		a := s.ask(s.request(hello()))
		c.Want(artel.KindOf(a.err) == artel.Unavailable, "an answer that makes no sense gave %v, want an error of kind unavailable", a.err)
	}
}

func slowStream(c *check) {
	whole := c.streamed(model.StopEnd, model.TextDelta("drip, 滴"))
	s := c.open(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		for i := range whole {
			_, _ = w.Write(whole[i : i+1])
			_ = rc.Flush()
		}
	})
	a := s.ask(s.request(hello()))
	s.answered(a, "drip, 滴", model.StopEnd)
}

// hugeLine sends a line without an end, up to 256 MiB.
func hugeLine(c *check) {
	sent := make(chan bool, 1)
	s := c.open(func(w http.ResponseWriter, _ *http.Request) {
		play([]byte(`data: {"x":"`))(w, nil)
		block := bytes.Repeat([]byte("x"), 1<<20)
		for range 256 {
			if _, err := w.Write(block); err != nil {
				sent <- false
				return
			}
		}
		sent <- true
	})
	a := s.ask(s.request(hello()))
	c.Want(artel.KindOf(a.err) == artel.Unavailable, "a line without an end gave %v, want an error of kind unavailable", a.err)
	if <-sent {
		c.Stopf("256 MiB of one line were read")
	}
}
