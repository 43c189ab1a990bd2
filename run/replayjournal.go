// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// A replayJournal answers the tool calls of a replay with what the recorded run got. It
// is safe for concurrent use.
type replayJournal struct {
	mu       sync.Mutex
	recorded []replayedCall
	answers  map[string][]ReplayAnswer // of the calls of the replay, by name and arguments, in order
}

// A replayedCall is a call of the recorded run.
type replayedCall struct {
	ReplayCall
	object string // what it was for: its argument id, ref or agent
	result artel.ToolResult
	used   bool
}

// newReplayJournal has the calls among messages that have a result.
func newReplayJournal(ms []artel.Message) *replayJournal {
	j := &replayJournal{answers: map[string][]ReplayAnswer{}}
	at := map[artel.CallID]int{}
	for _, m := range ms {
		for _, c := range artel.CallsOf(m.Parts) {
			at[c.ID] = len(j.recorded)
			arguments := canonical(c.Arguments)
			j.recorded = append(j.recorded, replayedCall{ReplayCall: ReplayCall{Name: c.Name, Arguments: arguments}, object: objectOf(arguments), used: true})
		}
		for _, r := range artel.ResultsOf(m.Parts) {
			if i, ok := at[r.CallID]; ok {
				j.recorded[i].result, j.recorded[i].used = r, false
			}
		}
	}
	return j
}

// objectOf returns what a call is for; "": its arguments do not say.
func objectOf(arguments json.RawMessage) string {
	var a struct{ ID, Ref, Agent any }
	if json.Unmarshal(arguments, &a) != nil {
		return ""
	}
	for _, v := range []any{a.ID, a.Ref, a.Agent} {
		if s, ok := v.(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// tool returns a tool with the declaration of t that the journal answers.
func (j *replayJournal) tool(t tool.Tool) tool.Tool {
	return tool.Tool{
		Name: t.Name, Doc: t.Doc, Schema: t.Schema, Deferrable: t.Deferrable, StandsFor: t.StandsFor,
		TakesContent: t.TakesContent, ShowsContent: true, // its results were finished in the run
		Call: func(_ context.Context, e *tool.Env, args json.RawMessage) (tool.Result, error) {
			return j.answer(e.Locale, t, canonical(args)), nil
		},
	}
}

// answer returns the recorded result of a call: of the same call, or of one that changed
// the same object in another way.
func (j *replayJournal) answer(say phrase.Locale, t tool.Tool, arguments json.RawMessage) tool.Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	found, how := -1, ReplayUnknown
	for i, c := range j.recorded {
		if c.Name != t.Name || c.used {
			continue
		}
		if bytes.Equal(c.Arguments, arguments) {
			found, how = i, ReplayExact
			break
		}
		if found < 0 && t.Repeat != tool.RepeatAlways && c.object != "" && c.object == objectOf(arguments) { // what reads must have read the same
			found, how = i, ReplaySimilar
		}
	}
	if found < 0 && t.Repeat == tool.RepeatAlways { // reading again gives the same
		for i, c := range j.recorded {
			if c.Name == t.Name && bytes.Equal(c.Arguments, arguments) && c.result.CallID != "" {
				found, how = i, ReplayExact
			}
		}
	}
	key := t.Name + " " + string(arguments)
	j.answers[key] = append(j.answers[key], how)
	if found < 0 {
		return tool.Failed("%s", say.Say(phrase.ToolNotRecorded, map[string]any{"Name": t.Name}))
	}
	j.recorded[found].used = true
	r := j.recorded[found].result
	return tool.Result{Content: r.Content, Parts: r.Parts, IsError: r.IsError, Metadata: r.Metadata}
}

// how returns where the result of the next call with these arguments came from.
func (j *replayJournal) how(c ReplayCall) ReplayAnswer {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := c.Name + " " + string(c.Arguments)
	list := j.answers[key]
	if len(list) == 0 {
		if c.Name == tool.SearchHistory || c.Name == agent.FindTool {
			return ReplayOwn
		}
		return ReplayUnknown // there is no such tool, or its arguments were refused
	}
	j.answers[key] = list[1:]
	return list[0]
}

// A replayHost gives a replay what users said to the recorded run, after the same number
// of answers.
type replayHost struct {
	rest  []artel.Message // of the recorded run
	calls int             // model calls for answers so far
	said  int             // messages of rest that were passed
}

// Record implements [agent.Host].
func (h *replayHost) Record(_ context.Context, b agent.Built, failed error) error {
	if failed == nil && !slices.ContainsFunc(b.Messages, func(m pipeline.Message) bool { return m.ID == agent.CompactPreset }) {
		h.calls++
	}
	return nil
}

// Permit implements [agent.Host]. No question is asked, as no tool runs.
func (h *replayHost) Permit(_ context.Context, calls []agent.Question) ([]agent.Verdict, error) {
	return make([]agent.Verdict, len(calls)), nil
}

// Inbox implements [agent.Host].
func (h *replayHost) Inbox(_ context.Context, after artel.MessageID) (in agent.Inbox, err error) {
	answers := 0
	for i, m := range h.rest {
		switch {
		case m.Role == artel.RoleAssistant:
			answers++
		case m.Role == artel.RoleUser && !m.Summary && answers <= h.calls && i >= h.said:
			m.Parent = after
			in.Said, after, h.said = append(in.Said, m), m.ID, i+1
		}
	}
	return in, nil
}

// KeepSummary implements [agent.Host].
func (h *replayHost) KeepSummary(context.Context, string, artel.CompactionCompleted) (bool, error) {
	return false, nil
}

// Fallback implements [agent.Host]: a replay is for one service.
func (h *replayHost) Fallback(context.Context, model.Service) (agent.Fallback, bool) {
	return agent.Fallback{}, false
}

// Delegate implements [agent.Host]. Subagents are answered by the journal.
func (h *replayHost) Delegate(_ context.Context, d agent.Delegation) (agent.Input, error) {
	return agent.Input{}, artel.Errorf(artel.Invalid, "run.Replays", string(d.Agent), "no subagent can be started here")
}
