// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Codes of errors around an [*Exceeded].
const (
	CodeBudget = "budget_exceeded"
	CodeTokens = "token_limit"
)

// An Exceeded is the error of a call for which a limit leaves too little.
type Exceeded struct {
	Code   string
	Limit  string // as people know it: "the budget of the key laptop"
	Used   string // of Most
	Most   string
	After  time.Duration // until it may be tried again
	Until  time.Time
	Shared bool // others that run now have reserved the rest
}

// Error implements error.
func (e *Exceeded) Error() string {
	if e.Shared {
		return fmt.Sprintf("%s is %s, of which %s %s used and requests that are running have reserved the rest; try again when one of them has ended, or send a smaller limit of the output", e.Limit, e.Most, e.Used, e.verb())
	}
	return fmt.Sprintf("%s is %s, of which %s %s used: too little is left for this request until %s", e.Limit, e.Most, e.Used, e.verb(), e.Until.UTC().Format("2006-01-02 15:04:05 MST"))
}

// verb agrees with Used: dollars are one amount, tokens are counted.
func (e *Exceeded) verb() string {
	if strings.HasPrefix(e.Used, "$") || strings.HasPrefix(e.Used, "1 ") {
		return "is"
	}
	return "are"
}

type unit bool

const (
	dollars unit = false // in billionths
	tokens  unit = true
)

// A limit applies to a call.
type limit struct {
	subject string
	name    string // for people
	unit    unit
	most    int64
	period  store.Period // "": any minute; minute: one of the clock
	query   store.UsageQuery
}

// minute is the period of limits per minute that processes share.
const minute store.Period = "minute"

// beginAt returns when the period of a time began.
func (l *limit) beginAt(at time.Time) time.Time {
	if l.period == minute {
		return at.UTC().Truncate(time.Minute)
	}
	return l.period.Begin(at)
}

// endAt returns when it ends.
func (l *limit) endAt(at time.Time) time.Time {
	if l.period == minute {
		return l.beginAt(at).Add(time.Minute)
	}
	return l.period.End(at)
}

// step is what a process takes ahead.
func (l *limit) step() int64 { return max(1, l.most/100) }

// limitsOf lists the limits of a user's calls for a client.
func (m *Meter) limitsOf(user artel.Owner, c Client) (all []*limit) {
	if b := c.Limits.Budget; b.USD > 0 {
		all = append(all, &limit{
			subject: budgetOf(c.ID, b.Period), name: "the budget of the key " + c.Name, most: nanos(b.USD), period: b.Period,
			query: store.UsageQuery{Key: c.ID},
		})
	}
	if n := c.Limits.Tokens; n > 0 {
		all = append(all, &limit{subject: "key:" + c.ID + "/minute", name: "the limit of tokens per minute of the key " + c.Name, unit: tokens, most: n, period: m.perMinute()})
	}
	if usd := m.c.User.USD; usd > 0 {
		all = append(all, &limit{
			subject: "user:" + string(user) + "/dollars", name: "the daily limit of each user (limits.user.dollars_per_day)", most: nanos(usd), period: store.PerDay,
			query: store.UsageQuery{User: user},
		})
	}
	if n := m.c.User.Tokens; n > 0 {
		all = append(all, &limit{
			subject: "user:" + string(user) + "/tokens", name: "the daily limit of each user (limits.user.tokens_per_day)", unit: tokens, most: n, period: store.PerDay,
			query: store.UsageQuery{User: user},
		})
	}
	return all
}

// An account counts towards a limit. Its fields are guarded by Meter.mu, except
// those of marking.
type account struct {
	begin    time.Time // of the period
	used     int64
	reserved int64
	refused  refusal   // of the last request
	others   int64     // the part of used that other processes have taken, and what was used before this one began
	floor    int64     // the least of others, by the ledger when it was read
	asked    time.Time // when others were last asked for after a refusal
	rest     bool      // others have taken more than they had used then

	marking sync.Mutex
	stored  int64     // the part of the stored mark that this process has taken; guarded by marking
	since   time.Time // its period; guarded by marking
	step    int64     // that is taken ahead; guarded by marking
}

// learn sets what others have taken. The caller holds Meter.mu.
func (a *account) learn(others int64) {
	a.used += others - a.others
	a.others = others
}

// A refusal is that of a request for which a limit left too little, although nothing was
// reserved. The zero value is that of a request that was admitted.
type refusal struct {
	begin time.Time // of the period
	most  int64     // of the limit
}

// Refused reports whether a budget left too little for the last request of a key in this
// period. Requests that were refused because others had reserved the rest do not count.
// It is forgotten at the end of the process.
func (m *Meter) Refused(key string, b store.Budget) bool {
	now := m.c.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.accounts[budgetOf(key, b.Period)]
	return a != nil && b.USD > 0 && a.refused == refusal{b.Period.Begin(now), nanos(b.USD)}
}

// nanos are billionths of a dollar.
func nanos(usd float64) int64 { return int64(math.Round(usd * nano)) }

// A window counts tokens of the last minute, those of one second as one entry, so that
// many calls cost no more than few.
type window struct{ entries []entry }

// add counts what a call has used. An entry has the time of its last call, so nothing is
// forgotten before a minute.
func (w *window) add(at time.Time, n int64) {
	if last := len(w.entries) - 1; last >= 0 && w.entries[last].at.Unix() == at.Unix() {
		w.entries[last] = entry{at, w.entries[last].amount + n}
		return
	}
	w.entries = append(w.entries, entry{at, n})
}

type entry struct {
	at     time.Time
	amount int64
}

// account returns the account of a limit. The caller holds m.mu.
func (m *Meter) account(l *limit) *account {
	a := m.accounts[l.subject]
	if a == nil {
		a = &account{}
		m.accounts[l.subject] = a
	}
	return a
}

// spent returns what counts towards a limit now. The caller holds m.mu.
func (l *limit) spent(m *Meter, now time.Time) int64 {
	if l.period == "" {
		return m.window(l, now)
	}
	a := m.account(l)
	if begin := l.beginAt(now); !a.begin.Equal(begin) {
		a.begin, a.used, a.others, a.floor, a.rest = begin, 0, 0, 0, false
	}
	return a.used
}

// window returns the tokens of the last minute. The caller holds m.mu.
func (m *Meter) window(l *limit, now time.Time) (sum int64) {
	w := m.windows[l.subject]
	if w == nil {
		return 0
	}
	kept := w.entries[:0]
	for _, e := range w.entries {
		if now.Sub(e.at) < time.Minute {
			kept = append(kept, e)
			sum += e.amount
		}
	}
	w.entries = kept
	return sum
}

// left returns what may still be reserved. The caller holds m.mu.
func (m *Meter) left(l *limit, now time.Time) int64 {
	return l.most - l.spent(m, now) - m.account(l).reserved
}

func (m *Meter) exceeded(l *limit, now time.Time) *Exceeded {
	used := l.spent(m, now)
	e := &Exceeded{Code: CodeBudget, Limit: l.name, Used: l.show(used), Most: l.show(l.most), Shared: m.account(l).reserved > 0 && used < l.most || m.account(l).rest}
	switch {
	case l.period != "":
		e.Until = l.endAt(now)
	case len(m.entries(l)) > 0:
		e.Until = m.entries(l)[0].at.Add(time.Minute)
	default:
		e.Until = now.Add(time.Minute)
	}
	e.After = e.Until.Sub(now)
	if l.unit == tokens {
		e.Code = CodeTokens
	}
	if e.Shared {
		e.After = time.Second
	}
	return e
}

func (m *Meter) entries(l *limit) []entry {
	if w := m.windows[l.subject]; w != nil {
		return w.entries
	}
	return nil
}

func (l *limit) show(n int64) string {
	if l.unit == tokens {
		return strconv.FormatInt(n, 10) + " tokens"
	}
	return "$" + strconv.FormatFloat(math.Round(float64(n)/nano*1e6)/1e6, 'f', -1, 64)
}

// release gives back what was reserved, and counts what a call has used at a time.
func (m *Meter) release(held []hold, r Record, at time.Time) {
	if len(held) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range held {
		a := m.account(h.limit)
		a.reserved -= h.amount
		n := nanos(r.Usage.Cost.USD)
		if h.unit == tokens {
			n = r.Usage.InputTokens + r.Usage.OutputTokens
		}
		if n <= 0 {
			continue
		}
		if h.period != "" {
			h.spent(m, at) // begins the period
			a.used += n
			continue
		}
		w := m.windows[h.subject]
		if w == nil {
			w = &window{}
			m.windows[h.subject] = w
		}
		w.add(at, n)
	}
}

// countUnlimited counts a call towards budgets that its key had before, and may have
// again.
func (m *Meter) countUnlimited(held []hold, r Record) {
	if r.Key == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range []store.Period{store.PerDay, store.PerMonth} {
		l := &limit{subject: budgetOf(r.Key, p), period: p}
		limited := slices.ContainsFunc(held, func(h hold) bool { return h.subject == l.subject })
		if a := m.accounts[l.subject]; a != nil && !a.begin.IsZero() && !limited {
			l.spent(m, m.c.Now())
			a.used += nanos(r.Usage.Cost.USD)
		}
	}
}

func budgetOf(key string, p store.Period) string { return "key:" + key + "/" + string(p) }

// load reads what counts towards a limit in its period, once.
func (m *Meter) load(ctx context.Context, l *limit) error {
	if l.period == "" {
		return nil
	}
	now := m.c.Now()
	begin := l.beginAt(now)
	m.mu.Lock()
	a := m.account(l)
	known := !a.begin.IsZero()
	m.mu.Unlock()
	if known {
		return nil
	}
	a.marking.Lock()
	defer a.marking.Unlock()
	if !a.since.IsZero() {
		return nil // another call has read it
	}
	if err := m.Flush(ctx); err != nil {
		return err
	}
	var spent, used int64
	err := m.c.People.View(ctx, func(tx store.PeopleTx) (err error) {
		spent, used, err = l.read(tx, begin)
		return err
	})
	if err != nil {
		return err
	}
	a.stored, a.since = 0, begin
	m.mu.Lock()
	a.begin, a.used, a.others, a.floor = begin, used, used, spent
	m.mu.Unlock()
	return nil
}

// read returns what the ledger has of a limit in a period, and that or its mark, whichever
// is more.
func (l *limit) read(tx store.PeopleTx, begin time.Time) (spent, used int64, err error) {
	if l.period != minute {
		q := l.query
		q.From = begin
		rows, err := tx.Ledger.Sum(q)
		if err != nil {
			return 0, 0, err
		}
		for _, r := range rows {
			if spent += r.Counts.Cost; l.unit == tokens {
				spent += r.Counts.Input + r.Counts.Output - r.Counts.Cost
			}
		}
	}
	stored, err := tx.Ledger.Mark(l.subject)
	if used = spent; err == nil && stored.Begin.Equal(begin) {
		used = max(used, stored.Amount)
	}
	return spent, used, err
}

// mark stores an amount that is not exceeded by what is used and reserved now.
func (m *Meter) mark(ctx context.Context, held []hold) error {
	for _, h := range held {
		if h.period == "" {
			continue
		}
		if err := m.markOne(ctx, h.limit, h.step()); err != nil {
			return err
		}
	}
	return nil
}

func (m *Meter) markOne(ctx context.Context, l *limit, step int64) error {
	m.mu.Lock()
	a := m.account(l)
	m.mu.Unlock()
	a.marking.Lock()
	defer a.marking.Unlock()
	m.mu.Lock()
	begin, reach, floor := a.reach()
	m.mu.Unlock()
	if a.since.Equal(begin) && reach <= a.stored && step > 0 {
		return nil
	}
	var taken, others int64
	err := m.c.People.Update(ctx, func(tx store.PeopleTx) (err error) {
		var passed bool
		others, passed, err = a.othersNow(tx, l.subject, begin, floor)
		if taken = reach; err != nil || passed {
			return err
		}
		if step > 0 {
			if reach > l.most-others {
				return errTaken
			}
			taken = max(reach, min(reach+step, l.most-others))
		}
		return tx.Ledger.SetMark(store.UsageMark{Subject: l.subject, Begin: begin, Amount: others + taken})
	})
	switch {
	case errors.Is(err, errTaken):
		m.learnOthers(a, begin, others)
		return err
	case err != nil:
		return artel.Errorf(artel.Unavailable, "meter.Meter", l.name, "what is used cannot be stored, so no call is made: %w", err)
	}
	a.stored, a.since, a.step = taken, begin, step
	m.learnOthers(a, begin, others)
	return nil
}

// errTaken is the error of a mark for which other processes have left too little.
var errTaken = errors.New("other processes have taken the rest")

// reach is how far the calls of this process may come in the period of a. The caller holds
// Meter.mu.
func (a *account) reach() (begin time.Time, own, floor int64) {
	return a.begin, a.used - a.others + a.reserved, a.floor
}

// othersNow returns what others than this process have taken of the mark of a subject, at
// least floor. passed reports that the mark is of a later period, and is to stay. Updates of
// people happen one after the other in all processes, so the mark does not change until tx
// ends. The caller holds a.marking.
func (a *account) othersNow(tx store.PeopleTx, subject string, begin time.Time, floor int64) (others int64, passed bool, err error) {
	stored, err := tx.Ledger.Mark(subject)
	if err != nil || !stored.Begin.Equal(begin) {
		return floor, stored.Begin.After(begin), err
	}
	if a.since.Equal(begin) {
		stored.Amount -= a.stored
	}
	return max(floor, stored.Amount), false, nil
}

// learnOthers sets what others have taken of an account in a period.
func (m *Meter) learnOthers(a *account, begin time.Time, others int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.begin.Equal(begin) {
		a.learn(others)
	}
}

// exactMarks stores the amounts as they are, at the end of the process.
func (m *Meter) exactMarks(ctx context.Context) error {
	m.mu.Lock()
	all := make(map[string]*account, len(m.accounts))
	for subject, a := range m.accounts {
		if !a.begin.IsZero() {
			all[subject] = a
		}
	}
	m.mu.Unlock()
	for subject := range all {
		if err := m.markOne(ctx, &limit{subject: subject, name: subject}, 0); err != nil {
			return err
		}
	}
	return nil
}
