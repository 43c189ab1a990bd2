// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Clauses returns all clauses.
func Clauses() []Clause {
	return []Clause{
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

func end(reason model.StopReason) model.Finish { return model.Finish{Reason: reason, Usage: usage} }

func text(ctx context.Context, d Dialect) error {
	s := open(d, play(d.Stream(model.TextDelta("Hello, "), model.TextDelta("世界\n\"x\""), end(model.StopEnd))))
	defer s.close()
	a, err := s.ask(ctx, s.request(say(artel.RoleSystem, artel.Text{Text: "Be brief."}), hello()))
	if err = errors.Join(err, wantAnswer(a, "Hello, 世界\n\"x\"", model.StopEnd)); err != nil {
		return err
	}
	if a.finish.Usage != usage {
		return fmt.Errorf("the usage is %+v, want %+v", a.finish.Usage, usage)
	}
	return s.wantSent(d)
}

func lazy(ctx context.Context, d Dialect) error {
	s := open(d, play(d.Stream(model.TextDelta("x"), end(model.StopEnd))))
	defer s.close()
	seq := s.provider.Generate(ctx, s.request(hello()))
	if n := len(s.requests()); n != 0 {
		return errors.New("a request was sent before the sequence was ranged over")
	}
	for range 2 {
		for _, err := range seq {
			if err != nil {
				return err
			}
		}
	}
	if n := len(s.requests()); n != 2 {
		return fmt.Errorf("ranging twice made %d requests, want 2", n)
	}
	return nil
}

func toolCall(ctx context.Context, d Dialect) error {
	return calls(ctx, d, artel.ToolCall{ID: "call_1", Name: "look", Arguments: json.RawMessage(`{"q":"世界 \"quoted\""}`)})
}

func parallelCalls(ctx context.Context, d Dialect) error {
	return calls(
		ctx, d,
		artel.ToolCall{ID: "call_1", Name: "look", Arguments: json.RawMessage(`{"q":"one"}`)},
		artel.ToolCall{ID: "call_2", Name: "look", Arguments: json.RawMessage(`{}`)},
		artel.ToolCall{ID: "call_3", Name: "look", Arguments: json.RawMessage(`{"q":"three"}`)},
	)
}

func calls(ctx context.Context, d Dialect, want ...artel.ToolCall) error {
	deltas := []model.Delta{model.TextDelta("I look.")}
	for _, c := range want {
		deltas = append(deltas, model.CallDelta(c))
	}
	s := open(d, play(d.Stream(append(deltas, end(model.StopTools))...)))
	defer s.close()
	a, err := s.ask(ctx, s.request(hello()))
	if err = errors.Join(err, wantAnswer(a, "I look.", model.StopTools)); err != nil {
		return err
	}
	if len(a.calls) != len(want) {
		return fmt.Errorf("%d calls, want %d", len(a.calls), len(want))
	}
	for i, c := range a.calls {
		var got, wanted any
		if err := json.Unmarshal(c.Arguments, &got); err != nil {
			return fmt.Errorf("the arguments of call %d are not JSON: %w", i, err)
		}
		if err := json.Unmarshal(want[i].Arguments, &wanted); err != nil {
			return err
		}
		if c.ID != want[i].ID || c.Name != want[i].Name || !reflect.DeepEqual(got, wanted) {
			return fmt.Errorf("call %d is %s %s %s, want %s %s %s", i, c.ID, c.Name, c.Arguments, want[i].ID, want[i].Name, want[i].Arguments)
		}
	}
	return nil
}

func history(ctx context.Context, d Dialect) error {
	s := open(d, play(d.Stream(model.TextDelta("ok"), end(model.StopEnd))))
	defer s.close()
	a, err := s.ask(ctx, s.request(
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
	if err = errors.Join(err, wantAnswer(a, "ok", model.StopEnd)); err != nil {
		return err
	}
	if err := s.wantSent(d); err != nil {
		return err
	}
	for _, want := range []string{"I look.", "bad arguments", "seen", "and?", "no call", "broken"} {
		if !bytes.Contains(s.requests()[0], []byte(want)) {
			return fmt.Errorf("the request has lost %q", want)
		}
	}
	return nil
}

// notForModels: a request does not contain parts for users, nor reasoning of
// another service.
func notForModels(ctx context.Context, d Dialect) error {
	s := open(d, play(d.Stream(model.TextDelta("ok"), end(model.StopEnd))))
	defer s.close()
	a, err := s.ask(ctx, s.request(
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
	if err = errors.Join(err, wantAnswer(a, "ok", model.StopEnd), s.wantSent(d)); err != nil {
		return err
	}
	for _, private := range []string{"thought-elsewhere", "elsewhere-too", "987654321", "told-to", "people-alone"} {
		if bytes.Contains(s.requests()[0], []byte(private)) {
			return fmt.Errorf("the request holds %q, which is not for the model", private)
		}
	}
	return nil
}

// picture returns bytes, of no image format, whose size is not a multiple of three.
func picture(seed byte) []byte {
	b := make([]byte, 100_001)
	for i := range b {
		b[i] = byte(i*i>>3) ^ seed
	}
	return b
}

func userMedia(mediaType string, kind artel.MediaKind, name string) func(context.Context, Dialect) error {
	return func(ctx context.Context, d Dialect) error {
		s := open(d, play(d.Stream(model.TextDelta("nice"), end(model.StopEnd))))
		defer s.close()
		m, err := s.media(ctx, mediaType, kind, name, picture(1))
		if err != nil {
			return err
		}
		again := say(artel.RoleUser, artel.Text{Text: "look again"}, m) // repeated: sent once
		a, err := s.ask(ctx, s.request(say(artel.RoleUser, artel.Text{Text: "look"}, m), say(artel.RoleAssistant, artel.Text{Text: "yes"}), again))
		return errors.Join(err, wantAnswer(a, "nice", model.StopEnd), s.wantSent(d, picture(1)))
	}
}

func toolImage(ctx context.Context, d Dialect) error {
	s := open(d, play(d.Stream(model.TextDelta("nice"), end(model.StopEnd))))
	defer s.close()
	one, err := s.media(ctx, "image/png", artel.KindImage, "one.png", picture(1))
	if err != nil {
		return err
	}
	two, err := s.media(ctx, "image/jpeg", artel.KindImage, "two.jpg", picture(2))
	if err != nil {
		return err
	}
	a, err := s.ask(ctx, s.request(
		hello(),
		say(artel.RoleAssistant, artel.ToolCall{ID: "a", Name: "look"}, artel.ToolCall{ID: "b", Name: "look"}),
		say(artel.RoleTool, artel.ToolResult{CallID: "a", Content: "first", Parts: artel.Parts{one}}),
		say(artel.RoleTool, artel.ToolResult{CallID: "b", Content: "second", Parts: artel.Parts{two, one}}),
		say(artel.RoleUser, artel.Text{Text: "well?"}),
	))
	return errors.Join(err, wantAnswer(a, "nice", model.StopEnd), s.wantSent(d, picture(1), picture(2)))
}

func unsupported(ctx context.Context, d Dialect) error {
	s := open(d, play(d.Stream(model.TextDelta("ok"), end(model.StopEnd))))
	defer s.close()
	m, err := s.media(ctx, "application/x-nobody-takes-this", artel.KindOther, "a.bin", picture(1))
	if err != nil {
		return err
	}
	a, err := s.ask(ctx, s.request(say(artel.RoleUser, m)))
	if err != nil {
		return err
	}
	if artel.KindOf(a.err) != artel.Unsupported {
		return fmt.Errorf("media that the API has no place for: error %v, want one of kind unsupported", a.err)
	}
	if len(s.requests()) > 0 {
		return errors.New("a request was sent all the same")
	}
	return nil
}

func damaged(ctx context.Context, d Dialect) error {
	s := open(d, play(d.Stream(model.TextDelta("ok"), end(model.StopEnd))))
	defer s.close()
	m, err := s.media(ctx, "image/png", artel.KindImage, "a.png", picture(1))
	if err != nil {
		return err
	}
	shorter, longer, gone := m, m, m
	shorter.Size += 4096
	longer.Size -= 4096
	gone.Ref = artel.BlobRef(artel.NewDigest([32]byte{1}))
	for _, bad := range []artel.Media{shorter, longer, gone} {
		a, err := s.ask(ctx, s.request(say(artel.RoleUser, bad)))
		if err != nil {
			return err
		}
		if a.err == nil {
			return errors.New("a blob that is not what was promised was sent without an error")
		}
		if len(s.requests()) > 0 {
			return errors.New("a request with a damaged body came through whole")
		}
	}
	return nil
}

func refusal(ctx context.Context, d Dialect) error {
	s := open(d, play(d.Stream(model.TextDelta("I will not."), end(model.StopRefusal))))
	defer s.close()
	a, err := s.ask(ctx, s.request(hello()))
	return errors.Join(err, wantAnswer(a, "I will not.", model.StopRefusal))
}

func brokenStream(ctx context.Context, d Dialect) error {
	whole := d.Stream(model.TextDelta("one"), model.TextDelta("two"), model.TextDelta("three"), end(model.StopEnd))
	for _, abort := range []bool{true, false} {
		for _, part := range []int{4, 3, 2} {
			cut := whole[:len(whole)/part]
			s := open(d, func(w http.ResponseWriter, r *http.Request) {
				play(cut)(w, r)
				if abort {
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
			})
			a, err := s.ask(ctx, s.request(hello()))
			s.close()
			if err = errors.Join(err, wantFailure(a, artel.Unavailable, true)); err != nil {
				return fmt.Errorf("after 1/%d of the stream: %w", part, err)
			}
		}
	}
	return nil
}

// stall plays the first half of an answer and waits until the client leaves or ctx
// ends. It sends whether the client left.
func stall(ctx context.Context, d Dialect) (http.HandlerFunc, <-chan bool) {
	whole := d.Stream(model.TextDelta("one"), model.TextDelta("two"), model.TextDelta("three"), end(model.StopEnd))
	gone := make(chan bool, 1)
	return func(w http.ResponseWriter, r *http.Request) {
		play(whole[:len(whole)*2/3])(w, r)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			gone <- true
		case <-ctx.Done():
			gone <- false
		}
	}, gone
}

func cancel(ctx context.Context, d Dialect) error {
	script, gone := stall(ctx, d)
	s := open(d, script)
	defer s.close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var last error
	for _, err := range s.provider.Generate(ctx, s.request(hello())) {
		stop()
		last = err
	}
	if artel.KindOf(last) != artel.Canceled {
		return fmt.Errorf("the last error is %v, want one of kind canceled", last)
	}
	if !<-gone {
		return errors.New("the server never saw the client go")
	}
	return checkError(last)
}

func leave(ctx context.Context, d Dialect) error {
	script, gone := stall(ctx, d)
	s := open(d, script)
	defer s.close()
	for _, err := range s.provider.Generate(ctx, s.request(hello())) {
		if err != nil {
			return err
		}
		break
	}
	if !<-gone {
		return errors.New("the server never saw the client go")
	}
	return nil
}

func failure(status int, message string, kind artel.Kind, transient bool) func(context.Context, Dialect) error {
	return func(ctx context.Context, d Dialect) error {
		s := open(d, send(status, "application/json", d.Failure(status, message)))
		defer s.close()
		a, err := s.ask(ctx, s.request(hello()))
		if err = errors.Join(err, wantFailure(a, kind, transient)); err != nil {
			return err
		}
		if c, _ := errors.AsType[*model.CallError](a.err); c.Status != status || c.Service != s.service.ID || c.Message == "" {
			return fmt.Errorf("the error says status %d, service %q and message %q", c.Status, c.Service, c.Message)
		}
		return nil
	}
}

func rateLimit(ctx context.Context, d Dialect) error {
	s := open(d, send(http.StatusTooManyRequests, "application/json", d.Failure(http.StatusTooManyRequests, "slow down"), "Retry-After", "7"))
	defer s.close()
	a, err := s.ask(ctx, s.request(hello()))
	if err = errors.Join(err, wantFailure(a, artel.Unavailable, true)); err != nil {
		return err
	}
	if c, _ := errors.AsType[*model.CallError](a.err); c.RetryAfter != 7*time.Second {
		return fmt.Errorf("the API asked for 7 s, the error says %v", c.RetryAfter)
	}
	return nil
}

func unreachable(ctx context.Context, d Dialect) error {
	s := open(d, play(nil))
	s.close()
	a, err := s.ask(ctx, s.request(hello()))
	return errors.Join(err, wantFailure(a, artel.Unavailable, true))
}

func nonsense(mediaType, body string) func(context.Context, Dialect) error {
	return func(ctx context.Context, d Dialect) error {
		s := open(d, send(http.StatusOK, mediaType, []byte(body)))
		defer s.close()
		a, err := s.ask(ctx, s.request(hello()))
		if err != nil {
			return err
		}
		if artel.KindOf(a.err) != artel.Unavailable {
			return fmt.Errorf("an answer that makes no sense gave %v, want an error of kind unavailable", a.err)
		}
		return nil
	}
}

func slowStream(ctx context.Context, d Dialect) error {
	whole := d.Stream(model.TextDelta("drip, 滴"), end(model.StopEnd))
	s := open(d, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		for i := range whole {
			_, _ = w.Write(whole[i : i+1])
			_ = rc.Flush()
		}
	})
	defer s.close()
	a, err := s.ask(ctx, s.request(hello()))
	return errors.Join(err, wantAnswer(a, "drip, 滴", model.StopEnd))
}

// hugeLine sends a line without an end, up to 256 MiB.
func hugeLine(ctx context.Context, d Dialect) error {
	sent := make(chan bool, 1)
	s := open(d, func(w http.ResponseWriter, _ *http.Request) {
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
	defer s.close()
	a, err := s.ask(ctx, s.request(hello()))
	if err != nil {
		return err
	}
	if artel.KindOf(a.err) != artel.Unavailable {
		return fmt.Errorf("a line without an end gave %v, want an error of kind unavailable", a.err)
	}
	if <-sent {
		return errors.New("256 MiB of one line were read")
	}
	return nil
}
