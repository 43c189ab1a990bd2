// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// What is chosen and not yet sent counts as it would: its text stands in the
// request, and of a long file it is said that only its beginning is known.
func TestPreviewOfChosenFiles(t *testing.T) {
	b := newBench(t, nil)
	picture, err := os.ReadFile("../testdata/files/photo.jpg")
	if err != nil {
		t.Fatal(err)
	}
	c := b.conversation()
	for _, at := range []artel.ConversationID{c, ""} {
		long := strings.Repeat("long é ", 10_000)
		p, err := b.Previews.Build(apptest.Context(t), at, run.Input{Text: "What is in them?"},
			run.Candidate{Filename: "notes.md", Head: []byte("# The needle\n"), Size: 13},
			run.Candidate{Filename: "notes.md", Head: []byte("another one\n"), Size: 12},
			run.Candidate{Filename: "photo.jpg", Head: picture, Size: int64(len(picture))},
			run.Candidate{Filename: "long.txt", Head: []byte(long[:run.MaxHead]), Size: int64(len(long))})
		if err != nil {
			t.Fatal(err)
		}
		newest := ""
		for _, x := range p.Blocks {
			newest += fmt.Sprintf("%+v\n", x.Parts)
		}
		for _, want := range []string{"# The needle", "another one", "photo.jpg", "long é", "What is in them?"} {
			if !strings.Contains(newest, want) {
				t.Errorf("the preview lacks %q", want)
			}
		}
		if p.Exact || len(p.Pending) != 1 || p.Pending[0].Ref.Artifact != "long.txt" || p.Tokens.Total < 1000 {
			t.Errorf("exact %v, pending %v, %d tokens", p.Exact, p.Pending, p.Tokens.Total)
		}
	}
	if list, err := b.Artifacts.List(apptest.Context(t), c, ""); err != nil || len(list) != 0 {
		t.Errorf("a preview left the artifacts %v, %v", list, err)
	}
}

// A glance says of a long conversation what a preview does, but for the names
// of what is far out of the window.
func TestGlance(t *testing.T) {
	b := newBench(t, nil, func(c *app.Config) {
		s := model.DemoService()
		s.Capabilities.ContextWindow = model.Fact[int]{Value: 8000, Source: model.FromOperator}
		wide := s
		wide.ID, wide.Capabilities.ContextWindow.Value = "wide", 200_000
		endless := s
		endless.ID, endless.Capabilities.ContextWindow = "endless", model.Fact[int]{}
		c.Services = model.NewRegistry([]model.Service{s, wide, endless}, s.ID)
	})
	id := b.conversation()
	if err := b.config.Store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error { return talk(tx, id, 700) }); err != nil {
		t.Fatal(err)
	}
	for _, service := range []artel.ServiceID{"", "wide", "endless"} {
		in := run.Input{Text: "And now?", Service: service}
		want, err := b.Previews.Build(apptest.Context(t), id, in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Previews.Estimate(apptest.Context(t), id, in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Exact || got.Tokens.Total != want.Tokens.Total || len(got.Blocks) != len(want.Blocks) || (len(got.Tokens.Dropped) == 0) != (len(want.Tokens.Dropped) == 0) {
			t.Errorf("%q: a glance has %d tokens in %d messages, a preview %d in %d", service, got.Tokens.Total, len(got.Blocks), want.Tokens.Total, len(want.Blocks))
		}
	}
}

// talk fills a conversation with n messages of 400 characters.
func talk(tx store.Tx, id artel.ConversationID, n int) error {
	c, err := tx.Conversations.Get(id)
	for i := 0; i < n && err == nil; i++ {
		m := artel.Message{
			ID: artel.NewMessageID(time.Now()), Conversation: id, Parent: c.Leaf, Role: artel.RoleUser, CreatedAt: time.Now(),
			Parts: artel.Parts{artel.Text{Text: fmt.Sprint(i, strings.Repeat(" quick brown foxes", 22))}},
		}
		if i%2 == 1 {
			m.Role = artel.RoleAssistant
		}
		c.Leaf = m.ID
		err = tx.Messages.Create(m)
	}
	if err == nil {
		err = tx.Conversations.Update(c)
	}
	return err
}

// BenchmarkGlance is what each pause in typing costs.
func BenchmarkGlance(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := newBench(b, nil, func(c *app.Config) {
				s := model.DemoService()
				s.Capabilities.ContextWindow = model.Fact[int]{Value: 42_667, Source: model.FromOperator}
				c.Services = model.NewRegistry([]model.Service{s}, s.ID)
			})
			id, i := x.conversation(), 0
			if err := x.config.Store.Update(apptest.Context(b), artel.Local, func(tx store.Tx) error { return talk(tx, id, n) }); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				i++
				if _, err := x.Previews.Estimate(apptest.Context(b), id, run.Input{Text: fmt.Sprint("And what of this? ", i, time.Now())}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
