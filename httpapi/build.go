// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/run/record"
)

// A NewBuild is the body of POST /pipeline/build: everything that a context is
// built from.
type NewBuild struct {
	Service         BuildService       `json:"service,omitempty" doc:"the id of a service, or {dialect, model, capabilities, context_window}; absent: text only, without a window"`
	Agent           *BuildAgent        `json:"agent,omitempty"`
	ModelProcessors []pipeline.Setting `json:"model_processors,omitempty" maxItems:"200" doc:"in the place of the service's own"`
	User            *BuildUser         `json:"user,omitempty"`
	Messages        []BuildMessage     `json:"messages" maxItems:"20000" doc:"the last one is the head"`
	Clock           *BuildClock        `json:"clock,omitempty"`
	Seed            uint64             `json:"seed,omitempty" maximum:"9007199254740991" doc:"of what is random"`
	Variables       map[string]string  `json:"variables,omitempty"`
	Until           string             `json:"until,omitempty" maxLength:"64" doc:"the id of the last processor to run, whether it is enabled or not"`
}

// A BuildService is a service by its id, or an inline one.
type BuildService struct {
	ID     artel.ServiceID
	Inline *InlineService
}

// An InlineService is a service that is not configured.
type InlineService struct {
	Dialect       string   `json:"dialect,omitempty"`
	Model         string   `json:"model,omitempty"`
	Capabilities  []string `json:"capabilities,omitempty"`
	ContextWindow int      `json:"context_window,omitempty"`
}

// UnmarshalJSON reads a string or an object.
func (s *BuildService) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &s.ID)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(&s.Inline)
}

// Schema implements huma.SchemaProvider.
func (BuildService) Schema(r huma.Registry) *huma.Schema {
	inline := r.Schema(reflect.TypeFor[InlineService](), true, "InlineService")
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString, MaxLength: new(256)}, inline}}
}

// A BuildAgent is the agent that answers.
type BuildAgent struct {
	Name           string             `json:"name,omitempty" maxLength:"256"`
	Description    string             `json:"description,omitempty"`
	PresetMessages []pipeline.Preset  `json:"preset_messages,omitempty" maxItems:"500"`
	Processors     []pipeline.Setting `json:"processors,omitempty" maxItems:"200"`
	Context        *BuildLimits       `json:"context,omitempty"`
}

// BuildLimits limit how much of the history is sent.
type BuildLimits struct {
	MaxTokens    int  `json:"max_tokens,omitempty" minimum:"0"`
	ReplyReserve *int `json:"reply_reserve,omitempty" minimum:"0"`
	KeepChars    int  `json:"keep_chars,omitempty" minimum:"0"`
}

// A BuildUser is the user.
type BuildUser struct {
	Name    string `json:"name,omitempty"`
	Persona string `json:"persona,omitempty"`
}

// A BuildClock is the time for macros.
type BuildClock struct {
	Now      string `json:"now,omitempty" format:"date-time"`
	Timezone string `json:"timezone,omitempty" doc:"as IANA names it; absent: that of now"`
}

// A BuildMessage is a message of the history.
type BuildMessage struct {
	ID          string       `json:"id,omitempty" maxLength:"256"`
	ParentID    string       `json:"parent_id,omitempty" doc:"where no message has one, the message before it"`
	Role        string       `json:"role" enum:"system,user,assistant,tool"`
	Text        *string      `json:"text,omitempty"`
	Parts       any          `json:"parts,omitempty" doc:"a list of parts, instead of text"`
	Muted       bool         `json:"muted,omitempty"`
	Summary     bool         `json:"summary,omitempty"`
	Pending     bool         `json:"pending,omitempty" doc:"it is being written; it is sent like any other"`
	Agent       string       `json:"agent,omitempty" maxLength:"256"`
	Attachments []Attachment `json:"attachments,omitempty"`
}

// An Attachment is a file of a message.
type Attachment struct {
	Ref       string  `json:"ref,omitempty"`
	Name      string  `json:"name,omitempty" maxLength:"1024"`
	MediaType string  `json:"media_type,omitempty" maxLength:"256"`
	Data      *string `json:"data,omitempty" doc:"the bytes in base64; absent: only the facts are known"`
	Size      int64   `json:"size,omitempty" minimum:"0"`
	Width     int     `json:"width,omitempty" minimum:"0"`
	Height    int     `json:"height,omitempty" minimum:"0"`
	Pages     int     `json:"pages,omitempty" minimum:"0"`
	Duration  float64 `json:"duration,omitempty" minimum:"0"`
}

// A BuildResult is the answer of POST /pipeline/build.
type BuildResult struct {
	Messages []BuiltMessage       `json:"messages"`
	Tokens   BuildTokens          `json:"tokens"`
	Record   BuildRecord          `json:"record"`
	Error    *record.ContextError `json:"error,omitempty"`
}

// A BuiltMessage is a message as it would be sent.
type BuiltMessage struct {
	ID         string      `json:"id"`
	Role       artel.Role  `json:"role"`
	Text       *string     `json:"text,omitempty" doc:"where it has nothing but text"`
	Parts      artel.Parts `json:"parts,omitempty"`
	Origin     string      `json:"origin"`
	MergedFrom []string    `json:"merged_from,omitempty"`
}

// BuildTokens are the token counts of the request.
type BuildTokens struct {
	Fixed   int      `json:"fixed"`
	History int      `json:"history"`
	Total   int      `json:"total"`
	Budget  int      `json:"budget"`
	Dropped []string `json:"dropped"`
	Cut     []string `json:"cut"`
}

// A BuildRecord says what each processor did.
type BuildRecord struct {
	Processors    []BuildStep `json:"processors"`
	RequestSHA256 string      `json:"request_sha256"`
}

// A BuildStep is what one processor did.
type BuildStep struct {
	ID           string     `json:"id"`
	Settings     string     `json:"settings,omitempty" doc:"the level that configured it"`
	Added        []string   `json:"added"`
	Removed      []string   `json:"removed"`
	Changed      []string   `json:"changed"`
	TokensBefore int        `json:"tokens_before"`
	TokensAfter  int        `json:"tokens_after"`
	Millis       float64    `json:"ms"`
	Logs         []BuildLog `json:"logs"`
}

// A BuildLog is a note of a processor.
type BuildLog struct {
	Level   string         `json:"level"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

func (f *server) builds() {
	register(f, f.op(http.MethodPost, "/pipeline/build", "build-context", "Run the whole context pipeline on a draft that is given inline; nothing is stored, and no model is called", http.StatusOK, maxBody(textBody)),
		func(ctx context.Context, in *struct{ Body NewBuild }) (*body[BuildResult], error) {
			draft, err := in.Body.draft()
			if err != nil {
				return nil, err
			}
			r, failed, err := f.app.Previews.BuildDraft(ctx, draft)
			return answer(builtView(r, failed), err)
		})
}

func (b NewBuild) draft() (run.InlineDraft, error) {
	out := run.InlineDraft{
		Service: b.Service.ID, Model: b.ModelProcessors, Seed: b.Seed, Variables: b.Variables, Until: b.Until,
		Messages: make([]run.InlineMessage, len(b.Messages)),
	}
	if s := b.Service.Inline; s != nil {
		out.Target = s.target()
	}
	if a := b.Agent; a != nil {
		out.Agent = pipeline.Agent{Name: artel.AgentName(a.Name), Description: a.Description, Presets: a.PresetMessages}
		if a.Context != nil {
			out.Agent.Context = pipeline.Limits(*a.Context)
		}
		out.Processors = a.Processors
	}
	if b.User != nil {
		out.User = pipeline.Profile{Name: b.User.Name, Persona: b.User.Persona}
	}
	var err error
	if b.Clock != nil {
		if out.Now, err = b.Clock.time(); err != nil {
			return out, err
		}
	}
	for i, m := range b.Messages {
		if out.Messages[i], err = m.message(fmt.Sprintf("/messages/%d", i)); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (s *InlineService) target() *run.InlineService {
	t := run.InlineService{Dialect: model.Dialect(s.Dialect), Model: s.Model, ContextWindow: s.ContextWindow}
	if s.Capabilities != nil {
		t.Capabilities = make([]artel.Capability, len(s.Capabilities))
	}
	for i, c := range s.Capabilities {
		t.Capabilities[i] = artel.Capability(c)
	}
	return &t
}

func (c BuildClock) time() (time.Time, error) {
	now := time.Now().UTC()
	var err error
	if c.Now != "" {
		if now, err = time.Parse(time.RFC3339Nano, c.Now); err != nil {
			return now, invalidAt("/clock/now", "want a time as RFC 3339 has it")
		}
	}
	if c.Timezone == "" {
		return now, nil
	}
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil || c.Timezone == "Local" {
		return now, invalidAt("/clock/timezone", "there is no such time zone: want a name like Europe/Paris")
	}
	return now.In(zone), nil
}

// invalidAt returns the problem of one field of the body.
func invalidAt(pointer, detail string) *Problem {
	p := newProblem(http.StatusUnprocessableEntity, string(artel.Invalid), "the request does not fit the schema: "+pointer+" "+detail)
	p.Errors = []FieldError{{Pointer: pointer, Detail: detail}}
	return p
}

func (m BuildMessage) message(at string) (run.InlineMessage, error) {
	out := run.InlineMessage{Message: artel.Message{
		ID: artel.MessageID(m.ID), Parent: artel.MessageID(m.ParentID), Role: artel.Role(m.Role), Muted: m.Muted, Summary: m.Summary, Agent: artel.AgentName(m.Agent),
	}}
	switch {
	case m.Text != nil && m.Parts != nil:
		return out, invalidAt(at+"/parts", "give text or parts, not both")
	case m.Text != nil:
		out.Parts = artel.Parts{artel.Text{Text: *m.Text}}
	case m.Parts != nil:
		b, err := json.Marshal(m.Parts)
		if err == nil {
			err = json.Unmarshal(b, &out.Parts)
		}
		if err != nil {
			return out, invalidAt(at+"/parts", artel.Shorten(err.Error(), 200))
		}
	}
	for i, a := range m.Attachments {
		file, err := a.file(fmt.Sprintf("%s/attachments/%d", at, i))
		if err != nil {
			return out, err
		}
		out.Attachments = append(out.Attachments, file)
	}
	return out, nil
}

func (a Attachment) file(at string) (f run.InlineFile, err error) {
	f = run.InlineFile{Name: a.Name, MediaType: a.MediaType}
	f.Size, f.Width, f.Height, f.Pages, f.Duration = a.Size, a.Width, a.Height, a.Pages, a.Duration
	if a.Ref != "" {
		if f.Ref, err = artel.ParseRef(a.Ref); err != nil {
			return f, invalidAt(at+"/ref", artel.Shorten(err.Error(), 200))
		}
	}
	if a.Ref == "" && a.Name == "" {
		return f, invalidAt(at, "a file needs a ref or a name")
	}
	if a.Data != nil {
		if f.Data, err = base64.StdEncoding.DecodeString(*a.Data); err != nil {
			return f, invalidAt(at+"/data", "want base64")
		}
	}
	return f, nil
}

func builtView(r pipeline.Result, failed *record.ContextError) BuildResult {
	t := r.Record.Tokens
	out := BuildResult{
		Messages: make([]BuiltMessage, len(r.Messages)), Error: failed,
		Tokens: BuildTokens{t.Fixed, t.History, t.Total, t.Budget, orEmpty(t.Dropped), orEmpty(t.Cut)},
		Record: BuildRecord{Processors: make([]BuildStep, len(r.Record.Processors)), RequestSHA256: r.Record.RequestHash},
	}
	for i, m := range r.Messages {
		out.Messages[i] = BuiltMessage{ID: m.ID, Role: m.Role, Origin: string(m.Origin), MergedFrom: m.MergedFrom}
		if text, ok := onlyText(m.Parts); ok {
			out.Messages[i].Text = &text
		} else {
			out.Messages[i].Parts = m.Parts
		}
	}
	for i, s := range r.Record.Processors {
		step := BuildStep{
			ID: s.ID, Settings: string(s.Settings), Added: orEmpty(s.Added), Removed: orEmpty(s.Removed), Changed: orEmpty(s.Changed),
			TokensBefore: s.TokensBefore, TokensAfter: s.TokensAfter, Millis: s.Millis, Logs: make([]BuildLog, len(s.Logs)),
		}
		for n, l := range s.Logs {
			step.Logs[n] = BuildLog{string(l.Level), l.Message, l.Details}
		}
		out.Record.Processors[i] = step
	}
	return out
}

// onlyText returns the text of parts that are a single text; false otherwise.
func onlyText(ps artel.Parts) (string, bool) {
	if len(ps) == 0 {
		return "", true
	}
	t, ok := ps[0].(artel.Text)
	return t.Text, ok && len(ps) == 1
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
