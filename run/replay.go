// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// Replays make recorded runs again on other services. The context is built anew, so
// that media go as the other model takes them; plan, inventory and time are those of the
// recorded calls. No tool runs: calls are answered from the log of the run. Nothing is
// stored but renditions of media. A replay counts as a run at work and its calls for the
// user's limits; it ends with its request.
type Replays struct{ runs *Runs }

// NewReplays returns the replays of the runs of rs.
func NewReplays(rs *Runs) *Replays { return &Replays{rs} }

// A Replay is a run as it was recorded, or as it was made again.
type Replay struct {
	Run         artel.RunID             `json:"run_id"`
	Service     artel.ServiceID         `json:"service"`
	Model       string                  `json:"model"`
	From        int                     `json:"from"`    // the first step that was made again, from 1
	Outcome     artel.RunState          `json:"outcome"` // done, failed, cancelled, interrupted or timed_out
	Error       *artel.RunError         `json:"error,omitempty"`
	Input       []ReplayMessage         `json:"input"` // of the first call; of a recorded run empty if it is not kept
	Steps       []ReplayStep            `json:"steps"`
	Text        string                  `json:"text"`                  // the final answer
	Attachments []artel.AttachmentRoute `json:"attachments,omitempty"` // how they went, in the first call
	Usage       artel.Usage             `json:"usage"`
	Millis      int64                   `json:"duration_ms"` // 0: not known
}

// A ReplayMessage is a message of a request as text; media are their refs.
type ReplayMessage struct {
	Role    artel.Role `json:"role"`
	Content string     `json:"content"`
}

// A ReplayStep is one answer of a model.
type ReplayStep struct {
	Text  string       `json:"text"`
	Calls []ReplayCall `json:"calls,omitempty"`
}

// A ReplayCall is a tool call with where its result comes from; "": it was recorded.
type ReplayCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Answered  ReplayAnswer    `json:"answered,omitempty"`
}

// A ReplayAnswer says where the result of a call comes from.
type ReplayAnswer string

// The answers.
const (
	ReplayExact   ReplayAnswer = "exact"   // the run made the same call
	ReplaySimilar ReplayAnswer = "similar" // the run made a call of this tool for the same object with other arguments
	ReplayUnknown ReplayAnswer = "unknown" // the run made no such call, which the result says
	ReplayOwn     ReplayAnswer = "own"     // by the replay itself: of search_history and find_tools
)

// A ReplayDifference is the first step in which two runs differ.
type ReplayDifference struct {
	Step     int    `json:"step"`
	Kind     string `json:"kind"` // calls, text (of final answers), more or fewer (steps)
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
}

// A Comparison is a recorded run beside the same made again.
type Comparison struct {
	Recorded   Replay            `json:"recorded"`
	Replayed   Replay            `json:"replayed"`
	Difference *ReplayDifference `json:"difference,omitempty"` // nil: none
}

// A recording is what is kept of a run.
type recording struct {
	run     artel.Run
	history []artel.Message // before the first step that is made again
	rest    []artel.Message // of the run, from there on
	steps   int             // before
	calls   []*record.Call  // of its own agent for answers, from there on
	usage   artel.Usage     // of these
	turns   int             // answers of the whole run
}

// Run makes a run that has ended again on a service, from a step on (0 or 1: from the
// beginning), and compares both. A run that has not ended is of kind Conflict.
func (rp *Replays) Run(ctx context.Context, id artel.RunID, service artel.ServiceID, from int) (Comparison, error) {
	from = max(from, 1)
	x := execution{runs: rp.runs, config: rp.runs.config, owner: artel.OwnerOf(ctx)}
	var rec recording
	var skills tool.Skills
	err := x.config.view(ctx, func(tx store.Tx) (err error) {
		if rec, err = recordingOf(tx, id, from); err != nil {
			return err
		}
		skills, err = x.prepareReplay(tx, rec, service)
		return err
	})
	if err != nil {
		return Comparison{}, err
	}
	recorded, reminders, err := x.recorded(ctx, rec, from)
	if err != nil {
		return Comparison{}, err
	}
	journal := newReplayJournal(rec.rest)
	in, err := x.replayInput(ctx, rec, skills, journal)
	if err != nil {
		return Comparison{}, err
	}
	in.Reminder = func(answers int) *string {
		if len(reminders) == 0 {
			return nil
		}
		return &reminders[min(answers, len(reminders)-1)]
	}
	active, err := rp.runs.admit(ctx, artel.NewRunID(x.config.Now())) // it counts as a run at work
	if err != nil {
		return Comparison{}, err
	}
	defer rp.runs.unregister(active)
	if err := rp.runs.takeSlot(active, rec.run.Conversation, false); err != nil {
		return Comparison{}, err
	}
	defer context.AfterFunc(ctx, func() { active.cancel(context.Cause(ctx)) })()
	limited, stop := context.WithTimeoutCause(artel.WithAgent(active.ctx, x.agent.Name), x.agent.Limits.Time(), errTimedOut)
	defer stop()
	replayed := x.replay(limited, in, journal)
	replayed.From = from
	if errors.Is(context.Cause(active.ctx), errShutdown) {
		return Comparison{}, artel.Errorf(artel.Unavailable, "run.Replays.Run", string(id), "the server is stopping; make the run again later")
	}
	return Comparison{Recorded: recorded, Replayed: replayed, Difference: differenceOf(recorded, replayed)}, ctx.Err()
}

// recordingOf reads a run.
func recordingOf(tx store.Tx, id artel.RunID, from int) (rec recording, err error) {
	const op = "run.Replays.Run"
	if rec.run, err = tx.Runs.Get(id); err != nil {
		return rec, err
	}
	r := rec.run
	switch {
	case !r.State.Final():
		return rec, artel.Errorf(artel.Conflict, op, string(id), "the run is %s; it can be made again when it has ended", r.State)
	case r.Purpose != artel.RunAnswers:
		return rec, artel.Errorf(artel.Invalid, op, string(id), "the run answers no message; its purpose is %s", r.Purpose)
	}
	path, err := tx.Messages.Path(r.Conversation, cmp.Or(r.Reply, r.Message), 0)
	if err != nil {
		return rec, err
	}
	at := slices.IndexFunc(path, func(m artel.Message) bool { return m.ID == r.Message })
	cut := -1
	for i := at + 1; i < len(path); i++ {
		if m := path[i]; m.Run == id && m.Role == artel.RoleAssistant {
			if rec.turns++; rec.turns == from {
				cut = i
			}
		}
	}
	switch {
	case at < 0 || rec.turns == 0:
		return rec, artel.Errorf(artel.Invalid, op, string(id), "the run has no answer that could be compared")
	case cut < 0:
		return rec, artel.Errorf(artel.Invalid, op, "from", "is %d; the run has %d steps", from, rec.turns)
	}
	if from == 1 {
		cut = at + 1
	}
	rec.history, rec.rest, rec.steps = path[:cut:cut], path[cut:], from-1
	rows, err := tx.Contexts.List(store.ContextQuery{Conversation: r.Conversation, Run: id, Limit: keptContexts})
	if err != nil {
		return rec, err
	}
	slices.SortFunc(rows, func(a, b store.Context) int { return a.Number - b.Number })
	before := rec.steps
	for _, row := range rows {
		s, err := record.SummaryOf(row)
		if err != nil || s.Error != nil || s.Agent != r.Agent {
			continue // damaged, of a subagent, or never sent
		}
		call, err := record.Load(tx, s.ContextKey)
		if errors.Is(err, record.ErrDamaged) {
			continue
		}
		if err != nil {
			return rec, err
		}
		if slices.ContainsFunc(call.Content.Manifest.Messages, func(m pipeline.ManifestMessage) bool { return m.ID == agent.CompactPreset }) {
			continue // for a summary
		}
		if before > 0 {
			before--
			continue
		}
		if rec.calls = append(rec.calls, call); row.Usage != nil {
			rec.usage = rec.usage.Add(*row.Usage)
		}
	}
	return rec, nil
}

// prepareReplay chooses the agent and the service, and reads what a build needs.
func (x *execution) prepareReplay(tx store.Tx, rec recording, service artel.ServiceID) (skills tool.Skills, err error) {
	c, err := tx.Conversations.Get(rec.run.Conversation)
	if err != nil {
		return nil, err
	}
	if err := x.choose(tx, c, Input{Agent: rec.run.Agent, Service: service}); err != nil {
		return nil, err
	}
	if x.selection != nil {
		return nil, artel.Errorf(artel.Invalid, "run.Replays.Run", "service", "is chosen for each message; name one to make the run again on")
	}
	x.run = artel.Run{ID: rec.run.ID, Conversation: rec.run.Conversation, Message: rec.run.Message}
	if len(rec.calls) > 0 {
		x.clock = Clock{Now: rec.calls[0].Facts.Clock, Seed: rec.calls[0].Facts.Seed}
	}
	if x.buildInput, err = x.config.buildInput(tx, x.owner, rec.run.Conversation, &x.agent, x.service, x.clock); err != nil {
		return nil, err
	}
	before := slices.IndexFunc(rec.history, func(m artel.Message) bool { return m.ID == rec.run.Message })
	if err := x.loadVariables(tx, rec.history[:max(0, before)]); err != nil {
		return nil, err
	}
	x.subagents = x.subagentsOf(tx)
	return x.config.skillsOf(tx, x.owner, x.agent)
}

// recorded returns the run as it was, and the reminders of its calls.
func (x *execution) recorded(ctx context.Context, rec recording, from int) (out Replay, reminders []string, err error) {
	r := rec.run
	out = Replay{Run: r.ID, Service: r.Service, From: from, Outcome: r.State, Error: r.Error, Input: []ReplayMessage{}, Steps: stepsOf(rec.rest), Usage: rec.usage}
	if n := len(out.Steps); n > 0 {
		out.Text = out.Steps[n-1].Text
	}
	if from == 1 {
		if out.Usage = r.Usage; r.FinishedAt != nil {
			out.Millis = r.FinishedAt.Sub(r.StartedAt).Milliseconds()
		}
	}
	err = x.config.view(ctx, func(tx store.Tx) error {
		for i, call := range rec.calls {
			request, err := call.Messages(tx)
			if errors.Is(err, artel.NotFound) {
				return nil // a message is gone
			}
			if err != nil {
				return err
			}
			if i == 0 {
				out.Model, out.Input = call.Facts.Model, replayMessages(request)
				for _, d := range call.Content.Decisions {
					out.Attachments = append(out.Attachments, d.AttachmentRoute)
				}
			}
			reminders = append(reminders, reminderIn(request))
		}
		return nil
	})
	return out, reminders, err
}

// reminderIn returns the reminder of a request; "": it has none.
func reminderIn(request []model.Message) string {
	for _, m := range slices.Backward(request) {
		for _, p := range slices.Backward(m.Parts) {
			t, ok := p.(artel.Text)
			if !ok {
				continue
			}
			if i := strings.LastIndex(t.Text, pipeline.ReminderStart); i >= 0 {
				if end := strings.Index(t.Text[i:], pipeline.ReminderEnd); end >= 0 {
					return t.Text[i : i+end+len(pipeline.ReminderEnd)]
				}
			}
		}
	}
	return ""
}

// replayInput returns the input of the run that is made again. Every tool is answered
// by the journal.
func (x *execution) replayInput(ctx context.Context, rec recording, skills tool.Skills, journal *replayJournal) (agent.Input, error) {
	x.config.Tools.Await(ctx, x.owner)
	own := x.config.Tools.Set(x.owner)
	in := agent.Input{
		Run: x.run, Agent: x.agent, Service: x.service, Tools: own, History: rec.history, Context: x.buildInput,
		Subagents: x.subagents, Permissions: x.config.Permissions, Env: tool.Env{Owner: x.owner, Conversation: x.run.Conversation, Skills: skills, Locale: x.buildInput.Locale},
	}
	declared, err := x.config.Engine.Preview(ctx, in)
	if err != nil && ctx.Err() != nil {
		return in, err
	}
	empty, err := tool.NewSet()
	if err != nil {
		return in, err
	}
	var answered []tool.Tool
	for _, name := range own.Names() {
		if name != tool.SearchHistory { // it needs the messages alone
			answered = append(answered, journal.tool(own.Of(name)))
		}
	}
	in.Agent.Tools = slices.Clone(in.Agent.Tools)
	if declared.Request != nil {
		for _, s := range declared.Request.Tools { // those that the engine adds
			if s.Name == agent.SubagentTool || s.Name == tool.OpenSkill {
				answered = append(answered, journal.tool(tool.Tool{Name: s.Name, Doc: s.Description, Schema: s.Schema}))
				in.Agent.Tools = append(in.Agent.Tools, s.Name)
			}
		}
	}
	in.Tools, in.Subagents, in.Env.Skills = empty.With(answered...), nil, nil
	in.Agent.Permissions, in.Permissions = withoutQuestions(in.Agent.Permissions), withoutQuestions(in.Permissions)
	in.Agent.Limits.Turns = min(in.Agent.Limits.Full().Turns, rec.steps+2*(rec.turns-rec.steps)+replayMore)
	in.Host = &replayHost{rest: rec.rest}
	return in, nil
}

// replayMore is how many model calls a replay may make beyond twice those of its run.
const replayMore = 3

// withoutQuestions makes auto of ask: no tool runs.
func withoutQuestions(p agent.Permissions) agent.Permissions {
	out := agent.Permissions{}
	for name, level := range p {
		if level == agent.Deny {
			out[name] = level
		}
	}
	return out
}

// replay runs the engine, and stores nothing.
func (x *execution) replay(ctx context.Context, in agent.Input, journal *replayJournal) Replay {
	out := Replay{Run: in.Run.ID, Service: x.service.ID, Model: x.service.Model, Outcome: artel.RunDone, Input: []ReplayMessage{}, Steps: []ReplayStep{}}
	if built, err := x.config.Engine.Preview(ctx, in); err == nil {
		out.Input = replayMessages(built.Request.Messages)
	}
	began := time.Now()
	var failed error
	for p, err := range x.config.Engine.Run(ctx, in) {
		if err != nil {
			failed = err
			break
		}
		switch p := p.(type) {
		case artel.MessageCompleted:
			out.Steps = append(out.Steps, stepsOf([]artel.Message{p.Message})...)
		case artel.ContextBuilt:
			if out.Attachments == nil {
				out.Attachments = p.Attachments
			}
		case artel.UsageReported:
			out.Usage = out.Usage.Add(p.Usage)
		}
	}
	out.Millis = time.Since(began).Milliseconds()
	if failed != nil {
		out.Outcome = stateOf(failed, context.Cause(ctx))
		out.Error = x.explain(out.Outcome, failed)
	}
	for i := range out.Steps {
		for j := range out.Steps[i].Calls {
			out.Steps[i].Calls[j].Answered = journal.how(out.Steps[i].Calls[j])
		}
	}
	if n := len(out.Steps); n > 0 && len(out.Steps[n-1].Calls) == 0 {
		out.Text = out.Steps[n-1].Text
	}
	return out
}

// stepsOf returns the answers among messages.
func stepsOf(ms []artel.Message) []ReplayStep {
	out := []ReplayStep{}
	for _, m := range ms {
		if m.Role != artel.RoleAssistant {
			continue
		}
		s := ReplayStep{Text: artel.TextOf(m.Parts)}
		for _, c := range artel.CallsOf(m.Parts) {
			s.Calls = append(s.Calls, ReplayCall{Name: c.Name, Arguments: canonical(c.Arguments)})
		}
		out = append(out, s)
	}
	return out
}

// canonical returns JSON with sorted keys and without white space.
func canonical(raw json.RawMessage) json.RawMessage {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	if d.UseNumber(); d.Decode(&v) != nil {
		return json.RawMessage("{}")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	if e.SetEscapeHTML(false); e.Encode(v) != nil {
		return json.RawMessage("{}")
	}
	return bytes.TrimSpace(b.Bytes())
}

// replayMessages returns a request as texts.
func replayMessages(request []model.Message) []ReplayMessage {
	out := make([]ReplayMessage, len(request))
	for i, m := range request {
		var texts []string
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Text:
				texts = append(texts, p.Text)
			case artel.Media:
				texts = append(texts, "["+p.Ref.String()+" "+p.MediaType+"]")
			case artel.ToolCall:
				texts = append(texts, "→ "+p.Name+" "+string(p.Arguments))
			case artel.ToolResult:
				texts = append(texts, p.Content)
			}
		}
		out[i] = ReplayMessage{m.Role, strings.Join(texts, "\n")}
	}
	return out
}

// differenceOf returns the first difference of two runs; nil: there is none.
func differenceOf(recorded, replayed Replay) *ReplayDifference {
	for i := range max(len(recorded.Steps), len(replayed.Steps)) {
		d := &ReplayDifference{Step: recorded.From + i}
		switch {
		case i >= len(recorded.Steps):
			d.Kind, d.Recorded, d.Replayed = "more", "", describeStep(replayed.Steps[i])
		case i >= len(replayed.Steps):
			d.Kind, d.Recorded = "fewer", describeStep(recorded.Steps[i])
			if replayed.Error != nil {
				d.Replayed = replayed.Error.Message
			}
		case !slices.EqualFunc(recorded.Steps[i].Calls, replayed.Steps[i].Calls, sameCall):
			d.Kind, d.Recorded, d.Replayed = "calls", describeStep(recorded.Steps[i]), describeStep(replayed.Steps[i])
		case len(recorded.Steps[i].Calls) == 0 && recorded.Steps[i].Text != replayed.Steps[i].Text:
			d.Kind = "text"
			d.Recorded, d.Replayed = differentLines(recorded.Steps[i].Text, replayed.Steps[i].Text)
		default:
			continue
		}
		return d
	}
	return nil
}

func sameCall(a, b ReplayCall) bool {
	return a.Name == b.Name && bytes.Equal(a.Arguments, b.Arguments)
}

// shownDifference is how many code points of each side a difference shows.
const shownDifference = 500

// describeStep returns the calls of a step, or its text.
func describeStep(s ReplayStep) string {
	var out []string
	for _, c := range s.Calls {
		out = append(out, c.Name+" "+string(c.Arguments))
	}
	return artel.Shorten(cmp.Or(strings.Join(out, "\n"), s.Text), shownDifference)
}

// differentLines returns the first line in which two texts differ, of both.
func differentLines(a, b string) (inA, inB string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(as), len(bs)) {
		inA, inB = "", ""
		if i < len(as) {
			inA = as[i]
		}
		if i < len(bs) {
			inB = bs[i]
		}
		if inA != inB {
			break
		}
	}
	return artel.Shorten(inA, shownDifference), artel.Shorten(inB, shownDifference)
}
