// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// several are services that say who they are; the selector says what it is told
// to.
type several struct {
	mu     sync.Mutex
	says   string
	fails  error
	prompt string
}

func (s *several) generate(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := "I am " + string(r.Service.ID)
	if r.Service.ID == "small" && r.Messages[0].Role == artel.RoleSystem && strings.Contains(artel.TextOf(r.Messages[0].Parts), "tag of") {
		s.prompt = artel.TextOf(r.Messages[0].Parts) + "\n" + artel.TextOf(r.Messages[1].Parts)
		if s.fails != nil {
			yield(nil, s.fails)
			return
		}
		said = s.says
	}
	_ = yield(model.TextDelta(said), nil) && yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 10, OutputTokens: 2}}, nil)
}

// services are those of the names, each with what it takes beside text.
func services(ids ...string) func(*app.Config) {
	return func(c *app.Config) {
		var list []model.Service
		for _, id := range ids {
			s := model.DemoService()
			name, words, _ := strings.Cut(id, ":")
			s.ID, s.Tags, s.Capabilities = artel.ServiceID(name), []string{"tag of " + name}, model.TextOnly()
			for w := range strings.FieldsSeq(words) {
				s.Capabilities.Input.Value = append(s.Capabilities.Input.Value, artel.Capability(w))
			}
			list = append(list, s)
		}
		c.Services = model.NewRegistry(list, list[0].ID)
	}
}

func (b *bench) chosen(c artel.ConversationID, r artel.Run) artel.ServiceChosen {
	b.t.Helper()
	for _, e := range b.events(c) {
		if e.Type == artel.EventServiceChosen && e.Run == r.ID {
			return payload[artel.ServiceChosen](b.t, e)
		}
	}
	b.t.Fatal("the choice was not told")
	return artel.ServiceChosen{}
}

const dot = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00"

func TestAuto(t *testing.T) {
	down := artel.Errorf(artel.Invalid, "x", "", "no")
	all, seeing := []artel.ServiceID{"words", "eyes", "more", "small"}, []artel.ServiceID{"eyes", "more"}
	for name, tt := range map[string]struct {
		selector artel.ServiceID
		says     string
		fails    error
		picture  bool
		want     artel.ServiceID
		by       artel.ChosenBy
		list     []artel.ServiceID
	}{
		"by order":                        {"", "", nil, false, "words", artel.ChosenByOrder, all},
		"a picture":                       {"", "", nil, true, "eyes", artel.ChosenByOrder, seeing},
		"picked":                          {"small", " `more`.\n", nil, true, "more", artel.ChosenBySelector, seeing},
		"picked in a sentence":            {"small", "I choose more, as it sees.", nil, true, "more", artel.ChosenBySelector, seeing},
		"one that does not suit":          {"small", "words", nil, true, "eyes", artel.ChosenByOrder, seeing},
		"two of them":                     {"small", "more or eyes", nil, true, "eyes", artel.ChosenByOrder, seeing},
		"a selector that fails":           {"small", "", down, true, "eyes", artel.ChosenByOrder, seeing},
		"a selector that there is not":    {"gone", "", nil, true, "eyes", artel.ChosenByOrder, seeing},
		"a selector that answers nothing": {"small", "", nil, true, "eyes", artel.ChosenByOrder, seeing},
	} {
		t.Run(name, func(t *testing.T) {
			s := &several{says: tt.says, fails: tt.fails}
			b := newBench(t, provide(s.generate), services("words", "eyes:vision", "more:vision audio", "small"), func(c *app.Config) { c.Background.Selector = tt.selector })
			conversation, err := b.Conversations.Create(apptest.Context(t), app.NewConversation{Service: model.AutoService})
			if err != nil {
				t.Fatal(err)
			}
			c, in := conversation.ID, run.Input{Text: "What is this?"}
			if tt.picture {
				in.Attachments = []string{string(b.upload(c, "dot.png", dot).ID)}
			}
			r := b.ended(b.send(c, in))
			if r.State != artel.RunDone || r.Service != tt.want || b.said(c) != "What is this? | I am "+string(tt.want) {
				t.Fatalf("%+v: %s", r, b.said(c))
			}
			told := b.chosen(c, r)
			if told.Service != tt.want || told.By != tt.by || !slices.Equal(told.Candidates, tt.list) || told.Selector != tt.selector {
				t.Errorf("told %+v", told)
			}
			if failed := told.Problem != ""; failed != (tt.selector != "" && tt.by == artel.ChosenByOrder) {
				t.Errorf("told %+v", told)
			}
			calls := 1
			if tt.selector == "small" && tt.fails == nil {
				calls = 2
			}
			if r.Usage.Calls != calls {
				t.Errorf("%d calls are counted, want %d", r.Usage.Calls, calls)
			}
			if tt.by == artel.ChosenBySelector && (!strings.Contains(s.prompt, "tag of more") || !strings.Contains(s.prompt, "What is this?") ||
				!strings.Contains(s.prompt, "[image/png") || strings.Contains(s.prompt, "- words")) {
				t.Errorf("the selector is told:\n%s", s.prompt)
			}
		})
	}
}

// TestAutoFollowsTheBranch: what stands before a message counts where the
// message itself leaves several. A named service wins.
// TestAutoByDefault: where nobody names a service, each message gets the one that
// suits it; what is named anywhere holds, and a service that is called so is
// meant itself.
func TestAutoByDefault(t *testing.T) {
	b := newBench(t, provide((&several{}).generate), services("words", "eyes:vision"), func(c *app.Config) {
		c.Services.Replace(c.Services.All(), nil, model.AutoService)
	})
	if got := b.Models.Preferred(apptest.Context(t)); got != model.AutoService {
		t.Errorf("what is used where nobody names one is %s", got)
	}
	fits, err := b.Models.Fit(apptest.Context(t), "", []run.Candidate{{Filename: "a.png", Size: int64(len(dot)), Head: []byte(dot)}})
	if err != nil || len(fits) != 1 || fits[0].Step != artel.StepNative {
		t.Errorf("a picture would be sent as %+v, %v", fits, err)
	}
	c := b.conversation()
	if r := b.ask(c, "Hello."); r.Service != "words" || b.chosen(c, r).By != artel.ChosenByOrder {
		t.Errorf("got %+v", r)
	}
	a := b.upload(c, "a.png", dot)
	if r := b.ended(b.send(c, run.Input{Text: "Look.", Attachments: []string{string(a.ID)}})); r.Service != "eyes" {
		t.Errorf("a picture went to %s", r.Service)
	}
	r := b.ended(b.send(c, run.Input{Text: "Read.", Service: "words"}))
	if r.Service != "words" || strings.Count(typesOf(b.events(c)), "service_chosen") != 2 {
		t.Errorf("what is named goes to %s: %s", r.Service, typesOf(b.events(c)))
	}
	named := newBench(t, provide((&several{}).generate), services("words", "auto"), func(c *app.Config) {
		c.Services.Replace(c.Services.All(), nil, model.AutoService)
	})
	c = named.conversation()
	if r := named.ask(c, "Hello."); r.Service != "auto" || strings.Contains(typesOf(named.events(c)), "service_chosen") {
		t.Errorf("one of that name: got %s", r.Service)
	}
}

func TestAutoFollowsTheBranch(t *testing.T) {
	b := newBench(t, provide((&several{}).generate), services("words", "eyes:vision", "ears:audio"))
	c := b.conversation()
	picture := b.upload(c, "dot.png", dot)
	for _, tt := range []struct {
		in   run.Input
		want artel.ServiceID
	}{
		{run.Input{Text: "one", Service: model.AutoService}, "words"},
		{run.Input{Text: "two", Service: model.AutoService, Attachments: []string{string(picture.ID)}}, "eyes"},
		{run.Input{Text: "three", Service: model.AutoService}, "eyes"},
		{run.Input{Text: "four", Service: "ears"}, "ears"},
	} {
		if r := b.ended(b.send(c, tt.in)); r.State != artel.RunDone || r.Service != tt.want {
			t.Errorf("%s: got %+v, want %s", tt.in.Text, r, tt.want)
		}
	}
	preview, err := b.Previews.Build(apptest.Context(t), c, run.Input{Text: "five", Service: model.AutoService})
	if err != nil || preview.Service != "eyes" {
		t.Errorf("the preview is for %s, %v", preview.Service, err)
	}
}
