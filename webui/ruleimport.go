// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline/rule"
)

// A RuleImport is the page that imports rules.
type RuleImport struct {
	frame
	Scope   RuleScope
	Places  []settings.RulePlace
	Problem string
	Read    bool // files were parsed, but not saved
	Rules   []ShownRule
	Losses  []rule.Loss
	Config  string // parsed rules as JSON
}

// maxRuleFiles limits the total size of the files of one import, in bytes.
const maxRuleFiles = 8 << 20

func (ui *handler) ruleImport(r *http.Request) (p RuleImport, err error) {
	if p.frame, err = ui.frame(r, ""); err != nil {
		return p, err
	}
	p.Title, p.Scope = locale(r).Say(phrase.PageRulesImport, nil), scopeOf(r.URL.Query())
	p.Places, err = ui.app.Rules.Places(r.Context())
	return p, err
}

func (ui *handler) importRules(w http.ResponseWriter, r *http.Request) {
	p, err := ui.ruleImport(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.show(w, r, http.StatusOK, "ruleimport.html", p)
}

// readRules shows the rules in files, with their differences from the original
// format. It saves nothing.
func (ui *handler) readRules(w http.ResponseWriter, r *http.Request) {
	p, err := ui.ruleImport(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	status := http.StatusOK
	var all rule.Config
	for part, err := range form.Parts(http.MaxBytesReader(w, r.Body, maxRuleFiles), r.Header.Get("Content-Type")) {
		var c rule.Config
		var losses []rule.Loss
		if err == nil {
			if part.Name != "file" || part.Filename == "" {
				continue
			}
			c, losses, err = readRuleFile(part)
		}
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			err = artel.Errorf(artel.TooLarge, "webui", "files", "%s", locale(r).Say(phrase.PageTooLong, nil))
		}
		if err != nil {
			status, p.Problem = ui.explain(r, err)
			if part.Filename != "" {
				p.Problem = artel.Visible(part.Filename) + ": " + p.Problem
			}
			break
		}
		all.Rules, all.Presets, p.Losses = append(all.Rules, c.Rules...), append(all.Presets, c.Presets...), append(p.Losses, losses...)
	}
	if p.Problem == "" {
		s := RuleSection{RuleLayer: settings.RuleLayer{Config: all}}
		s.arrange(ui)
		for i := range s.Presets {
			p.Rules = append(p.Rules, s.Presets[i].Shown...)
		}
		if len(p.Rules) == 0 {
			status, p.Problem = http.StatusUnprocessableEntity, locale(r).Say(phrase.PageRulesNoneIn, nil)
		}
	}
	if p.Read = p.Problem == ""; p.Read {
		b, err := json.Marshal(all)
		if err != nil {
			ui.fail(w, r, err)
			return
		}
		p.Config = string(b)
	}
	ui.show(w, r, status, "ruleimport.html", p)
}

// readRuleFile parses an export of rules, or scripts of SillyTavern, which
// become a preset named after the file.
func readRuleFile(part form.Part) (rule.Config, []rule.Loss, error) {
	raw, err := io.ReadAll(part)
	if err != nil {
		return rule.Config{}, nil, err
	}
	if c, err := rule.ParseConfig(raw); err == nil && len(c.Rules)+len(c.Presets) > 0 {
		return c, nil, nil
	}
	c, losses, err := app.ImportRules(raw)
	for i := range c.Presets {
		if name := strings.TrimSuffix(artel.Visible(part.Filename), path.Ext(part.Filename)); name != "" {
			c.Presets[i].Name = artel.Shorten(name, 100)
		}
	}
	return c, losses, err
}

// keepRules adds the parsed rules to a layer.
func (ui *handler) keepRules(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4*maxRuleFiles)
	if err := r.ParseForm(); err != nil {
		ui.fail(w, r, brokenForm(r, err))
		return
	}
	level, id, _ := strings.Cut(r.PostForm.Get("place"), "/")
	place := settings.RulePlace{Level: settings.RuleLevel(level), ID: id}
	c, err := rule.ParseConfig([]byte(r.PostForm.Get("config")))
	var l settings.RuleLayer
	if err == nil {
		l, err = ui.app.Rules.Layer(r.Context(), place)
	}
	if err == nil {
		l.Config.Rules, l.Config.Presets = append(l.Config.Rules, c.Rules...), append(l.Config.Presets, c.Presets...)
		_, err = ui.app.Rules.Set(r.Context(), place, l.Config, l.Revision)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	s := scopeOf(r.PostForm)
	switch place.Level {
	case settings.RulesOfAgent:
		s = RuleScope{Agent: id}
	case settings.RulesOfService:
		s.Service = id
	}
	redirect(w, r, "/rules?"+s.Query()+"#"+string(place.Level))
}

// exportRules sends the rules of a layer as a file.
func (ui *handler) exportRules(w http.ResponseWriter, r *http.Request) {
	f := formOf(r.URL.Query())
	l, err := ui.app.Rules.Layer(r.Context(), f.place)
	var b []byte
	if err == nil {
		b, err = json.MarshalIndent(l.Config, "", "  ")
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	name := "rules-" + string(l.Level)
	if l.ID != "" {
		name += "-" + l.ID
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + ".json"}))
	_, _ = w.Write(append(b, '\n'))
}
