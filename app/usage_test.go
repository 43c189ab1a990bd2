// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/run"
)

// breaking answers as the named services, of which some break off after a text.
func breaking(broken ...artel.ServiceID) provide {
	return func(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		if !yield(model.TextDelta("eyes"), nil) {
			return
		}
		for _, id := range broken {
			if r.Service.ID == id {
				yield(nil, artel.Errorf(artel.Unavailable, "x", "", "the stream broke off"))
				return
			}
		}
		yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 10, OutputTokens: 2}}, nil)
	}
}

// TestEveryCallCounts: whatever a model was asked for, and however far its
// answer came, is in the usage of the conversation, by purpose in the log.
func TestEveryCallCounts(t *testing.T) {
	var shot bytes.Buffer
	if err := png.Encode(&shot, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		broken  []artel.ServiceID
		picture bool
		change  func(*app.Config)
		service artel.ServiceID
		calls   int
		guessed bool
		purpose artel.CallPurpose
	}{
		"a broken answer":   {broken: []artel.ServiceID{"words"}, calls: 1, guessed: true},
		"a title":           {change: func(c *app.Config) { c.Background.Titles = "small" }, calls: 2},
		"a broken title":    {broken: []artel.ServiceID{"small"}, change: func(c *app.Config) { c.Background.Titles = "small" }, calls: 2, guessed: true},
		"a selector":        {service: model.AutoService, change: func(c *app.Config) { c.Background.Selector = "small" }, calls: 2, purpose: artel.CallSelects},
		"a broken selector": {broken: []artel.ServiceID{"small"}, service: model.AutoService, change: func(c *app.Config) { c.Background.Selector = "small" }, calls: 2, guessed: true, purpose: artel.CallSelects},
		"a caption": {picture: true, calls: 2, purpose: artel.CallRenders, change: func(c *app.Config) {
			c.Options.Context.Caption = rendition.Caption{Service: "eyes"}
		}},
		"a broken caption": {broken: []artel.ServiceID{"eyes"}, picture: true, calls: 2, guessed: true, purpose: artel.CallRenders, change: func(c *app.Config) {
			c.Options.Context.Caption = rendition.Caption{Service: "eyes"}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, breaking(tt.broken...), services("words", "eyes:vision", "small"), func(c *app.Config) {
				if tt.change != nil {
					tt.change(c)
				}
			})
			conversation, err := b.Conversations.Create(apptest.Context(t), app.NewConversation{Service: tt.service})
			if err != nil {
				t.Fatal(err)
			}
			c, in := conversation.ID, run.Input{Text: "What is this?"}
			if tt.picture {
				in.Attachments = []string{string(b.upload(c, "shot.png", shot.String()).ID)}
			}
			b.ended(b.send(c, in))
			u, err := b.Conversations.Usage(apptest.Context(t), c)
			for end := time.Now().Add(5 * time.Minute); err == nil && u.Calls < tt.calls && time.Now().Before(end); time.Sleep(time.Millisecond) {
				u, err = b.Conversations.Usage(apptest.Context(t), c) // the title comes after the end
			}
			if err != nil || u.Calls != tt.calls || u.Estimated != tt.guessed || u.InputTokens < 10 || u.OutputTokens == 0 {
				t.Errorf("%+v, %v; want %d calls, estimated %v", u, err, tt.calls, tt.guessed)
			}
			told := map[artel.CallPurpose]int{}
			for _, e := range b.events(c) {
				if e.Type == artel.EventUsage {
					told[payload[artel.UsageReported](t, e).Purpose]++
				}
			}
			if told[tt.purpose] == 0 {
				t.Errorf("the log tells of %v", told)
			}
		})
	}
}

// TestCaptionsCountTowardLimits: a run whose limit is spent on a caption makes no
// call afterwards.
func TestCaptionsCountTowardLimits(t *testing.T) {
	var shot bytes.Buffer
	if err := png.Encode(&shot, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	s := &several{says: "A grey square."}
	b := newBench(t, provide(s.generate), services("words", "eyes:vision"), func(c *app.Config) {
		c.Options.Context.Caption = rendition.Caption{Service: "eyes"}
		c.Agents = []agent.Definition{{Name: agent.Lead, Prompt: "You look.", Limits: agent.Limits{Tokens: 12}}}
	})
	c := b.conversation()
	r := b.ended(b.send(c, run.Input{Text: "What is this?", Attachments: []string{string(b.upload(c, "shot.png", shot.String()).ID)}}))
	if r.State != artel.RunFailed || r.Error.Code != artel.CodeLimitTokens || r.Usage.Calls != 1 {
		t.Errorf("%+v: %+v", r, r.Error)
	}
}

// TestStoppedAnswerCounts: a server that stops in the middle of an answer counts
// it, and the next one asks again.
func TestStoppedAnswerCounts(t *testing.T) {
	b := newBench(t, play(t, hangs))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	b.until(c, ofType(artel.EventMessageDelta))
	if err := b.Close(apptest.Context(t)); err != nil {
		t.Fatal(err)
	}
	r, err := b.Runs.Find(apptest.Context(t), r.ID)
	if err != nil || r.State != artel.RunRunning || r.Usage.Calls != 1 || !r.Usage.Estimated || r.Reply != "" {
		t.Errorf("got %+v, %v", r, err)
	}
	if n := len(b.messages(c)); n != 1 {
		t.Errorf("%d messages are stored, want the question alone", n)
	}
}
