// SPDX-License-Identifier: Apache-2.0

// Package agent runs agents: it asks the model, runs the tools that the model
// calls, and repeats until the model gives a final answer.
//
// A [Definition] is an agent, written as a Markdown file; [Shipped] returns the
// built-in ones. An [Engine] runs one: [Engine.Run] yields event payloads in
// order, and the caller stores each payload before pulling the next: an answer
// before its first tool runs, a tool's result before the next model call. So
// the engine needs no database and never repeats stored work: a run that is
// started again with the messages it has already written continues after them.
//
// The engine does not decide who may run what, number events, or find runs
// after a crash; the application does.
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/agent/toolindex"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// An Engine runs agents. It is safe for concurrent use and holds no state of a
// run.
type Engine struct {
	pipeline  *pipeline.Registry
	tools     *tool.Set
	caller    *model.Caller
	now       func() time.Time
	deferrals toolindex.Cache
}

// New makes an engine. now is the clock; nil means time.Now.
func New(p *pipeline.Registry, tools *tool.Set, caller *model.Caller, now func() time.Time) *Engine {
	if now == nil {
		now = time.Now
	}
	return &Engine{pipeline: p, tools: tools, caller: caller, now: now}
}

// Input is the input of a run.
type Input struct {
	Run     artel.Run // ID, Conversation and Message are used
	Agent   Definition
	Service model.Service
	Client  *ClientRequest   // nil: no client of the gateway has asked
	Tools   *tool.Set        // currently available; nil: the engine's
	Current func() *tool.Set // the same at a later moment; nil: they stay as they are
	// History is the branch, root first. It ends with the message to answer,
	// or with the messages that an earlier attempt at this run wrote after it.
	History []artel.Message
	// CutOff holds the calls at the end of History that an earlier attempt
	// started and whose outcome is unknown, each with the artifacts that it had
	// edited. A call is repeated if its tool allows that; otherwise its
	// result says that it was interrupted.
	CutOff map[artel.CallID][]artel.Ref
	// Nested holds the messages of subagents in earlier attempts at this run.
	// They count toward the limits.
	Nested []artel.Message
	// Completed is how an earlier attempt at the run of a subagent has ended; nil: it
	// has not. The subagent then does no more, and its end is not yielded again.
	Completed *artel.SubagentCompleted
	// Context is the rest of the pipeline's input; the engine fills in the
	// agent, the service, the tools and the history. If Now is set, it is the
	// time of the first model call.
	Context pipeline.Input
	// Env is the environment of tools; the engine fills in the call.
	Env         tool.Env
	Subagents   []Member                  // the agents that this one may delegate to
	Permissions Permissions               // of the deployment; the agent's own hold too
	Reminder    func(answers int) *string // of the model call after so many answers; nil, or its result is: it is made
	Focus       string                    // of [Engine.Compact]: what the summary keeps in detail; "": nothing in particular
	Host        Host                      // nil: nothing is stored, and no user can be asked
}

// Built is the request of one model call, with the service and time that it was
// built for.
type Built struct {
	pipeline.Result
	Service model.Service // with the capabilities learned in the run
	Now     time.Time
	Seed    uint64
}

// Preview builds the request that a run on in would begin with, in the same
// way, and calls no service. If in.Context has a clock, that is the time.
func (e *Engine) Preview(ctx context.Context, in Input) (Built, error) {
	r := e.begin(in, "", nil, nil)
	return r.build(ctx, &model.RefusalPolicy{})
}

// Run runs an agent until its final answer. It yields payloads in the order of
// events; each MessageCompleted and ToolCompleted holds a message whose parent
// is the previous one. The last MessageCompleted without tool calls is the
// reply. The sequence ends with at most one error, after the rest of a broken
// answer (MessageCompleted with Partial set). Payloads of subagents are yielded
// in between, as [Nested].
func (e *Engine) Run(ctx context.Context, in Input) iter.Seq2[artel.Payload, error] {
	return func(yield func(artel.Payload, error) bool) {
		r := e.begin(in, "", nil, yield)
		if err := r.loop(ctx); err != nil && !r.stopped {
			yield(nil, err)
		}
	}
}

// Compact summarises the history of in at a user's request, and answers
// nothing. It yields like [Engine.Run]; a failed compaction is also the error.
// A history with nothing to summarise is of kind Conflict.
func (e *Engine) Compact(ctx context.Context, in Input) iter.Seq2[artel.Payload, error] {
	return func(yield func(artel.Payload, error) bool) {
		if n := len(in.History); n > 0 && in.History[n-1].Summary && in.History[n-1].Run == in.Run.ID {
			return // done by an earlier attempt
		}
		r := e.begin(in, "", nil, yield)
		err := r.emit(artel.AgentStarted{Service: in.Service.ID, Model: in.Service.Model, Demo: in.Service.Demo()})
		if err == nil {
			err = r.compactNow(artel.WithAgent(ctx, in.Agent.Name))
		}
		if err != nil && !r.stopped {
			yield(nil, err)
		}
	}
}

// errStopped reports that the consumer stopped the iteration.
var errStopped = errors.New("stopped by the consumer")

type run struct {
	*Engine
	in            Input
	thread        artel.CallPath // of a subagent; "": the outermost run
	tree          *runTree
	host          Host
	nested        chan nestedPayload // payloads of its subagents
	tools         toolset            // the agent's own
	yield         func(artel.Payload, error) bool
	stopped       bool // the consumer takes no more payloads
	history       []artel.Message
	toolArguments map[artel.CallID]json.RawMessage // original arguments of calls whose stored form differs
	calledModel   bool                             // a model was called
	answers       int                              // answers so far
	turns         int                              // model calls so far, those of compactions included
	toolCalls     int                              // tool calls so far
	rendered      renderedCalls                    // calls for transcripts and captions that were not emitted yet
	started       map[artel.CallID]bool            // tool calls that were started
	helped        map[string]bool                  // tools whose help the model has
	refused       map[artel.Digest]bool            // bytes that this run no longer sends
	attachments   []artel.AttachmentRoute          // routes of the attachments in the last request
	usage         artel.Usage                      // of the run so far, with its subagents; guarded by tree
	lastTokens    int64                            // tokens of the last request and its answer, as reported by the service; 0: unknown
	noCompaction  bool                             // no more compactions except after an overflow: one has failed, or nothing is left to compact
}

// begin makes a run, or a subagent's run inside the tree of another.
func (e *Engine) begin(in Input, path artel.CallPath, f *runTree, yield func(artel.Payload, error) bool) *run {
	spent := artel.Usage{}
	if f == nil {
		spent = in.Run.Usage
		f = &runTree{limits: in.Agent.Limits, seen: map[artel.CallID]bool{}, usage: spent}
	}
	f.reserveIDs(in.History)
	f.reserveIDs(in.Nested)
	r := &run{
		Engine: e, in: in, thread: path, tree: f, yield: yield, host: in.Host,
		history: slices.Clip(in.History), usage: spent, toolArguments: map[artel.CallID]json.RawMessage{},
		started: map[artel.CallID]bool{}, helped: map[string]bool{}, nested: make(chan nestedPayload),
	}
	if r.host == nil {
		r.host = noHost{}
	}
	r.in.Context.Renditions = r.rendered.reporting(r.in.Context.Renditions)
	r.in.Env.Renditions = r.rendered.reporting(r.in.Env.Renditions)
	r.tools = r.toolset(r.toolsOf(len(path.Split())))
	return r
}

func (r *run) emit(p artel.Payload) error {
	if _, ok := p.(Nested); !ok && r.thread != "" {
		p = Nested{r.in.Agent.Name, r.thread, p}
	}
	if r.stopped = r.stopped || !r.yield(p, nil); r.stopped {
		return errStopped
	}
	return nil
}

func (r *run) loop(ctx context.Context) error {
	ctx = artel.WithAgent(ctx, r.in.Agent.Name)
	s := r.in.Service
	if err := r.emit(artel.AgentStarted{Service: s.ID, Model: s.Model, Demo: s.Demo()}); err != nil {
		return err
	}
	limits := r.in.Agent.Limits
	r.countResumed()
	for {
		if r.finished() {
			if more, err := r.readInbox(ctx); err != nil || !more {
				return err
			}
		}
		calls := r.unanswered()
		if len(calls) == 0 && r.waitsForClient() {
			return nil // also with an injection, which follows the client's results
		}
		if len(calls) == 0 {
			if _, err := r.readInbox(ctx); err != nil {
				return err
			}
			r.followTools()
			message, err := r.ask(ctx)
			if err != nil {
				return err
			}
			if calls = r.ownCalls(artel.CallsOf(message.Parts)); len(calls) == 0 {
				continue
			}
		}
		r.toolCalls += len(calls)
		if r.toolCalls > limits.toolCalls() {
			return r.limitError(artel.CodeLimitToolCalls, "%d tool calls, the agent's limit (limits.tool_calls)", limits.toolCalls())
		}
		if err := r.tree.addToolCalls(r.in.Agent.Name, len(calls)); err != nil {
			return err
		}
		if err := r.runTools(ctx, calls); err != nil {
			return err
		}
	}
}

// ask makes one model call and emits its answer. A call that is refused for its
// content is repeated with less; see retryWithLess.
func (r *run) ask(ctx context.Context) (artel.Message, error) {
	again := model.RefusalPolicy{Most: maxRefusalRetries}
	overflowed, counted := false, false
	for compactions := 0; ; {
		if err := r.checkLimits(counted); err != nil { // also before the transcripts and captions of the build
			return artel.Message{}, err
		}
		built, err := r.build(ctx, &again)
		if told := r.emitRendered(); told != nil {
			return artel.Message{}, told
		}
		if limit := r.in.Agent.Compaction.Tokens(built.Record.Tokens.Budget); compactions < maxCompactions && r.exceeds(built, err, limit) {
			done, failed := r.compact(ctx, artel.CompactThreshold, max(built.Record.Tokens.Total, int(r.lastTokens)), limit)
			if failed != nil {
				return artel.Message{}, failed
			}
			if compactions++; done {
				continue
			}
		}
		if err == nil {
			if err := r.beginCall(counted); err != nil {
				return artel.Message{}, err
			}
			counted = true
		}
		if err := cmp.Or(r.host.Record(ctx, built, err), err); err != nil {
			return artel.Message{}, err
		}
		if err := r.emitContext(built.Record); err != nil {
			return artel.Message{}, err
		}
		r.calledModel = true
		a, err := r.call(ctx, built.Request)
		if err != nil {
			return a.message, err
		}
		if a.failed != nil && !a.started && !overflowed && overflows(a.failed) {
			overflowed = true
			done, err := r.compact(ctx, artel.CompactOverflow, built.Record.Tokens.Total, 0)
			if err != nil {
				return a.message, err
			}
			if done {
				continue
			}
		}
		if a.failed != nil && !a.started && r.retryWithLess(&again, built.Request, a.failed) {
			continue
		}
		if a.failed != nil && !a.started {
			fell, err := r.fallBack(ctx, a.failed)
			if err != nil {
				return a.message, err
			}
			if fell {
				again, overflowed = model.RefusalPolicy{Most: maxRefusalRetries}, false
				continue
			}
		}
		if a.failed == nil {
			r.lastTokens = a.finish.Usage.InputTokens + a.finish.Usage.OutputTokens
			r.learn(again)
			r.measureTokens(built, a.finish.Usage)
		}
		return a.message, r.finishAnswer(a, built)
	}
}

// build makes the request of a call.
func (r *run) build(ctx context.Context, again *model.RefusalPolicy) (Built, error) {
	for {
		in := r.in.Context
		in.Service = r.in.Service
		in.Agent, in.Settings.Agent = r.in.Agent.Pipeline(), r.in.Agent.Processors
		in.History, in.Tools = r.history, r.client().specs(r.tools.specs)
		if c := r.client(); c != nil {
			in.Instructions, in.Client = c.Instructions, r.settings()
		}
		if r.thread != "" { // its tasks hang below the messages that gave them
			in.History = inOrder(r.history)
		}
		clock := in.Now
		if clock.IsZero() || r.calledModel { // otherwise this is the request shown in a preview
			clock = r.now()
		}
		in.Now = r.in.Agent.Time(clock)
		in.Refused = r.isRefused
		if r.in.Reminder != nil {
			in.Reminder = r.in.Reminder(r.answers)
		}
		result, err := r.pipeline.Build(ctx, in)
		built := Built{result, in.Service, clock, in.Seed}
		if err != nil || again.Changes(built.Request) {
			return built, err
		}
		r.addRefused(again.DescribeAll(built.Request)...)
	}
}

// An answer is the outcome of one model call.
type answer struct {
	message artel.Message
	calls   []artel.ToolCall
	finish  model.Finish
	started bool        // a part of it was received
	hasText bool        // it has text
	failed  error       // the call broke off or never started
	said    artel.Parts // as received, also the calls of a broken answer
}

// call makes one call and emits its deltas. The error is that of the consumer,
// or of storing media.
func (r *run) call(ctx context.Context, request *model.Request) (answer, error) {
	a := answer{message: r.newMessage(artel.RoleAssistant)}
	c := composer{r: r, ctx: ctx, message: a.message.ID}
	defer c.stop()
	request.OnRetry = r.retrying
	for delta, err := range r.caller.Call(ctx, request) {
		if errors.Is(err, errStopped) {
			return a, err
		}
		if err != nil {
			a.failed = err
			break
		}
		a.started = true
		if f, ok := delta.(model.Finish); ok {
			a.finish = f
			continue
		}
		if err := c.take(delta); err != nil {
			return a, errors.Join(err, c.end(nil))
		}
	}
	if err := c.end(nil); err != nil {
		return a, err
	}
	a.said = slices.Clone(c.parts)
	if a.failed != nil {
		c.dropCalls()
	}
	calls, err := c.recordCalls()
	a.message.Parts, a.calls, a.hasText = c.parts, calls, c.texts > 0
	return a, err
}

// finishAnswer emits the completed message and the usage, also of a broken
// answer.
func (r *run) finishAnswer(a answer, built Built) error {
	empty := !a.hasText && len(a.calls) == 0
	if len(a.message.Parts) > 0 { // reasoning is stored, although it is not an answer
		if err := r.complete(a.message, a.failed != nil || empty || a.finish.Reason == model.StopLength); err != nil {
			return err
		}
	}
	if a.started {
		if err := r.emitUsage(artel.CallAnswers, r.Usage(built.Request, a.finish.Usage, a.said, built.Record.Tokens.Total)); err != nil {
			return err
		}
	}
	if a.failed != nil || !empty {
		return a.failed
	}
	return r.emptyAnswer(a.finish.Reason)
}

// emitContext emits how attachments are sent, if that has changed since the
// previous call.
func (r *run) emitContext(record pipeline.Record) error {
	now := make([]artel.AttachmentRoute, len(record.Decisions))
	for i, d := range record.Decisions {
		now[i] = d.AttachmentRoute
	}
	if reflect.DeepEqual(now, r.attachments) || len(now) == 0 && r.attachments == nil {
		return nil
	}
	r.attachments = now
	return r.emit(artel.ContextBuilt{Service: r.in.Service.ID, Attachments: now})
}

// emptyAnswer returns the error for an answer without text and calls. Reasoning
// alone is not an answer.
func (r *run) emptyAnswer(reason model.StopReason) error {
	kind, why := artel.Unavailable, "the model answered with nothing"
	switch reason {
	case model.StopLength:
		kind, why = artel.TooLarge, "the model used up its output limit before it answered"
	case model.StopRefusal:
		kind, why = artel.Denied, "the model declined to answer"
	}
	return artel.Errorf(kind, "agent.Run", string(r.in.Service.ID), "%s", why)
}

func (r *run) complete(m artel.Message, partial bool) error {
	m.Parts = asStored(m.Parts)
	r.history = append(r.history, m)
	r.answers++
	return r.emit(artel.MessageCompleted{Message: m, Partial: partial})
}

// withUniqueID gives a call an id that is unique on its branch; some servers
// send none, or repeat them.
func (r *run) withUniqueID(c artel.ToolCall) artel.ToolCall {
	// "/" separates the ids of a CallPath.
	for len(c.ID) > artel.MaxIDLength || strings.Contains(string(c.ID), "/") || !r.tree.claim(c.ID) {
		c.ID = artel.CallID("call_" + strings.TrimPrefix(string(artel.NewMessageID(r.now())), "msg_"))
	}
	return c
}

// runTools runs the calls and emits their results in the order of the calls.
// Adjacent calls of parallel tools run concurrently.
func (r *run) runTools(ctx context.Context, calls []artel.ToolCall) error {
	for len(calls) > 0 {
		n := 1
		for n < len(calls) && r.tools.Of(calls[n-1].Name).Parallel && r.tools.Of(calls[n].Name).Parallel {
			n++
		}
		if err := r.runBatch(ctx, calls[:n]); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

func (r *run) runBatch(ctx context.Context, calls []artel.ToolCall) error {
	refused, err := r.permitted(ctx, calls)
	if err != nil {
		return err
	}
	for i, c := range calls {
		if refused[i] != nil {
			continue
		}
		r.started[c.ID] = true
		if err := r.emit(artel.ToolStarted{Call: c.ID, Name: c.Name, Arguments: c.Arguments}); err != nil {
			return err
		}
	}
	type outcome struct {
		result tool.Result
		err    error
		took   time.Duration
	}
	outcomes := make([]outcome, len(calls))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for i, c := range calls {
		if refused[i] != nil {
			outcomes[i].result = *refused[i]
			continue
		}
		wg.Go(func() {
			env := r.in.Env
			env.Call, env.History = c.ID, r.coveredMessages
			began := r.now()
			result, cut := r.cutOff(c)
			var err error
			if !cut {
				result, err = r.tools.Call(ctx, &env, c.Name, r.arguments(c))
			}
			outcomes[i] = outcome{result, err, r.now().Sub(began)}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	if err := cmp.Or(r.forwardNested(done, stop), r.emitRendered()); err != nil {
		return err
	}
	var failed error
	for i, c := range calls {
		o := outcomes[i]
		if o.err != nil { // the results of the other calls are still emitted
			failed = cmp.Or(failed, o.err)
			continue
		}
		if o.result.Help != "" && !r.helped[c.Name] {
			r.helped[c.Name] = true
			o.result.Content += "\n\n" + o.result.Help
		}
		if err := r.completeCall(c, o.result, o.took); err != nil {
			return err
		}
	}
	return failed
}

// completeCall adds the result of a call to the history and emits it.
func (r *run) completeCall(c artel.ToolCall, result tool.Result, took time.Duration) error {
	m := r.newMessage(artel.RoleTool)
	m.Parts = artel.Parts{ResultPart(c.ID, result, took)}
	r.history = append(r.history, m)
	return r.emit(artel.ToolCompleted{
		Call: c.ID, Name: c.Name, OK: !result.IsError, Message: m, Millis: took.Milliseconds(), Metadata: result.Metadata,
	})
}

// ResultPart returns the part of a tool message with the result of a call.
func ResultPart(id artel.CallID, result tool.Result, took time.Duration) artel.ToolResult {
	return artel.ToolResult{
		CallID: id, Content: result.Content, Parts: result.Parts, IsError: result.IsError,
		Millis: took.Milliseconds(), Metadata: result.Metadata,
	}
}

func (r *run) newMessage(role artel.Role) artel.Message {
	now := r.now()
	m := artel.Message{
		ID: artel.NewMessageID(now), Conversation: r.in.Run.Conversation, Role: role,
		Agent: r.in.Agent.Name, Run: r.in.Run.ID, Within: r.thread, CreatedAt: now,
	}
	if len(r.history) > 0 {
		m.Parent = r.history[len(r.history)-1].ID
	}
	return m
}
