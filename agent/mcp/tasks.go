// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
)

// A server may answer a call with a task, whose result is asked for until it is there. The
// id of the task is kept, so that the call continues after a restart of either side. In the
// protocol of 2025-11-25 the client asks for a task; since 2026-07-28 the server decides
// (extension io.modelcontextprotocol/tasks).

const tasksExtension = "io.modelcontextprotocol/tasks"

// The methods of tasks.
const (
	methodTaskGet    = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskCancel = "tasks/cancel"
	methodTaskUpdate = "tasks/update"
)

const (
	taskTTL     = 24 * time.Hour         // for which a server is asked to keep a task
	defaultPoll = time.Second            // where the server names no interval
	leastPoll   = 100 * time.Millisecond // between two requests
	mostPoll    = time.Minute
	maxTaskID   = 1000 // bytes
)

// A task is the state of a task.
type task struct {
	ID             string `json:"taskId"`
	Status         string `json:"status"`
	Message        string `json:"statusMessage,omitempty"`
	PollInterval   int64  `json:"pollInterval,omitempty"`   // milliseconds, until 2025-11-25
	PollIntervalMs int64  `json:"pollIntervalMs,omitempty"` // since 2026-07-28
}

func (t task) poll() time.Duration {
	d := time.Duration(max(t.PollInterval, t.PollIntervalMs)) * time.Millisecond
	if d <= 0 {
		d = defaultPoll
	}
	return min(max(d, leastPoll), mostPoll)
}

type (
	taskParams struct {
		sdk.ParamsBase
		ID string `json:"taskId"`
	}
	taskUpdate struct {
		sdk.ParamsBase
		ID      string               `json:"taskId"`
		Answers sdk.InputResponseMap `json:"inputResponses"`
	}
	taskResult struct {
		sdk.ResultBase
		task
		Asked  sdk.InputRequestMap `json:"inputRequests"`
		Result json.RawMessage     `json:"result"`
		Error  *jsonrpc.Error      `json:"error"`
	}
)

// addTasks lets a client ask for tasks.
func addTasks(c *sdk.Client) error {
	return errors.Join(
		sdk.AddSendingCustomMethod[*taskParams, *taskResult](c, methodTaskGet),
		sdk.AddSendingCustomMethod[*taskParams, *sdk.CallToolResult](c, methodTaskResult),
		sdk.AddSendingCustomMethod[*taskParams, *taskResult](c, methodTaskCancel),
		sdk.AddSendingCustomMethod[*taskUpdate, *taskResult](c, methodTaskUpdate),
	)
}

// takesTasks reports whether calls of a tool are asked for as tasks.
func takesTasks(s *sdk.ClientSession, t *sdk.Tool) bool {
	support, _ := t.Meta[metaSupport].(string)
	has := s.InitializeResult().Capabilities
	if has == nil || support != "optional" && support != "required" {
		return false
	}
	tasks, _ := has.Experimental[metaTasks].(map[string]any)
	requests, _ := tasks["requests"].(map[string]any)
	tools, _ := requests["tools"].(map[string]any)
	_, ok := tools["call"]
	return ok
}

// startedTask returns the task that a server has made of a call; nil: none.
func startedTask(r *sdk.CallToolResult) (*task, error) {
	raw, ok := r.Meta[metaTask].(string)
	if !ok {
		return nil, nil
	}
	var t task
	if err := json.Unmarshal([]byte(raw), &t); err != nil || t.ID == "" || len(t.ID) > maxTaskID {
		return nil, callFailed("the server made a task of the call, without an id that can be used")
	}
	return &t, nil
}

// await waits for the result of a task. The time that it takes does not count: the run has
// a limit of its own.
func (k *inCall) await(ctx context.Context, t task) (r *sdk.CallToolResult, err error) {
	k.keep(&keptCall{Task: &t})
	k.endTurn()
	k.setTask(t.ID)
	k.clock.pause()
	defer k.clock.resume()
	defer func() {
		if ctx.Err() != nil && k.env.Host != nil && k.env.Host.Ends(ctx) {
			k.cancelTask(ctx, t.ID)
		}
	}()
	answered := map[string]bool{}
	lost := time.Now() // the last time that the server answered
	now := taskResult{task: t}
	for {
		k.report(now.Message)
		switch now.Status {
		case "completed", "failed", "cancelled", "input_required":
			if r, done, err := k.taskState(ctx, &now, answered); done || err != nil {
				return r, err
			}
		}
		if err := sleep(ctx, now.poll()); err != nil {
			return nil, err
		}
		next, err := taskRequest[*taskParams, *taskResult](ctx, k, methodTaskGet, &taskParams{ID: t.ID})
		said, wrong := errors.AsType[*jsonrpc.Error](err)
		switch {
		case err == nil:
			now, lost = *next, time.Now()
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case wrong:
			return nil, callFailed("the server does not say how its task is, so the outcome is unknown: %s", artel.Shorten(said.Message, 500))
		case time.Since(lost) > progressFactor*k.c.server.Limits.Call:
			return nil, callFailed("the server was not reached for %v, so the outcome of its task is unknown", time.Since(lost).Round(time.Second))
		}
	}
}

// taskRequest makes a request at the present session, which follows reconnections.
func taskRequest[P interface {
	*T
	sdk.Params
}, R sdk.Result, T any](ctx context.Context, k *inCall, method string, params P,
) (r R, err error) {
	k.c.mu.Lock()
	session := k.c.session
	k.c.mu.Unlock()
	if session == nil {
		return r, errNotConnected
	}
	limited, stop := context.WithTimeout(ctx, k.c.server.Limits.Call)
	defer stop()
	return sdk.CallCustomMethod[P, R](limited, session, method, params)
}

var errNotConnected = errors.New("the server is not connected")

// taskState takes the result of a task, or asks what it wants to know.
func (k *inCall) taskState(ctx context.Context, now *taskResult, answered map[string]bool) (r *sdk.CallToolResult, done bool, err error) {
	newest := now.Result != nil || now.Error != nil || now.Asked != nil
	switch {
	case now.Status == "cancelled":
		return nil, true, callFailed("the server has cancelled the task: %s", artel.Shorten(now.Message, 500))
	case now.Error != nil:
		return nil, true, callFailed("the task failed: %s", artel.Shorten(now.Error.Message, 2000))
	case now.Status == "input_required" && newest:
		return nil, false, k.answerTask(ctx, now, answered)
	case now.Result != nil:
		r = &sdk.CallToolResult{}
		return r, true, json.Unmarshal(now.Result, r)
	}
	// Until 2025-11-25 the result, and what the server asks before, come with the answer to this.
	k.c.mu.Lock()
	session := k.c.session
	k.c.mu.Unlock()
	if session == nil {
		return nil, false, nil
	}
	r, err = sdk.CallCustomMethod[*taskParams, *sdk.CallToolResult](ctx, session, methodTaskResult, &taskParams{ID: now.ID})
	if _, said := errors.AsType[*jsonrpc.Error](err); err != nil && !said && ctx.Err() == nil {
		return nil, false, nil // the connection was lost; it is asked for again
	}
	return r, true, err
}

// answerTask asks people what a task wants to know.
func (k *inCall) answerTask(ctx context.Context, now *taskResult, answered map[string]bool) error {
	asked := maps.Clone(now.Asked)
	maps.DeleteFunc(asked, func(key string, _ sdk.InputRequest) bool { return answered[key] })
	questions, err := k.questions(0, asked)
	if err != nil || len(questions) == 0 {
		return err
	}
	keys := slices.Sorted(maps.Keys(questions))
	list := make([]tool.Elicitation, len(keys))
	for i, key := range keys {
		list[i] = questions[key]
		list[i].Key = "task/" + key
	}
	got, err := k.ask(ctx, list)
	if err != nil {
		return err
	}
	answers := sdk.InputResponseMap{}
	for i, key := range keys {
		answers[key] = response(got[i])
	}
	_, err = taskRequest[*taskUpdate, *taskResult](ctx, k, methodTaskUpdate, &taskUpdate{ID: now.ID, Answers: answers})
	if _, said := errors.AsType[*jsonrpc.Error](err); err != nil && !said {
		return ctx.Err() // the connection was lost: the next state has the question again
	}
	for _, key := range keys {
		answered[key] = true
	}
	return err
}

// cancelTask tells the server that its result is not wanted any more.
func (k *inCall) cancelTask(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	if _, err := taskRequest[*taskParams, *taskResult](ctx, k, methodTaskCancel, &taskParams{ID: id}); err != nil {
		k.c.log.Warn("a task of a cancelled call could not be cancelled", "tool", k.name, "task", artel.Shorten(id, 80), "err", err)
	}
}

// report shows people how far the call is.
func (k *inCall) report(message string) {
	if message != "" && k.env.Host != nil {
		k.env.Host.Report(k.env.Call, tool.Progress{Message: k.c.hide(artel.Shorten(message, 500))})
	}
}

func (k *inCall) setTask(id string) {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	k.taskID = id
}

// awaitSession waits for the connection of a call that continues after a restart.
func (c *connection) awaitSession(ctx context.Context) *sdk.ClientSession {
	limited, stop := context.WithTimeout(ctx, progressFactor*c.server.Limits.Call)
	defer stop()
	for {
		c.mu.Lock()
		session := c.session
		c.mu.Unlock()
		if session != nil || sleep(limited, leastPoll) != nil {
			return session
		}
	}
}
