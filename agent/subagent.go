// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
)

// A subagent is a run inside a run: with a history of its own, the same
// artifacts, the same limits and the same end. It is called by a tool, and its
// last message is the result. What it yields comes out of the outer run, marked
// with its path, while that waits for the tool; so the order is that in which
// things happen, also with several subagents at once.

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

// Nested is what a subagent yields.
type Nested struct {
	Agent  artel.AgentName
	Within artel.CallPath
	artel.Payload
}

// A family is what a run and its subagents have in common.
type family struct {
	limits Limits // of the outermost agent, for all of them

	mu    sync.Mutex
	seen  map[artel.CallID]bool // ids of calls on the branch
	turns int
	calls int
	usage artel.Usage
	spent bool // a limit is reached
}

// take counts turns and tool calls of anybody in the family, and refuses what
// is beyond a limit of them all.
func (f *family) take(name artel.AgentName, turns, calls int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turns += turns
	f.calls += calls
	l, all := f.limits, "of the agent and its subagents"
	var err error
	switch tokens := f.usage.InputTokens + f.usage.OutputTokens; {
	case f.turns > l.turns():
		err = limitReached(name, artel.CodeLimitTurns, "%d model calls %s, the agent's limit (limits.turns)", l.turns(), all)
	case f.calls > l.toolCalls():
		err = limitReached(name, artel.CodeLimitToolCalls, "%d tool calls %s, the agent's limit (limits.tool_calls)", l.toolCalls(), all)
	case turns > 0 && l.Tokens > 0 && tokens >= int64(l.Tokens):
		err = limitReached(name, artel.CodeLimitTokens, "%d tokens %s, where the limit is %d (limits.tokens)", tokens, all, l.Tokens)
	case turns > 0 && l.Cost > 0 && f.usage.Cost.USD >= l.Cost:
		err = limitReached(name, artel.CodeLimitCost, "model calls for %.4f dollars %s, where the limit is %v (limits.cost)", f.usage.Cost.USD, all, l.Cost)
	}
	f.spent = f.spent || err != nil
	return err
}

// count adds what earlier attempts have done.
func (f *family) count(turns, calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turns += turns
	f.calls += calls
}

// spend adds what a call took to the whole and to one's own.
func (f *family) spend(own *artel.Usage, u artel.Usage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.usage, *own = f.usage.Add(u), own.Add(u)
}

// join adds to the own what a subagent took.
func (f *family) join(own *artel.Usage, u artel.Usage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*own = own.Add(u)
}

func (f *family) isSpent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spent
}

// claim reports whether nobody on the branch has had the id.
func (f *family) claim(id artel.CallID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == "" || f.seen[id] {
		return false
	}
	f.seen[id] = true
	return true
}

//go:embed call_subagent.md
var subagentDoc string

type subagentArgs struct {
	Agent       artel.AgentName `json:"agent"`
	Instruction string          `json:"instruction"`
	Fresh       *bool           `json:"fresh_start"`
}

// toolsOf are the tools of the agent at a depth.
func (r *run) toolsOf(depth int) *tool.Box {
	box, in := r.allowed(), r.in
	if len(in.Subagents) == 0 || depth >= r.family.limits.depth() || r.permission(SubagentTool) == Deny {
		return box
	}
	var doc strings.Builder
	doc.WriteString(strings.TrimSpace(subagentDoc) + "\n")
	names := make([]artel.AgentName, len(in.Subagents))
	for i, m := range in.Subagents {
		names[i] = m.Name
		doc.WriteString("- " + string(m.Name) + ": " + strings.Join(strings.Fields(m.Description), " ") + "\n")
	}
	type object map[string]any
	schema, err := json.Marshal(object{
		"type": "object",
		"properties": object{
			"agent":       object{"type": "string", "enum": names, "description": "who is to do it"},
			"instruction": object{"type": "string", "minLength": 1, "description": "all that the agent needs to know"},
			"fresh_start": object{"type": "boolean", "description": "false: it goes on where it ended in this conversation; default true"},
		},
		"required": []string{"agent", "instruction"}, "additionalProperties": false,
	})
	if err != nil {
		panic("agent: " + err.Error()) // names and texts cannot fail
	}
	return box.With(tool.Tool{
		Name: SubagentTool, Doc: strings.TrimSpace(doc.String()), Schema: schema, Parallel: true, Repeat: tool.RepeatAlways, // it goes on where it was
		Call: func(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
			var in subagentArgs
			if err := json.Unmarshal(args, &in); err != nil {
				return tool.Failed("%s: the arguments cannot be read: %v", SubagentTool, err), nil
			}
			return r.delegate(ctx, env, in)
		},
	})
}

// A telling is a payload on its way out of a subagent.
type telling struct {
	payload artel.Payload
	taken   chan bool
}

// gather tells what subagents yield until done is closed. Its error is that of
// the consumer, and ends the subagents by stop.
func (r *run) gather(done <-chan struct{}, stop func()) error {
	var err error
	for {
		select {
		case t := <-r.inner:
			if err == nil {
				if err = r.tell(t.payload); err != nil {
					stop()
				}
			}
			t.taken <- err == nil
		case <-done:
			return err
		}
	}
}

// errTooSlow is the cause of the end of a subagent that took too long.
var errTooSlow = errors.New("it took longer than its limit (limits.seconds)")

// delegate runs a subagent to its rest.
func (r *run) delegate(ctx context.Context, env *tool.Env, args subagentArgs) (tool.Result, error) {
	within := r.path.Join(env.Call)
	fresh := args.Fresh == nil || *args.Fresh
	in, err := r.host.Delegate(ctx, Delegation{Agent: args.Agent, Within: within, Caller: r.asker(env.Call), Fresh: fresh})
	if errors.Is(err, artel.Invalid) {
		return tool.Failed("%v", err), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	began := r.now()
	s := r.Engine.begin(in, within, r.family, r.pass)
	inside, stop := context.WithTimeoutCause(ctx, in.Agent.Limits.Time(), errTooSlow)
	defer stop()
	err = s.serve(inside, env.Call, r.asker(env.Call), args.Instruction, fresh)
	if errors.Is(context.Cause(inside), errTooSlow) {
		err = errTooSlow
	}
	r.family.join(&r.spent, s.spent)
	switch {
	case ctx.Err() != nil || errors.Is(err, errStopped) || artel.KindOf(err) == artel.Internal && !errors.Is(err, errTooSlow) || err != nil && r.family.isSpent():
		return tool.Result{}, err // the end of all
	}
	reply, text := s.reply()
	told := artel.SubagentCompleted{Call: env.Call, OK: err == nil, Reply: reply, Usage: s.spent, Millis: r.now().Sub(began).Milliseconds()}
	result := tool.Result{Content: text, Metadata: map[string]any{"agent": args.Agent, "reply_id": reply, "content_type": "text/markdown"}}
	if err != nil {
		told.Error = err.Error()
		result.IsError = true
		result.Content = env.Locale.Say(phrase.ToolSubagentFailed, map[string]any{"Name": args.Agent, "Problem": artel.Shorten(told.Error, 1000)})
		if text != "" {
			result.Content += "\n\n" + env.Locale.Say(phrase.ToolSubagentSaid, nil) + "\n\n" + text
		}
	}
	return result, s.tell(told)
}

// pass hands a payload of a subagent to the goroutine that gathers them.
func (r *run) pass(p artel.Payload, _ error) bool {
	t := telling{p, make(chan bool, 1)}
	r.inner <- t
	return <-t.taken
}

// serve works on an instruction until rest, or goes on with what an earlier
// attempt has begun.
func (r *run) serve(ctx context.Context, call artel.CallID, caller artel.MessageID, instruction string, fresh bool) error {
	n := len(r.own())
	if n == 0 {
		now := r.now()
		m := artel.Message{
			ID: artel.NewMessageID(now), Conversation: r.in.Run.Conversation, Parent: caller, Role: artel.RoleUser,
			Parts: asStored(artel.Parts{artel.Text{Text: instruction}}), Agent: r.in.Agent.Name, Run: r.in.Run.ID, Within: r.path, CreatedAt: now,
		}
		r.history = append(r.history, m)
		if err := r.tell(artel.SubagentStarted{Call: call, Service: r.in.Service.ID, Fresh: fresh, Message: m}); err != nil {
			return err
		}
	} else if last := r.history[len(r.history)-1]; last.Role == artel.RoleAssistant && !artel.HasCalls(last.Parts) {
		return nil // it was at rest
	}
	return r.loop(ctx)
}

// own is what the thread of a subagent has of this call.
func (r *run) own() []artel.Message {
	i := slices.IndexFunc(r.history, func(m artel.Message) bool { return m.Run == r.in.Run.ID && m.Within == r.path })
	if i < 0 {
		return nil
	}
	return r.history[i:]
}

// reply is the newest thing that the subagent has said in this call.
func (r *run) reply() (artel.MessageID, string) {
	for _, m := range slices.Backward(r.own()) {
		if text := artel.TextOf(m.Parts); m.Role == artel.RoleAssistant && text != "" {
			return m.ID, text
		}
	}
	return "", ""
}

// asker is the message that has a call.
func (r *run) asker(id artel.CallID) artel.MessageID {
	for _, m := range slices.Backward(r.history) {
		if slices.ContainsFunc(artel.CallsOf(m.Parts), func(c artel.ToolCall) bool { return c.ID == id }) {
			return m.ID
		}
	}
	return ""
}

// spare keeps the ids of the calls of a history from being given again.
func (f *family) spare(history []artel.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range history {
		for _, c := range artel.CallsOf(m.Parts) {
			f.seen[c.ID] = true
		}
	}
}
