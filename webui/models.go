// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// Models is the data of the model picker.
type Models struct {
	Auto     *Choice // automatic choice per message; nil: nothing to choose from
	Choices  []Choice
	Default  model.Service
	Problems []model.Service // configured services that cannot be called
}

// A Choice is one model of the picker.
type Choice struct {
	model.Service
	Chosen    bool
	Abilities []Ability
	Facts     []Fact
	Unknown   []phrase.Key // facts without a value
	Marks     []Mark       // tested and learned, newest first
	Probed    *Probed      // result of a test just now; nil: none
}

// Key is the id of the service, escaped for ids and URLs.
func (c Choice) Key() string { return url.PathEscape(string(c.ID)) }

// Pipeline is the URL of the model's pipeline settings.
func (c Choice) Pipeline() string { return pipelineURL("", c.ID, pipeline.ByModel) }

// An Ability is a kind of input of a model.
type Ability struct {
	Icon string
	Name phrase.Key
	Has  bool
}

// A Fact is a property of a model, with its source.
type Fact struct {
	Name   phrase.Key
	Value  string
	Source phrase.Key
}

func (ui *handler) models(r *http.Request) Models {
	m := Models{Default: localized(ui.app.Models.Default(r.Context()), locale(r))}
	for _, s := range ui.app.Models.Services(r.Context()) {
		if s.Callable() {
			m.Choices = append(m.Choices, choice(localized(s, locale(r)), ui.app.Models.Marks(r.Context(), s.ID), locale(r)))
		} else if s.Problem != "" {
			m.Problems = append(m.Problems, s)
		}
	}
	if own := slices.DeleteFunc(slices.Clone(m.Choices), func(c Choice) bool { return c.Demo() }); len(own) > 1 {
		m.Auto = &Choice{Service: automatic(locale(r))}
	}
	return m.choosing(m.Default.ID).choosing(ui.app.Models.Preferred(r.Context()))
}

// localized returns the built-in demo under its name in the language of the page, and
// any other service unchanged.
func localized(s model.Service, l phrase.Locale) model.Service {
	if s.ID == model.DemoID && s.Demo() {
		s.Name = l.Say(phrase.PageDemoName, nil)
	}
	return s
}

// automatic stands for automatic choice.
func automatic(l phrase.Locale) model.Service {
	var s model.Service
	s.ID, s.Name = model.AutoService, l.Say(phrase.PageAuto, nil)
	return s
}

// choosing returns m with another model chosen, or unchanged if there is no
// such model.
func (m Models) choosing(id artel.ServiceID) Models {
	choices := slices.Clone(m.Choices)
	found := false
	for i := range choices {
		choices[i].Chosen = choices[i].ID == id
		found = found || choices[i].Chosen
	}
	auto := m.Auto
	if auto != nil {
		auto = &Choice{Service: auto.Service, Chosen: auto.ID == id}
		found = found || auto.Chosen
	}
	if found {
		m.Auto, m.Choices = auto, choices
	}
	return m
}

// Chosen is the preselected model.
func (m Models) Chosen() Choice {
	if m.Auto != nil && m.Auto.Chosen {
		return *m.Auto
	}
	for _, c := range m.Choices {
		if c.Chosen {
			return c
		}
	}
	return Choice{Service: m.Default}
}

func choice(s model.Service, marks []model.Mark, l phrase.Locale) Choice {
	c := Choice{Service: s, Abilities: abilities(s.OnWire()), Marks: marksOf(marks, l)}
	known := s.Capabilities
	add := func(name phrase.Key, from model.Provenance, value string) {
		if from == "" {
			c.Unknown = append(c.Unknown, name)
			return
		}
		c.Facts = append(c.Facts, Fact{name, value, provenanceName(from)})
	}
	say := func(k phrase.Key) string { return l.Say(k, nil) }
	types := func(all []string) string {
		if len(all) == 0 {
			return say(phrase.PageNothing)
		}
		return strings.Join(all, ", ")
	}
	yes := func(b bool) string {
		if b {
			return say(phrase.PageYes)
		}
		return say(phrase.PageNo)
	}
	ways := make([]string, len(known.Transport.Value))
	for i, t := range known.Transport.Value {
		ways[i] = say(phrase.Key("page.transport_" + string(t)))
	}
	var takes []string // with what a word stands for: a service with file takes any kind
	for _, a := range c.Abilities {
		if a.Has {
			takes = append(takes, say(a.Name))
		}
	}
	add(phrase.PageFactInput, known.Input.Source, strings.Join(takes, ", "))
	add(phrase.PageFactAccepts, known.Accepts.Source, types(known.Accepts.Value))
	if known.Refuses.Source != "" {
		add(phrase.PageFactRefuses, known.Refuses.Source, types(known.Refuses.Value))
	}
	add(phrase.PageFactWindow, known.ContextWindow.Source, l.Say(phrase.PageTokens, map[string]any{"Number": tokens(known.ContextWindow.Value)}))
	add(phrase.PageFactOutput, known.MaxOutput.Source, l.Say(phrase.PageTokens, map[string]any{"Number": tokens(known.MaxOutput.Value)}))
	add(phrase.PageFactTokenizer, known.Tokenizer.Source, known.Tokenizer.Value)
	if known.TokenRatio.Source != "" {
		add(phrase.PageFactTokenRatio, known.TokenRatio.Source, strconv.FormatFloat(known.TokenRatio.Value, 'f', -1, 64))
	}
	limit := func(n int64, text string) string {
		if n == 0 { // known to have no limit
			return say(phrase.PageNoLimit)
		}
		return text
	}
	count := func(n int) string { return limit(int64(n), thousands(n)) }
	size := func(n int64) string { return limit(n, phrase.Size(n)) }
	add(phrase.PageFactItem, known.MaxItemBytes.Source, size(known.MaxItemBytes.Value))
	add(phrase.PageFactRequest, known.MaxRequestBytes.Source, size(known.MaxRequestBytes.Value))
	side := l.Say(phrase.PagePixels, map[string]any{"Number": thousands(known.MaxSide.Value)})
	add(phrase.PageFactSide, known.MaxSide.Source, limit(int64(known.MaxSide.Value), side))
	add(phrase.PageFactImages, known.MaxImages.Source, count(known.MaxImages.Value))
	if known.MaxSideOfMany.Source != "" {
		of := l.Say(phrase.PagePixelsOfMany, map[string]any{"Number": thousands(known.MaxSideOfMany.Value), "Many": thousands(known.Many.Value)})
		add(phrase.PageFactSideOfMany, known.MaxSideOfMany.Source, limit(int64(min(known.MaxSideOfMany.Value, known.Many.Value)), of))
	}
	add(phrase.PageFactPages, known.MaxPages.Source, count(known.MaxPages.Value))
	add(phrase.PageFactToolImage, known.ToolImage.Source, yes(known.ToolImage.Value))
	add(phrase.PageFactToolFile, known.ToolFile.Source, yes(known.ToolFile.Value))
	add(phrase.PageFactAfterTool, known.UserAfterTool.Source, yes(known.UserAfterTool.Value))
	add(phrase.PageFactTransport, known.Transport.Source, strings.Join(ways, ", "))
	return c
}

// abilities lists all kinds of input, and whether s supports each.
func abilities(s model.Service) []Ability {
	out := []Ability{{Icon: "type", Name: phrase.PageText, Has: true}}
	for _, a := range []struct {
		can  artel.Capability
		icon string
		name phrase.Key
		kind string // prefix of the media types
	}{
		{artel.CanVision, "eye", phrase.PagePictures, "image/"},
		{artel.CanFile, "file-text", phrase.PageFiles, ""},
		{artel.CanAudio, "audio-lines", phrase.PageAudio, "audio/"},
		{artel.CanVideo, "film", phrase.PageVideo, "video/"},
	} {
		types := s.Capabilities.Accepts.Value
		carried := types == nil || slices.ContainsFunc(types, func(t string) bool { return strings.HasPrefix(t, a.kind) || t == "*/*" })
		out = append(out, Ability{a.icon, a.name, carried && s.Capabilities.Takes(a.can, "")})
	}
	return out
}

// tokens formats a number of tokens: "128k", "1.05M".
func tokens(n int) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatFloat(float64(n)/1e6, 'g', 3, 64) + "M"
	case n >= 1000:
		return strconv.FormatFloat(float64(n)/1e3, 'g', 4, 64) + "k"
	}
	return strconv.Itoa(n)
}

func provenanceName(p model.Provenance) phrase.Key { return phrase.Key("page.from_" + string(p)) }
