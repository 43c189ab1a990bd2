// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// A slowReader holds up a page's stream after each frame until the test lets it go
// on.
type slowReader struct {
	http.ResponseWriter
	ctx    context.Context
	frames chan string
	on     chan struct{}
}

// Write implements [http.ResponseWriter].
func (r *slowReader) Write(b []byte) (int, error) {
	n, err := r.ResponseWriter.Write(b)
	select {
	case r.frames <- string(b):
	case <-r.ctx.Done():
	}
	select {
	case <-r.on:
	case <-r.ctx.Done():
	}
	return n, err
}

// Unwrap lets an [http.ResponseController] reach the connection.
func (r *slowReader) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// A page that is behind the log gets the thread from the store, with an answer that
// is complete there. Pieces of the answer that the stream still has do not come
// after it: nothing would complete them.
func TestLatePieces(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"of an answer that the page has not": false, "of an answer that the page has in part": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pieces, frames, on := make(chan string), make(chan string), make(chan struct{})
			s := newSiteOf(t, setup{
				model: speech(func(ctx context.Context, _ *model.Request, say func(model.Delta) bool) {
					for {
						select {
						case piece := <-pieces:
							if piece == "" || !say(model.TextDelta(piece)) {
								return
							}
						case <-ctx.Done():
							return
						}
					}
				}),
				wrap: func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if strings.HasSuffix(r.URL.Path, "/live") {
							w = &slowReader{w, r.Context(), frames, on}
						}
						next.ServeHTTP(w, r)
					})
				},
			})
			ctx := apptest.Context(t)
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			c, err := s.app.Conversations.Create(ctx, app.NewConversation{})
			check(err)
			follow := func(until func(artel.Event) bool) {
				for e, err := range s.app.Events.Follow(ctx, c.ID, 0, 0) {
					if check(err); until(e) {
						return
					}
				}
				t.Fatal("the events ended")
			}
			write := func(piece string) { // and see it
				pieces <- piece
				written := ""
				follow(func(e artel.Event) bool {
					var p artel.MessageDelta
					if e.Type == artel.EventMessageDelta {
						check(json.Unmarshal(e.Data, &p))
					}
					written += p.Text
					return strings.Contains(written, piece)
				})
			}
			end := func(id artel.RunID) {
				pieces <- ""
				follow(func(e artel.Event) bool { return e.Type == artel.EventRunFinished && e.Run == id })
			}
			open := func() {
				req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/c/"+string(c.ID)+"/live", nil)
				check(err)
				resp, err := http.DefaultClient.Do(req)
				check(err)
				go func() {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}()
			}

			// On a second branch an answer is being written.
			first, err := s.app.Runs.Send(ctx, c.ID, run.Input{Text: "go"})
			check(err)
			write("The first.")
			end(first.ID)
			text := "go on"
			second, err := s.app.Runs.Edit(ctx, c.ID, first.Message, run.Edit{Text: &text, Queue: true})
			check(err)
			write("Half of")
			open()
			frame := <-frames // the stream has the log so far and what is written
			if begun {
				for !strings.Contains(frame, "Half of") {
					on <- struct{}{}
					frame = <-frames
				}
				write(" it is")
				_, err = s.app.Messages.Mute(ctx, c.ID, second.Message, true)
				check(err)
				for _, m := range []artel.MessageID{first.Message, second.Message} {
					_, err = s.app.Conversations.Switch(ctx, c.ID, m)
					check(err)
				}
				on <- struct{}{}
				frame = <-frames // of the message that was muted
			}

			// The answer is complete before the stream reads the thread.
			end(second.ID)
			r, err := s.app.Runs.Find(ctx, second.ID)
			check(err)
			last, err := s.app.Events.Last(ctx, c.ID)
			check(err)
			thread := false
			for !strings.HasPrefix(frame, "id: "+itoa(last)+"\n") {
				on <- struct{}{}
				frame = <-frames
				if strings.Contains(frame, `<div id="messages"`) {
					thread = true
					if !strings.Contains(frame, `<article id="m-`+string(r.Reply)) {
						t.Fatalf("the thread has no answer: %s", frame)
					}
				} else if thread && !strings.HasPrefix(frame, "id: ") && strings.Contains(frame, string(r.Reply)) {
					t.Errorf("after the whole answer came %s", frame)
				}
			}
			if !thread {
				t.Error("no thread came")
			}
		})
	}
}
