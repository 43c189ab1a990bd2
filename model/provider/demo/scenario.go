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

// A Scenario is a parsed scenario file, which replaces the script, including
// failures. It is immutable. The file is a txtar archive
// (golang.org/x/tools/txtar); its comment is free text, its sections are "turn 1",
// "turn 2" and so on. A turn is one answer of the model; the number of answers
// since the newest user message selects it. In such a section, a line that begins
// with "@" is a command, and all other lines are text to stream ("@@" at the
// beginning stands for one "@"):
//
//	@call NAME {JSON}      call a tool; the object may continue over several lines
//	@think TEXT            stream TEXT in pieces as reasoning, before the text of the turn
//	@delay 50ms            wait
//	@error 500 MESSAGE     fail as an API that answers with this status
//	@cut                   break the stream off
//	@hang                  send nothing more until the call is canceled
//	@stop length           end for this reason: end, tools, length or refusal
//
// Commands act in their order, and @error, @cut, @hang and @stop come last.
// Example:
//
//	Reads a file, then fails.
//	-- turn 1 --
//	Let me see.
//	@call read_artifact {"id": "notes"}
//	-- turn 2 --
//	The notes say
//	@cut
//
// A request for a summary of the conversation is not answered by a turn but by the
// section "summary", which has the form of one, or by a generated summary. The
// script continues after it.
//
// A section "message 1", "message 2" and so on before turns limits them to that
// user message; without any, the turns answer every message. After a section "asked
// WORDS", turns are numbered anew and answer messages with these words, whatever
// their number: those to subagents. The text of a message section is the user's
// message. It and the sections that begin with "upload", "upstream", "service",
// "compact" and "outcome" are for programs that play the user, and are ignored
// here.
type Scenario struct {
	messages [][][]move      // the turns by message, from the first
	every    bool            // the turns answer every message
	summary  []move          // the answer to a request for a summary; nil: generated
	asked    []subagentTurns // the turns of subagents
	nested   bool            // the next sections belong to the last of asked
}

// subagentTurns are the turns that answer messages with some words.
type subagentTurns struct {
	words string
	turns [][]move
}

// Turns returns the number of turns.
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

// ParseScenario parses a scenario file. An error is of kind Invalid and names the
// section and the line.
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

// add parses the section f, which begins at line.
func (s *Scenario) add(f txtar.File, line int) error {
	const op = "demo.ParseScenario"
	switch word, _, _ := strings.Cut(f.Name, " "); word {
	case "upload", "upstream", "service", "compact", "outcome":
		return nil // for programs that play the user
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
		s.asked, s.nested = append(s.asked, subagentTurns{words: words}), true
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

// turn returns the moves of the selected turn, with ids for the calls.
func (s *Scenario) turn(h *history) ([]move, error) {
	message := 0
	i := slices.IndexFunc(s.asked, func(a subagentTurns) bool { return strings.Contains(h.text, a.words) })
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

// A sectionParser parses the commands of one turn.
type sectionParser struct {
	rest string
	line int // number of the current line in the file
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

// command parses one command. taken is the length of p.rest that it uses, without
// the last line break; 0: its line.
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

// call parses a tool call, whose object may begin on the command's line or on the
// next one.
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
