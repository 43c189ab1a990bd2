// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/lore"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/pipeline/rule"
)

// loreProcessor chooses the entries of world books that belong into a request.
// The injection assembler places them.
func loreProcessor() Processor {
	engine := rule.New()
	return Processor{
		ID:          Lore,
		Name:        "World books",
		Description: "Adds the entries of world books whose keys occur in the newest messages.",
		Priority:    PriorityLore,
		Icon:        "📖",
		Core:        true,
		Adds:        Turn,
		Fields: []Field{
			{Key: "books", Label: "World books, by name", Type: FieldList, Placeholder: "none"},
			{Key: "scan_depth", Label: "Messages in which keys are sought", Type: FieldNumber, Default: defaultLore.ScanDepth, Range: From(0)},
			{Key: "budget", Label: "Tokens of all entries; 0: a quarter of the window", Type: FieldNumber, Default: 0, Range: From(0)},
			{Key: "recursive", Label: "Entries can make other entries fire", Type: FieldBoolean, Default: defaultLore.Recursive},
			{Key: "whole_words", Label: "Keys match whole words only", Type: FieldBoolean, Default: defaultLore.WholeWords},
			{Key: "case_sensitive", Label: "Keys match upper and lower case exactly", Type: FieldBoolean, Default: false},
			{Key: "names", Label: "Keys are sought in the names of authors too", Type: FieldBoolean, Default: true},
		},
		Process: func(ctx context.Context, d *Draft) error { return d.lore(ctx, engine) },
	}
}

// loring is the configuration of the processor.
type loring struct {
	Books         []string `json:"books"`
	ScanDepth     int      `json:"scan_depth"`
	Budget        int      `json:"budget"`
	Recursive     bool     `json:"recursive"`
	WholeWords    bool     `json:"whole_words"`
	CaseSensitive bool     `json:"case_sensitive"`
	Names         bool     `json:"names"`
}

var defaultLore = loring{ScanDepth: 2, Recursive: true, WholeWords: true, Names: true}

// LoreDefaults returns the settings of books that an unconfigured processor
// uses.
func LoreDefaults() lore.Defaults { return defaultLore.defaults() }

// Books returns the names of the world books that the settings choose.
func (s Settings) Books() []string {
	conf, p := defaultLore, loreProcessor()
	r := s.Resolve(p)
	if !r.Enabled || readConfig(r.Config, &conf) != nil {
		return nil
	}
	return conf.Books
}

// A loreEntry is an entry to send, as the injection assembler takes it.
type loreEntry struct {
	prompt
	where     lore.Position
	stability Stability
}

// LorePrefix begins the ids of messages that are entries of world books; the
// book and the entry follow.
const LorePrefix = "artel:lore/"

const (
	maxLoreLogs  = 200             // of each kind in a record
	loreTime     = 3 * time.Second // of all patterns in a build
	windowOfLore = 4               // the default budget is the window divided by this
)

func (d *Draft) lore(ctx context.Context, engine *rule.Engine) error {
	conf := defaultLore
	if err := d.Config(&conf); err != nil {
		return err
	}
	d.unchanged = true // the injection assembler changes the messages
	in := lore.Input{
		Defaults: conf.defaults(), Budget: conf.Budget, Count: d.counter.text, Expand: d.loreMacros(), Find: FindPattern(engine),
	}
	if in.Budget == 0 {
		in.Budget = smaller(d.windowLimits().MaxTokens, d.Service.Capabilities.ContextWindow.Value) / windowOfLore
	}
	for _, name := range conf.Books {
		i := slices.IndexFunc(d.Books, func(b lore.Book) bool { return b.Name == name })
		if i < 0 {
			d.Log(Warn, "a world book does not exist and is left out", map[string]any{"book": artel.Shorten(name, 80)})
			continue
		}
		in.Books = append(in.Books, d.Books[i])
	}
	if len(in.Books) == 0 {
		return nil
	}
	in.Messages = d.loreMessages(conf.Names)
	out, err := lore.Activate(ctx, in)
	if err != nil {
		return err
	}
	d.logLore(out)
	entries := make([]loreEntry, len(out.Fired))
	for i, f := range out.Fired {
		entries[i] = d.loreEntry(f, i)
	}
	Set(d, entries)
	return nil
}

func (c loring) defaults() lore.Defaults {
	return lore.Defaults{ScanDepth: c.ScanDepth, Recursive: c.Recursive, CaseSensitive: c.CaseSensitive, WholeWords: c.WholeWords}
}

// loreMessages returns the texts of the history up to the user's newest message,
// so that the entries stay the same while a run calls tools.
func (d *Draft) loreMessages(names bool) []lore.Message {
	var out []lore.Message
	last := 0
	for i := range d.Messages {
		m := &d.Messages[i]
		text := artel.TextOf(m.Parts)
		if m.Origin != OriginHistory || m.Role != artel.RoleUser && m.Role != artel.RoleAssistant || strings.TrimSpace(text) == "" {
			continue
		}
		x := lore.Message{ID: m.ID, User: m.Role == artel.RoleUser, Text: text}
		if names {
			x.Name = d.authorName(m.Agent)
			if x.User {
				x.Name = d.User.Name
			}
		}
		if out = append(out, x); x.User {
			last = len(out)
		}
	}
	return out[:last]
}

// authorName returns the name under which an agent's messages are read.
func (d *Draft) authorName(a artel.AgentName) string {
	if (a == "" || a == d.Agent.Name) && d.Agent.Character.Name != "" {
		return d.Agent.Character.Name
	}
	return string(a)
}

// loreMacros returns what expands macros in keys. Changes of variables are
// discarded: only prompts set variables.
func (d *Draft) loreMacros() func(string) string {
	var x *macro.Expander
	return func(text string) string {
		if x == nil {
			x = macro.New(d.macroContext())
		}
		r, err := x.Expand(text)
		if err != nil {
			return text
		}
		return r.Text
	}
}

// FindPattern returns the search for patterns, which ends with an error when
// patterns have taken too long together.
func FindPattern(engine *rule.Engine) func(context.Context, string, string) (string, bool, error) {
	left := loreTime
	return func(ctx context.Context, pattern, text string) (string, bool, error) {
		if left <= 0 {
			return "", false, fmt.Errorf("the patterns of world books took more than %v together; this one was not tried", loreTime)
		}
		start := time.Now()
		match, ok, err := engine.Find(ctx, pattern, text)
		left -= time.Since(start)
		return match, ok, err
	}
}

// loreEntry converts an entry; i is its position among those that fired.
func (d *Draft) loreEntry(f lore.Fired, i int) loreEntry {
	e := f.Rule
	p := Preset{ID: LorePrefix + artel.Shorten(f.Book, 60) + "/" + e.ID, Role: e.Role, Text: e.Content}
	if e.Position == lore.AtDepth {
		p.Place = Place{Kind: AtDepth, Depth: strconv.Itoa(e.Depth)}
	}
	out := loreEntry{prompt: prompt{Preset: p, position: len(d.Agent.Presets) + i, order: e.Order, stability: Static, origin: OriginLore}, where: e.Position, stability: Turn}
	if e.Constant && e.Probability == nil && e.Sticky+e.Cooldown+e.Delay+len(e.Groups) == 0 {
		out.stability = Session // the budget can leave it out
	}
	return out
}

// logLore records which entries fire, why, and which are left out.
func (d *Draft) logLore(out lore.Result) {
	for _, p := range out.Problems {
		d.Log(Error, "a key of a world book cannot be used", map[string]any{"book": p.Book, "name": p.Entry, "key": p.Key, "because": p.Message})
	}
	log := func(f lore.Finding, level Level, text string, e *lore.BookEntry) {
		details := map[string]any{"book": f.Book, "entry": f.Entry, "name": artel.Shorten(f.Name, 80), "reason": string(f.Reason), "tokens": f.Tokens}
		for name, value := range map[string]string{"key": f.Key, "match": f.Match, "message": f.Message, "by": f.By} {
			if value != "" {
				details[name] = artel.Shorten(value, 120)
			}
		}
		if f.Message != "" {
			details["messages_back"] = f.Back
		}
		if f.Budget > 0 {
			details["budget"] = f.Budget
		}
		if f.Chance > 0 {
			details["drawn"] = f.Chance
		}
		if e != nil {
			if details["position"] = string(e.Position); e.Position == "" {
				details["position"] = string(lore.BeforePrompt)
			}
			if e.Position == lore.AtDepth {
				details["depth"] = e.Depth
			}
		}
		d.Log(level, text, details)
	}
	for i := range out.Fired[:min(len(out.Fired), maxLoreLogs)] {
		log(out.Fired[i].Finding, Info, LoreFired, &out.Fired[i].Rule)
	}
	for _, f := range out.Left[:min(len(out.Left), maxLoreLogs)] {
		level := Info
		if f.Reason == lore.NoBudget {
			level = Warn
		}
		log(f, level, LoreLeft, nil)
	}
	if n := max(0, len(out.Fired)-maxLoreLogs) + max(0, len(out.Left)-maxLoreLogs); n > 0 {
		d.Log(Info, "further entries of world books are not listed", map[string]any{"count": n})
	}
}

// The messages of the logs about entries of world books; their details have
// book, entry, name, reason, tokens and what else is known.
const (
	LoreFired = "an entry of a world book is sent"
	LoreLeft  = "an entry of a world book is not sent"
)
