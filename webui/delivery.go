// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// A Delivery says in which form a model received an attachment, and why. Without
// Text it is a placeholder.
type Delivery struct {
	ID     string // element id
	Icon   string
	Text   string
	Lost   bool   // the model received neither the file nor its text
	Why    string // "": needs no explanation
	Model  string
	Tokens string
	Others []string // models that support it unchanged
	Before []EarlierDelivery
}

// A EarlierDelivery is a different form sent in an earlier call.
type EarlierDelivery struct{ Model, Text string }

// deliveryID is the element id of the delivery of the n-th media part of a message.
func deliveryID(m artel.MessageID, n int) string { return "w-" + string(m) + "-" + itoa(n) }

// A place is one media part: the n-th of a message.
type place struct {
	message artel.MessageID
	n       int
}

// shownContexts is how many model calls back loadDeliveries searches.
const shownContexts = 50

// loadDeliveries reads how attachments were sent, up to an event.
func (v view) loadDeliveries(ctx context.Context, upTo artel.Seq) (map[place]Delivery, error) {
	calls, err := v.app.Events.Contexts(ctx, v.conversation, upTo, shownContexts)
	if err != nil || len(calls) == 0 {
		return nil, err
	}
	names := map[artel.ServiceID]string{}
	for _, s := range v.app.Models.Services(ctx) {
		names[s.ID] = s.Name
	}
	out := map[place]Delivery{}
	for _, c := range calls {
		for at, a := range places(c.Attachments) {
			w := v.delivery(c.Service, a, names)
			w.ID = deliveryID(at.message, at.n)
			if last, ok := out[at]; ok {
				w.Before = last.Before
				if last.Text != w.Text {
					w.Before = append([]EarlierDelivery{{last.Model, last.Text}}, w.Before...)
				}
			}
			w.Before = slices.DeleteFunc(slices.Clone(w.Before), func(b EarlierDelivery) bool { return b == EarlierDelivery{w.Model, w.Text} })
			out[at] = w
		}
	}
	return out, nil
}

// places numbers the attachments of each message, which are in the order of its
// parts.
func places(all []artel.AttachmentRoute) map[place]artel.AttachmentRoute {
	out, next := map[place]artel.AttachmentRoute{}, map[artel.MessageID]int{}
	for _, a := range all {
		out[place{a.Message, next[a.Message]}] = a
		next[a.Message]++
	}
	return out
}

// delivery describes how a call sent an attachment.
func (v view) delivery(service artel.ServiceID, a artel.AttachmentRoute, names map[artel.ServiceID]string) Delivery {
	nameOf := func(id artel.ServiceID) string {
		if n := names[id]; n != "" {
			return n
		}
		return string(id)
	}
	w := Delivery{Model: nameOf(service), Tokens: thousands(a.Tokens)}
	say := func(k phrase.Key, args map[string]any) string { return v.locale.Say(k, args) }
	sent := artel.SentForm{}
	if a.Sent != nil {
		sent = *a.Sent
	}
	text := map[string]any{"Number": thousands(sent.Characters), "Name": nameOf(sent.Service)}
	switch a.Step {
	case artel.StepNative, artel.StepExtracted:
		w.Icon, w.Text = "circle-check", say(phrase.PageWayNative, nil)
		switch {
		case sent.Characters > 0 && sent.Cut:
			w.Icon, w.Text = "scan-text", say(phrase.PageWayTextCut, text)
		case a.Step == artel.StepExtracted || a.ContentType == artel.RoutingText:
			w.Icon, w.Text = "scan-text", say(phrase.PageWayText, text)
		}
	case artel.StepConverted:
		k := phrase.PageWayConverted
		if a.Reason == artel.ReasonOverLimit {
			k = phrase.PageWayScaled
		}
		w.Icon, w.Text = "scaling", say(k, map[string]any{"Form": v.form(sent)})
		if sent.Pages > 0 {
			w.Icon, w.Text = "scaling", say(phrase.PageWayPages, map[string]any{"Shown": sent.Pages, "All": sent.Pages + sent.PagesLeft})
		}
	case artel.StepTranscribed:
		k := phrase.PageWayTranscribed
		if a.Kind == artel.KindImage {
			k = phrase.PageWayCaptioned
		}
		w.Icon, w.Text = "captions", say(k, text)
	default:
		w.Icon, w.Text, w.Lost = "file-x", say(phrase.PageWayDescribed, nil), true
	}
	w.Why = v.why(a, w.Model)
	if a.Dropped {
		w.Icon, w.Text, w.Why, w.Lost, w.Tokens = "file-x", say(phrase.PageWayDropped, nil), "", true, ""
	}
	if a.Step != artel.StepNative {
		for _, id := range a.Suggested {
			w.Others = append(w.Others, nameOf(id))
		}
	}
	return w
}

// form describes the converted bytes: "JPEG image, 1568 × 1045, 210.3 KB".
func (v view) form(s artel.SentForm) string {
	parts := []string{typeName(v.locale, s.MediaType)}
	if s.Width > 0 && s.Height > 0 {
		parts = append(parts, dimensions(s.Width, s.Height))
	}
	if s.Size > 0 {
		parts = append(parts, phrase.Size(s.Size))
	}
	return strings.Join(parts, ", ")
}

// why explains why an attachment was not sent unchanged.
func (v view) why(a artel.AttachmentRoute, model string) string {
	k := phrase.Key("page.reason_" + string(a.Reason))
	switch a.Reason {
	case artel.ReasonNone, artel.ReasonText:
		return ""
	case artel.ReasonCapabilityMissing:
		k = phrase.Key("page.need_" + string(a.Need))
	}
	text := v.locale.Say(k, map[string]any{"Model": model})
	if text == string(k) { // a reason without a phrase
		return ""
	}
	return text
}

// dimensions formats the size of a picture.
func dimensions(width, height int) string { return itoa(width) + " × " + itoa(height) }

// thousands formats a number with separators: "12,345".
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
