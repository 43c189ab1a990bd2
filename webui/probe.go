// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/probe"
)

// A Mark is a fact learned from calls to a service.
type Mark struct {
	Key      string
	Waiting  bool // another request has to confirm it
	Text     string
	OK       bool
	Source   phrase.Key
	At       time.Time
	Until    string // expiry day
	Evidence string // quotation of the API or the model; "": none
}

// Probed is the result of a test of a service.
type Probed struct {
	Calls   int
	Results []Probe
}

// A Probe is one tested form of input.
type Probe struct {
	Text     string
	Icon     string
	Outcome  string // good, bad, or "" if nothing was learned
	Says     phrase.Key
	Evidence string
}

func marksOf(marks []model.Mark, l phrase.Locale) []Mark {
	out := make([]Mark, 0, len(marks))
	for _, m := range slices.Backward(marks) {
		if m.Ratio > 0 {
			continue // listed among the facts
		}
		shown := Mark{Key: m.Key(), Waiting: !m.Applies(), OK: m.OK, Source: provenanceName(m.Source), At: m.At, Until: m.Until.Local().Format(time.DateOnly), Evidence: m.Evidence}
		switch {
		case m.Limit == "item_bytes" || m.Limit == "request_bytes":
			shown.Text = l.Say(limitName(string(m.Limit)), nil) + ": " + phrase.Size(m.Value)
		case m.Field != "":
			shown.Text = m.Field + ": " + l.Say(phrase.PageMarkNotTaken, nil)
		case m.Limit != "":
			shown.Text = l.Say(limitName(string(m.Limit)), nil) + ": " + thousands(int(m.Value))
		default:
			shown.Text = placed(m.Place, m.MediaType, l)
			if m.Digest != "" {
				shown.Text += " (" + l.Say(phrase.PageMarkOneFile, nil) + ")"
			}
			k := phrase.PageMarkNotTaken
			if m.OK {
				k = phrase.PageMarkTaken
			}
			shown.Text += ": " + l.Say(k, nil)
		}
		out = append(out, shown)
	}
	return out
}

// limitName is the label of a limit.
func limitName(limit string) phrase.Key {
	switch limit {
	case "item_bytes":
		return phrase.PageFactItem
	case "request_bytes":
		return phrase.PageFactRequest
	}
	return phrase.Key("page.fact_" + limit)
}

// placed describes a type of media and its place: "Pictures in a tool result".
func placed(p model.Place, mediaType string, l phrase.Locale) string {
	kind := typeName(l, mediaType)
	switch mediaType {
	case "image/*":
		kind = l.Say(phrase.PagePictures, nil)
	case "", "*/*":
		kind = l.Say(phrase.PageText, nil) // the message itself
	}
	return l.Say(phrase.Key("page.place_"+string(p)), map[string]any{"Kind": kind})
}

// forget drops one mark of a service, or all.
func (ui *handler) forget(w http.ResponseWriter, r *http.Request) {
	if err := ui.app.Models.Forget(r.Context(), artel.ServiceID(r.PathValue("id")), r.FormValue("mark")); err != nil {
		ui.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/settings#models", http.StatusSeeOther)
}

// reload rediscovers the services and shows them.
func (ui *handler) reload(w http.ResponseWriter, r *http.Request) {
	if err := ui.app.Models.Reload(r.Context()); err != nil {
		ui.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/settings#found", http.StatusSeeOther)
}

// probe tests a service and shows the result. Without script the settings show
// the stored findings.
func (ui *handler) probe(w http.ResponseWriter, r *http.Request) {
	id := artel.ServiceID(r.PathValue("id"))
	report, err := ui.app.Models.Probe(r.Context(), id)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if !wantsFragment(r) {
		http.Redirect(w, r, "/settings#models", http.StatusSeeOther)
		return
	}
	for _, c := range ui.models(r).Choices {
		if c.ID == id {
			c.Probed = probed(report, locale(r))
			ui.fragments(w, r, http.StatusOK, part{"service", c})
			return
		}
	}
	ui.fail(w, r, artel.Errorf(artel.NotFound, "webui", string(id), "the service no longer exists"))
}

func probed(report probe.Report, l phrase.Locale) *Probed {
	out := &Probed{Calls: report.Calls}
	for _, t := range report.Results {
		p := Probe{
			Text: placed(t.Place, t.MediaType, l), Icon: "info", Says: phrase.Key("page.outcome_" + string(t.Outcome)),
			Evidence: strings.TrimSpace(artel.Visible(t.Evidence)),
		}
		switch t.Outcome {
		case "seen":
			p.Icon, p.Outcome = "circle-check", "good"
		case "blind", "refused":
			p.Icon, p.Outcome = "circle-x", "bad"
		}
		out.Results = append(out.Results, p)
	}
	return out
}
