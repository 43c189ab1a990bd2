// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/phrase"
)

// A Pipeline is how contexts are built for an agent on a model, as the page
// shows it and lets people change it.
type Pipeline struct {
	app.Overview
	At      app.SettingLevel // that the switches of the list set
	Items   []Stage
	Levels  []Whose
	Lost    []LostSetting
	Problem string // why something was not done; "": nothing was wrong
}

// Whose is a level that people may set, and what can be done about all of it.
type Whose struct {
	Level    app.SettingLevel
	Name     string
	Set      bool
	Revision int
}

// A Stage is one processor of the pipeline.
type Stage struct {
	app.ProcessorState
	Number   int
	Title    string
	About    string
	Sign     string // the icon of a processor of the product; "": it has one of its own
	Plugin   bool
	Columns  []Column
	Open     bool // something in it is to be looked at
	First    bool // of those that can be ordered
	Last     bool
	Place    int // among them, from 0
	Revision int // of the level that the switch sets
	Effect   []Effect
}

// An Effect is a value that counts.
type Effect struct{ Label, Value string }

// Up is the place before its own.
func (s Stage) Up() int { return s.Place - 1 }

// Down is the place after its own.
func (s Stage) Down() int { return s.Place + 1 }

// A Column is what one level says about a processor.
type Column struct {
	Level    app.SettingLevel
	Name     string
	Says     bool // there is a setting of the processor
	Group    bool // that is for a whole group of them
	Wins     bool
	Passed   bool // it says something that does not count, since the agent says something
	Fixed    bool // it is of the deployment, and nothing for a page
	EntryID  string
	Revision int
	Enabled  string // "on", "off", or "" where it says nothing about that
	Fields   []Input
	Lost     []string // keys that the processor does not have
	CanReset bool     // the file says something else
	CanDrop  bool     // it would say nothing
}

// A LostSetting is one of a processor that there is not.
type LostSetting struct {
	app.UnknownSetting
	Name     string // of the level
	Revision int
	Value    string
	InFile   bool // nothing that the page could remove
}

// A view of the pipeline is asked for by the address or a form.
type pipelineQuery struct {
	agent   artel.AgentName
	service artel.ServiceID
	at      app.SettingLevel
}

func pipelineAsked(v url.Values) pipelineQuery {
	q := pipelineQuery{artel.AgentName(v.Get("agent")), artel.ServiceID(v.Get("service")), app.ByAgent}
	if v.Get("at") == string(app.ByModel) {
		q.at = app.ByModel
	}
	return q
}

// pipelineURL is where the pipeline of an agent on a service is set; "" is the
// lead, and the service that the agent has.
func pipelineURL(agent artel.AgentName, service artel.ServiceID, at app.SettingLevel) string {
	v := url.Values{}
	for name, value := range map[string]string{"agent": string(agent), "service": string(service), "at": string(at)} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if len(v) == 0 {
		return "/pipeline"
	}
	return "/pipeline?" + v.Encode()
}

// Self is the address of the view.
func (p Pipeline) Self() string { return pipelineURL(p.AgentName, p.Service.ID, p.At) }

// pipeline shows how contexts are built.
func (ui *face) pipeline(w http.ResponseWriter, r *http.Request) {
	ui.showPipeline(w, r, http.StatusOK, pipelineAsked(r.URL.Query()), "", nil)
}

// showPipeline answers with the pipeline as it is now. problem says what was not
// done, typed what somebody has written into a form that was not taken.
func (ui *face) showPipeline(w http.ResponseWriter, r *http.Request, status int, q pipelineQuery, problem string, typed *typedFields, more ...part) {
	p, err := ui.pipelineOf(r, q, typed)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	p.Problem = problem
	if wantsFragment(r) {
		ui.fragments(w, r, status, append([]part{{"pipeline", p}}, more...)...)
		return
	}
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	agents, err := ui.app.Pipeline.Agents(r.Context())
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PagePipeline, nil)
	ui.show(w, r, status, "pipeline.html", struct {
		frame
		Pipeline Pipeline
		Agents   []artel.AgentName
	}{f, p, agents})
}

func (ui *face) pipelineOf(r *http.Request, q pipelineQuery, typed *typedFields) (Pipeline, error) {
	l := locale(r)
	o, err := ui.app.Pipeline.Look(r.Context(), q.agent, q.service)
	p := Pipeline{Overview: o, At: q.at}
	if err != nil {
		return p, err
	}
	service := o.Service.Name
	if service == "" {
		service = string(o.Service.ID)
	}
	p.Levels = []Whose{
		{app.ByModel, l.Say(phrase.PageLevelModel, map[string]any{"Name": artel.Visible(service)}), o.Model.Set, o.Model.Revision},
		{app.ByAgent, l.Say(phrase.PageLevelAgent, map[string]any{"Name": artel.Visible(string(o.AgentName))}), o.Agent.Set, o.Agent.Revision},
	}
	movable := 0
	for i, s := range o.Processors {
		item := stageOf(o, s, l)
		item.Number = i + 1
		item.Revision = p.level(q.at).Revision
		if s.Movable() {
			item.First, item.Place = movable == 0, movable
			movable++
			item.Last = !slices.ContainsFunc(o.Processors[i+1:], func(x app.ProcessorState) bool { return x.Movable() })
		}
		for _, level := range []app.SettingLevel{app.ByDeployment, app.ByModel, app.ByAgent} {
			c := columnOf(o, s, level, l)
			c.Name = l.Say(phrase.PageLevelDeployment, nil)
			if level != app.ByDeployment {
				whose := p.level(level)
				c.Name, c.Revision = whose.Name, whose.Revision
			}
			if typed != nil && typed.processor == s.ID && typed.level == level {
				c.Enabled, c.Fields, item.Open = typed.enabled, typed.inputs, true
			}
			item.Columns = append(item.Columns, c)
		}
		p.Items = append(p.Items, item)
	}
	for _, u := range o.Unknown {
		lost := LostSetting{UnknownSetting: u, Name: l.Say(phrase.PageLevelDeployment, nil), InFile: true, Value: indented(u.Config)}
		if u.Level != app.ByDeployment {
			whose := p.level(u.Level)
			lost.Name, lost.Revision, lost.InFile = whose.Name, whose.Revision, false
		}
		p.Lost = append(p.Lost, lost)
	}
	return p, nil
}

func (p Pipeline) level(l app.SettingLevel) Whose {
	for _, w := range p.Levels {
		if w.Level == l {
			return w
		}
	}
	return Whose{}
}

func stageOf(o app.Overview, s app.ProcessorState, l phrase.Locale) Stage {
	key := "page.processor_" + strings.ReplaceAll(s.ID, "-", "_")
	out := Stage{ProcessorState: s, Title: translated(l, key, s.Name), About: translated(l, key+"_about", s.Description), Sign: signOf(s.ID), Plugin: !s.Core}
	counts := valuesOf(s.Resolved.Config)
	for _, f := range s.Fields {
		value := jsonLine(counts[f.Key])
		if value == "" && f.Default != nil {
			value = jsonLine(encoded(f.Default))
		}
		if value != "" {
			out.Effect = append(out.Effect, Effect{fieldLabel(f, l), value})
		}
	}
	return out
}

// signOf is the icon of a processor of the product; "" of another one.
func signOf(id string) string {
	switch id {
	case "session-loader":
		return "history"
	case "regex-processor":
		return "scan-text"
	case "transcription-processor":
		return "paperclip"
	case "injection-assembler":
		return "plus"
	case "token-limiter":
		return "scaling"
	case "merge-system", "merge-roles":
		return "list-checks"
	case "convert-system":
		return "refresh-cw"
	case "ensure-alternation":
		return "message-square"
	case "first-user":
		return "user"
	case "asset-resolver":
		return "link"
	}
	return ""
}

// columnOf is what a level says about a processor. Where it says nothing, the
// fields hold what somebody begins with.
func columnOf(o app.Overview, s app.ProcessorState, level app.SettingLevel, l phrase.Locale) Column {
	entry := map[app.SettingLevel]*app.ProcessorSetting{app.ByDeployment: s.Deployment, app.ByModel: s.Model, app.ByAgent: s.Agent}[level]
	c := Column{Level: level, Says: entry != nil, Wins: s.Resolved.Winner == level, Fixed: level == app.ByDeployment, EntryID: s.ID}
	c.Passed = level == app.ByModel && entry != nil && s.Agent != nil
	begins := o.Begin(s.ID, level)
	if entry != nil {
		c.EntryID, c.Group = entry.ID, entry.ID != s.ID
		if entry.Enabled != nil {
			c.Enabled = map[bool]string{true: "on", false: "off"}[*entry.Enabled]
		}
		begins = *entry
		for key := range valuesOf(entry.Config) {
			if !c.Group && !slices.ContainsFunc(s.Fields, func(f app.ProcessorField) bool { return f.Key == key }) {
				c.Lost = append(c.Lost, key)
			}
		}
		slices.Sort(c.Lost)
	}
	var deployment json.RawMessage
	if s.Deployment != nil && level != app.ByDeployment {
		deployment = s.Deployment.Config
	}
	c.Fields = inputsOf(s.ID+"-"+string(level), s.Fields, begins.Config, deployment, l)
	if c.Fixed {
		return c
	}
	list := o.Model
	if level == app.ByAgent {
		list = o.Agent
	}
	inFile := slices.ContainsFunc(list.File, func(f app.ProcessorSetting) bool { return f.ID == c.EntryID })
	c.CanReset = list.Set && (inFile || c.Says)
	c.CanDrop = c.Says && inFile
	return c
}

// changePipeline does what a form of the pipeline asks for.
func (ui *face) changePipeline(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4*maxField) // bytes of a form take up to three each
	if err := r.ParseForm(); err != nil {
		ui.fail(w, r, brokenForm(r, err))
		return
	}
	q, l := pipelineAsked(r.Form), locale(r)
	more, typed, err := ui.amendPipeline(r, q)
	switch {
	case typed != nil:
		ui.showPipeline(w, r, http.StatusUnprocessableEntity, q, l.Say(phrase.PagePipelineInvalid, nil), typed)
	case artel.CodeOf(err) == app.CodeStale:
		ui.showPipeline(w, r, http.StatusConflict, q, l.Say(phrase.PageSettingsStale, nil), nil)
	case errors.Is(err, artel.Invalid) && !wantsFragment(r):
		_, text := ui.explain(r, err)
		ui.showPipeline(w, r, http.StatusUnprocessableEntity, q, text, nil)
	case err != nil:
		ui.fail(w, r, err)
	case wantsFragment(r):
		ui.showPipeline(w, r, http.StatusOK, q, "", nil, more...)
	default:
		http.Redirect(w, r, pipelineURL(q.agent, q.service, q.at)+"#"+url.PathEscape("p-"+r.PostForm.Get("id")), http.StatusSeeOther)
	}
}

// amendPipeline changes what a form names, and returns what else is to be said.
// Fields that are not taken are returned with what is wrong about them.
func (ui *face) amendPipeline(r *http.Request, q pipelineQuery) (more []part, typed *typedFields, err error) {
	ctx, l := r.Context(), locale(r)
	id, level := r.PostForm.Get("id"), app.SettingLevel(r.PostForm.Get("level"))
	revision := app.AnyRevision
	if s := r.PostForm.Get("revision"); s != "" {
		if revision, err = strconv.Atoi(s); err != nil || revision < 0 {
			return nil, nil, artel.Errorf(artel.Invalid, "webui", artel.Shorten(s, 40), "a revision is a number from 0")
		}
	}
	o, err := ui.app.Pipeline.Look(ctx, q.agent, q.service)
	if err != nil {
		return nil, nil, err
	}
	at, was := app.LevelAt{Service: o.Service.ID}, o.Model
	if level == app.ByAgent {
		at, was = app.LevelAt{Agent: o.AgentName}, o.Agent
	}
	switch do := r.PostForm.Get("do"); do {
	case "on", "off":
		s := o.Begin(id, level)
		on := do == "on"
		s.Enabled = &on
		_, err = ui.app.Pipeline.SetEntry(ctx, at, s, revision)
		more = append(more, said(l, map[bool]phrase.Key{true: phrase.PageSwitchedOn, false: phrase.PageSwitchedOff}[on], nil))
	case "save":
		var s app.ProcessorSetting
		if s, typed = typedSetting(r.PostForm, o, id, level, l); typed != nil {
			return nil, typed, nil
		}
		_, err = ui.app.Pipeline.SetEntry(ctx, at, s, revision)
		more = append(more, said(l, phrase.PageSaved, nil))
	case "drop":
		_, err = ui.app.Pipeline.DropEntry(ctx, at, id, revision)
		more = undoable(l, pipelineUndo{q.agent, q.service, q.at, &at, was.Settings, was.Set, nil})
	case "reset":
		_, err = ui.app.Pipeline.ResetEntry(ctx, at, id, revision)
		more = undoable(l, pipelineUndo{q.agent, q.service, q.at, &at, was.Settings, was.Set, nil})
	case "reset-level":
		_, err = ui.app.Pipeline.SetLevel(ctx, at, nil, revision)
		more = undoable(l, pipelineUndo{q.agent, q.service, q.at, &at, was.Settings, was.Set, nil})
	case "place":
		var now app.Order
		now, err = ui.app.Pipeline.Move(ctx, id, atoi(r.PostForm.Get("to")), revision)
		more = append(more, said(l, phrase.PageMoved, map[string]any{"Number": 1 + slices.Index(now.IDs, id), "Count": len(now.IDs)}))
	case "reset-order":
		_, err = ui.app.Pipeline.SetOrder(ctx, nil, revision)
		more = undoable(l, pipelineUndo{q.agent, q.service, q.at, nil, nil, o.Order.Revision > 0, o.Order.IDs})
	case "undo":
		err = ui.undoPipeline(r)
		more = append(more, part{"gone", undoToast})
	default:
		err = artel.Errorf(artel.Invalid, "webui", artel.Shorten(do, 40), "there is nothing of this name to do")
	}
	return more, nil, err
}

func said(l phrase.Locale, key phrase.Key, args map[string]any) part {
	return part{"announcement", l.Say(key, args)}
}

const undoToast = "toast-settings"

// A pipelineUndo is what a reset has removed, for the form that brings it back.
type pipelineUndo struct {
	Agent    artel.AgentName        `json:"agent"`
	Service  artel.ServiceID        `json:"service"`
	View     app.SettingLevel       `json:"view"`
	At       *app.LevelAt           `json:"at,omitempty"` // nil: the order
	Settings []app.ProcessorSetting `json:"settings,omitempty"`
	Set      bool                   `json:"set"`
	Order    []string               `json:"order,omitempty"`
}

func undoable(l phrase.Locale, u pipelineUndo) []part {
	return []part{{"toast", Toast{ID: undoToast, Text: l.Say(phrase.PageReset, nil), Undo: pipelineURL(u.Agent, u.Service, u.View), Keep: string(encoded(u))}}}
}

// undoPipeline brings back what a reset has removed, whatever is there by now.
func (ui *face) undoPipeline(r *http.Request) error {
	var u pipelineUndo
	if err := json.Unmarshal([]byte(r.PostForm.Get("keep")), &u); err != nil {
		return artel.Errorf(artel.Invalid, "webui", "undo", "what is to be brought back cannot be read: %w", err)
	}
	var err error
	switch {
	case u.At == nil && !u.Set:
		_, err = ui.app.Pipeline.SetOrder(r.Context(), nil, app.AnyRevision)
	case u.At == nil:
		_, err = ui.app.Pipeline.SetOrder(r.Context(), append([]string{}, u.Order...), app.AnyRevision)
	case !u.Set:
		_, err = ui.app.Pipeline.SetLevel(r.Context(), *u.At, nil, app.AnyRevision)
	default:
		_, err = ui.app.Pipeline.SetLevel(r.Context(), *u.At, append([]app.ProcessorSetting{}, u.Settings...), app.AnyRevision)
	}
	return err
}
