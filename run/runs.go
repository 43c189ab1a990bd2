// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// Runs are the use cases of runs. A run belongs to the process that holds its
// lease, which shows signs of life by renewing it: the one that started it, or
// another that has taken it over.
type Runs struct {
	config *Config
	holder string // names this process in leases

	latest record.Recent

	turn sync.Mutex // held while the next message's turn comes

	mu     sync.Mutex
	active map[artel.RunID]*activeRun // runs of this process
	closed bool
	wg     sync.WaitGroup // counts active
}

type activeRun struct {
	cancel   context.CancelCauseFunc
	done     chan struct{}
	retrying *artel.Retrying // that its model call was told of last; guarded by [Runs]
}

// retries notes that the run's model call is made again; nil: it goes on.
func (rs *Runs) retries(id artel.RunID, r *artel.Retrying) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if a := rs.active[id]; a != nil {
		a.retrying = r
	}
}

// told adds to a run what is known here of its model call.
func (rs *Runs) told(r artel.Run) artel.Run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if a := rs.active[r.ID]; a != nil && r.State.Active() {
		r.Retrying = a.retrying
	}
	return r
}

// How long a run may go without a sign of life, and how often it gives one.
const (
	leaseTime  = 10 * time.Second
	leaseRenew = 3 * time.Second
)

// CodeRunActive is the error code of what cannot be done while a run works on
// the conversation.
const CodeRunActive = "run_active"

// Causes for which a run's context ends.
var (
	errCancelled = errors.New("cancelled by a person")
	errShutdown  = errors.New("the server was stopped")
	errStuck     = errors.New("the server stopped again and again at the same step; send a message to go on")
	errLeaseLost = errors.New("another process took the run over")
	errTimedOut  = errors.New("the run took longer than its agent may")
)

// New returns the runs of a deployment.
func New(k Config) *Runs {
	return &Runs{config: &k, holder: rand.Text(), active: map[artel.RunID]*activeRun{}}
}

// Input is a user message.
type Input struct {
	Text        string
	Attachments []string          // artifact ids or refs, in the conversation
	Uploads     []artifact.Staged // files that the message brings; they become artifacts with it, or not at all
	Parent      *artel.MessageID  // nil: the newest message of the active branch; "": a new root
	Agent       artel.AgentName   // "": the conversation's
	Service     artel.ServiceID   // "": the conversation's, else the agent's, else the default
	Clock       *Clock            // of the preview that somebody has seen, so that just that is sent; nil: now
	Queue       bool              // wait where a run is at work, in the place of a refusal

	again artel.MessageID // whose place it takes, on another branch: what is attached may be from there
	title string          // that a new conversation gets; "": from Text
}

// Limits of one message.
const (
	maxMessageText = 1_000_000 // code points would be fairer; bytes are what arrives
	maxAttachments = 200
)

// Send stores a message and starts the run that answers it, in one
// transaction. While another run works on the conversation, it is of kind
// Conflict, code "run_active"; with in.Queue the message waits for its turn,
// and the run that is returned is queued.
func (rs *Runs) Send(ctx context.Context, c artel.ConversationID, in Input) (artel.Run, error) {
	if err := in.check(rs.config.Now()); err != nil {
		return artel.Run{}, err
	}
	in, media, err := rs.config.scrubbed(ctx, in)
	if err != nil {
		return artel.Run{}, err
	}
	now := rs.config.Now()
	job := execution{
		runs: rs, owner: artel.OwnerOf(ctx),
		run:   artel.Run{ID: artel.NewRunID(now), Conversation: c, State: artel.RunRunning, StartedAt: now},
		clock: in.clock(),
	}
	message := artel.NewMessageID(now)
	runCtx, err := rs.admit(ctx, job.run.ID)
	if err != nil {
		return artel.Run{}, err
	}
	err = rs.opening(ctx, func(tx store.Tx, conversation artel.Conversation) error {
		if in.Queue {
			if wait, err := busy(tx, c); err != nil {
				return err
			} else if wait {
				return job.enqueue(tx, conversation, message, in, media)
			}
		}
		job.run.State = artel.RunRunning // an attempt before this one may have queued it
		return job.open(tx, conversation, message, in, media)
	}, c)
	if err != nil {
		rs.dismiss(job.run.ID)
		return artel.Run{}, err
	}
	if job.run.State == artel.RunQueued {
		rs.dismiss(job.run.ID)
		rs.config.notifier().Notify(c)
		return job.run, nil
	}
	return rs.begin(runCtx, &job), nil
}

// clockSlack is how old a preview may be that is sent as it is.
const clockSlack = 24 * time.Hour

func (in Input) empty() bool {
	return strings.TrimSpace(in.Text) == "" && len(in.Attachments)+len(in.Uploads) == 0
}

func (in Input) check(now time.Time) error {
	const op = "app.Runs.Send"
	switch {
	case in.empty():
		return artel.Errorf(artel.Invalid, op, "text", "a message needs text or attachments")
	case len(in.Text) > maxMessageText:
		return artel.Errorf(artel.TooLarge, op, "text", "a message holds at most %d bytes; upload longer text as an artifact and attach it", maxMessageText)
	case in.Clock != nil && in.Clock.Seed > maxSeed:
		return artel.Errorf(artel.Invalid, op, "seed", "a seed is at most %d", uint64(maxSeed))
	case in.Clock != nil && !in.Clock.Now.IsZero() && in.Clock.Now.Sub(now).Abs() > clockSlack:
		return artel.Errorf(artel.Invalid, op, "clock", "its time is further than %v from now; make a new preview", clockSlack)
	case len(in.Attachments)+len(in.Uploads) > maxAttachments:
		return artel.Errorf(artel.TooLarge, op, "attachments", "a message takes at most %d", maxAttachments)
	}
	return nil
}

// maxSeed is what numbers in JSON can hold everywhere.
const maxSeed = 1<<53 - 1

// clock is that of a preview, or a new seed and the time of the build.
func (in Input) clock() Clock {
	if in.Clock != nil {
		return *in.Clock
	}
	return Clock{Seed: mathrand.Uint64() & maxSeed}
}

// Find returns one run.
func (rs *Runs) Find(ctx context.Context, id artel.RunID) (r artel.Run, err error) {
	err = rs.config.view(ctx, func(tx store.Tx) error {
		r, err = tx.Runs.Get(id)
		return err
	})
	return rs.told(r), err
}

// Active returns the run that works on c; kind NotFound if none does.
func (rs *Runs) Active(ctx context.Context, c artel.ConversationID) (r artel.Run, err error) {
	err = rs.config.view(ctx, func(tx store.Tx) error {
		r, err = tx.Runs.Active(c)
		return err
	})
	return rs.told(r), err
}

// Cancel stops a run, also inside a model's stream or a tool, and returns it
// as it ended. What it acknowledged stays. A run that has ended is of kind
// Conflict. One that is queued never begins.
func (rs *Runs) Cancel(ctx context.Context, id artel.RunID) (artel.Run, error) {
	r, err := rs.Find(ctx, id)
	if err != nil {
		return r, err
	}
	if r.State == artel.RunQueued {
		err := rs.drop(ctx, artel.OwnerOf(ctx), r, artel.RunCancelled)
		if !errors.Is(err, errNotNow) {
			if err == nil {
				r, err = rs.Find(ctx, id)
			}
			return r, err
		}
		if r, err = rs.Find(ctx, id); err != nil { // its turn has just come
			return r, err
		}
	}
	rs.mu.Lock()
	a := rs.active[id]
	rs.mu.Unlock()
	if a == nil || r.State.Final() {
		return r, artel.Errorf(artel.Conflict, "app.Runs.Cancel", string(id), "the run is not running here; its state is %s", r.State)
	}
	a.cancel(errCancelled)
	select {
	case <-a.done:
	case <-ctx.Done():
		return r, ctx.Err()
	}
	return rs.Find(ctx, id)
}

// admit makes room for a run and returns the context it works in, which
// outlives the request but keeps its values.
func (rs *Runs) admit(ctx context.Context, id artel.RunID) (context.Context, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return nil, artel.Errorf(artel.Unavailable, "app.Runs.Send", "", "the server is stopping")
	}
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	rs.active[id] = &activeRun{cancel: cancel, done: make(chan struct{})}
	rs.wg.Add(1)
	return runCtx, nil
}

func (rs *Runs) dismiss(id artel.RunID) {
	rs.mu.Lock()
	a := rs.active[id]
	delete(rs.active, id)
	rs.mu.Unlock()
	a.cancel(nil)
	close(a.done)
	rs.wg.Done()
}

// Close stops working on the runs of this process, and waits until ctx ends.
// No run can be started afterwards.
func (rs *Runs) Close(ctx context.Context) error {
	rs.mu.Lock()
	rs.closed = true
	for _, a := range rs.active {
		a.cancel(errShutdown) // whoever comes next goes on with it
	}
	rs.mu.Unlock()
	done := make(chan struct{})
	go func() { rs.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return artel.Errorf(artel.Canceled, "app.Close", "", "runs had not ended in time: %w", ctx.Err())
	}
}

func (rs *Runs) isActive(id artel.RunID) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.active[id] != nil
}

// open fills in the job and writes the first rows of a run.
func (x *execution) open(tx store.Tx, c artel.Conversation, message artel.MessageID, in Input, media *StagedMedia) error {
	if err := x.choose(tx, c, in); err != nil {
		return err
	}
	if err := foldLeftovers(tx, c.ID); err != nil {
		return err
	}
	parent, err := parentOf(tx, c, in)
	if err != nil {
		return err
	}
	kept, _, err := x.runs.config.Artifacts.StoreTx(tx, c.ID, parent, media.staged)
	if err != nil {
		return err
	}
	in.Text = media.Replacer(kept).Replace(in.Text)
	now := x.runs.config.Now()
	m := artel.Message{
		ID: message, Conversation: c.ID, Parent: parent, Role: artel.RoleUser, Run: x.run.ID, CreatedAt: now,
	}
	if in.Text != "" {
		m.Parts = append(m.Parts, artel.Text{Text: in.Text})
	}
	attached, err := x.attach(tx, c.ID, parent, in, true)
	if err != nil {
		return err
	}
	brought, err := x.runs.config.Artifacts.AddTx(tx, c.ID, in.Uploads)
	if err != nil {
		return err
	}
	attached = append(append(attached, brought...), kept...)
	ids := make([]artel.ArtifactID, len(attached))
	for i, a := range attached {
		ids[i] = a.ID
		m.Parts = append(m.Parts, a.MediaPart())
	}
	if x.selection != nil {
		if err := x.shortlist(tx, m); err != nil {
			return err
		}
	}
	x.run.Message, x.run.Agent, x.run.Service = m.ID, x.agent.Name, x.service.ID
	if err := tx.Messages.Create(m); err != nil {
		return err
	}
	if err := tx.Versions.Claim(c.ID, ids, m.ID); err != nil {
		return err
	}
	if err := x.occupy(tx, now); err != nil {
		return err
	}
	c.Leaf, c.UpdatedAt = m.ID, now
	if c.Title == "" {
		if c.Title = cmp.Or(in.title, titleOf(in.Text)); c.Title == "" && len(attached) > 0 {
			c.Title = attached[0].Title
		}
		x.titled = c.Title
	}
	if err := tx.Conversations.Update(c); err != nil {
		return err
	}
	return x.appendEvents(tx, artel.RunStarted{Message: m.ID, Service: x.service.ID}, artel.UserInput{Message: m})
}

// occupy makes the run, or one that was queued, the one that is at work.
func (x *execution) occupy(tx store.Tx, now time.Time) error {
	lease := x.lease(now.Add(leaseTime))
	if x.run.State != artel.RunQueued {
		return tx.Runs.Create(x.run, lease)
	}
	x.run.State = artel.RunRunning
	if err := tx.Runs.Update(x.run); err != nil {
		return err
	}
	return tx.Runs.Renew(lease, now)
}

// attach resolves attachments to artifacts that are visible on the branch, or
// were to the message that this one takes the place of; make is for
// [execution.again].
func (x *execution) attach(tx store.Tx, c artel.ConversationID, at artel.MessageID, in Input, make bool) ([]artel.Artifact, error) {
	var found []artel.Artifact
	for _, s := range in.Attachments {
		ref, err := artel.ParseRef(s)
		if err == nil && (ref.IsBlob() || ref.Conversation != "" && ref.Conversation != c) {
			err = artel.Errorf(artel.Invalid, "app.Runs.Send", artel.Shorten(s, 120), "an attachment is an artifact of this conversation")
		}
		if err != nil {
			return nil, err
		}
		a, err := tx.Artifacts.Head(c, ref.Artifact, at)
		if err == nil && a.Deleted {
			err = artel.NotFound
		}
		if err == nil && ref.Version > 0 && ref.Version != a.Version {
			a, err = pinned(tx, a, ref.Version, at)
		}
		if in.again != "" && errors.Is(err, artel.NotFound) {
			a, err = x.again(tx, c, ref, in.again, make)
		}
		if err != nil {
			if errors.Is(err, artel.NotFound) && ref.Version == 0 {
				err = &artel.Error{
					Op: "app.Runs.Send", Subject: artel.Shorten(s, 120), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound,
					Err: errors.New("there is no such artifact on this branch"),
				}
			}
			return nil, err
		}
		found = append(found, a)
	}
	return found, nil
}

// pinned returns a as it was at a version that the branch has.
func pinned(tx store.Tx, a artel.Artifact, number int, at artel.MessageID) (artel.Artifact, error) {
	versions, err := tx.Versions.List(a.Conversation, a.ID)
	if err != nil {
		return a, err
	}
	branch, err := tx.Messages.Path(a.Conversation, at, 0)
	if err != nil {
		return a, err
	}
	for _, v := range versions {
		on := v.Message == "" || slices.ContainsFunc(branch, func(m artel.Message) bool { return m.ID == v.Message })
		if v.Number == number && on && v.Update != artel.UpdateDelete {
			return v.Artifact(a.Conversation, a.ID, a.CreatedAt), nil
		}
	}
	a.Ref.Version = number
	return a, &artel.Error{
		Op: "app.Runs.Send", Subject: a.Ref.String(), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound,
		Err: errors.New("there is no such version on this branch"),
	}
}

// foldLeftovers folds what runs that ended badly have left in the journal.
func foldLeftovers(tx store.Tx, c artel.ConversationID) error {
	edits, err := tx.Journal.Edits(c, store.EditQuery{Unfolded: true})
	if err != nil {
		return err
	}
	done := map[artel.RunID]bool{}
	for _, e := range edits {
		if done[e.Run] {
			continue
		}
		done[e.Run] = true
		if err := artifact.FoldRun(tx, c, e.Run); err != nil {
			return err
		}
	}
	return nil
}

// execution is one run at work.
type execution struct {
	runs    *Runs
	owner   artel.Owner
	run     artel.Run
	agent   agent.Definition
	service model.Service

	clock Clock                        // of the first model call, and the seed of all
	built pipeline.Input               // what its contexts are built from
	call  *record.Call                 // the newest of its model calls; nil: none yet
	begun []artel.Payload              // that the agent has begun, written with the record of its first call
	held  []artel.Payload              // the reply and what follows it, written with the end
	aside chan error                   // what is being stored while the agent goes on; nil: nothing is
	cut   map[artel.CallID][]artel.Ref // calls that an earlier process was at, with their edits
	from  artel.MessageID              // the stored message that it goes on from; "": its own

	nested []artel.Message // of its subagents until then
	worked time.Duration   // how long processes before this one were at work on it
	since  time.Time       // when this one began to be, by its own clock

	attempts  attempts
	selection *selection // what its service is chosen of; nil: it is chosen
	titled    string     // that it has given the conversation, out of words; "": none
	retrying  bool       // its model call was told to be made again, and nothing else since

	mates   []agent.Member // that its agent may delegate to
	origin  artel.Run      // run as it was when the work began, for subagents: run changes meanwhile
	within  artel.CallPath // of a subagent
	root    *execution     // of the run that a subagent is in; nil: it is none
	threads *threads       // of the run's subagents
}
