// SPDX-License-Identifier: Apache-2.0

// Package meter counts what model calls use, by user, key, service, model and agent,
// and limits it.
//
// Begin with [New]. [Meter.Charge] is asked before every attempt of a paid call: by
// [model.Caller], and by the gateway for what it forwards. It reserves what the call
// may cost at most, in tokens and dollars, and the end of the call replaces that by
// what it has cost. So calls that run at once cannot exceed a limit together: what is
// reserved and what is spent never is more than the limit. If less is left than an
// answer may cost, its length is limited to what is left.
//
// Before a call starts, the amount that it may reach is stored, in steps of a
// hundredth of a limit. After a crash a limit counts from there: it has lost up to a
// step and what was reserved, and is never exceeded. The ledger itself is written in
// batches; a crash may lose the last second of it.
//
// Processes that share a database ([Config.Shared]) share the stored amount: each adds to it what
// its calls may reach, so that their sum is never more than the limit, and takes back what
// they did not use (claims.go).
package meter

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// The sources of calls.
const (
	Gateway = "gateway"
	Run     = "run"
)

// A Record is what one call has used.
type Record struct {
	User    artel.Owner
	Key     string // id of the client's key; "": none
	Service artel.ServiceID
	Model   string
	Agent   artel.AgentName
	Source  string
	Usage   artel.Usage // with the cost
}

// UserLimits limit what each user may do; 0: no limit.
type UserLimits struct {
	Tokens int64   // of requests and answers, in each UTC day
	USD    float64 // in each UTC day
}

// Config has the parts of a [Meter]. All but Count and OnRecord are needed.
type Config struct {
	People   store.People
	User     UserLimits                        // of every user
	Count    func(*model.Request) (int, error) // tokens; nil: calls without reported usage count as nothing
	OnRecord func(Record)                      // is called for each call; may be nil
	Log      *slog.Logger
	Now      func() time.Time

	// Shared says that other processes use People. Then a limit is shared with them: each takes what
	// a call may need, and a hundredth of the limit ahead, from the stored amount, and
	// gives back within a second what is left.
	Shared bool
}

// A Meter is safe for concurrent use.
type Meter struct {
	c Config

	mu       sync.Mutex
	accounts map[string]*account
	windows  map[string]*window
	billed   map[artel.ServiceID]surplus

	ledger ledger
}

// New returns a Meter.
func New(c Config) *Meter {
	m := &Meter{c: c, accounts: map[string]*account{}, windows: map[string]*window{}, billed: map[artel.ServiceID]surplus{}}
	m.ledger = ledger{m: m, waiting: map[ledgerKey]store.UsageCounts{}, flush: make(chan struct{}, 1)}
	return m
}

// A Client is the client of the gateway for which calls are made.
type Client struct {
	ID     string // of its key; "": none is needed
	Name   string
	Limits store.KeyLimits
}

type clientKey struct{}

// With returns a context whose calls are made for a client of the gateway.
func With(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// nano is one US dollar.
const nano = 1_000_000_000

// fewOutput is the fewest tokens of output for which a call is worth making: the
// least that providers accept as a limit.
const fewOutput = 16

// unknownOutput is reserved for a model of which the most output is not known, in
// tokens.
const unknownOutput = 16_384

// Charge admits a call and reserves what it may cost. The error is of kind TooLarge
// with an [*Exceeded] if too little is left, and of kind Invalid if the cost of an
// unpriced service, or of work of any amount, is limited.
func (m *Meter) Charge(ctx context.Context, call model.PaidCall) (model.Charge, error) {
	const op = "meter.Meter.Charge"
	s := call.Service
	r := Record{User: artel.OwnerOf(ctx), Service: s.ID, Model: s.Model, Agent: artel.AgentOf(ctx), Source: Run}
	client, ok := ctx.Value(clientKey{}).(Client)
	if ok {
		r.Key, r.Source = client.ID, Gateway
	}
	limits := m.limitsOf(r.User, client)
	if len(limits) == 0 {
		return model.Charge{End: func(e model.Spent) { m.end(r, call, e, nil) }}, nil
	}
	if call.Unbounded {
		return model.Charge{}, &artel.Error{Op: op, Subject: string(s.ID), Kind: artel.Invalid, Code: artel.CodeLimitCostUnknown, Err: fmt.Errorf(
			"what a batch, or a response in the background, costs is not known before it ends, so none can be begun under %s; send the requests one by one and wait for the answers", limits[0].name)}
	}
	for _, l := range limits {
		if l.unit == dollars && !s.Priced() {
			return model.Charge{}, &artel.Error{Op: op, Subject: string(s.ID), Kind: artel.Invalid, Code: artel.CodeLimitCostUnknown, Err: model.UnpricedError(l.name, *s)}
		}
	}
	if call.Request != nil && m.c.Count != nil {
		n, err := m.c.Count(call.Request)
		if err != nil {
			return model.Charge{}, err
		}
		call.Input = int64(n)
	}
	counted := call.Input
	call.Input = m.billedInput(s.ID, counted)
	for _, l := range limits {
		if err := m.load(ctx, l); err != nil {
			return model.Charge{}, err
		}
	}
	held, output, err := m.take(ctx, limits, call)
	if err != nil {
		return model.Charge{}, err
	}
	charge := model.Charge{End: func(e model.Spent) {
		m.learn(s.ID, counted, e.Usage.InputTokens)
		m.end(r, call, e, held)
	}}
	if output < wanted(call) && !call.Fixed {
		charge.MaxOutput = int(output / answers(call))
	}
	return charge, nil
}

// A surplus is by how much a service bills more input than is counted: a part of long
// requests, and tokens of short ones.
type surplus struct {
	ratio  float64
	tokens int64
}

const (
	longRequest = 1000 // tokens
	maxRatio    = 3
)

// billedInput returns what a service bills at most for a request of as many tokens,
// as far as is known from its answers.
func (m *Meter) billedInput(id artel.ServiceID, counted int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.billed[id]
	if counted < longRequest {
		return counted + b.tokens
	}
	return max(int64(float64(counted)*max(1, b.ratio)), counted+b.tokens)
}

// learn remembers by how much a service has billed more than was counted.
func (m *Meter) learn(id artel.ServiceID, counted, reported int64) {
	if reported <= counted {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.billed[id]
	if counted < longRequest {
		b.tokens = max(b.tokens, min(reported-counted, maxRatio*longRequest))
	} else {
		b.ratio = max(b.ratio, min(float64(reported)/float64(counted), maxRatio))
	}
	m.billed[id] = b
}

// answers is how many answers a call has.
func answers(c model.PaidCall) int64 { return max(1, c.Answers) }

// wanted is the most output that a call may have without a limit here, in all answers.
func wanted(c model.PaidCall) int64 { return longest(c) * answers(c) }

// longest is that of one answer.
func longest(c model.PaidCall) int64 {
	most := int64(c.Service.Capabilities.MaxOutput.Value)
	switch {
	case c.Output > 0 && most > 0:
		return min(c.Output, most)
	case c.Output > 0:
		return c.Output
	case c.Fixed:
		return 0
	case most > 0:
		return most
	}
	return unknownOutput
}

// prices are what a token costs of a limit's unit.
func (l *limit) prices(s *model.Service) (in, out float64) {
	if l.unit == tokens {
		return 1, 1
	}
	p := s.Capabilities.Price.Value
	return max(p.Input, p.CacheWrite) * nano / 1e6, p.Output * nano / 1e6
}

// A hold is what a call has reserved of a limit.
type hold struct {
	*limit
	amount int64
}

// reserve reserves the cost of a call with every limit, or with none. output is the
// most that the answer may have.
func (m *Meter) reserve(limits []*limit, call model.PaidCall) (held []hold, output int64, exceeded *Exceeded) {
	now := m.c.Now()
	least := min(max(call.Least, fewOutput)*answers(call), wanted(call))
	if call.Fixed {
		least = wanted(call)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	output = wanted(call)
	for _, l := range limits {
		in, out := l.prices(call.Service)
		rest := float64(m.left(l, now)) - math.Ceil(float64(call.Input)*in)
		if afford := math.Floor(rest / out); out > 0 && afford < float64(output) {
			output = int64(max(0, afford))
		}
		if free := in == 0 && out == 0; !free && (rest < 0 || output < least || l.spent(m, now) >= l.most) {
			exceeded = m.exceeded(l, now)
			if l.period != "" && !exceeded.Shared {
				m.account(l).refused = refusal{l.period.Begin(now), l.most}
			}
			return nil, 0, exceeded
		}
	}
	for _, l := range limits {
		in, out := l.prices(call.Service)
		h := hold{l, int64(math.Ceil(float64(call.Input)*in + float64(output)*out))}
		a := m.account(l)
		a.reserved += h.amount
		a.refused = refusal{}
		held = append(held, h)
	}
	return held, output, nil
}

// end records what a call has used and gives back what it has reserved.
func (m *Meter) end(r Record, call model.PaidCall, e model.Spent, held []hold) {
	u := e.Usage
	switch {
	case model.Reported(u):
	case !e.Started:
		m.release(held, Record{}, time.Time{})
		if m.c.Shared && len(held) > 0 {
			m.ledger.kick() // others may want it
		}
		return
	default:
		u = m.estimate(call, e.Said)
	}
	u.Calls, u.Cost = 1, call.Service.Cost(u)
	r.Usage = u
	m.release(held, r, m.c.Now())
	m.countUnlimited(held, r)
	m.ledger.add(r)
	if m.c.OnRecord != nil {
		m.c.OnRecord(r)
	}
}

// estimate counts the tokens of a call whose usage was not reported.
func (m *Meter) estimate(call model.PaidCall, said string) artel.Usage {
	u := artel.Usage{Estimated: true, InputTokens: call.Input}
	if m.c.Count == nil {
		return u
	}
	count := func(r *model.Request) int64 {
		n, err := m.c.Count(r)
		if err != nil {
			return 0 // its vocabulary cannot be read
		}
		return int64(n)
	}
	if call.Request != nil && u.InputTokens == 0 {
		u.InputTokens = count(call.Request)
	}
	u.OutputTokens = count(&model.Request{Service: *call.Service, Messages: []model.Message{{Role: artel.RoleAssistant, Parts: artel.Parts{artel.Text{Text: said}}}}})
	return u
}

// Close writes everything that is known. Charges afterwards are not counted durably.
func (m *Meter) Close(ctx context.Context) error {
	if err := m.Flush(ctx); err != nil {
		return err
	}
	return m.exactMarks(ctx)
}
