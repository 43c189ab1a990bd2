// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/elicit"
	"github.com/artelhq/artel/agent/tool"
)

// A server asks people in one of three ways. Until the protocol of 2025-11-25 it sends a
// request of its own during the call, or refuses the call until a page was opened; then
// what it waits for is lost with the connection. Since 2026-07-28 it answers the call with
// what it wants to know, and the call is made again with the answers: nothing is at work
// meanwhile, so the questions and the state that the server wants back are kept, and the
// call continues after a restart of either side.

// An inCall is a call at work.
type inCall struct {
	c       *connection
	env     *tool.Env
	ctx     context.Context
	name    string // of the tool
	session *sdk.ClientSession
	token   string // of its progress
	clock   *callClock
	endTurn func()
	taskID  string // guarded by that of c

	mu    sync.Mutex
	asked map[string]int // how often the server asked the same
	total int
}

// Bounds of the questions of a call.
const (
	maxAsked   = 20   // questions
	maxMessage = 8000 // bytes of a question
	maxURL     = 4000 // bytes of an address to open
)

// elicit answers a question that the server asked as a request of its own.
func (c *connection) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	k, err := c.asker(r.Params)
	if err != nil {
		c.log.Warn("a question of an MCP server was refused", "err", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return k.elicit(ctx, r.Params)
}

// asker returns the call to which a question belongs. In a stream of HTTP it is the one
// whose stream it came in. A program does not say which, so it has to be the only one at
// work; from the first question on, its calls are made one after the other.
func (c *connection) asker(p *sdk.ElicitParams) (*inCall, error) {
	token, _ := p.Meta[metaCall].(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = true
	if k := c.inCalls[token]; k != nil {
		return k, nil
	}
	if related, ok := p.Meta["io.modelcontextprotocol/related-task"].(map[string]any); ok {
		for _, k := range c.inCalls {
			if k.taskID != "" && k.taskID == related["taskId"] {
				return k, nil
			}
		}
	}
	var only *inCall
	for _, k := range c.inCalls {
		if only != nil && only.env.Host != k.env.Host {
			return nil, errors.New("calls of several conversations are at work, so it is not known who is asked; call again: from now on they are made one after the other")
		}
		if only == nil || k.token > only.token { // any of them is of the person to ask
			only = k
		}
	}
	if only == nil {
		return nil, errors.New("no call is at work; people are only asked during calls")
	}
	return only, nil
}

// elicit asks a question of the server that waits for it.
func (k *inCall) elicit(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	q, err := k.question(p)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	k.mu.Lock()
	same := string(encode(q))
	k.asked[same]++
	q.Key = fmt.Sprintf("request %d", k.asked[same])
	k.mu.Unlock()
	waits, stop := context.WithCancelCause(k.ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(errTakenBack) })()
	answers, err := k.ask(waits, []tool.Elicitation{q})
	if err != nil {
		return nil, err
	}
	return response(answers[0]), nil
}

var errTakenBack = errors.New("the server does not wait for the answer any more")

// ask asks people. The time that they take does not count for the call.
func (k *inCall) ask(ctx context.Context, asked []tool.Elicitation) ([]tool.ElicitResult, error) {
	k.mu.Lock()
	k.total += len(asked)
	total := k.total
	k.mu.Unlock()
	if total > maxAsked {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("more than %d questions in one call", maxAsked)}
	}
	if k.env.Host == nil {
		answers := make([]tool.ElicitResult, len(asked))
		for i := range answers {
			answers[i].Action = artel.ElicitCancel
		}
		return answers, nil
	}
	k.clock.pause()
	defer k.clock.resume()
	return k.env.Host.Elicit(ctx, k.env.Call, asked)
}

func response(a tool.ElicitResult) *sdk.ElicitResult {
	return &sdk.ElicitResult{Action: string(a.Action), Content: a.Content}
}

// question checks what a server wants to ask. Its key is empty.
func (k *inCall) question(p *sdk.ElicitParams) (tool.Elicitation, error) {
	q := tool.Elicitation{Name: k.name, Server: k.c.server.Name, Mode: p.Mode, Message: k.c.hide(p.Message)}
	if len(q.Message) > maxMessage {
		return q, fmt.Errorf("the message has %d bytes; at most %d are shown to a person", len(q.Message), maxMessage)
	}
	switch q.Mode {
	case "", artel.ElicitForm:
		q.Mode = artel.ElicitForm
		if s, ok := p.Meta[metaSchema].(string); ok {
			q.Schema = json.RawMessage(s)
		} else if p.RequestedSchema != nil {
			q.Schema = encode(p.RequestedSchema)
		}
		if k.c.hide(string(q.Schema)) != string(q.Schema) {
			return q, errors.New("the schema has a secret of the connection in it")
		}
		_, err := elicit.Parse(q.Schema)
		return q, err
	case artel.ElicitURL:
		q.URL = p.URL
		return q, k.checkURL(p.URL)
	}
	return q, fmt.Errorf("the mode is %q: want form or url", artel.Shorten(q.Mode, 40))
}

func (k *inCall) checkURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || len(address) > maxURL:
		return fmt.Errorf("the url is not shown to a person: want http or https with a host, without a name and password, of at most %d bytes", maxURL)
	case k.c.hide(address) != address:
		return errors.New("the url has a secret of the connection in it")
	}
	return nil
}

// keptCall is what is kept of a call for the time after a restart.
type keptCall struct {
	Server string                      `json:"server"`
	Round  int                         `json:"round,omitempty"`
	Asked  map[string]tool.Elicitation `json:"asked,omitempty"` // by the keys of the server
	State  string                      `json:"state,omitempty"` // that the server wants back
	Task   *task                       `json:"task,omitempty"`
}

// kept returns what an earlier process kept of the call.
func (k *inCall) kept() (s keptCall) {
	if k.env.Host == nil {
		return s
	}
	if raw := k.env.Host.Kept(k.env.Call); raw == nil || json.Unmarshal(raw, &s) != nil || s.Server != k.c.server.Name {
		return keptCall{}
	}
	return s
}

// keep keeps s; nil: nothing. Without it, the outcome of the call is unknown after a
// restart.
func (k *inCall) keep(s *keptCall) {
	if k.env.Host == nil || k.env.Call == "" {
		return
	}
	var raw json.RawMessage
	if s != nil {
		s.Server = k.c.server.Name
		raw = encode(s)
	}
	if err := k.env.Host.Keep(context.WithoutCancel(k.ctx), k.env.Call, raw); err != nil {
		k.c.log.Warn("the state of a call is not kept for a restart", "tool", k.name, "err", err)
	}
}

// An outcome is the answer of a server to one round of a request.
type outcome struct {
	asked sdk.InputRequestMap
	state string
	needs bool // it wants to know more
}

// maxBusy is how often a server may ask for a pause.
const maxBusy = 4

// rounds makes a request, and makes it again with the answers to what the server asks.
func (k *inCall) rounds(ctx context.Context, request func(ctx context.Context, answers sdk.InputResponseMap, state string) (outcome, error)) error {
	now, busy := k.kept(), 0
	for {
		answers, err := k.answers(ctx, now)
		if err != nil {
			return err
		}
		got, err := request(ctx, answers, now.State)
		if pages, ok := k.pages(err); ok { // it was not processed
			now = keptCall{Round: now.Round + 1, Asked: pages, State: now.State}
			if err := k.open(ctx, &now); err != nil {
				return err
			}
			continue
		}
		if err != nil || !got.needs {
			return err
		}
		now = keptCall{Round: now.Round + 1, State: got.state}
		if len(got.asked) == 0 {
			if busy++; busy > maxBusy {
				return callFailed("the server is busy; call it again later")
			}
			if err := sleep(ctx, time.Second<<busy); err != nil {
				return err
			}
			continue
		}
		if now.Asked, err = k.questions(now.Round, got.asked); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// questions are those of a round.
func (k *inCall) questions(round int, asked sdk.InputRequestMap) (map[string]tool.Elicitation, error) {
	out := map[string]tool.Elicitation{}
	for key, r := range asked {
		p, ok := r.(*sdk.ElicitParams)
		if !ok {
			return nil, callFailed("the server asks for %T, which it is not offered", r)
		}
		q, err := k.question(p)
		if err != nil {
			return nil, callFailed("the server asks what cannot be shown: %v", err)
		}
		q.Key = fmt.Sprintf("round %d/%s", round, key)
		out[key] = q
	}
	return out, nil
}

// answers asks what a server wanted to know in a round. While it asks, the round is kept;
// once the answers are on their way, the outcome is not known any more.
func (k *inCall) answers(ctx context.Context, now keptCall) (sdk.InputResponseMap, error) {
	if len(now.Asked) == 0 {
		return nil, nil
	}
	k.keep(&now)
	keys := slices.Sorted(maps.Keys(now.Asked))
	asked := make([]tool.Elicitation, len(keys))
	for i, key := range keys {
		asked[i] = now.Asked[key]
	}
	got, err := k.ask(ctx, asked)
	if err != nil {
		return nil, err
	}
	k.keep(nil)
	out := sdk.InputResponseMap{}
	for i, key := range keys {
		out[key] = response(got[i])
	}
	return out, nil
}

// pages returns the pages that a person has to open before the server takes the call.
func (k *inCall) pages(err error) (map[string]tool.Elicitation, bool) {
	said, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || said.Code != sdk.CodeURLElicitationRequired {
		return nil, false
	}
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if json.Unmarshal(said.Data, &data) != nil || len(data.Elicitations) == 0 {
		return nil, false
	}
	out := map[string]tool.Elicitation{}
	for _, p := range data.Elicitations {
		p.Mode = artel.ElicitURL
		q, err := k.question(p)
		if err != nil {
			return nil, false
		}
		q.Key = "page " + p.ElicitationID
		out[p.ElicitationID] = q
	}
	return out, true
}

// open asks a person to open pages, and returns an error if they did not. The call was
// refused, so it can be made again at any time.
func (k *inCall) open(ctx context.Context, now *keptCall) error {
	for key, q := range now.Asked {
		q.Key = fmt.Sprintf("round %d/%s", now.Round, q.Key)
		now.Asked[key] = q
	}
	answers, err := k.answers(ctx, *now)
	now.Asked = nil
	for _, a := range answers {
		if r, ok := a.(*sdk.ElicitResult); ok && r.Action != string(artel.ElicitAccept) {
			return callFailed("the user did not open the page that the server asks for")
		}
	}
	return err
}
