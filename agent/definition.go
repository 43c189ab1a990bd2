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

// A Definition is one agent: its name, what it may use, and its limits. Its
// written form is a Markdown file: YAML front matter between two "---" lines
// with the fields below, then the role prompt; see [Definition.Markdown].
type Definition struct {
	Name        artel.AgentName   `json:"name" yaml:"name"`
	Description string            `json:"description,omitempty" yaml:"description"`
	Service     artel.ServiceID   `json:"service,omitempty" yaml:"service"`         // "": the deployment's default
	Fallbacks   []artel.ServiceID `json:"fallbacks,omitempty" yaml:"fallbacks"`     // tried in this order if the service cannot be reached
	Tools       []string          `json:"tools,omitempty" yaml:"tools"`             // the only ones that it can call
	Subagents   []artel.AgentName `json:"subagents,omitempty" yaml:"subagents"`     // agents that it may delegate to, with [SubagentTool]
	Skills      SkillNames        `json:"skills,omitempty" yaml:"skills"`           // that it can open, with [tool.OpenSkill]
	Permissions Permissions       `json:"permissions,omitempty" yaml:"permissions"` // of tools, in addition to the deployment's
	Limits      Limits            `json:"limits,omitzero" yaml:"limits"`

	// The settings of the context pipeline.
	Presets    []pipeline.Preset  `json:"preset_messages,omitempty" yaml:"preset_messages"`
	Context    pipeline.Limits    `json:"context,omitzero" yaml:"context"`
	Clock      macro.Clock        `json:"clock,omitzero" yaml:"clock"`
	Processors []pipeline.Setting `json:"processors,omitempty" yaml:"processors"`
	Compaction Compaction         `json:"compaction,omitzero" yaml:"compaction"`

	Sampling pipeline.Sampling `json:"sampling,omitzero" yaml:"sampling"`

	// What a character brings along.
	Character pipeline.Character `json:"character,omitzero" yaml:"character"`
	Greetings []string           `json:"greetings,omitempty" yaml:"greetings"` // first messages to choose from, with macros

	Prompt string `json:"prompt,omitempty" yaml:"-"` // the role prompt, with macros

	File string `json:"-" yaml:"-"` // name of the file that it was loaded from; "": none
}

// SubagentTool is the name of the tool that delegates work to another agent.
// Every agent with subagents has it.
const SubagentTool = "call_subagent"

// Pipeline returns the part of the definition that a context build needs.
func (d Definition) Pipeline() pipeline.Agent {
	return pipeline.Agent{Name: d.Name, Description: d.Description, Prompt: d.Prompt, Presets: d.Presets, Context: d.Context, Character: d.Character, Sampling: d.Sampling}
}

// Time returns the time that the agent's clock shows at now. If the clock is
// out of its range of years, that is now.
func (d Definition) Time(now time.Time) time.Time {
	if t, err := d.Clock.At(now); err == nil {
		return t
	}
	return now
}

// Compaction configures when the history of an agent is summarised.
type Compaction struct {
	// Threshold is a percentage of the token budget of a request: the window
	// less the reserve for the reply. 0: 80.
	Threshold int `json:"threshold,omitempty" yaml:"threshold"`
	// Off drops the oldest messages from requests instead. A user can still
	// request a compaction.
	Off bool `json:"off,omitempty" yaml:"off"`
}

const standardThreshold = 80

// Tokens returns the threshold for a budget; 0: none.
func (c Compaction) Tokens(budget int) int {
	if c.Off || budget <= 0 {
		return 0
	}
	return max(1, budget*valueOr(c.Threshold, standardThreshold)/100)
}

// Limits stop a run.
type Limits struct {
	Turns     int     `json:"turns,omitempty" yaml:"turns"`           // model calls; 0: 40
	ToolCalls int     `json:"tool_calls,omitempty" yaml:"tool_calls"` // 0: 200
	Seconds   int     `json:"seconds,omitempty" yaml:"seconds"`       // wall clock; 0: 3600
	Tokens    int     `json:"tokens,omitempty" yaml:"tokens"`         // in and out, of all model calls; 0: no limit
	Cost      float64 `json:"cost,omitempty" yaml:"cost"`             // in US dollars, of services with a known price; 0: no limit
	Depth     int     `json:"depth,omitempty" yaml:"depth"`           // nesting of subagents; 0: 2
	Answer    int     `json:"answer,omitempty" yaml:"answer"`         // seconds to answer a question of permission; 0: 300
}

// Full returns the limits with defaults for unset fields. Fields that remain 0
// are unlimited.
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

// Lead is the name of the agent that answers if none is named.
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
// error, of kind Invalid, names the file and the mistake.
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

// Parse reads one definition. file names it in errors, and is the name if the
// front matter has none. Mistakes, except unknown names, are an error with
// [Flaws] in its chain.
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

// Read parses a definition without [Definition.Check]; it refuses only what
// cannot be read.
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

// decode reads front matter. The YAML decoder panics on some tagged values.
func decode(src []byte, d *Definition) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("this YAML cannot be read; write it without tags")
		}
	}()
	return yaml.UnmarshalWithOptions(src, d, yaml.DisallowUnknownField())
}

// cutFrontMatter keeps the opening line in front, so that line numbers in the
// parser's errors match the file.
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
