// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

const (
	// maxCompactions is how many compactions may precede one model call. A
	// history much longer than the window needs several, because each covers
	// only what fits into its request.
	maxCompactions = 8
	// compactionTime is the time limit of a compaction.
	compactionTime = 5 * time.Minute
	// quotedWords is how many code points of the user's newest message a
	// summary quotes.
	quotedWords = 4000
	// minTokenBytes is a low estimate of the bytes per token in any script.
	minTokenBytes = 3
	// minReplaced is the least number of messages that a compaction replaces.
	minReplaced = 2

	// CompactPreset is the id of the message that asks for a summary.
	CompactPreset = "compaction"
)

// exceeds reports whether a request exceeds the threshold, or could not be
// built because it is too long.
func (r *run) exceeds(built Built, failed error, limit int) bool {
	switch {
	case r.noCompaction || limit == 0:
		return false
	case failed != nil:
		return errors.Is(failed, artel.TooLarge)
	}
	t := built.Record.Tokens
	return t.Total > limit || r.lastTokens > int64(limit) || len(t.Dropped) > 0
}

// overflows reports whether a service refused a request as too long for its
// window.
func overflows(err error) bool {
	ce, ok := errors.AsType[*model.CallError](err)
	return ok && ce.Refusal.Class == model.RefusedContext
}

// A compaction is one that is to be made.
type compaction struct {
	part   []artel.Message // the first active messages
	reason artel.CompactionReason
	tokens int             // of the request that triggered it; 0: not known
	limit  int             // tokens; 0: none
	focus  string          // what the summary keeps in detail, in the user's words
	undone artel.MessageID // the summary that a user has undone, without which the history is too long
}

// compact summarises the older part of the history, and reports whether it did.
// A failed compaction leaves the history unchanged; the error is that of the
// consumer, or of a run that has ended.
func (r *run) compact(ctx context.Context, reason artel.CompactionReason, tokens, limit int) (done bool, err error) {
	budget := limit
	if budget == 0 {
		budget = tokens
	}
	standing := pipeline.ActiveMessages(r.history, r.in.Agent.Name)
	n, undone := r.compactable(standing, budget), r.undone(standing)
	if undone != "" {
		n = compactableAfterUndo(standing, n, budget)
	}
	part := standing[:n]
	if !worthCompacting(part) {
		r.noCompaction = true
		return false, nil
	}
	failed, err := r.compactPart(ctx, compaction{part: part, reason: reason, tokens: tokens, limit: limit, undone: undone})
	if err != nil {
		return false, err
	}
	if failed != nil {
		r.noCompaction = true
		return false, ctx.Err() // the run continues without a summary, unless it has ended
	}
	return true, nil
}

// compactNow summarises the whole history.
func (r *run) compactNow(ctx context.Context) error {
	standing := pipeline.ActiveMessages(r.history, r.in.Agent.Name)
	if !worthCompacting(standing) {
		return artel.Errorf(artel.Conflict, "agent.Compact", "", "nothing to compact: at most %d message is newer than the last summary", minReplaced-1)
	}
	failed, err := r.compactPart(ctx, compaction{part: standing, reason: artel.CompactRequested, focus: r.in.Focus})
	if err == nil {
		err = failed
	}
	return err
}

// compactAsked summarises at a user's request: the older part of the history of
// a running run, or all of it after the final answer. If that fails, the run
// continues. The error is that of the consumer, or of a run that has ended.
func (r *run) compactAsked(ctx context.Context, focus string) error {
	part := pipeline.ActiveMessages(r.history, r.in.Agent.Name)
	if !r.finished() {
		part = part[:r.compactable(part, int(r.lastTokens))]
	}
	if !worthCompacting(part) {
		end := artel.CompactionCompleted{Reason: artel.CompactRequested, Error: &artel.RunError{
			Kind: artel.Conflict, Message: "nothing to compact but the current exchange",
		}}
		return cmp.Or(r.emit(artel.CompactionStarted{Reason: end.Reason, Service: r.in.Service.ID}), r.emit(end))
	}
	failed, err := r.compactPart(ctx, compaction{part: part, reason: artel.CompactRequested, tokens: int(r.lastTokens), focus: focus})
	if err == nil && failed != nil {
		err = ctx.Err()
	}
	return err
}

// worthCompacting reports whether part has enough messages beside an earlier
// summary.
func worthCompacting(part []artel.Message) bool {
	if len(part) > 0 && part[0].Summary {
		part = part[1:]
	}
	return len(part) >= minReplaced
}

// compactable returns how many of the active messages to summarise. It keeps
// the input of the next answer: the user's newest message, of any length, if it
// has no answer yet; otherwise the newest exchange, if it is at most a quarter
// of the budget.
func (r *run) compactable(standing []artel.Message, budget int) int {
	starts := pipeline.Exchanges(standing)
	if len(starts) == 0 {
		return 0
	}
	last := starts[len(starts)-1]
	if m := standing[last]; m.Role == artel.RoleUser && !m.Summary {
		return last
	}
	size := 0
	for _, m := range standing[last:] {
		b, err := m.Parts.MarshalJSON()
		if err != nil {
			return len(standing)
		}
		size += len(b) / minTokenBytes
	}
	if size <= budget/4 {
		return last
	}
	return len(standing)
}

// compactPart emits one compaction. failed is the reason why there is no summary;
// err is that of the consumer.
func (r *run) compactPart(ctx context.Context, c compaction) (failed, err error) {
	if err := r.emit(artel.CompactionStarted{Reason: c.reason, Service: r.in.Service.ID, Tokens: c.tokens, Threshold: c.limit, Undone: c.undone}); err != nil {
		return nil, err
	}
	began := r.now()
	end := artel.CompactionCompleted{Reason: c.reason, Focus: c.focus, Undone: c.undone}
	call, stop := context.WithTimeout(ctx, compactionTime)
	defer stop()
	summary, failed := r.summary(call, &c, &end)
	if errors.Is(failed, errStopped) {
		return nil, failed
	}
	end.OK, end.Millis = failed == nil, r.now().Sub(began).Milliseconds()
	kept := false
	if failed == nil {
		summary = r.summaryMessage(&end, c.part, summary)
		kept, failed = r.host.KeepSummary(ctx, summary+"\n\n"+r.listMessages(c.part), end)
	}
	if failed != nil {
		end.OK, end.Message, end.Replaced, end.Before, end.After = false, nil, 0, 0, 0
		end.Error = &artel.RunError{Kind: artel.KindOf(failed), Message: scrub.Line(failed.Error())}
		if end.Error.Kind == artel.Internal {
			end.Error.Message = "internal error" // the run's own error has an id to find it in the log
		}
		return failed, r.emit(end)
	}
	r.history = append(r.history, *end.Message)
	r.lastTokens, r.attachments = 0, nil
	r.addTools()
	if kept {
		return nil, nil
	}
	return nil, r.emit(end)
}

// summary asks the model for a summary of c.part, or of the longest beginning of
// it that fits, which it makes c.part. It sets end.Before.
func (r *run) summary(ctx context.Context, c *compaction, end *artel.CompactionCompleted) (text string, err error) {
	shorter := func() bool { // reports whether a beginning of the part is left to be tried
		starts := pipeline.Exchanges(c.part)
		half := c.part[:starts[len(starts)/2]]
		if worthCompacting(half) {
			c.part = half
			return true
		}
		return false
	}
	for {
		if err := r.checkLimits(false); err != nil {
			return "", err
		}
		built, err := r.buildSummary(ctx, c.part, c.focus)
		if told := r.emitRendered(); told != nil {
			return "", told
		}
		if (len(built.Record.Tokens.Dropped) > 0 || errors.Is(err, artel.TooLarge)) && shorter() {
			continue
		}
		end.Before = built.Record.Tokens.History
		text, err = r.askSummary(ctx, built, err)
		if err != nil && overflows(err) && shorter() {
			continue
		}
		return text, err
	}
}

// askSummary makes the calls for a summary: one, and another that must not call
// tools if the first called some instead of writing it.
func (r *run) askSummary(ctx context.Context, built Built, failed error) (text string, err error) {
	for range 2 {
		if failed == nil {
			if err := r.beginCall(false); err != nil {
				return "", err
			}
		}
		if err := cmp.Or(r.host.Record(ctx, built, failed), failed); err != nil {
			return "", err
		}
		answer, err := r.callForText(ctx, built)
		if err != nil || answer.Calls == 0 || strings.Contains(answer.Text, summaryHeading) {
			return r.summaryIn(ctx, answer, err)
		}
		request := *built.Request
		request.Choice = model.ToolChoice{Mode: model.ChooseNone}
		built.Request = &request
	}
	return "", artel.Errorf(artel.Unavailable, "agent.Compact", string(r.in.Service.ID), "the model called tools instead of writing a summary")
}

// summaryHeading begins the sections of a summary. A text without them, beside
// tool calls, announces the calls.
const summaryHeading = "## "

// buildSummary makes the request for a summary. It differs from the other
// requests of the conversation by its end alone, so that the provider's cache
// applies: a change of the tools, or of the choice among them, would end the
// cached prefix before the messages.
func (r *run) buildSummary(ctx context.Context, part []artel.Message, focus string) (Built, error) {
	in := r.in.Context
	ask := in.Locale.Say(phrase.CompactAsk, nil)
	if focus != "" {
		ask += "\n\n" + in.Locale.Say(phrase.CompactFocus, nil) + "\n\n> " + strings.ReplaceAll(focus, "\n", "\n> ")
	}
	in.Service = r.in.Service
	in.Agent, in.Settings.Agent = r.in.Agent.Pipeline(), r.in.Agent.Processors
	in.Agent.Presets = append(in.Agent.Presets[:len(in.Agent.Presets):len(in.Agent.Presets)], pipeline.Preset{
		ID: CompactPreset, Role: artel.RoleUser, Text: ask,
		Place: pipeline.Place{Kind: pipeline.AtDepth, Depth: "0"},
	})
	in.History = inOrder(part)
	in.At, in.Head, in.Tools, in.Refused = r.in.Run.Message, "", r.tools.specs, r.isRefused
	in.Placement = pipeline.PlaceNone
	clock := r.now()
	in.Now = r.in.Agent.Time(clock)
	result, err := r.pipeline.Build(ctx, in)
	return Built{result, in.Service, clock, in.Seed}, err
}

// callForText makes a call whose answer is a text, and emits its usage.
func (r *run) callForText(ctx context.Context, built Built) (model.TextAnswer, error) {
	request := built.Request
	request.OnRetry = r.retrying
	answer, err := r.caller.CallText(ctx, request)
	if answer.Started {
		if told := r.emitUsage(artel.CallCompacts, r.Usage(request, answer.End.Usage, artel.Parts{artel.Text{Text: answer.Text}}, built.Record.Tokens.Total)); told != nil {
			return answer, told
		}
	}
	return answer, err
}

// summaryIn returns the summary in an answer, with media replaced by refs.
func (r *run) summaryIn(ctx context.Context, answer model.TextAnswer, failed error) (string, error) {
	text := strings.TrimSpace(answer.Text)
	switch {
	case failed != nil:
		return "", failed
	case answer.End.Reason == model.StopLength:
		return "", artel.Errorf(artel.TooLarge, "agent.Compact", string(r.in.Service.ID), "the summary is longer than the model's longest answer")
	case answer.End.Reason == model.StopRefusal:
		return "", artel.Errorf(artel.Denied, "agent.Compact", string(r.in.Service.ID), "the model declined to sum up the conversation")
	case text == "":
		return "", artel.Errorf(artel.Unavailable, "agent.Compact", string(r.in.Service.ID), "the model wrote no summary")
	}
	env := r.in.Env
	return scrub.Text(ctx, text, tool.NewKeeper(&env).Keep)
}

// summaryMessage sets the message that replaces part, and returns the summary
// with the required quotes.
func (r *run) summaryMessage(end *artel.CompactionCompleted, part []artel.Message, summary string) string {
	say := r.in.Context.Locale.Say
	if words := r.userWords(part, summary); words != "" {
		summary += "\n\n" + say(phrase.CompactWords, nil) + "\n\n> " + strings.ReplaceAll(words, "\n", "\n> ")
	}
	m := r.newMessage(artel.RoleUser)
	m.Summary, m.Covers = true, covered(part)
	m.Parts = append(artel.Parts{artel.Text{Text: say(phrase.CompactFrame, map[string]any{"Count": len(part)}) + "\n\n" + summary}}, r.userMedia(part)...)
	end.Message, end.Replaced = &m, len(part)
	if n, err := r.pipeline.Count(&model.Request{Service: r.in.Service, Messages: []model.Message{{Role: m.Role, Parts: m.Parts}}}); err == nil {
		end.After = n
	}
	return summary
}

// covered returns the newest message of part; everything that an earlier
// summary covers is before it.
func covered(part []artel.Message) artel.MessageID {
	last := part[len(part)-1]
	if last.Summary {
		return last.Covers
	}
	return last.ID
}

// askedIn returns the user's messages to this run that part covers, directly or
// through an earlier summary.
func (r *run) askedIn(part []artel.Message) []artel.Message {
	end := slices.IndexFunc(r.history, func(m artel.Message) bool { return m.ID == covered(part) })
	return slices.DeleteFunc(slices.Clone(r.history[:end+1]), func(m artel.Message) bool {
		return !fromUser(m) || m.Run != r.in.Run.ID || m.Within != r.thread
	})
}

// userMedia returns the attachments of the messages that the run still answers
// and that part covers, so that the model keeps seeing them.
func (r *run) userMedia(part []artel.Message) (media artel.Parts) {
	if r.finished() {
		return nil
	}
	known := map[artel.Ref]bool{}
	for _, m := range r.askedIn(part) {
		for _, p := range artel.MediaOf(m.Parts) {
			if !known[p.Ref] {
				known[p.Ref] = true
				media = append(media, p)
			}
		}
	}
	return media
}

// userWords returns the user's messages to this run that part covers; if there
// are none, the user's last message in part. Texts that the summary quotes
// already are left out.
func (r *run) userWords(part []artel.Message, summary string) string {
	asked := r.askedIn(part)
	if len(asked) == 0 {
		for _, m := range slices.Backward(part) {
			if fromUser(m) {
				asked = append(asked, m)
				break
			}
		}
	}
	var said []string
	for _, m := range asked {
		text := strings.TrimSpace(artel.TextOf(m.Parts))
		if short := artel.Beginning(text, quotedWords); short != text {
			text = short + "…"
		}
		if !strings.Contains(summary, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n\n")
}

func fromUser(m artel.Message) bool { return m.Role == artel.RoleUser && !m.Summary }

// shownWords is how many code points of each message the list in the artifact
// shows.
const shownWords = 80

// listMessages lists the summarised messages for the reader of the artifact.
func (r *run) listMessages(part []artel.Message) string {
	var b strings.Builder
	b.WriteString("## " + r.in.Context.Locale.Say(phrase.CompactReplaced, map[string]any{"Count": len(part)}) + "\n")
	for _, m := range part {
		text := strings.Join(strings.Fields(strings.NewReplacer("`", "", "<", "", "*", "").Replace(artel.TextOf(m.Parts))), " ")
		if short := artel.Beginning(text, shownWords); utf8.RuneCountInString(text) > shownWords {
			text = short + "…"
		}
		for _, c := range artel.CallsOf(m.Parts) {
			text = strings.TrimSpace(text + " → " + c.Name)
		}
		fmt.Fprintf(&b, "\n- `%s` %s: %s", m.ID, m.Role, text)
	}
	return b.String() + "\n"
}
