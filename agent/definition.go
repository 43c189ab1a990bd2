// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/macro"
)

// A Definition is one agent: who it is, what it may use, and how far it may
// go. Its written form is a Markdown file: YAML front matter between two "---"
// lines with the fields below, then the role prompt; see [Definition.Markdown].
type Definition struct {
	Name        artel.AgentName   `json:"name" yaml:"name"`
	Description string            `json:"description,omitempty" yaml:"description"`
	Service     artel.ServiceID   `json:"service,omitempty" yaml:"service"`         // "": the deployment's default
	Fallbacks   []artel.ServiceID `json:"fallbacks,omitempty" yaml:"fallbacks"`     // asked in this order where the service cannot be reached
	Tools       []string          `json:"tools,omitempty" yaml:"tools"`             // it can call no others
	Subagents   []artel.AgentName `json:"subagents,omitempty" yaml:"subagents"`     // whom it can give work to, with [SubagentTool]
	Permissions Permissions       `json:"permissions,omitempty" yaml:"permissions"` // of tools; those of the deployment hold too
	Limits      Limits            `json:"limits,omitzero" yaml:"limits"`

	// What a model sees beside the prompt and the conversation.
	Presets    []pipeline.Preset  `json:"preset_messages,omitempty" yaml:"preset_messages"`
	Context    pipeline.Limits    `json:"context,omitzero" yaml:"context"`
	Clock      macro.Clock        `json:"clock,omitzero" yaml:"clock"`
	Processors []pipeline.Setting `json:"processors,omitempty" yaml:"processors"`
	Compaction Compaction         `json:"compaction,omitzero" yaml:"compaction"`

	Prompt string `json:"prompt,omitempty" yaml:"-"` // the role prompt, with macros

	File string `json:"-" yaml:"-"` // that it was loaded from, by its name in the folder; "": none
}

// SubagentTool is the name of the tool by which an agent gives work to another.
// Whoever has subagents has it.
const SubagentTool = "call_subagent"

// Pipeline is what a build of a context needs to know about the agent.
func (d Definition) Pipeline() pipeline.Agent {
	return pipeline.Agent{Name: d.Name, Description: d.Description, Prompt: d.Prompt, Presets: d.Presets, Context: d.Context}
}

// Time is what the agent's clock shows at now. A clock that has run out of
// years shows now.
func (d Definition) Time(now time.Time) time.Time {
	if t, err := d.Clock.At(now); err == nil {
		return t
	}
	return now
}

// Compaction says when the history of an agent is summed up.
type Compaction struct {
	// Threshold is in percent of what fits into a request: the window less
	// what is kept free for the reply. 0: 80.
	Threshold int `json:"threshold,omitempty" yaml:"threshold"`
	// Off leaves the oldest messages out of requests instead. A person can
	// still ask for a compaction.
	Off bool `json:"off,omitempty" yaml:"off"`
}

const standardThreshold = 80

// tokens are the threshold for a budget; 0: there is none.
func (c Compaction) tokens(budget int) int {
	if c.Off || budget <= 0 {
		return 0
	}
	return max(1, budget*valueOr(c.Threshold, standardThreshold)/100)
}

// Limits end a run that goes too far.
type Limits struct {
	Turns     int     `json:"turns,omitempty" yaml:"turns"`           // model calls; 0: 40
	ToolCalls int     `json:"tool_calls,omitempty" yaml:"tool_calls"` // 0: 200
	Seconds   int     `json:"seconds,omitempty" yaml:"seconds"`       // wall clock; 0: 3600
	Tokens    int     `json:"tokens,omitempty" yaml:"tokens"`         // in and out, of all model calls; 0: no limit
	Cost      float64 `json:"cost,omitempty" yaml:"cost"`             // in US dollars, as far as it is known; 0: no limit
	Depth     int     `json:"depth,omitempty" yaml:"depth"`           // how deep subagents may have subagents; 0: 2
	Answer    int     `json:"answer,omitempty" yaml:"answer"`         // seconds in which people answer whether a tool may be called; 0: 300
}

// Full returns the limits that hold: those of l, and the defaults where it says
// nothing. What is 0 in them has no limit.
func (l Limits) Full() Limits {
	l.Turns, l.ToolCalls, l.Seconds = valueOr(l.Turns, 40), valueOr(l.ToolCalls, 200), valueOr(l.Seconds, 3600)
	l.Depth, l.Answer = valueOr(l.Depth, 2), valueOr(l.Answer, 300)
	return l
}

func (l Limits) turns() int     { return l.Full().Turns }
func (l Limits) toolCalls() int { return l.Full().ToolCalls }
func (l Limits) depth() int     { return l.Full().Depth }

// Time returns the wall clock limit.
func (l Limits) Time() time.Duration { return time.Duration(l.Full().Seconds) * time.Second }

func valueOr(n, standard int) int {
	if n > 0 {
		return n
	}
	return standard
}

// Lead is the name of the agent that answers when none is named.
const Lead artel.AgentName = "lead_agent"

//go:embed agents/*.md
var shipped embed.FS

// Shipped returns the agents that come with Artel.
func Shipped() ([]Definition, error) {
	sub, err := fs.Sub(shipped, "agents")
	if err != nil {
		return nil, err
	}
	all, err := Load(sub)
	for i := range all {
		all[i].File = ""
	}
	return all, err
}

// Load reads every *.md file at the top of dir as a Definition, by name. The
// error, of kind Invalid, names the file and what is wrong in it.
func Load(dir fs.FS) ([]Definition, error) {
	files, err := fs.Glob(dir, "*.md")
	if err != nil {
		return nil, artel.Errorf(artel.Internal, "agent.Load", "", "listing agents: %w", err)
	}
	var all []Definition
	for _, name := range files {
		src, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, artel.Errorf(artel.Unavailable, "agent.Load", name, "reading: %w", err)
		}
		d, err := Parse(name, src)
		if err != nil {
			return nil, err
		}
		d.File = name
		if slices.ContainsFunc(all, func(o Definition) bool { return o.Name == d.Name }) {
			return nil, artel.Errorf(artel.Invalid, "agent.Load", name, "another file defines %q already", d.Name)
		}
		all = append(all, d)
	}
	return all, nil
}

// Parse reads one definition; file names it in errors and gives the name
// where the front matter has none. What is wrong with it, apart from the names
// of others in it, is an error with [Flaws] in its chain.
func Parse(file string, src []byte) (Definition, error) {
	d, err := Read(file, src)
	if err != nil {
		return Definition{}, err
	}
	if flaws := d.Check(Known{}); len(flaws) > 0 {
		return Definition{}, artel.Errorf(artel.Invalid, "agent.Parse", file, "%w", flaws)
	}
	return d, nil
}

// Read is [Parse] for those who go on to [Definition.Check] with all that they
// know: it refuses only what cannot be read.
func Read(file string, src []byte) (Definition, error) {
	front, body, ok := cutFrontMatter(src)
	if !ok {
		return Definition{}, artel.Errorf(artel.Invalid, "agent.Parse", file, `want YAML front matter between two lines of "---", then the role prompt`)
	}
	var d Definition
	if err := decode(front, &d); err != nil {
		return Definition{}, artel.Errorf(artel.Invalid, "agent.Parse", file, "front matter: %w", err)
	}
	if d.Name == "" {
		d.Name = artel.AgentName(strings.TrimSuffix(path.Base(file), ".md"))
	}
	d.Prompt = strings.TrimSpace(string(body))
	return d, nil
}

// decode reads front matter. The decoder panics on some tagged values.
func decode(src []byte, d *Definition) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("this YAML cannot be read; write it without tags")
		}
	}()
	return yaml.UnmarshalWithOptions(src, d, yaml.DisallowUnknownField())
}

// cutFrontMatter leaves the opening line in front, so that the lines in the
// parser's errors are those of the file.
func cutFrontMatter(src []byte) (front, body []byte, ok bool) {
	const mark = "---\n"
	src = bytes.TrimPrefix(src, []byte("\uFEFF"))
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	if !bytes.HasPrefix(src, []byte(mark)) {
		return nil, nil, false
	}
	end := bytes.Index(src[len(mark)-1:], []byte("\n"+mark))
	if end < 0 {
		return nil, nil, false
	}
	end += len(mark)
	return src[:end], src[end+len(mark):], true
}
