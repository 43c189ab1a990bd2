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
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/macro"
	"github.com/artelhq/artel/pipeline"
)

// A Definition is one agent: who it is, what it may use, and how far it may
// go. Its written form is a Markdown file: YAML front matter between two "---"
// lines with the fields below, then the role prompt.
type Definition struct {
	Name        artel.AgentName `yaml:"name"`
	Description string          `yaml:"description"`
	Service     artel.ServiceID `yaml:"service"` // "": the deployment's default
	Tools       []string        `yaml:"tools"`   // it can call no others
	Limits      Limits          `yaml:"limits"`

	// What a model sees beside the prompt and the conversation.
	Presets    []pipeline.Preset  `yaml:"preset_messages"`
	Context    pipeline.Limits    `yaml:"context"`
	Clock      macro.Clock        `yaml:"clock"`
	Processors []pipeline.Setting `yaml:"processors"`

	Prompt string `yaml:"-"` // the role prompt, with macros
}

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

// Limits end a run that goes too far.
type Limits struct {
	Turns     int `yaml:"turns"`      // model calls; 0: 40
	ToolCalls int `yaml:"tool_calls"` // 0: 200
	Seconds   int `yaml:"seconds"`    // wall clock; 0: 3600
}

func (l Limits) turns() int     { return orDefault(l.Turns, 40) }
func (l Limits) toolCalls() int { return orDefault(l.ToolCalls, 200) }

// Time returns the wall clock limit.
func (l Limits) Time() time.Duration { return time.Duration(orDefault(l.Seconds, 3600)) * time.Second }

func orDefault(n, standard int) int {
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
	return Load(sub)
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
		if slices.ContainsFunc(all, func(o Definition) bool { return o.Name == d.Name }) {
			return nil, artel.Errorf(artel.Invalid, "agent.Load", name, "another file defines %q already", d.Name)
		}
		all = append(all, d)
	}
	return all, nil
}

// Parse reads one definition; file names it in errors and gives the name
// where the front matter has none.
func Parse(file string, src []byte) (Definition, error) {
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
	switch {
	case len(d.Name) > artel.MaxIDLength || strings.ContainsFunc(string(d.Name), notInName):
		return Definition{}, artel.Errorf(artel.Invalid, "agent.Parse", file, "the agent's name has to be one word of at most %d bytes", artel.MaxIDLength)
	case d.Prompt == "" && len(d.Presets) == 0:
		return Definition{}, artel.Errorf(artel.Invalid, "agent.Parse", file, "the role prompt after the front matter is empty, and there are no preset_messages")
	case d.Limits.Turns < 0 || d.Limits.ToolCalls < 0 || d.Limits.Seconds < 0:
		return Definition{}, artel.Errorf(artel.Invalid, "agent.Parse", file, "a limit is negative; leave it out for the default")
	case d.Context.MaxTokens < 0 || d.Context.KeepChars < 0 || d.Context.ReplyReserve != nil && *d.Context.ReplyReserve < 0:
		return Definition{}, artel.Errorf(artel.Invalid, "agent.Parse", file, "a number in context is negative; leave it out for the default")
	case max(d.Limits.Turns, d.Limits.ToolCalls, d.Limits.Seconds) > maxLimit:
		return Definition{}, artel.Errorf(artel.Invalid, "agent.Parse", file, "a limit is over %d", maxLimit)
	}
	if err := pipeline.CheckPresets(d.Presets); err != nil {
		return Definition{}, artel.Errorf(artel.Invalid, "agent.Parse", file, "front matter: %w", err)
	}
	if _, err := d.Clock.At(time.Now()); err != nil {
		return Definition{}, artel.Errorf(artel.Invalid, "agent.Parse", file, "front matter: clock: %w", err)
	}
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

// maxLimit is the most that a limit can allow; a run that may take longer than
// a week of seconds has no limit at all.
const maxLimit = 1_000_000

func notInName(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == utf8.RuneError }

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
