// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Scenario is a parsed scenario file. It does not change.
type Scenario struct {
	messages [][][]move // the turns by message, from the first
	every    bool       // the turns answer every message
	summary  []move     // the answer to whoever asks for a summary; nil: the provider's own
	asked    []asked    // the turns of subagents
	nested   bool       // the sections that follow are of the last one of asked
}

// asked are the turns that answer messages with some words in them.
type asked struct {
	words string
	turns [][]move
}

// Turns returns how many turns there are.
func (s *Scenario) Turns() int {
	n := 0
	for _, turns := range s.messages {
		n += len(turns)
	}
	for _, a := range s.asked {
		n += len(a.turns)
	}
	return n
}

// ParseScenario reads the format that the package documents. An error is of
// kind Invalid and names the section and the line in the file.
func ParseScenario(data []byte) (*Scenario, error) {
	archive := txtar.Parse(data)
	s := &Scenario{every: true}
	line := 1 + strings.Count(string(archive.Comment), "\n")
	for _, f := range archive.Files {
		if err := s.add(f, line); err != nil {
			return nil, err
		}
		line += 1 + strings.Count(string(f.Data), "\n")
	}
	if s.Turns() == 0 {
		return nil, artel.Errorf(artel.Invalid, "demo.ParseScenario", "", `line 1: there are no turns: want a section "-- turn 1 --"`)
	}
	return s, nil
}

// add reads the section f, whose head is at line.
func (s *Scenario) add(f txtar.File, line int) error {
	const op = "demo.ParseScenario"
	switch word, _, _ := strings.Cut(f.Name, " "); word {
	case "upload", "upstream", "service", "compact", "outcome":
		return nil // for whoever plays the user
	case "summary":
		p := sectionParser{rest: string(f.Data), line: line + 1}
		moves, err := p.parse()
		if err != nil {
			return artel.Errorf(artel.Invalid, op, f.Name, "line %d: %w", p.line, err)
		}
		s.summary = append([]move{}, moves...)
		return nil
	case "asked":
		_, words, _ := strings.Cut(f.Name, " ")
		if words = strings.TrimSpace(words); words == "" {
			return artel.Errorf(artel.Invalid, op, f.Name, `line %d: want words of the instruction, as in "-- asked for the crane --"`, line)
		}
		s.asked, s.nested = append(s.asked, asked{words: words}), true
		return nil
	case "message":
		s.nested = false
		if s.every && s.Turns() > 0 {
			return artel.Errorf(artel.Invalid, op, f.Name, "line %d: the first message comes before the first turn", line)
		}
		s.every = false
		if want := fmt.Sprintf("message %d", len(s.messages)+1); f.Name != want {
			return artel.Errorf(artel.Invalid, op, artel.Shorten(f.Name, 60), "line %d: want a section %q here: messages are numbered from 1 without gaps", line, want)
		}
		s.messages = append(s.messages, nil)
		return nil
	}
	if len(s.messages) == 0 {
		s.messages = append(s.messages, nil)
	}
	turns := &s.messages[len(s.messages)-1]
	if s.nested {
		turns = &s.asked[len(s.asked)-1].turns
	}
	if want := fmt.Sprintf("turn %d", len(*turns)+1); f.Name != want {
		return artel.Errorf(artel.Invalid, op, artel.Shorten(f.Name, 60), "line %d: want a section %q here: turns are numbered from 1 without gaps", line, want)
	}
	p := sectionParser{rest: string(f.Data), line: line + 1}
	moves, err := p.parse()
	if err != nil {
		return artel.Errorf(artel.Invalid, op, f.Name, "line %d: %w", p.line, err)
	}
	*turns = append(*turns, moves)
	return nil
}

// turn returns the moves that are due, with ids for the calls.
func (s *Scenario) turn(h *history) ([]move, error) {
	message := 0
	i := slices.IndexFunc(s.asked, func(a asked) bool { return strings.Contains(h.text, a.words) })
	asked := i >= 0
	if !s.every && !asked {
		message = h.ordinal - 1
	}
	if message < 0 || message >= len(s.messages) {
		return nil, artel.Errorf(artel.Invalid, "demo.Generate", "scenario",
			"it has %d messages, and the model is asked about the number %d", len(s.messages), h.ordinal)
	}
	turns := s.messages[message]
	if asked {
		turns = s.asked[i].turns
	}
	if h.answers >= len(turns) {
		return nil, artel.Errorf(artel.Invalid, "demo.Generate", "scenario",
			"it has %d turns, and the model is asked for one more", len(turns))
	}
	var out []move
	for i, m := range turns[h.answers] {
		if c, ok := m.(call); ok {
			c.ID = artel.CallID(fmt.Sprintf("%s_turn-%d_%d", h.mark, h.answers+1, i+1))
			m = c
		}
		out = append(out, m)
	}
	return out, nil
}

// A sectionParser reads the commands of one turn.
type sectionParser struct {
	rest string
	line int // the number in the file of the line being read
}

func (p *sectionParser) parse() ([]move, error) {
	var moves []move
	var text strings.Builder
	last := ""
	for p.rest != "" {
		line, rest, _ := strings.Cut(p.rest, "\n")
		command, isCommand := strings.CutPrefix(line, "@")
		if last != "" && (isCommand || strings.TrimSpace(line) != "") {
			return nil, fmt.Errorf("nothing comes after @%s", last)
		}
		if !isCommand || strings.HasPrefix(command, "@") {
			text.WriteString(command + "\n")
			p.rest = rest
			p.line++
			continue
		}
		if s := strings.Trim(text.String(), "\n"); s != "" {
			moves = append(moves, say(s))
		}
		text.Reset()
		word, arg, _ := strings.Cut(command, " ")
		m, taken, err := p.command(strings.TrimRight(word, "\r"), strings.TrimSpace(arg))
		if err != nil {
			return nil, err
		}
		switch m.(type) {
		case fault, hang, end:
			last = strings.TrimRight(word, "\r")
		}
		moves = append(moves, m)
		if taken == 0 {
			taken = len(line)
		}
		p.line += strings.Count(p.rest[:taken], "\n") + 1
		p.rest = strings.TrimPrefix(p.rest[taken:], "\n")
	}
	if s := strings.Trim(text.String(), "\n"); s != "" && last == "" {
		moves = append(moves, say(s))
	}
	return moves, nil
}

// command reads one command. taken is how much of p.rest it takes, without the
// last line break; 0: its line.
func (p *sectionParser) command(word, arg string) (m move, taken int, err error) {
	switch word {
	case "call":
		return p.call(arg)
	case "think":
		return think(arg), 0, nil
	case "delay":
		d, err := time.ParseDuration(arg)
		if err != nil || d < 0 || d > time.Hour {
			return nil, 0, fmt.Errorf("@delay %q: want a duration up to 1h, such as 50ms", artel.Shorten(arg, 40))
		}
		return wait(d), 0, nil
	case "error":
		number, message, _ := strings.Cut(arg, " ")
		status, err := strconv.Atoi(number)
		if err != nil || status < 400 || status > 599 {
			return nil, 0, fmt.Errorf("@error %q: want a status from 400 to 599", artel.Shorten(number, 40))
		}
		return fault{status, strings.TrimSpace(message)}, 0, nil
	case "cut":
		return fault{}, 0, noArgument(word, arg)
	case "hang":
		return hang{}, 0, noArgument(word, arg)
	case "stop":
		switch reason := model.StopReason(arg); reason {
		case model.StopEnd, model.StopTools, model.StopLength, model.StopRefusal:
			return end(reason), 0, nil
		}
		return nil, 0, fmt.Errorf("@stop %q: want end, tools, length or refusal", artel.Shorten(arg, 40))
	}
	return nil, 0, fmt.Errorf("there is no command @%s: want call, think, delay, error, cut, hang or stop; a text line with @ in front begins with @@", artel.Shorten(word, 40))
}

func noArgument(word, arg string) error {
	if arg != "" {
		return fmt.Errorf("@%s takes no argument", word)
	}
	return nil
}

// call reads a tool call, whose object may begin on the command's line or
// after it.
func (p *sectionParser) call(arg string) (move, int, error) {
	name, _, _ := strings.Cut(strings.TrimSpace(strings.SplitN(arg, "{", 2)[0]), " ")
	if name == "" {
		return nil, 0, fmt.Errorf("@call: want the name of a tool and a JSON object")
	}
	from := strings.Index(p.rest, name) + len(name)
	dec := json.NewDecoder(strings.NewReader(p.rest[from:]))
	var args json.RawMessage
	if err := dec.Decode(&args); err != nil {
		return nil, 0, fmt.Errorf("@call %s: want a JSON object: %w", artel.Shorten(name, 60), err)
	}
	if args[0] != '{' {
		return nil, 0, fmt.Errorf("@call %s: want a JSON object, not %s", artel.Shorten(name, 60), artel.Shorten(string(args), 40))
	}
	taken := from + int(dec.InputOffset())
	tail, _, _ := strings.Cut(p.rest[taken:], "\n")
	if strings.TrimSpace(tail) != "" {
		return nil, 0, fmt.Errorf("@call %s: nothing comes after the object", artel.Shorten(name, 60))
	}
	return call{Name: name, Arguments: args}, taken + len(tail), nil
}
