// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/probe"
)

// A StepName names a step of a check.
type StepName string

// The steps, in their order.
const (
	StepReach   StepName = "reach"   // a server answers at the address
	StepKey     StepName = "key"     // it accepts the key
	StepModels  StepName = "models"  // it lists models
	StepWord    StepName = "word"    // a model answers
	StepPicture StepName = "picture" // the model sees a picture
)

// A State is the state of a step.
type State string

// The states.
const (
	Passed  State = "ok"
	Failed  State = "failed"
	Unsure  State = "unsure"  // not needed, and not found out
	Skipped State = "skipped" // pointless after an earlier step
)

// A CheckStep is the result of one step of a check.
type CheckStep struct {
	Name   StepName      `json:"step" enum:"reach,key,models,word,picture"`
	State  State         `json:"state" enum:"ok,failed,unsure,skipped"`
	Cause  model.Trouble `json:"cause,omitempty" doc:"why it failed"`
	Detail string        `json:"detail,omitempty" doc:"what the server or the model said"`
	Try    string        `json:"try,omitempty" doc:"a value that would probably work: a base URL, or the id of a model"`
	Model  string        `json:"model,omitempty" doc:"that was called"`
	Millis int64         `json:"ms"`
}

// A CheckReport is the result of a check.
type CheckReport struct {
	OK      bool        `json:"ok" doc:"a model has answered"`
	Items   []CheckStep `json:"items"`
	BaseURL string      `json:"base_url,omitempty" doc:"the base URL that answered; it differs from the one given if the version was missing there"`
	Models  []string    `json:"models" doc:"the chat models that the server lists"`
}

// Times of a check: for a list of models and for a call. Models on a machine of one's
// own are loaded first.
const (
	listTime = 10 * time.Second
	callTime = 90 * time.Second
)

// Check tries a service that need not be stored: whether it can be reached, accepts the
// key, which models it has, and whether one of them answers a word and sees a picture.
// Fields are those of [Services.Create]; an id of a stored service gives the secrets
// that are not sent. on is called at the end of each step; nil: not. The error is of
// kind Invalid for the fields, and Canceled if ctx ended.
func (s *Services) Check(ctx context.Context, fields map[string]any, on func(CheckStep)) (CheckReport, error) {
	if err := admin(ctx); err != nil {
		return CheckReport{}, err
	}
	parsed, err := s.checked(ctx, fields)
	if err != nil {
		return CheckReport{}, err
	}
	c := &checking{Services: s, service: parsed, on: on}
	c.report.Models = []string{}
	c.reach(ctx)
	if c.failed {
		for _, rest := range []StepName{StepWord, StepPicture} {
			c.add(CheckStep{Name: rest, State: Skipped})
		}
	} else {
		c.call(ctx)
	}
	if ctx.Err() != nil {
		return CheckReport{}, artel.Errorf(artel.Canceled, "entries.Services.Check", string(parsed.ID), "%w", context.Cause(ctx))
	}
	return c.report, nil
}

// checked returns the service that fields describe.
func (s *Services) checked(ctx context.Context, fields map[string]any) (model.Service, error) {
	id, _ := fields["id"].(string)
	if e, err := s.get(ctx, id); err == nil {
		_, parsed, err := s.revise(e, fields)
		return parsed, err
	} else if kind := artel.KindOf(err); kind != artel.NotFound && kind != artel.Denied { // of an id that is taken elsewhere
		return model.Service{}, err
	}
	d, err := newDraft(fields, secrets{})
	if err != nil {
		return model.Service{}, err
	}
	if id == "" {
		d.fields["id"] = "check"
	}
	parsed, err := model.ParseEntry(d.fields, Origin)
	if err == nil && parsed.BaseURL == "" {
		err = refused(model.Flaw{Code: model.WrongType, Key: "baseURL", Value: "text"})
	}
	return parsed, err
}

// checking is a running check.
type checking struct {
	*Services
	service model.Service
	report  CheckReport
	failed  bool // pointless to call a model
	on      func(CheckStep)
}

func (c *checking) add(s CheckStep) {
	c.report.Items = append(c.report.Items, s)
	if c.on != nil {
		c.on(s)
	}
}

// list asks for the models of a service.
func (c *checking) list(ctx context.Context, s model.Service) ([]string, string, error) {
	ctx, stop := context.WithTimeout(ctx, listTime)
	defer stop()
	return model.ListModels(ctx, c.c.HTTP, s)
}

// reach takes the steps that need no model.
func (c *checking) reach(ctx context.Context) {
	began := time.Now()
	models, base, err := c.list(ctx, c.service)
	spent := time.Since(began).Milliseconds()
	cause, said := model.TroubleOf(c.service, err)
	switch cause {
	case model.NoTrouble:
		c.service.BaseURL, c.report.BaseURL, c.report.Models = base, base, models
		c.add(CheckStep{Name: StepReach, State: Passed, Millis: spent})
		c.add(CheckStep{Name: StepKey, State: Passed})
		c.listed(models)
	case model.KeyMissing, model.KeyRefused, model.QuotaUsedUp:
		c.failed = cause != model.QuotaUsedUp
		c.service.BaseURL, c.report.BaseURL = base, base
		c.add(CheckStep{Name: StepReach, State: Passed, Millis: spent})
		c.add(CheckStep{Name: StepKey, State: Failed, Cause: cause, Detail: said})
		c.add(CheckStep{Name: StepModels, State: Skipped})
	case model.WrongPath, model.RequestRefused, model.ServerFailed, model.SomethingElse:
		c.elsewhere(ctx, cause, said, spent)
	default:
		c.failed = true
		step := CheckStep{Name: StepReach, State: Failed, Cause: cause, Detail: said, Millis: spent}
		if cause == model.TLSFailed {
			step.Try = c.answering(ctx, otherScheme(c.service.BaseURL))
		}
		c.add(step)
		c.add(CheckStep{Name: StepKey, State: Skipped})
		c.add(CheckStep{Name: StepModels, State: Skipped})
	}
}

// elsewhere looks for the API at other paths of the server. A server may have none that
// lists models.
func (c *checking) elsewhere(ctx context.Context, cause model.Trouble, said string, spent int64) {
	try := ""
	if cause == model.WrongPath {
		try = c.answering(ctx, model.LikelyBases(c.service)...)
	}
	if try != "" {
		c.failed = true
		c.add(CheckStep{Name: StepReach, State: Failed, Cause: model.WrongPath, Detail: said, Try: try, Millis: spent})
		c.add(CheckStep{Name: StepKey, State: Skipped})
		c.add(CheckStep{Name: StepModels, State: Skipped})
		return
	}
	c.add(CheckStep{Name: StepReach, State: Passed, Millis: spent})
	c.add(CheckStep{Name: StepKey, State: Unsure})
	step := CheckStep{Name: StepModels, State: Unsure, Cause: cause, Detail: said}
	if model.FirstModel(c.service, nil) == "" {
		c.failed, step.State = true, Failed
	}
	c.add(step)
}

// answering returns the first of some base URLs at which an API answers; "": none.
func (c *checking) answering(ctx context.Context, bases ...string) string {
	for _, base := range bases {
		s := c.service
		if s.BaseURL = base; !model.SameOrigin(base, c.service.BaseURL) {
			s.APIKey, s.Extra.Header = "", nil // not to another server
		}
		_, found, err := c.list(ctx, s)
		switch cause, _ := model.TroubleOf(s, err); cause {
		case model.NoTrouble, model.KeyMissing, model.KeyRefused:
			return found
		}
	}
	return ""
}

func otherScheme(base string) string {
	if rest, ok := strings.CutPrefix(base, "https://"); ok {
		return "http://" + rest
	}
	return "https://" + strings.TrimPrefix(base, "http://")
}

// listed takes the step of the list of models.
func (c *checking) listed(models []string) {
	step := CheckStep{Name: StepModels, State: Passed}
	named := slices.DeleteFunc(append([]string{c.service.Model}, c.service.Models...), func(m string) bool { return m == "" || slices.Contains(models, m) })
	switch {
	case len(models) == 0 && model.FirstModel(c.service, nil) == "":
		c.failed, step.State, step.Cause = true, Failed, model.NoModels
	case len(models) == 0:
		step.State, step.Cause = Unsure, model.NoModels
	case len(named) > 0: // some servers have other names for their models
		step.State, step.Cause, step.Model, step.Try = Unsure, model.ModelUnknown, named[0], nearest(named[0], models)
	}
	c.add(step)
}

// nearest returns the model with the most similar name, or the first one.
func nearest(name string, models []string) string {
	for _, m := range models {
		if strings.Contains(m, name) || strings.Contains(name, m) {
			return m
		}
	}
	if near := model.Nearest(name, models); near != "" || len(models) == 0 {
		return near
	}
	return models[0]
}

// call takes the steps that call a model.
func (c *checking) call(ctx context.Context) {
	s := c.service
	s.Model, s.Models, s.AllModels = model.FirstModel(s, c.report.Models), nil, false
	s.ID = "check-" + s.ID // it shares no limit on concurrent calls
	limited, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	caller := c.c.Caller.WithOptions(model.CallerOptions{Attempts: 1})
	began := time.Now()
	word, err := caller.CallText(limited, &model.Request{
		Service: s, MaxOutput: 2000, // room for reasoning
		Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "Answer with the word yes."}}}},
	})
	step := CheckStep{Name: StepWord, State: Passed, Model: s.Model, Detail: artel.Shorten(strings.TrimSpace(word.Text), 100), Millis: time.Since(began).Milliseconds()}
	if err != nil {
		step.State = Failed
		if step.Cause, step.Detail = model.TroubleOf(s, err); limited.Err() != nil {
			step.Cause = model.TookTooLong
		}
		if e, ok := errors.AsType[*model.CallError](err); ok && e.Status == http.StatusNotFound && len(c.report.Models) > 0 && !slices.Contains(c.report.Models, s.Model) {
			step.Cause = model.ModelUnknown
		}
		if step.Cause == model.ModelUnknown {
			step.Try = nearest(s.Model, c.report.Models)
		}
		c.add(step)
		c.add(CheckStep{Name: StepPicture, State: Skipped})
		return
	}
	c.report.OK = true
	c.add(step)
	c.see(limited, caller, s)
}

// see takes the step of the picture. What it finds out holds for the service when it is
// stored.
func (c *checking) see(ctx context.Context, caller *model.Caller, s model.Service) {
	step := CheckStep{Name: StepPicture, State: Unsure, Model: s.Model}
	seen, err := probe.Sees(ctx, caller, c.c.Blobs, s)
	if err != nil || len(seen.Results) == 0 {
		step.Cause, step.Detail = model.TroubleOf(s, err)
		c.add(step)
		return
	}
	c.c.Registry.Learned().Add(seen.Marks(s)...)
	r := seen.Results[0]
	step.Detail, step.Millis = r.Evidence, r.Millis
	switch r.Outcome {
	case probe.Seen:
		step.State = Passed
	case probe.Blind, probe.Refused:
		step.State = Failed
	}
	c.add(step)
}
