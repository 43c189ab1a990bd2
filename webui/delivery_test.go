// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// tell appends to the log of a conversation how attachments were sent.
func (s *site) tell(t *testing.T, id artel.ConversationID, calls ...artel.ContextBuilt) {
	t.Helper()
	err := s.store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
		for _, c := range calls {
			e, err := artel.NewEvent("", "", time.Now().UTC(), c)
			if err == nil {
				_, err = tx.Events.Append(id, e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Each way to a model is said in words: in which form, why, how much, who else
// could, and how it was before.
func TestWays(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{services: []model.Service{textOnly, sharp}, model: speech(func(context.Context, *model.Request, func(model.Delta) bool) {})})
	c, err := s.app.Conversations.Create(apptest.Context(t), app.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().UTC().Truncate(time.Microsecond)
	message := artel.Message{ID: artel.NewMessageID(at), Conversation: c.ID, Role: artel.RoleUser, CreatedAt: at}
	var routes []artel.AttachmentRoute
	var wants [][]string
	add := func(kind artel.MediaKind, r artel.Route, sent *artel.SentForm, dropped bool, want ...string) {
		message.Parts = append(message.Parts, artel.Media{Ref: artel.Ref{Artifact: "a", Version: 1}, Kind: kind, MediaType: "image/png", Filename: "a"})
		routes = append(routes, artel.AttachmentRoute{Message: message.ID, Kind: kind, Route: r, Sent: sent, Tokens: 1234 + len(routes), Dropped: dropped})
		wants = append(wants, want)
	}
	described := func(reason artel.Reason, need artel.Capability) artel.Route {
		return artel.Route{Step: artel.StepDescribed, Routing: artel.RoutingText, ContentType: "binary", Reason: reason, Need: need, Suggested: []artel.ServiceID{"sharp", "gone"}}
	}
	add(artel.KindImage, artel.Route{Step: artel.StepNative, ContentType: "image"}, nil, false, "sent unchanged", "1,234", "Plain 8B")
	add(artel.KindText, artel.Route{Step: artel.StepNative, ContentType: "text", Reason: artel.ReasonText}, &artel.SentForm{Characters: 4120}, false, "its text was sent, 4,120 characters")
	add(artel.KindText, artel.Route{Step: artel.StepNative, ContentType: "text", Reason: artel.ReasonText}, &artel.SentForm{Characters: 20000, Cut: true}, false, "the first 20,000 characters of its text were sent")
	add(artel.KindImage, artel.Route{Step: artel.StepConverted, ContentType: "image", Reason: artel.ReasonOverLimit}, &artel.SentForm{MediaType: "image/jpeg", Width: 1568, Height: 1045, Size: 300 << 10}, false,
		"scaled to JPEG image, 1568 × 1045, 300.0 KB", "It is larger than Plain 8B allows.")
	add(artel.KindImage, artel.Route{Step: artel.StepConverted, ContentType: "image", Reason: artel.ReasonNotAccepted}, &artel.SentForm{MediaType: "image/png", Width: 16, Height: 12}, false,
		"converted to PNG image, 16 × 12", "Plain 8B does not support this type of file.")
	add(artel.KindDocument, artel.Route{Step: artel.StepExtracted, ContentType: "binary", Reason: artel.ReasonCapabilityMissing, Need: artel.CanFile}, &artel.SentForm{Characters: 88}, false, "its text was sent, 88 characters", "Plain 8B does not support files.")
	add(artel.KindAudio, artel.Route{Step: artel.StepTranscribed, Reason: artel.ReasonCapabilityMissing, Need: artel.CanAudio}, &artel.SentForm{Characters: 812, Service: "sharp"}, false, "transcribed by Sharp, 812 characters", "does not support audio")
	add(artel.KindImage, artel.Route{Step: artel.StepTranscribed, Reason: artel.ReasonCapabilityMissing, Need: artel.CanVision}, &artel.SentForm{Characters: 90, Service: "unknown"}, false, "described by unknown, 90 characters")
	add(artel.KindImage, described(artel.ReasonCapabilityMissing, artel.CanVision), nil, false, "only its name and kind were sent", "Plain 8B does not support pictures.", "Supported by", "Sharp", "gone")
	add(artel.KindVideo, described(artel.ReasonCapabilityMissing, artel.CanVideo), nil, false, "does not support video")
	add(artel.KindOther, described(artel.ReasonUndetected, artel.CanFile), nil, false, "Its type is unknown.")
	add(artel.KindOther, described(artel.ReasonUnreadable, ""), nil, false, "Its bytes are missing or damaged.")
	add(artel.KindOther, described(artel.ReasonEmpty, ""), nil, false, "It is empty.")
	add(artel.KindOther, described("of_tomorrow", ""), nil, false, "only its name and kind were sent")
	add(artel.KindImage, artel.Route{Step: artel.StepNative, ContentType: "image"}, nil, true, "not sent: the conversation no longer fits")
	add(artel.KindImage, artel.Route{Step: artel.StepNative, ContentType: "image"}, nil, false) // of it nothing is known
	err = s.store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
		c.Leaf = message.ID
		if err := tx.Messages.Create(message); err != nil {
			return err
		}
		return tx.Conversations.Update(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	known := routes[:len(routes)-1]
	s.tell(t, c.ID, artel.ContextBuilt{Service: "plain", Attachments: known})
	page := func(language string) string {
		return s.ask(t, "GET", "/c/"+string(c.ID), "", nil, "Accept-Language", language).body
	}
	check := func(body string, n int, wants ...string) {
		t.Helper()
		got := element(t, body, "w-"+string(message.ID)+"-"+itoa(artel.Seq(n)))
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%d: no %q in %s", n, want, got)
			}
		}
		if strings.Contains(got, "page.") {
			t.Errorf("%d: a text is missing in %s", n, got)
		}
	}
	en, zh := page("en"), page("zh")
	for n, want := range wants {
		check(en, n, want...)
		check(zh, n)
	}
	if got := element(t, en, "w-"+string(message.ID)+"-"+itoa(artel.Seq(len(known)))); strings.Contains(got, "details") {
		t.Errorf("a way is told that nobody knows: %s", got)
	}

	// Another model got the first one otherwise, and then it was as before.
	other := routes[0]
	other.Route = described(artel.ReasonCapabilityMissing, artel.CanVision)
	s.tell(t, c.ID, artel.ContextBuilt{Service: "sharp", Attachments: []artel.AttachmentRoute{other}})
	check(page("en"), 0, "only its name and kind were sent", "Before", "Plain 8B</bdi>: sent unchanged")
	s.tell(t, c.ID, artel.ContextBuilt{Service: "plain", Attachments: routes[:1]})
	check(page("en"), 0, "sent unchanged", "Sharp</bdi>: only its name and kind were sent")
}

// Live, each attachment says where it went as soon as the model is asked; with
// another model the next call says so, and a page that is loaded anew the same.
func TestWaysLive(t *testing.T) {
	t.Parallel()
	seeing := sharp
	seeing.Dialect = model.OpenAI
	s := newSiteOf(t, setup{services: []model.Service{textOnly, seeing}, model: speech(func(_ context.Context, r *model.Request, say func(model.Delta) bool) {
		say(model.TextDelta("I am " + r.Service.Name + "."))
	})})
	b := openTab(t, 1280, 900)
	b.Do(chromedp.Navigate(s.URL), see("#composer"), choose(sample(t, "photo.jpg"), sample(t, "notes.md")))
	b.send("Look.")
	b.rest()
	b.Until(`document.querySelectorAll(".message.user .way summary").length === 2`)
	b.Says(".message.user", "only its name and kind were sent", "its text was sent, 72 characters")
	b.sameAnew()
	b.Do(click(".message.user .way summary"), see(".way dl"))
	b.Says(".way dl", "Plain 8B does not support pictures.", "Sharp", "Tokens")
	b.picture("ways")
	b.Do(click("#model"), see("#picker"), click(`#picker label:has([value="sharp"])`), press("\x1b"))
	b.send("And now?")
	b.rest()
	b.Until(`document.querySelector(".way summary").innerText.includes("sent unchanged")`)
	b.Says(".way dl", "Before", "Plain 8B: only its name and kind were sent")
	b.sameAnew()
}
