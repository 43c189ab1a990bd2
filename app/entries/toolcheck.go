// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
)

// The steps of a check of tools, beside [StepReach] and [StepKey].
const (
	StepProtocol StepName = "protocol" // the server speaks MCP
	StepTools    StepName = "tools"    // it lists tools
	StepCall     StepName = "call"     // an HTTP tool answers
)

// A ToolStep is the result of one step of a check of tools.
type ToolStep struct {
	Name   StepName      `json:"step" enum:"reach,key,protocol,tools,call"`
	State  State         `json:"state" enum:"ok,failed,unsure,skipped"`
	Cause  model.Trouble `json:"cause,omitempty" doc:"why it failed"`
	Detail string        `json:"detail,omitempty" doc:"what the server said"`
	Try    string        `json:"try,omitempty" doc:"an address that would probably work"`
	Millis int64         `json:"ms"`
}

// A ServerReport is the result of a check of an MCP server.
type ServerReport struct {
	OK       bool        `json:"ok" doc:"it lists tools"`
	Items    []ToolStep  `json:"items"`
	Protocol string      `json:"protocol,omitempty" doc:"the version of the protocol that is spoken"`
	Server   string      `json:"server,omitempty" doc:"the name that the server gives itself"`
	Version  string      `json:"version,omitempty" doc:"its version"`
	Tools    []mcp.Offer `json:"tools"`
}

// A ToolReport is the result of a check of an HTTP tool.
type ToolReport struct {
	OK      bool           `json:"ok" doc:"the entry can be used; with arguments: the call succeeded"`
	Items   []ToolStep     `json:"items" doc:"empty without a call"`
	Tool    model.ToolSpec `json:"tool" doc:"what models get of it"`
	Content string         `json:"content,omitempty" doc:"the result of the call for a model, shortened"`
}

// checkTime is how long a server may take for each step.
const checkTime = 15 * time.Second

// read returns what fields describe. Those of a stored entry have the values of headers
// that are sent as they were read.
func (s *ToolEntries) read(ctx context.Context, fields map[string]any) (p parsedTool, err error) {
	if err := admin(ctx); err != nil {
		return p, err
	}
	name, _ := fields["name"].(string)
	e, err := s.box.entry(ctx, s.kind.kind, name)
	switch artel.KindOf(err) {
	case "":
		_, p, err = s.revise(e, fields)
	case artel.NotFound:
		_, p, err = s.kind.read(named(fields, "check"), secrets{})
	}
	if err == nil {
		err = s.box.checkAgents(p)
	}
	return p, err
}

// CheckServer tries an MCP server that need not be stored: whether it can be reached and
// accepts the headers, which protocol it speaks and which tools it has. Fields are those
// of [ToolEntries.Create]; a name of a stored server gives the secrets that are sent as
// they were read. on is called at the end of each step; nil: not. The error is of kind
// Invalid for the fields, and Canceled if ctx ended.
func (b *Toolbox) CheckServer(ctx context.Context, fields map[string]any, on func(ToolStep)) (ServerReport, error) {
	p, err := b.MCP.read(ctx, fields)
	if err != nil {
		return ServerReport{}, err
	}
	r := ServerReport{Tools: []mcp.Offer{}}
	add := func(s ToolStep) {
		r.Items = append(r.Items, s)
		if on != nil {
			on(s)
		}
	}
	w := watch(p.client)
	began := time.Now()
	visit, err := looked(ctx, p.server, w)
	spent := time.Since(began).Milliseconds()
	if err != nil && p.server.Login != nil && w.refusedAccess() {
		// It answers as it should: access is of the users.
		r.OK = true
		add(ToolStep{Name: StepReach, State: Passed, Millis: spent})
		for _, name := range []StepName{StepKey, StepProtocol, StepTools} {
			add(ToolStep{Name: name, State: Skipped})
		}
		return r, canceled(ctx)
	}
	if err != nil {
		for _, s := range w.failed(p, err, StepProtocol) {
			if s.State == Failed && s.Cause == model.WrongPath && s.Try == "" {
				s.Try = likely(ctx, p.server)
			}
			s.Millis = spent
			add(s)
		}
		add(ToolStep{Name: StepTools, State: Skipped})
		return r, canceled(ctx)
	}
	defer visit.Close()
	r.Protocol, r.Server, r.Version = visit.Protocol, visit.Name, visit.Version
	add(ToolStep{Name: StepReach, State: Passed, Millis: spent})
	add(ToolStep{Name: StepKey, State: Passed})
	add(ToolStep{Name: StepProtocol, State: Passed, Detail: strings.TrimSpace(visit.Name + " " + visit.Version + ", MCP " + visit.Protocol)})
	began = time.Now()
	limited, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	offers, err := visit.Offers(limited)
	step := ToolStep{Name: StepTools, State: Passed, Millis: time.Since(began).Milliseconds()}
	if err == nil {
		r.OK, r.Tools = true, offers
	} else {
		step.State, step.Cause, step.Detail = Failed, model.SomethingElse, said(p, err)
		if limited.Err() != nil {
			step.Cause = model.TookTooLong
		}
	}
	add(step)
	return r, canceled(ctx)
}

// looked connects to a server, which w watches.
func looked(ctx context.Context, s mcp.Server, w *watcher) (*mcp.Visit, error) {
	remote := *s.Remote
	remote.Client = &http.Client{Transport: w, CheckRedirect: s.Remote.Client.CheckRedirect}
	s.Remote, s.Limits.Connect = &remote, checkTime
	return mcp.Look(ctx, s)
}

// likely returns the address at which MCP is spoken, if it is not that of s; "": unknown.
func likely(ctx context.Context, s mcp.Server) string {
	u, err := url.Parse(s.Remote.URL)
	if err != nil {
		return ""
	}
	for _, path := range []string{"/mcp", "/"} {
		next := *u
		next.Path, next.RawPath, next.RawQuery = path, "", ""
		if next.String() == u.String() || path == "/" && u.Path == "" {
			continue
		}
		other, remote := s, *s.Remote
		remote.URL, other.Remote = next.String(), &remote
		if v, err := looked(ctx, other, watch(s.Remote.Client)); err == nil {
			v.Close()
			return next.String()
		}
	}
	return ""
}

// CheckTool checks the entry of an HTTP tool that need not be stored. With arguments it
// makes one call, of which the administrator knows what it does there; a result with bytes
// is described, not kept. Errors and fields are as of [Toolbox.CheckServer].
func (b *Toolbox) CheckTool(ctx context.Context, fields map[string]any, arguments json.RawMessage, on func(ToolStep)) (ToolReport, error) {
	p, err := b.HTTP.read(ctx, fields)
	if err != nil {
		return ToolReport{}, err
	}
	defer p.client.CloseIdleConnections()
	r := ToolReport{OK: true, Items: []ToolStep{}, Tool: model.ToolSpec{Name: p.name, Description: p.tool.Doc, Schema: p.tool.Schema}}
	if arguments == nil {
		return r, nil
	}
	w := watch(p.client)
	t, err := p.again(&http.Client{Transport: w, CheckRedirect: p.client.CheckRedirect})
	if err != nil {
		return ToolReport{}, err
	}
	t.ShowsContent = true // nothing is stored
	set, err := tool.NewSet(t)
	if err != nil {
		return ToolReport{}, err
	}
	began := time.Now()
	result, err := set.Call(ctx, &tool.Env{Locale: phrase.English}, t.Name, arguments)
	spent := time.Since(began).Milliseconds()
	if err != nil {
		return ToolReport{}, err
	}
	content := artel.Shorten(result.Content, 4000)
	switch {
	case !result.IsError:
		r.Content = content
		r.Items = []ToolStep{{Name: StepReach, State: Passed}, {Name: StepKey, State: Passed}, {Name: StepCall, State: Passed, Millis: spent}}
	case !w.asked(): // the arguments are wrong
		r.OK = false
		r.Items = []ToolStep{{Name: StepReach, State: Skipped}, {Name: StepKey, State: Skipped}, {Name: StepCall, State: Failed, Cause: model.RequestRefused, Detail: artel.Shorten(content, 600)}}
	default:
		r.OK = false
		r.Items = w.failed(p, nil, StepCall)
		last := &r.Items[len(r.Items)-1]
		for i := range r.Items {
			if r.Items[i].State == Failed {
				last = &r.Items[i]
			}
		}
		last.Detail, last.Millis = artel.Shorten(content, 600), spent
	}
	for _, s := range r.Items {
		if on != nil {
			on(s)
		}
	}
	return r, nil
}

func canceled(ctx context.Context) error {
	if ctx.Err() != nil {
		return artel.Errorf(artel.Canceled, "entries.Toolbox.Check", "", "%w", context.Cause(ctx))
	}
	return nil
}

// said returns the text of an error without secrets.
func said(p parsedTool, err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok { // its own text has the address
		err = u.Err
	}
	return artel.Shorten(p.server.Secrets.Hide(err.Error()), 300)
}

// A watcher notes what became of the first request through it.
type watcher struct {
	next http.RoundTripper

	mu     sync.Mutex
	done   bool
	status int
	to     string // where a redirect leads
	err    error
}

func watch(c *http.Client) *watcher { return &watcher{next: c.Transport} }

// RoundTrip implements [http.RoundTripper].
func (w *watcher) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done && w.err == nil && w.status < 400 && err == nil {
		w.status = resp.StatusCode // the last one says why it failed
	}
	if w.done {
		return resp, err
	}
	w.done, w.err = true, err
	if err == nil {
		w.status = resp.StatusCode
		if to, err := resp.Location(); err == nil {
			w.to = to.String()
		}
	}
	return resp, err
}

// CloseIdleConnections closes those of the watched transport.
func (w *watcher) CloseIdleConnections() {
	(&http.Client{Transport: w.next}).CloseIdleConnections()
}

// asked reports whether there was a request.
func (w *watcher) asked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// refusedAccess reports whether the server answered that access is missing.
func (w *watcher) refusedAccess() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status == http.StatusUnauthorized
}

// failed returns the steps up to last of an exchange that failed with err.
func (w *watcher) failed(p parsedTool, err error, last StepName) []ToolStep {
	w.mu.Lock()
	defer w.mu.Unlock()
	reach, key, end := ToolStep{Name: StepReach, State: Passed}, ToolStep{Name: StepKey, State: Passed}, ToolStep{Name: last, State: Skipped}
	failed := func(s *ToolStep, cause model.Trouble) {
		s.State, s.Cause = Failed, cause
		if err != nil {
			s.Detail = said(p, err)
		}
	}
	if w.status == 0 {
		key.State = Skipped
		if w.err != nil {
			err = w.err
		}
		cause, _ := model.TroubleOf(model.Service{}, err)
		if cause == model.NoTrouble {
			cause = model.SomethingElse
		}
		failed(&reach, cause)
		return []ToolStep{reach, key, end}
	}
	switch s := w.status; {
	case s == http.StatusUnauthorized && !p.keyed:
		failed(&key, model.KeyMissing)
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		failed(&key, model.KeyRefused)
	case s >= 500:
		key.State = Unsure
		failed(&end, model.ServerFailed)
	case s >= 300 && s < 400:
		key.State = Unsure
		failed(&end, model.WrongPath)
		end.Try = w.to
	case last == StepProtocol:
		key.State = Unsure
		failed(&end, model.WrongPath)
	case s == http.StatusNotFound, s == http.StatusMethodNotAllowed:
		failed(&end, model.WrongPath)
	case s >= 400:
		failed(&end, model.RequestRefused)
	default:
		failed(&end, model.SomethingElse)
	}
	return []ToolStep{reach, key, end}
}
