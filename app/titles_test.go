// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
)

// TestTitlesByModel: a model gives the title after the first answer, and only then; a
// person's title stays, and the call counts.
func TestTitlesByModel(t *testing.T) {
	for name, tt := range map[string]struct {
		says, renamed, want string
		fails               bool
	}{
		"a title":         {says: "**Title: \"Cranes of the north\"**.\nMore.", want: "Cranes of the north"},
		"a Chinese title": {says: "标题：《北方的鹤》。", want: "北方的鹤"},
		"a person's":      {says: "Cranes", renamed: "Mine", want: "Mine"},
		"nothing":         {says: "\n \"\"", want: "Tell me of cranes."},
		"a long one":      {says: strings.Repeat("crane ", 40), want: strings.TrimSpace(strings.Repeat("crane ", 14)[:80]) + "…"},
		"a failure":       {fails: true, want: "Tell me of cranes."},
	} {
		t.Run(name, func(t *testing.T) {
			came, may := make(chan string, 10), make(chan struct{}, 10)
			b := newBench(t, provide(func(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) {
				text := "They fly."
				if r.Service.ID == "small" {
					came <- artel.TextOf(r.Messages[1].Parts)
					select {
					case <-may:
					case <-ctx.Done():
					}
					if text = tt.says; tt.fails {
						yield(nil, artel.Errorf(artel.Invalid, "x", "", "no"))
						return
					}
				}
				_ = yield(model.TextDelta(text), nil) && yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 10, OutputTokens: 2}}, nil)
			}), services("words", "small"), func(c *app.Config) { c.Background.Titles = "small" })
			c := b.conversation()
			b.ask(c, "Tell me of cranes.")
			if told := <-came; !strings.Contains(told, "Tell me of cranes.") || !strings.Contains(told, "They fly.") {
				t.Errorf("it is told %q", told)
			}
			// The next message does not wait for it.
			if r := b.ask(c, "And storks?"); r.State != artel.RunDone {
				t.Errorf("%+v", r)
			}
			if tt.renamed != "" {
				if _, err := b.Conversations.Rename(apptest.Context(t), c, tt.renamed); err != nil {
					t.Fatal(err)
				}
			}
			may <- struct{}{}
			if !tt.fails {
				told := payload[artel.ConversationTitled](t, b.until(c, ofType(artel.EventConversationTitled)))
				if told.Title != tt.want || told.Service != "small" || told.Usage.Calls != 1 {
					t.Errorf("told %+v", told)
				}
			}
			if err := b.Close(apptest.Context(t)); err != nil {
				t.Fatal(err)
			}
			found, err := b.Conversations.Find(apptest.Context(t), c)
			if err != nil || found.Title != tt.want {
				t.Errorf("the title is %q, %v; want %q", found.Title, err, tt.want)
			}
			want := 3
			if tt.fails {
				want = 2
			}
			if u, err := b.Conversations.Usage(apptest.Context(t), c); err != nil || u.Calls != want {
				t.Errorf("%+v are counted, %v; want %d calls", u, err, want)
			}
			if len(came) != 0 {
				t.Error("a title was asked for again")
			}
			if _, err := b.Runs.Active(apptest.Context(t), c); !errors.Is(err, artel.NotFound) {
				t.Errorf("a run is at work: %v", err)
			}
		})
	}
}
