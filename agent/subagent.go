// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
)

// A subagent is a run inside a run, with its own history, and with the artifacts,
// the limits and the deadline of the outer run. A tool starts it, and its last
// message is the tool's result. The outer run yields its payloads, marked with
// its thread, while it waits for the tool, so that payloads of concurrent
// subagents are in the order of events.

// A Member is an agent that another one may delegate to.
type Member struct {
	Name        artel.AgentName
	Description string
}

// A Delegation is one call of a subagent.
type Delegation struct {
	Agent  artel.AgentName
	Within artel.CallPath // the thread; it ends with the call
	Caller artel.MessageID
	Fresh  bool
}

// Nested is a payload of a subagent.
type Nested struct {
	Agent  artel.AgentName
	Within artel.CallPath
	artel.Payload
}

//go:embed call_subagent.md
var subagentDoc string

type subagentArgs struct {
	Agent       artel.AgentName `json:"agent"`
	Instruction string          `json:"instruction"`
	Fresh       *bool           `json:"fresh_start"`
}

// toolsOf returns the tools of the agent at a nesting depth.
func (r *run) toolsOf(depth int) *tool.Set {
	box, in := r.withHistory(r.withSkills(r.allowed())), r.in
	if len(in.Subagents) == 0 || depth >= r.tree.limits.depth() || r.permission(SubagentTool) == Deny {
		return box
	}
	var doc strings.Builder
	short, help := tool.SplitDoc(subagentDoc)
	doc.WriteString(short + "\n")
	names := make([]artel.AgentName, len(in.Subagents))
	for i, m := range in.Subagents {
		names[i] = m.Name
		doc.WriteString("- " + string(m.Name) + ": " + strings.Join(strings.Fields(m.Description), " ") + "\n")
	}
	type object map[string]any
	schema, err := json.Marshal(object{
		"type": "object",
		"properties": object{
			"agent":       object{"type": "string", "enum": names},
			"instruction": object{"type": "string", "minLength": 1},
			"fresh_start": object{"type": "boolean"},
		},
		"required": []string{"agent", "instruction"}, "additionalProperties": false,
	})
	if err != nil {
		panic("agent: " + err.Error()) // names and texts cannot fail
	}
	return box.With(tool.Tool{
		Name: SubagentTool, Doc: strings.TrimSpace(doc.String()), Help: help, Schema: schema, Parallel: true, Repeat: tool.RepeatAlways, // a repeated call continues the thread
		Call: func(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
			var in subagentArgs
			if err := json.Unmarshal(args, &in); err != nil {
				return tool.Failed("%s: the arguments cannot be read: %v", SubagentTool, err), nil
			}
			return r.delegate(ctx, env, in)
		},
	})
}

// A nestedPayload is a payload on its way from a subagent to the outer run.
type nestedPayload struct {
	payload  artel.Payload
	consumed chan bool
}

// forwardNested emits the payloads of subagents until done is closed. The error
// is that of the consumer; it ends the subagents by calling stop.
func (r *run) forwardNested(done <-chan struct{}, stop func()) error {
	var err error
	for {
		select {
		case t := <-r.nested:
			if err == nil {
				if err = r.emit(t.payload); err != nil {
					stop()
				}
			}
			t.consumed <- err == nil
		case <-done:
			return err
		}
	}
}

// errTimeLimit is the cancellation cause of a subagent that exceeded its time
// limit.
var errTimeLimit = errors.New("it took longer than its limit (limits.seconds)")

// delegate runs a subagent to its final answer.
func (r *run) delegate(ctx context.Context, env *tool.Env, args subagentArgs) (tool.Result, error) {
	within := r.thread.Join(env.Call)
	fresh := args.Fresh == nil || *args.Fresh
	in, err := r.host.Delegate(ctx, Delegation{Agent: args.Agent, Within: within, Caller: r.callerOf(env.Call), Fresh: fresh})
	if errors.Is(err, artel.Invalid) {
		return tool.Failed("%v", err), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	began := r.now()
	s := r.Engine.begin(in, within, r.tree, r.yieldNested)
	if in.Completed != nil { // its step was stored, that of the caller was not
		return s.resultFor(env, *in.Completed), nil
	}
	inside, stop := context.WithTimeoutCause(ctx, in.Agent.Limits.Time(), errTimeLimit)
	defer stop()
	err = s.work(inside, env.Call, r.callerOf(env.Call), args.Instruction, fresh)
	if errors.Is(context.Cause(inside), errTimeLimit) {
		err = errTimeLimit
	}
	r.tree.addOwnUsage(&r.usage, s.usage)
	switch {
	case ctx.Err() != nil || errors.Is(err, errStopped) || artel.KindOf(err) == artel.Internal && !errors.Is(err, errTimeLimit) || err != nil && r.tree.isExhausted():
		return tool.Result{}, err // ends the outer run too
	}
	if err != nil {
		if err := s.answerOpenCalls(); err != nil {
			return tool.Result{}, err
		}
	}
	reply, _ := s.reply()
	told := artel.SubagentCompleted{Call: env.Call, OK: err == nil, Reply: reply, Usage: s.usage, Millis: r.now().Sub(began).Milliseconds()}
	if err != nil {
		told.Error = err.Error()
	}
	return s.resultFor(env, told), s.emit(told)
}

// resultFor returns the result of the call of a subagent that has ended.
func (r *run) resultFor(env *tool.Env, end artel.SubagentCompleted) tool.Result {
	_, text := r.reply()
	result := tool.Result{Content: text, Metadata: map[string]any{"agent": r.in.Agent.Name, "reply_id": end.Reply, "content_type": "text/markdown"}}
	if !end.OK {
		result.IsError = true
		result.Content = env.Locale.Say(phrase.ToolSubagentFailed, map[string]any{"Name": r.in.Agent.Name, "Problem": artel.Shorten(end.Error, 1000)})
		if text != "" {
			result.Content += "\n\n" + env.Locale.Say(phrase.ToolSubagentSaid, nil) + "\n\n" + text
		}
	}
	return result
}

// yieldNested passes a payload of a subagent to forwardNested.
func (r *run) yieldNested(p artel.Payload, _ error) bool {
	t := nestedPayload{p, make(chan bool, 1)}
	r.nested <- t
	return <-t.consumed
}

// work runs a subagent until its final answer, or continues an earlier attempt.
func (r *run) work(ctx context.Context, call artel.CallID, caller artel.MessageID, instruction string, fresh bool) error {
	n := len(r.ownMessages())
	if n == 0 {
		now := r.now()
		m := artel.Message{
			ID: artel.NewMessageID(now), Conversation: r.in.Run.Conversation, Parent: caller, Role: artel.RoleUser,
			Parts: asStored(artel.Parts{artel.Text{Text: instruction}}), Agent: r.in.Agent.Name, Run: r.in.Run.ID, Within: r.thread, CreatedAt: now,
		}
		r.history = append(r.history, m)
		if err := r.emit(artel.SubagentStarted{Call: call, Service: r.in.Service.ID, Fresh: fresh, Message: m}); err != nil {
			return err
		}
	} else if last := r.history[len(r.history)-1]; last.Role == artel.RoleAssistant && !artel.HasCalls(last.Parts) {
		return nil // already finished
	}
	return r.loop(ctx)
}

// ownMessages returns the messages of this call in the thread of a subagent.
func (r *run) ownMessages() []artel.Message {
	i := slices.IndexFunc(r.history, func(m artel.Message) bool { return m.Run == r.in.Run.ID && m.Within == r.thread })
	if i < 0 {
		return nil
	}
	return r.history[i:]
}

// reply returns the newest text of the subagent in this call.
func (r *run) reply() (artel.MessageID, string) {
	for _, m := range slices.Backward(r.ownMessages()) {
		if text := artel.TextOf(m.Parts); m.Role == artel.RoleAssistant && text != "" {
			return m.ID, text
		}
	}
	return "", ""
}

// callerOf returns the message that has a call.
func (r *run) callerOf(id artel.CallID) artel.MessageID {
	for _, m := range slices.Backward(r.history) {
		if slices.ContainsFunc(artel.CallsOf(m.Parts), func(c artel.ToolCall) bool { return c.ID == id }) {
			return m.ID
		}
	}
	return ""
}
