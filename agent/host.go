// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Host stores the output of a run and answers its questions. Its methods are
// called one after another, except Delegate, which is called by the tool calls
// of a turn at once. A subagent has the host of its own Input; the hosts of
// subagents are called by several goroutines.
type Host interface {
	// Record stores the request of a model call before it is made. failed is
	// why a request could not be built. Record may set the request's OnNames.
	// An error ends the run.
	Record(ctx context.Context, built Built, failed error) error
	// Permit asks a user whether calls may be made, and returns the answers in
	// the order of the calls. An error ends the run, or the subagent that asked.
	Permit(ctx context.Context, calls []Question) ([]Verdict, error)
	// Inbox returns what a user has sent to the run since the last call of
	// Inbox. It is called before each model call and before the run rests.
	// after is the newest message of the run's history.
	Inbox(ctx context.Context, after artel.MessageID) (Inbox, error)
	// KeepSummary stores the summary of a compaction as a Markdown artifact,
	// together with end, which it gives that artifact: both are stored or
	// neither, and the run does not yield end. kept is false if the host stores
	// no summaries; the run then yields end itself. An error fails the
	// compaction.
	KeepSummary(ctx context.Context, text string, end artel.CompactionCompleted) (kept bool, err error)
	// Fallback returns another service for a run whose service cannot be
	// reached; false if none is left.
	Fallback(ctx context.Context, failed model.Service) (Fallback, bool)
	// Delegate returns the input of a subagent. Its history ends with what an
	// earlier attempt at the same call has written and, unless the start is
	// fresh, begins with the subagent's earlier work. An error of kind Invalid
	// is the result of the tool call.
	Delegate(ctx context.Context, d Delegation) (Input, error)
}

// A Learner is a [Host] that stores what calls have shown about a service: what
// it refused, and how many tokens it reports for what was counted.
type Learner interface {
	Learn(marks []model.Mark)
}

// An Inbox has the requests of users to a running run.
type Inbox struct {
	Said    []artel.Message // stored messages; the first is a child of after
	Compact bool            // compact the history; set until a compaction with the reason requested ends
	Focus   string          // what the summary keeps in detail; empty: nothing in particular

	// Muted holds the summaries that a user has undone (true) or redone since the
	// last call of Inbox.
	Muted map[artel.MessageID]bool
}

// noHost is the host of a run without one.
type noHost struct{}

// Record implements [Host].
func (noHost) Record(context.Context, Built, error) error { return nil }

// Permit implements [Host]: the zero Verdict denies.
func (noHost) Permit(_ context.Context, calls []Question) ([]Verdict, error) {
	return make([]Verdict, len(calls)), nil
}

// Inbox implements [Host].
func (noHost) Inbox(context.Context, artel.MessageID) (Inbox, error) { return Inbox{}, nil }

// KeepSummary implements [Host].
func (noHost) KeepSummary(context.Context, string, artel.CompactionCompleted) (bool, error) {
	return false, nil
}

// Fallback implements [Host].
func (noHost) Fallback(context.Context, model.Service) (Fallback, bool) { return Fallback{}, false }

// Delegate implements [Host].
func (noHost) Delegate(_ context.Context, d Delegation) (Input, error) {
	return Input{}, artel.Errorf(artel.Invalid, "agent.Run", string(d.Agent), "no subagent can be started here")
}
