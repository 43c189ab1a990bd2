// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline"
)

// Bounds on definitions.
const (
	maxPrompt      = 200_000   // code points
	maxDescription = 2_000     // code points
	maxNames       = 200       // in a list
	maxLimit       = 1_000_000 // more than a week of seconds would be no limit
	maxSubDepth    = 8

	maxGreetings     = 200
	maxGreetingBytes = 1 << 20
)

// Known lists the names that definitions may refer to. A nil list is not
// checked.
type Known struct {
	Tools    []string
	Prefixes []string // of the names of tools that may become available later; "x*" names all with one prefix
	Agents   []artel.AgentName
	Services []artel.ServiceID
	Unpriced []artel.ServiceID // services without a known price, which cannot keep a limit of cost
	Default  artel.ServiceID   // answers for agents without a service; "": not known
}

// fixed returns the names without those of tools that may become available
// later.
func (k Known) fixed(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), k.mayAppear)
}

func (k Known) mayAppear(name string) bool {
	return slices.ContainsFunc(k.Prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// A Flaw is one mistake in a definition.
type Flaw struct {
	Field string // as written in the file, e.g. "limits.turns"
	Key   phrase.Key
	Args  map[string]any
}

// In returns the text of the flaw in a language.
func (f Flaw) In(l phrase.Locale) string { return l.Say(f.Key, f.Args) }

// Flaws are all mistakes in a definition. As an error they are one line in
// English.
type Flaws []Flaw

// Error implements error.
func (fs Flaws) Error() string {
	texts := make([]string, len(fs))
	for i, f := range fs {
		texts[i] = f.Field + ": " + f.In(phrase.English)
	}
	return strings.Join(texts, "; ")
}

// Wrong makes a flaw from an error.
func Wrong(field string, err error) Flaw {
	return Flaw{field, phrase.AgentProblem, map[string]any{"Problem": err.Error()}}
}

func (fs *Flaws) add(field string, key phrase.Key, args map[string]any) {
	*fs = append(*fs, Flaw{field, key, args})
}

// Check returns the mistakes in d, in the order of the fields.
func (d Definition) Check(k Known) Flaws {
	var fs Flaws
	if slices.Contains([]artel.AgentName{"", ".", ".."}, d.Name) || len(d.Name) > artel.MaxIDLength || strings.ContainsFunc(string(d.Name), notInName) {
		fs.add("name", phrase.AgentName, map[string]any{"Max": artel.MaxIDLength})
	}
	if n := utf8.RuneCountInString(d.Description); n > maxDescription {
		fs.add("description", phrase.AgentTooLong, map[string]any{"Count": n, "Max": maxDescription})
	}
	checkNames(&fs, "service", one(d.Service), k.Services, phrase.AgentNoService)
	checkNames(&fs, "fallbacks", d.Fallbacks, k.Services, phrase.AgentNoService)
	checkNames(&fs, "tools", k.fixed(d.Tools), k.Tools, phrase.AgentNoTool)
	if slices.Contains(d.Tools, SubagentTool) && len(d.Subagents) == 0 {
		fs.add("tools", phrase.AgentNoSubagents, map[string]any{"Name": SubagentTool})
	}
	checkNames(&fs, "subagents", d.Subagents, k.Agents, phrase.AgentNoAgent)
	d.Skills.check(&fs)
	d.checkPermissions(&fs, k)
	d.Limits.check(&fs)
	if d.Limits.Cost > 0 {
		for _, s := range append(one(cmp.Or(d.Service, k.Default)), d.Fallbacks...) {
			if slices.Contains(k.Unpriced, s) {
				fs.add("limits.cost", phrase.AgentNoPrice, map[string]any{"Name": artel.Shorten(string(s), 80)})
			}
		}
	}
	for _, x := range []struct {
		name string
		n    *int
	}{{"max_tokens", &d.Context.MaxTokens}, {"reply_reserve", d.Context.ReplyReserve}, {"keep_chars", &d.Context.KeepChars}} {
		if x.n != nil && *x.n < 0 {
			fs.add("context."+x.name, phrase.AgentNegative, nil)
		}
	}
	if n := d.Compaction.Threshold; n < 0 || n > 100 {
		fs.add("compaction.threshold", phrase.AgentLimit, map[string]any{"Value": fmt.Sprint(n), "Max": "100"})
	}
	if err := pipeline.CheckPresets(d.Presets); err != nil {
		fs.add("preset_messages", phrase.AgentProblem, map[string]any{"Problem": err.Error()})
	}
	if err := d.Sampling.Check(); err != nil {
		fs = append(fs, Wrong("sampling", err))
	}
	if err := d.Character.Check(); err != nil {
		fs = append(fs, Wrong("character", err))
	}
	if err := d.checkGreetings(); err != nil {
		fs = append(fs, Wrong("greetings", err))
	}
	if _, err := d.Clock.At(time.Now()); err != nil {
		fs.add("clock", phrase.AgentProblem, map[string]any{"Problem": err.Error()})
	}
	switch n := utf8.RuneCountInString(d.Prompt); {
	case n > maxPrompt:
		fs.add("prompt", phrase.AgentTooLong, map[string]any{"Count": n, "Max": maxPrompt})
	case n == 0 && len(d.Presets) == 0:
		fs.add("prompt", phrase.AgentNoPrompt, nil)
	case !utf8.ValidString(d.Prompt):
		fs.add("prompt", phrase.AgentNotUTF8, nil)
	}
	return fs
}

func (d Definition) checkGreetings() error {
	size := 0
	for _, g := range d.Greetings {
		if size += len(g); strings.TrimSpace(g) == "" || !utf8.ValidString(g) {
			return errors.New("a greeting is empty, or no UTF-8")
		}
	}
	if len(d.Greetings) > maxGreetings || size > maxGreetingBytes {
		return fmt.Errorf("%d greetings of %d bytes together, and at most %d of %d are taken", len(d.Greetings), size, maxGreetings, maxGreetingBytes)
	}
	return nil
}

func notInName(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == utf8.RuneError || r == '/'
}

func one[T comparable](v T) []T {
	var zero T
	if v == zero {
		return nil
	}
	return []T{v}
}

// checkNames adds a flaw for each unknown name.
func checkNames[T ~string](fs *Flaws, field string, names, known []T, key phrase.Key) {
	if len(names) > maxNames {
		fs.add(field, phrase.AgentTooMany, map[string]any{"Count": len(names), "Max": maxNames})
		return
	}
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			fs.add(field, phrase.AgentTwice, map[string]any{"Name": artel.Shorten(string(n), 80)})
		} else if known != nil && !slices.Contains(known, n) {
			fs.add(field, key, map[string]any{"Name": artel.Shorten(string(n), 80), "Names": listed(known)})
		}
	}
}

func listed[T ~string](names []T) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}

func (d Definition) checkPermissions(fs *Flaws, k Known) {
	if len(d.Permissions) > maxNames {
		fs.add("permissions", phrase.AgentTooMany, map[string]any{"Count": len(d.Permissions), "Max": maxNames})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(d.Permissions)) {
		field := "permissions." + artel.Shorten(name, 80)
		if p := d.Permissions[name]; !slices.Contains([]Permission{Auto, Ask, Deny}, p) {
			fs.add(field, phrase.AgentPermission, map[string]any{"Name": artel.Shorten(string(p), 40)})
		}
		name = withoutEffect(name)
		if k.Tools != nil && name != "*" && !slices.Contains(k.Tools, name) && !k.mayAppear(name) {
			fs.add(field, phrase.AgentNoTool, map[string]any{"Name": artel.Shorten(name, 80), "Names": listed(k.Tools)})
		}
	}
}

// withoutEffect returns the tool of a key of permissions.
func withoutEffect(key string) string {
	if name, effect, ok := strings.Cut(key, "."); ok && slices.Contains(tool.Effects(), effect) {
		return name
	}
	return key
}

func (l Limits) check(fs *Flaws) {
	for _, x := range []struct {
		name   string
		n, max float64
	}{
		{"turns", float64(l.Turns), maxLimit},
		{"tool_calls", float64(l.ToolCalls), maxLimit},
		{"seconds", float64(l.Seconds), maxLimit},
		{"tokens", float64(l.Tokens), 1e12},
		{"cost", l.Cost, maxLimit},
		{"depth", float64(l.Depth), maxSubDepth},
		{"answer", float64(l.Answer), maxLimit},
	} {
		if !(x.n >= 0 && x.n <= x.max) {
			fs.add("limits."+x.name, phrase.AgentLimit, map[string]any{"Value": cmp.Or(fmt.Sprint(x.n), "0"), "Max": fmt.Sprintf("%.0f", x.max)})
		}
	}
}
