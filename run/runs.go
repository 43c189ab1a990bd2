// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
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
// lease and renews it: the one that started the run, or one that has taken it
// over.
type Runs struct {
	config *Config
	holder string // names this process in leases
	clock  leaseClock

	latest    record.Recent
	histories histories

	nextMu sync.Mutex // held while the next queued message is started

	mu     sync.Mutex
	active map[artel.RunID]*activeRun // runs of this process
	closed bool
	// Conversations whose queued messages wait until their owner has a run less at work.
	waiting map[artel.Owner]map[artel.ConversationID]bool
	wg      sync.WaitGroup // counts active
}

type activeRun struct {
	id       artel.RunID
	ctx      context.Context
	cancel   context.CancelCauseFunc
	done     chan struct{}
	retrying *artel.Retrying         // of its current model call; guarded by [Runs]
	progress map[artel.CallID]string // what servers said last of its calls; guarded by [Runs]
	others   int                     // runs of its owner at work in other processes when it was admitted
	slot     bool                    // it counts towards [Config.MostRuns]; guarded by [Runs]
}

// setRetrying notes that the run's model call is being retried; nil: it is not.
func (rs *Runs) setRetrying(id artel.RunID, r *artel.Retrying) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if a := rs.active[id]; a != nil {
		a.retrying = r
	}
}

// withRetrying adds the retry of the current model call to a run.
func (rs *Runs) withRetrying(r artel.Run) artel.Run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if a := rs.active[r.ID]; a != nil && r.State.Active() {
		r.Retrying = a.retrying
	}
	return r
}

// How long a lease lasts, and how often it is renewed.
const (
	leaseTime  = 10 * time.Second
	leaseRenew = 3 * time.Second
)

// CodeRunActive is the error code of operations that are refused while a run is
// active in the conversation.
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
	return &Runs{config: &k, holder: rand.Text(), active: map[artel.RunID]*activeRun{}, waiting: map[artel.Owner]map[artel.ConversationID]bool{}}
}

// Input is a user message.
type Input struct {
	Text        string
	Attachments []string          // artifact ids or refs, in the conversation
	Uploads     []artifact.Staged // files that the message brings; they become artifacts with it, or not at all
	Parent      *artel.MessageID  // nil: the newest message of the active branch; "": a new root
	Agent       artel.AgentName   // "": the conversation's
	Service     artel.ServiceID   // "": the conversation's, else the agent's, else the default
	Clock       *Clock            // of a preview, so that the same bytes are sent; nil: now
	Queue       bool              // wait while a run is active, instead of being refused
	Run         artel.RunID       // its id; Conflict if there is such a run; "": a new one
	Client      *Client           // what a client of the gateway brings in the place of Text; nil: nothing

	replaces artel.MessageID // the message that this one replaces, on another branch; attachments may come from there
	title    string          // that a new conversation gets; "": from Text
}

// Limits of one message.
const (
	maxMessageText = 1_000_000 // code points would be fairer; bytes are what arrives
	maxAttachments = 200
)

// Send stores a message and starts the run that answers it, in one
// transaction. While another run is active in the conversation, the error is of
// kind Conflict, code "run_active"; with in.Queue the message waits, and the run
// that is returned is queued.
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
		runs: rs, config: rs.config, owner: artel.OwnerOf(ctx),
		run:   artel.Run{ID: cmp.Or(in.Run, artel.NewRunID(now)), Conversation: c, State: artel.RunRunning, StartedAt: now},
		clock: in.clock(),
	}
	message := artel.NewMessageID(now)
	active, err := rs.admit(ctx, job.run.ID)
	if err != nil {
		return artel.Run{}, err
	}
	err = rs.startRun(ctx, func(tx store.Tx, conversation artel.Conversation) error {
		job.client = in.Client.copied() // an earlier attempt of the transaction may have changed it
		if in.Queue {
			if wait, err := busy(tx, c); err != nil {
				return err
			} else if wait {
				return job.enqueue(tx, conversation, message, in, media)
			}
		}
		if err := rs.takeSlot(active, c, false); err != nil {
			return err
		}
		job.run.State = artel.RunRunning // an earlier attempt of the transaction may have queued it
		return job.start(tx, conversation, message, in, media)
	}, c)
	if err != nil {
		rs.unregister(active)
		return artel.Run{}, err
	}
	if job.run.State == artel.RunQueued {
		rs.unregister(active)
		rs.config.notifier().Notify(c)
		// The run before it may have ended meanwhile, and left the message to this call.
		rs.startNext(context.WithoutCancel(ctx), job.owner, c)
		return job.run, nil
	}
	return rs.launch(active, &job), nil
}

// clockSlack is the greatest age of a preview that is sent unchanged.
const clockSlack = 24 * time.Hour

func (in Input) empty() bool {
	return strings.TrimSpace(in.Text) == "" && len(in.Attachments)+len(in.Uploads) == 0
}

func (in Input) check(now time.Time) error {
	const op = "run.Runs.Send"
	switch {
	case in.Client != nil && !in.empty():
		return artel.Errorf(artel.Invalid, op, "messages", "a message of a client has neither text nor attachments beside its messages")
	case in.Client != nil:
		return in.Client.check()
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

// maxSeed is the greatest integer that every JSON implementation can represent.
const maxSeed = 1<<53 - 1

// clock returns the clock of a preview, or one with a new seed.
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
	return rs.withRetrying(r), err
}

// Active returns the run that works on c; kind NotFound if none does.
func (rs *Runs) Active(ctx context.Context, c artel.ConversationID) (r artel.Run, err error) {
	err = rs.config.view(ctx, func(tx store.Tx) error {
		r, err = tx.Runs.Active(c)
		return err
	})
	return rs.withRetrying(r), err
}

// A Load is the number of unfinished runs.
type Load struct {
	Active int // at work in this process, also if they wait for a permission
	Queued int // waiting for their turn, or for a process
}

// LoadOf counts the unfinished runs of all owners.
func LoadOf(ctx context.Context, rs *Runs) (Load, error) {
	leases, err := rs.config.Store.Overdue(ctx, rs.leaseNow().Add(forever))
	if err != nil {
		return Load{}, err
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	l := Load{Active: len(rs.active)}
	for _, unfinished := range leases {
		if rs.active[unfinished.Run] == nil {
			l.Queued++
		}
	}
	return l, nil
}

// Cancel stops a run, also in the middle of a model's stream or a tool call, and
// returns the ended run. What it has stored stays. A run that has ended is of
// kind Conflict. A queued run never starts.
func (rs *Runs) Cancel(ctx context.Context, id artel.RunID) (artel.Run, error) {
	r, err := rs.Find(ctx, id)
	if err != nil {
		return r, err
	}
	if r.State == artel.RunQueued {
		err := rs.discardQueued(ctx, artel.OwnerOf(ctx), r, artel.RunCancelled)
		if !errors.Is(err, errNotNext) {
			if err == nil {
				r, err = rs.Find(ctx, id)
			}
			return r, err
		}
		if r, err = rs.Find(ctx, id); err != nil { // it has just started
			return r, err
		}
	}
	rs.mu.Lock()
	a := rs.active[id]
	rs.mu.Unlock()
	switch {
	case r.State.Final():
		return r, artel.Errorf(artel.Conflict, "run.Runs.Cancel", string(id), "the run has ended: it is %s", r.State)
	case a == nil:
		return rs.cancelElsewhere(ctx, r)
	}
	a.cancel(errCancelled)
	select {
	case <-a.done:
	case <-ctx.Done():
		return r, ctx.Err()
	}
	return rs.Find(ctx, id)
}

// errRegistered reports that this process works on the run already.
var errRegistered = errors.New("the run is active in this process")

// register adds an active run. Its context keeps the values of the request's context
// but not its end. Of several callers with the same run, only one gets it; the
// others get errRegistered.
func (rs *Runs) register(ctx context.Context, id artel.RunID) (*activeRun, error) {
	if err := rs.knowClock(ctx); err != nil {
		return nil, err
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return nil, artel.Errorf(artel.Unavailable, "run.Runs.Send", "", "the server is stopping")
	}
	if rs.active[id] != nil {
		return nil, errRegistered
	}
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a := &activeRun{id: id, ctx: runCtx, cancel: cancel, done: make(chan struct{})}
	rs.active[id] = a
	rs.wg.Add(1)
	return a, nil
}

// unregister removes an active run. It is called once by the caller of register.
func (rs *Runs) unregister(a *activeRun) {
	rs.mu.Lock()
	delete(rs.active, a.id)
	rs.free(a)
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
		a.cancel(errShutdown) // the next process continues it
	}
	rs.mu.Unlock()
	done := make(chan struct{})
	go func() { rs.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return artel.Errorf(artel.Canceled, "run.Close", "", "runs had not ended in time: %w", ctx.Err())
	}
}

func (rs *Runs) isActive(id artel.RunID) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.active[id] != nil
}

// start chooses agent and service, and writes the first rows of a run.
func (x *execution) start(tx store.Tx, c artel.Conversation, message artel.MessageID, in Input, media *StagedMedia) error {
	if err := x.choose(tx, c, in); err != nil {
		return err
	}
	if err := requireFolded(tx, c.ID); err != nil {
		return err
	}
	parent, err := parentOf(tx, c, in)
	if err != nil {
		return err
	}
	kept, _, err := x.config.Artifacts.Uploads.StoreTx(tx, c.ID, parent, media.staged)
	if err != nil {
		return err
	}
	if in.Client != nil {
		return x.startClient(tx, c, parent, message, in.Client.withArtifacts(media, kept))
	}
	in.Text = media.Replacer(kept).Replace(in.Text)
	now := x.config.Now()
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
	brought, err := x.config.Artifacts.Uploads.AddTx(tx, c.ID, in.Uploads)
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
	if err := tx.Messages.Create(m); err != nil {
		return err
	}
	if err := tx.Versions.Claim(c.ID, ids, m.ID); err != nil {
		return err
	}
	title := cmp.Or(in.title, titleOf(in.Text))
	if title == "" && len(attached) > 0 {
		title = attached[0].Title
	}
	return x.startAt(tx, c, m, title, artel.UserInput{Message: m})
}

// startAt writes the run that answers m, and its first events; title is for a conversation that has
// none.
func (x *execution) startAt(tx store.Tx, c artel.Conversation, m artel.Message, title string, input artel.Payload) error {
	x.run.Message, x.run.Agent, x.run.Service = m.ID, x.agent.Name, x.service.ID
	if err := x.createRun(tx); err != nil {
		return err
	}
	if err := artifact.BeginRun(tx, x.run); err != nil {
		return err
	}
	c.Leaf, c.UpdatedAt = m.ID, m.CreatedAt
	if c.Title == "" {
		c.Title, x.provisionalTitle = title, title
	}
	if err := tx.Conversations.Update(c); err != nil {
		return err
	}
	return x.appendEvents(tx, artel.RunStarted{Message: m.ID, Service: x.service.ID}, input)
}

// createRun creates the run with its lease, or activates a queued one.
func (x *execution) createRun(tx store.Tx) error {
	from := x.runs.leaseNow()
	lease := x.begin(0)
	if x.run.State != artel.RunQueued {
		return tx.Runs.Create(x.run, lease)
	}
	x.run.State = artel.RunRunning
	if err := tx.Runs.Update(x.run); err != nil {
		return err
	}
	return tx.Runs.Renew(lease, from)
}

// An unfoldedError reports edits that ended runs have left in the journal.
type unfoldedError struct{ runs []artel.RunID }

// Error implements error.
func (e *unfoldedError) Error() string {
	return fmt.Sprintf("the edits of %d ended runs are not folded yet", len(e.runs))
}

// requireFolded returns an [*unfoldedError] if ended runs have left edits in the
// journal.
func requireFolded(tx store.Tx, c artel.ConversationID) error {
	if _, err := tx.Runs.Active(c); !errors.Is(err, artel.NotFound) {
		return err // the edits are those of the active run, which keeps others from starting
	}
	edits, err := tx.Journal.Edits(c, store.EditQuery{Unfolded: true, Outline: true})
	if err != nil {
		return err
	}
	left := unfoldedError{}
	asked := map[artel.RunID]bool{}
	for _, e := range edits {
		if asked[e.Run] {
			continue
		}
		asked[e.Run] = true
		r, err := tx.Runs.Get(e.Run)
		if err != nil && !errors.Is(err, artel.NotFound) {
			return err
		}
		if err != nil || r.State.Final() {
			left.runs = append(left.runs, e.Run)
		}
	}
	if len(left.runs) == 0 {
		return nil
	}
	return &left
}

// updateFolded runs an update that starts a run in c. If that finds edits of ended
// runs, which is rare, they are folded in updates of their own, and fn runs again.
func (k *Config) updateFolded(ctx context.Context, o artel.Owner, c artel.ConversationID, fn func(store.Tx) error) error {
	for {
		err := k.updateRead(ctx, o, fn)
		left, ok := errors.AsType[*unfoldedError](err)
		if !ok {
			return err
		}
		for _, run := range left.runs {
			err := artifact.FoldRun(ctx, k.Store, o, c, run, func(fold func(store.Tx) error) error { return k.Store.Update(ctx, o, fold) })
			if err != nil {
				return err
			}
		}
	}
}

// execution is an active run, or a subagent of one.
type execution struct {
	config  *Config
	runs    *Runs
	owner   artel.Owner
	run     artel.Run
	agent   agent.Definition
	service model.Service

	clock          Clock                                      // time of the first model call, seed of all
	buildInput     pipeline.Input                             // of its model calls, without the history
	client         *Client                                    // that asked for it; nil: none
	call           *record.Call                               // its newest model call; nil: none yet
	pendingStart   []artel.Payload                            // the start of the agent, stored with the record of its first call
	pending        []artel.Payload                            // the newest answer and what follows it, stored with the next commit
	storing        chan error                                 // receives the end of the background store; nil: none runs
	interrupted    map[artel.CallID][]artel.Ref               // calls that an earlier process did not finish, with their edits
	completed      map[artel.CallPath]artel.SubagentCompleted // subagents that ended in an earlier process, in a call that did not
	continuesAfter artel.MessageID                            // the stored message that the run continues after; "": its own

	nested       []artel.Message // messages of its subagents, from earlier attempts
	workedBefore time.Duration   // by earlier processes
	startedAt    time.Time       // in this process
	term         int64           // of that lease
	leased       time.Time       // when the lease of this process was taken or renewed last

	tried, others    []artel.ServiceID                 // services that it has tried, and may try
	branches         branches                          // that its updates have needed
	ending           *resumeState                      // that its updates have needed; nil: none yet
	newest           artel.MessageID                   // a message of the run near its newest; "": its own
	asked            map[artel.CallID]string           // notes of the questions of its thread; nil: not read
	restorable       map[artel.Ref]artifact.Restorable // attachments that its start has needed
	selection        *selection                        // among which its service is chosen; nil: it is chosen
	provisionalTitle string                            // made of the message's first words; "": the run gave the conversation no title
	retrying         bool                              // the newest payload said that the model call is retried

	subagents  []agent.Member // that its agent may delegate to
	runAtStart artel.Run      // run as it was when the work began, for subagents: run changes meanwhile
	within     artel.CallPath // its thread; "": the run itself
	root       *execution     // of a subagent: the execution of its run; nil: it is the run itself
	threads    *threads       // of the run's subagents
}
