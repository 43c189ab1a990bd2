// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// The limits for one call of [Set.Apply] or [Set.Trace]: of the time of the
// processor in the backtracking engine, and of the work of the linear one.
const (
	ruleTime  = time.Second     // of one rule
	buildTime = 3 * time.Second // of all rules
	buildWork = 256 << 20       // of all rules, about two seconds
)

// wallTime returns the time of the clock.
func wallTime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// An Engine caches compiled patterns and the results of rules. It is safe for
// concurrent use.
type Engine struct {
	now func() time.Time
	cpu func() time.Duration // time of the processor that the thread took

	mu       sync.Mutex
	patterns twoPartCache[patternKey, compiled]
	results  twoPartCache[resultKey, result]
}

type patternKey struct{ source, flags, groups string }

type compiled struct {
	*pattern
	err error
}

// A resultKey is a text and the rules that were applied to it.
type resultKey struct {
	rules [sha256.Size]byte
	text  string
}

// A result is the outcome of rules for a text. stopped is the index of the rule
// that was stopped, plus one, and why is the reason.
type result struct {
	text    string
	applied []int // places in the plan
	between []string
	stopped int
	why     string
}

// The sizes of the caches.
const (
	maxPatterns = 2_000
	maxResults  = 64 << 20 // bytes of texts, before and after
)

// New returns an engine.
func New() *Engine {
	e := &Engine{now: time.Now, cpu: threadTime}
	e.patterns.limit = maxPatterns
	e.results.limit = maxResults
	return e
}

// compile returns a compiled pattern from the cache.
func (e *Engine) compile(source, flags string, wanted map[int]bool, named bool) (*pattern, error) {
	key := patternKey{source, flags, sortedGroups(wanted, named)}
	e.mu.Lock()
	c, ok := e.patterns.get(key)
	e.mu.Unlock()
	if !ok {
		c.pattern, c.err = compile(source, flags, wanted, named)
		e.mu.Lock()
		e.patterns.put(key, c, 1)
		e.mu.Unlock()
	}
	return c.pattern, c.err
}

// A Set is the rules of all layers, in order. It is safe for concurrent use.
type Set struct {
	engine   *Engine
	rules    []locatedRule
	problems []Problem
	refused  map[Location]string // errors of the rules that are not in rules
	all      []locatedRule       // including the refused ones
}

// Compile reads the rules of layers, which are in the order deployment, agent,
// user. Rules that cannot be used are problems of every [Set.Apply].
func (e *Engine) Compile(layers ...Config) *Set {
	s := &Set{engine: e}
	for i, r := range arrange(layers) {
		err := r.check()
		if i >= MaxRules {
			err = fmt.Errorf("there are more than %d rules", MaxRules)
		}
		if err == nil && (r.Expand == "" || r.Expand == ExpandNone) {
			err = e.valid(r.Rule)
		}
		if err != nil {
			s.problems = append(s.problems, Problem{r.name, err.Error()})
			if i >= MaxRules {
				break
			}
			if s.refused == nil {
				s.refused = make(map[Location]string)
			}
			s.refused[r.where] = err.Error()
			s.all = append(s.all, r)
			continue
		}
		s.rules, s.all = append(s.rules, r), append(s.all, r)
	}
	return s
}

// valid compiles the pattern of a rule.
func (e *Engine) valid(r Rule) error {
	source, flags := r.source(r.Find)
	wanted, named := groupsIn(r.Replace)
	_, err := e.compile(source, flags, wanted, named)
	return err
}

// Empty reports whether the set has no rules for a stage and no problems.
func (s *Set) Empty(stage Stage) bool {
	return len(s.problems) == 0 && !slices.ContainsFunc(s.rules, func(r locatedRule) bool { return r.at(stage) })
}

// A NamedRule is a rule with its name in outcomes and problems.
type NamedRule struct {
	Name string
	Rule Rule
}

// Rules returns the usable rules of both stages, in order.
func (s *Set) Rules() []NamedRule {
	out := make([]NamedRule, len(s.rules))
	for i, r := range s.rules {
		out[i] = NamedRule{r.name, r.Rule}
	}
	return out
}

// Problems returns the problems that do not depend on texts.
func (s *Set) Problems() []Problem { return slices.Clone(s.problems) }

func (r Rule) at(stage Stage) bool { return len(r.Stages) == 0 || slices.Contains(r.Stages, stage) }

// An Expander expands the macros in a text; each value passes through escape
// first. [github.com/artelhq/artel/macro.Expander] is what it is for.
type Expander func(text string, escape func(string) string) (string, error)

// A Text is a text that rules apply to.
type Text struct {
	Text  string
	Role  artel.Role
	Depth int // of its message, 0 is the newest; negative: bounds are ignored
}

// Outcome is the result of applying rules to texts.
type Outcome struct {
	Texts    []string   // one for each; unchanged if Applied is empty
	Applied  [][]string // names of the rules that matched, in order
	Between  [][]string // the text after each of Applied but the last
	Problems []Problem  // rules that were left out, each once
}

// Apply applies the rules of a stage to texts. A nil expand leaves macros
// unexpanded. The error is that of ctx.
func (s *Set) Apply(ctx context.Context, stage Stage, texts []Text, expand Expander) (Outcome, error) {
	p := &application{Set: s, stage: stage, expand: expand, spent: make(map[int]time.Duration), work: make(map[int]int), allowed: buildWork}
	p.problems = slices.Clone(s.problems)
	p.bind()
	for {
		out, again, err := p.run(ctx, texts)
		if err != nil {
			return Outcome{}, err
		}
		if !again {
			out.Problems = p.problems
			return out, nil
		}
	}
}

// An application is one call of Apply.
type application struct {
	*Set
	stage    Stage
	expand   Expander
	bound    []boundRule
	plans    map[planKey]*plan
	problems []Problem
	spent    map[int]time.Duration // time in the backtracking engine, by index in bound
	total    time.Duration
	work     map[int]int // of the linear engine, by index in bound
	worked   int         // of all
	allowed  int         // of worked
}

// A boundRule is a rule with its macros expanded.
type boundRule struct {
	replacement
	locatedRule
	digest  [sha256.Size]byte
	dropped bool
}

func (p *application) bind() {
	for _, r := range p.rules {
		if !r.at(p.stage) {
			continue
		}
		b, err := p.bindOne(r)
		if err != nil {
			p.problems = append(p.problems, Problem{r.name, err.Error()})
			continue
		}
		p.bound = append(p.bound, b)
	}
}

func (p *application) bindOne(r locatedRule) (boundRule, error) {
	find, err := p.expanded(r)
	if err != nil {
		return boundRule{}, err
	}
	var values []string
	replace, err := p.macros(r.Replace, func(v string) string {
		values = append(values, v)
		return valueBegin + strconv.Itoa(len(values)-1) + valueEnd
	})
	if err != nil {
		return boundRule{}, err
	}
	var trim []string
	for _, t := range r.Trim {
		if t, err = p.macros(t, nil); err != nil {
			return boundRule{}, err
		}
		trim = append(trim, t)
	}
	source, flags := r.source(find)
	wanted, named := groupsIn(replace)
	compiled, err := p.engine.compile(source, flags, wanted, named)
	if err != nil {
		return boundRule{}, err
	}
	key, err := json.Marshal([]any{source, flags, replace, values, trim})
	return boundRule{
		replacement: replacement{
			pattern: compiled, trim: trim, cpu: p.engine.cpu,
			template: parseTemplate(replace, values, compiled.groups, len(compiled.names) > 0),
		},
		locatedRule: r, digest: sha256.Sum256(key),
	}, err
}

// expanded is the pattern with its macros.
func (p *application) expanded(r locatedRule) (string, error) {
	var escape func(string) string
	switch r.Expand {
	case ExpandEscaped:
		escape = quoter.Replace
	case ExpandRaw:
	default:
		return r.Find, nil
	}
	find, err := p.macros(r.Find, escape)
	if err == nil && len(find) > MaxFind {
		err = fmt.Errorf("find has %d bytes with its macros expanded; a pattern may have %d", len(find), MaxFind)
	}
	if err == nil && find == "" {
		err = errors.New("find is empty with its macros expanded")
	}
	return find, err
}

var quoter = strings.NewReplacer(
	`\`, `\\`, `^`, `\^`, `$`, `\$`, `.`, `\.`, `*`, `\*`, `+`, `\+`, `?`, `\?`, `(`, `\(`, `)`, `\)`,
	`[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `|`, `\|`, `/`, `\/`,
)

func (p *application) macros(text string, escape func(string) string) (string, error) {
	if p.expand == nil || !strings.Contains(text, "{{") {
		return text, nil
	}
	return p.expand(text, escape)
}

// A plan is the rules that are for one role at some depths.
type plan struct {
	rules  []int // indexes in bound
	digest [sha256.Size]byte
}

// A planKey is a role with the interval of bounds that a depth is in.
type planKey struct {
	role  artel.Role
	depth int // number of bounds up to the depth; -1: bounds are ignored
}

// run processes all texts. again reports that a rule was stopped. It is
// dropped, and all texts have to be processed again, so that the rule applies
// to none of them.
func (p *application) run(ctx context.Context, texts []Text) (out Outcome, again bool, err error) {
	out = Outcome{Texts: make([]string, len(texts)), Applied: make([][]string, len(texts)), Between: make([][]string, len(texts))}
	bounds := p.bounds()
	p.plans = make(map[planKey]*plan)
	for i, t := range texts {
		key := planKey{t.Role, -1}
		if t.Depth >= 0 {
			key.depth, _ = slices.BinarySearch(bounds, t.Depth+1)
		}
		pl := p.plans[key]
		if pl == nil {
			pl = p.plan(t)
			p.plans[key] = pl
		}
		r := p.process(ctx, pl, t.Text)
		if ctx.Err() != nil {
			return Outcome{}, false, ctx.Err()
		}
		if r.stopped > 0 {
			b := &p.bound[pl.rules[r.stopped-1]]
			b.dropped = true
			p.problems = append(p.problems, Problem{b.name, r.why})
			p.dropSlow()
			p.dropHeavy()
			return Outcome{}, true, nil
		}
		out.Texts[i], out.Between[i] = r.text, r.between
		for _, k := range r.applied {
			out.Applied[i] = append(out.Applied[i], p.bound[pl.rules[k]].name)
		}
	}
	return out, false, nil
}

// dropSlow drops all backtracking rules once the time is used up, so that many
// slow ones take no longer than a few.
func (p *application) dropSlow() {
	if p.total <= buildTime {
		return
	}
	for i := range p.bound {
		if b := &p.bound[i]; !b.dropped && b.linear == nil {
			b.dropped = true
			p.problems = append(p.problems, Problem{b.name, whyBuild})
		}
	}
}

// dropHeavy drops the rules with an eighth of the work or more once there is too
// much of it. The others get half as much then, and all are dropped if they do
// not become fewer soon.
func (p *application) dropHeavy() {
	if p.worked <= p.allowed {
		return
	}
	for i := range p.bound {
		if b := &p.bound[i]; !b.dropped && (p.allowed <= buildWork/16 || p.work[i] >= p.allowed/8) {
			b.dropped = true
			p.problems = append(p.problems, Problem{b.name, whyWork})
		}
	}
	p.allowed, p.worked = p.allowed/2, 0
	clear(p.work)
}

// bounds returns the depths at which the set of applicable rules changes.
func (p *application) bounds() []int {
	var all []int
	for _, b := range p.bound {
		if b.Depth == nil {
			continue
		}
		if b.Depth.Min != nil {
			all = append(all, *b.Depth.Min)
		}
		if b.Depth.Max != nil && *b.Depth.Max < 1<<40 {
			all = append(all, *b.Depth.Max+1)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A plan is the rules for one role at some depths.
func (p *application) plan(t Text) *plan {
	pl := new(plan)
	h := sha256.New()
	for i, b := range p.bound {
		if !b.dropped && (len(b.Roles) == 0 || slices.Contains(b.Roles, t.Role)) && (t.Depth < 0 || b.Depth.holds(t.Depth)) {
			pl.rules = append(pl.rules, i)
			h.Write(b.digest[:])
		}
	}
	h.Sum(pl.digest[:0])
	return pl
}

func (d *Depth) holds(depth int) bool {
	return d == nil || (d.Min == nil || depth >= *d.Min) && (d.Max == nil || depth <= *d.Max)
}

// process applies the rules of a plan to a text, or returns the cached result.
func (p *application) process(ctx context.Context, pl *plan, text string) result {
	if len(pl.rules) == 0 {
		return result{text: text}
	}
	key := resultKey{pl.digest, text}
	e := p.engine
	e.mu.Lock()
	r, ok := e.results.get(key)
	e.mu.Unlock()
	if ok {
		return r
	}
	// The first rule that matches does so in the original text, so most texts
	// are settled by this check.
	r = result{text: text}
	if slices.ContainsFunc(pl.rules, func(i int) bool { return p.bound[i].need.canMatch(text) }) {
		r = p.applyAll(ctx, pl, text)
	}
	if ctx.Err() == nil && r.why != whyBuild && r.why != whyRule && r.why != whyWork && r.why != errStarved.Error() { // these depend on the other texts
		e.mu.Lock()
		size := len(text) + resultOverhead
		if len(r.applied) > 0 {
			size += len(r.text)
			for _, t := range r.between {
				size += len(t)
			}
		}
		e.results.put(key, r, size)
		e.mu.Unlock()
	}
	return r
}

// resultOverhead is the approximate size of a cache entry without its texts.
const resultOverhead = 160

// The reasons for stopping rules that are fast enough on each single text.
const (
	whyRule  = "its pattern took longer than 1s on all texts together and was stopped; make its repetitions less open"
	whyBuild = "the patterns of all rules took longer than 3s together; this one was stopped, or not begun"
	whyWork  = "the rules find and write too much in all texts together; make their patterns narrower, or use fewer of them"
)

// applyAll applies the rules of a plan to a text.
func (p *application) applyAll(ctx context.Context, pl *plan, text string) result {
	r := result{text: text}
	for k, i := range pl.rules {
		next, n, err := p.apply(ctx, i, r.text)
		if err != nil {
			return result{text: text, stopped: k + 1, why: err.Error()}
		}
		if n > 0 {
			if len(r.applied) > 0 {
				r.between = append(r.between, r.text)
			}
			r.applied = append(r.applied, k)
			r.text = next
		}
	}
	return r
}

// apply applies one rule, and measures its work or, on the backtracking engine,
// its time.
func (p *application) apply(ctx context.Context, i int, text string) (string, int, error) {
	b := &p.bound[i]
	if !b.need.canMatch(text) {
		return text, 0, nil
	}
	if b.linear != nil && b.linear.takes(text) {
		if p.worked > p.allowed {
			return "", 0, errors.New(whyWork)
		}
		return b.replacement.apply(text, func(work int) error {
			p.work[i] += work
			p.worked += work
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case p.worked > p.allowed:
				return errors.New(whyWork)
			}
			return nil
		})
	}
	if p.total > buildTime {
		return "", 0, errors.New(whyBuild)
	}
	runtime.LockOSThread() // the time is that of one thread
	defer runtime.UnlockOSThread()
	begin, counted := p.engine.cpu(), time.Duration(0)
	spent := func(int) error {
		d := p.engine.cpu() - begin
		p.spent[i] += d - counted
		p.total += d - counted
		counted = d
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case p.spent[i] > ruleTime:
			return errors.New(whyRule)
		case p.total > buildTime:
			return errors.New(whyBuild)
		}
		return nil
	}
	next, n, err := b.replacement.apply(text, spent)
	return next, n, cmp.Or(err, spent(0))
}

// A twoPartCache is a cache in two halves: accessed entries move into the young
// one, and when that is full, the old one is dropped.
type twoPartCache[K comparable, V any] struct {
	limit      int // of the sizes in both halves
	young, old map[K]sized[V]
	size       int // of young
}

type sized[V any] struct {
	v    V
	size int
}

func (g *twoPartCache[K, V]) get(k K) (V, bool) {
	if x, ok := g.young[k]; ok {
		return x.v, true
	}
	x, ok := g.old[k]
	if ok {
		g.put(k, x.v, x.size)
	}
	return x.v, ok
}

func (g *twoPartCache[K, V]) put(k K, v V, size int) {
	if size > g.limit/4 {
		return
	}
	if g.size+size > g.limit/2 || g.young == nil {
		g.old, g.young, g.size = g.young, make(map[K]sized[V]), 0
	}
	if old, ok := g.young[k]; ok {
		g.size -= old.size
	}
	g.young[k] = sized[V]{v, size}
	g.size += size
}
