// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/store"
)

// answerOpenCalls writes a result for every call of the run that has none, those
// of its subagents first: a call that was started has an unknown outcome, and
// the others were not made. So the next request shows what the run did, and the
// model does not repeat it. A run that ends as done has no such calls. last is the
// event before those that the update has written.
func (x *execution) answerOpenCalls(tx store.Tx, last artel.Seq) error {
	if x.run.State == artel.RunDone {
		return nil
	}
	tip, err := x.newestMessage(tx)
	if err != nil {
		return err
	}
	own, err := x.newestStep(tx, tip)
	if err != nil || len(agent.Unanswered(own)) == 0 { // then its subagents have ended too
		return err
	}
	state, err := x.resumeState(last)
	if err != nil {
		return err
	}
	nested := slices.Clip(state.nested)
	for _, y := range x.threads.all() {
		for _, p := range y.pending { // the update has just written them
			if p, ok := p.(artel.MessageCompleted); ok {
				nested = append(nested, p.Message)
			}
		}
	}
	for _, t := range append(threadsOf(nested), own) {
		if err := x.answerCalls(tx, t, state.interrupted); err != nil {
			return err
		}
	}
	return nil
}

// newestStep returns the messages of the run from its newest answer on, which alone
// can have calls without a result. It does not read the conversation before them.
func (x *execution) newestStep(tx store.Tx, tip artel.MessageID) ([]artel.Message, error) {
	for n := 8; ; n *= 2 {
		branch, err := tx.Messages.Path(x.run.Conversation, tip, n)
		if err != nil {
			return nil, err
		}
		for i, m := range slices.Backward(branch) {
			if m.Run != x.run.ID {
				return branch[i+1:], nil
			}
			if m.Role == artel.RoleAssistant {
				return branch[i:], nil
			}
		}
		if len(branch) < n {
			return branch, nil
		}
	}
}

// threadsOf groups the messages of subagents by thread, the innermost first.
func threadsOf(nested []artel.Message) [][]artel.Message {
	var paths []artel.CallPath
	of := map[artel.CallPath][]artel.Message{}
	for _, m := range nested {
		if of[m.Within] == nil {
			paths = append(paths, m.Within)
		}
		of[m.Within] = append(of[m.Within], m)
	}
	slices.SortStableFunc(paths, func(a, b artel.CallPath) int { return cmp.Compare(len(b.Split()), len(a.Split())) })
	threads := make([][]artel.Message, len(paths))
	for i, p := range paths {
		threads[i] = of[p]
	}
	return threads
}

// answerCalls writes the missing results of one thread. started are the started
// and unfinished calls, with the artifacts that they had edited.
func (x *execution) answerCalls(tx store.Tx, thread []artel.Message, started map[artel.CallID][]artel.Ref) error {
	locale := cmp.Or(x.buildInput.Locale, x.config.Locale)
	tools := x.config.Tools.Set(x.owner)
	for _, c := range agent.Unanswered(thread) {
		result := agent.NotMade(locale, c.Name)
		if edited, ok := started[c.ID]; ok {
			result = agent.Interrupted(locale, c.Name, tools.Of(c.Name).Repeat, edited)
		}
		last, now := thread[len(thread)-1], x.config.Now()
		m := artel.Message{
			ID: artel.NewMessageID(now), Conversation: last.Conversation, Parent: last.ID, Role: artel.RoleTool,
			Parts: artel.Parts{agent.ResultPart(c.ID, result, 0)},
			Agent: last.Agent, Run: x.run.ID, Within: last.Within, CreatedAt: now,
		}
		if err := x.writeMessage(tx, m); err != nil {
			return err
		}
		done := artel.ToolCompleted{Call: c.ID, Name: c.Name, OK: !result.IsError, Message: m, Metadata: result.Metadata}
		if err := x.config.Events.Append(tx, x.run.Conversation, artel.Event{Run: x.run.ID, Agent: m.Agent, Within: m.Within}, done); err != nil {
			return err
		}
		thread = append(thread, m)
	}
	return nil
}
