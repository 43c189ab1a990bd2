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
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline"
)

// A Pipeline is the page with the pipeline settings of an agent on a model.
type Pipeline struct {
	settings.Overview
	At      pipeline.SettingLevel // level that the switches change
	Items   []Stage
	Levels  []EditableLevel
	Lost    []LostSetting
	Problem string // why a change failed; "": none did
}

// A EditableLevel is an editable level, with the actions for all of its settings.
type EditableLevel struct {
	Level    pipeline.SettingLevel
	Name     string
	Set      bool
	Revision int
}

// A Stage is one processor of the pipeline.
type Stage struct {
	settings.ProcessorState
	Number   int
	Title    string
	About    string
	Sign     string // icon of a built-in processor; "": none
	Plugin   bool
	Columns  []Column
	Open     bool // expanded, because something in it needs attention
	First    bool // first of those that can be ordered
	Last     bool
	Place    int // position among them, from 0
	Revision int // revision of the level that the switch changes
	Effect   []Effect
}

// An Effect is a value in effect.
type Effect struct{ Label, Value string }

// Up is the previous position.
func (s Stage) Up() int { return s.Place - 1 }

// Down is the next position.
func (s Stage) Down() int { return s.Place + 1 }

// A Column is the setting of a processor on one level.
type Column struct {
	Level    pipeline.SettingLevel
	Name     string
	Says     bool // there is a setting
	Group    bool // the setting is for a group of processors
	Wins     bool
	Passed   bool // overridden by the agent's setting
	Fixed    bool // the deployment's: not editable
	EntryID  string
	Revision int
	Enabled  string // "on", "off", or "" if not set
	Fields   []Input
	Lost     []string // unknown keys
	CanReset bool     // differs from the file
	CanDrop  bool     // can be removed
}

// A LostSetting is the setting of an unknown processor.
type LostSetting struct {
	settings.UnknownSetting
	Name     string // name of the level
	Revision int
	Value    string
	InFile   bool // from a file: the page cannot remove it
}

// A pipelineQuery selects a view of the pipeline, in a URL or a form.
type pipelineQuery struct {
	agent   artel.AgentName
	service artel.ServiceID
	at      pipeline.SettingLevel
}

func pipelineAsked(v url.Values) pipelineQuery {
	q := pipelineQuery{artel.AgentName(v.Get("agent")), artel.ServiceID(v.Get("service")), pipeline.ByAgent}
	if v.Get("at") == string(pipeline.ByModel) {
		q.at = pipeline.ByModel
	}
	return q
}

// pipelineURL is the URL of the pipeline of an agent on a service; "" is the
// lead, and the agent's own service.
func pipelineURL(agent artel.AgentName, service artel.ServiceID, at pipeline.SettingLevel) string {
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

// pipeline shows the pipeline settings.
func (ui *handler) pipeline(w http.ResponseWriter, r *http.Request) {
	ui.showPipeline(w, r, http.StatusOK, pipelineAsked(r.URL.Query()), "", nil)
}

// showPipeline renders the pipeline. problem says what failed; typed holds the
// rejected inputs of a form.
func (ui *handler) showPipeline(w http.ResponseWriter, r *http.Request, status int, q pipelineQuery, problem string, typed *typedFields, more ...part) {
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

func (ui *handler) pipelineOf(r *http.Request, q pipelineQuery, typed *typedFields) (Pipeline, error) {
	l := locale(r)
	o, err := ui.app.Pipeline.Overview(r.Context(), q.agent, q.service)
	p := Pipeline{Overview: o, At: q.at}
	if err != nil {
		return p, err
	}
	service := o.Service.Name
	if service == "" {
		service = string(o.Service.ID)
	}
	p.Levels = []EditableLevel{
		{pipeline.ByModel, l.Say(phrase.PageLevelModel, map[string]any{"Name": artel.Visible(service)}), o.Model.Set, o.Model.Revision},
		{pipeline.ByAgent, l.Say(phrase.PageLevelAgent, map[string]any{"Name": artel.Visible(string(o.AgentName))}), o.Agent.Set, o.Agent.Revision},
	}
	movable := 0
	for i, s := range o.Processors {
		item := stageOf(o, s, l)
		item.Number = i + 1
		item.Revision = p.level(q.at).Revision
		if s.Movable() {
			item.First, item.Place = movable == 0, movable
			movable++
			item.Last = !slices.ContainsFunc(o.Processors[i+1:], func(x settings.ProcessorState) bool { return x.Movable() })
		}
		for _, level := range []pipeline.SettingLevel{pipeline.ByDeployment, pipeline.ByModel, pipeline.ByAgent} {
			c := columnOf(o, s, level, l)
			c.Name = l.Say(phrase.PageLevelDeployment, nil)
			if level != pipeline.ByDeployment {
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
		if u.Level != pipeline.ByDeployment {
			whose := p.level(u.Level)
			lost.Name, lost.Revision, lost.InFile = whose.Name, whose.Revision, false
		}
		p.Lost = append(p.Lost, lost)
	}
	return p, nil
}

func (p Pipeline) level(l pipeline.SettingLevel) EditableLevel {
	for _, w := range p.Levels {
		if w.Level == l {
			return w
		}
	}
	return EditableLevel{}
}

func stageOf(o settings.Overview, s settings.ProcessorState, l phrase.Locale) Stage {
	key := "page.processor_" + strings.ReplaceAll(s.ID, "-", "_")
	out := Stage{ProcessorState: s, Title: translated(l, key, s.Name), About: translated(l, key+"_about", s.Description), Sign: signs[s.ID], Plugin: !s.Core}
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

// signs are the icons of the built-in processors.
var signs = map[string]string{
	"session-loader":          "history",
	"regex-processor":         "scan-text",
	"transcription-processor": "paperclip",
	"lore":                    "book-open",
	"injection-assembler":     "plus",
	"token-limiter":           "scaling",
	"merge-system":            "list-checks", "merge-roles": "list-checks",
	"convert-system":     "refresh-cw",
	"ensure-alternation": "message-square",
	"first-user":         "user",
	"asset-resolver":     "link",
}

// columnOf returns the setting of a processor on a level. Without a setting,
// the fields hold its initial values.
func columnOf(o settings.Overview, s settings.ProcessorState, level pipeline.SettingLevel, l phrase.Locale) Column {
	entry := map[pipeline.SettingLevel]*pipeline.Setting{pipeline.ByDeployment: s.Deployment, pipeline.ByModel: s.Model, pipeline.ByAgent: s.Agent}[level]
	c := Column{Level: level, Says: entry != nil, Wins: s.Resolved.Winner == level, Fixed: level == pipeline.ByDeployment, EntryID: s.ID}
	c.Passed = level == pipeline.ByModel && entry != nil && s.Agent != nil
	begins := o.Begin(s.ID, level)
	if entry != nil {
		c.EntryID, c.Group = entry.ID, entry.ID != s.ID
		if entry.Enabled != nil {
			c.Enabled = map[bool]string{true: "on", false: "off"}[*entry.Enabled]
		}
		begins = *entry
		for key := range valuesOf(entry.Config) {
			if !c.Group && !slices.ContainsFunc(s.Fields, func(f pipeline.Field) bool { return f.Key == key }) {
				c.Lost = append(c.Lost, key)
			}
		}
		slices.Sort(c.Lost)
	}
	var deployment json.RawMessage
	if s.Deployment != nil && level != pipeline.ByDeployment {
		deployment = s.Deployment.Config
	}
	c.Fields = inputsOf(s.ID+"-"+string(level), s.Fields, begins.Config, deployment, l)
	if c.Fixed {
		return c
	}
	list := o.Model
	if level == pipeline.ByAgent {
		list = o.Agent
	}
	inFile := slices.ContainsFunc(list.File, func(f pipeline.Setting) bool { return f.ID == c.EntryID })
	c.CanReset = list.Set && (inFile || c.Says)
	c.CanDrop = c.Says && inFile
	return c
}

// changePipeline performs the action of a pipeline form.
func (ui *handler) changePipeline(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4*maxField) // URL encoding takes up to three bytes per byte
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

// amendPipeline performs a change, and returns a toast or announcement for it.
// Rejected fields are returned with their problems.
func (ui *handler) amendPipeline(r *http.Request, q pipelineQuery) (more []part, typed *typedFields, err error) {
	ctx, l := r.Context(), locale(r)
	id, level := r.PostForm.Get("id"), pipeline.SettingLevel(r.PostForm.Get("level"))
	revision := settings.AnyRevision
	if s := r.PostForm.Get("revision"); s != "" {
		if revision, err = strconv.Atoi(s); err != nil || revision < 0 {
			return nil, nil, artel.Errorf(artel.Invalid, "webui", artel.Shorten(s, 40), "a revision is a number from 0")
		}
	}
	o, err := ui.app.Pipeline.Overview(ctx, q.agent, q.service)
	if err != nil {
		return nil, nil, err
	}
	at, was := settings.LevelAt{Service: o.Service.ID}, o.Model
	if level == pipeline.ByAgent {
		at, was = settings.LevelAt{Agent: o.AgentName}, o.Agent
	}
	switch do := r.PostForm.Get("do"); do {
	case "on", "off":
		s := o.Begin(id, level)
		on := do == "on"
		s.Enabled = &on
		_, err = ui.app.Pipeline.SetEntry(ctx, at, s, revision)
		more = append(more, said(l, map[bool]phrase.Key{true: phrase.PageSwitchedOn, false: phrase.PageSwitchedOff}[on], nil))
	case "save":
		var s pipeline.Setting
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
		var now settings.Order
		now, err = ui.app.Pipeline.Move(ctx, id, atoi(r.PostForm.Get("to")), revision)
		more = append(more, said(l, phrase.PageMoved, map[string]any{"Number": 1 + slices.Index(now.IDs, id), "Count": len(now.IDs)}))
	case "reset-order":
		_, err = ui.app.Pipeline.SetOrder(ctx, nil, revision)
		more = undoable(l, pipelineUndo{q.agent, q.service, q.at, nil, nil, o.Order.Revision > 0, o.Order.IDs})
	case "undo":
		err = ui.undoPipeline(r)
		more = append(more, part{"gone", undoToast})
	default:
		err = artel.Errorf(artel.Invalid, "webui", artel.Shorten(do, 40), "unknown action")
	}
	return more, nil, err
}

func said(l phrase.Locale, key phrase.Key, args map[string]any) part {
	return part{"announcement", l.Say(key, args)}
}

const undoToast = "toast-settings"

// A pipelineUndo is the state removed by a reset, kept in the undo form.
type pipelineUndo struct {
	Agent    artel.AgentName       `json:"agent"`
	Service  artel.ServiceID       `json:"service"`
	View     pipeline.SettingLevel `json:"view"`
	At       *settings.LevelAt     `json:"at,omitempty"` // nil: the order
	Settings []pipeline.Setting    `json:"settings,omitempty"`
	Set      bool                  `json:"set"`
	Order    []string              `json:"order,omitempty"`
}

func undoable(l phrase.Locale, u pipelineUndo) []part {
	return []part{{"toast", Toast{ID: undoToast, Text: l.Say(phrase.PageReset, nil), Undo: pipelineURL(u.Agent, u.Service, u.View), Keep: string(encoded(u))}}}
}

// undoPipeline restores the state removed by a reset, overwriting the current
// one.
func (ui *handler) undoPipeline(r *http.Request) error {
	var u pipelineUndo
	if err := json.Unmarshal([]byte(r.PostForm.Get("keep")), &u); err != nil {
		return artel.Errorf(artel.Invalid, "webui", "undo", "the undo data cannot be read: %w", err)
	}
	var err error
	switch {
	case u.At == nil && !u.Set:
		_, err = ui.app.Pipeline.SetOrder(r.Context(), nil, settings.AnyRevision)
	case u.At == nil:
		_, err = ui.app.Pipeline.SetOrder(r.Context(), append([]string{}, u.Order...), settings.AnyRevision)
	case !u.Set:
		_, err = ui.app.Pipeline.SetLevel(r.Context(), *u.At, nil, settings.AnyRevision)
	default:
		_, err = ui.app.Pipeline.SetLevel(r.Context(), *u.At, append([]pipeline.Setting{}, u.Settings...), settings.AnyRevision)
	}
	return err
}
