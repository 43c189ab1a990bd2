// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// A session is one start of a program, and what the model behind the service got.
type session struct {
	mark      string
	word      string        // what is done: work, wait or one of the faults
	disturbed bool          // faults interrupt the work
	asked     atomic.Int64  // requests
	dir       string        // where the program works
	picture   artel.Digest  // to look at
	embedded  artel.Digest  // in the page
	screen    artel.Digest  // of the MCP server
	shoots    bool          // the program has the MCP server
	base64    string        // of the picture in the page
	begun     chan struct{} // closed when an answer has begun that does not end
	left      chan struct{} // closed when its client has gone

	mu       sync.Mutex
	offered  []string // tools of the first request
	problems []string
	read     bool   // the text of the file arrived
	shot     string // how the picture of the MCP server arrived, likewise
	looked   string // how the picture arrived: inResult, carried, described; empty: it did not
	step     int    // the newest that was asked for, from 1
	ended    bool
	billed   []artel.Usage // for the answers of the conversation
	results  []string      // the texts of the results of the newest request
}

// A script is the model behind every service: it works through the same task with
// the tools that a program offers, whatever their names.
type script struct{ sessions sync.Map } // *session by mark

var prompt = regexp.MustCompile(`do: (work|wait|again|break|refuse|deny) ([a-z0-9-]+)`)

// answer implements [fake.Responder].
func (s *script) answer(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	word, mark, from := "", "", 0
	for i, m := range r.Messages {
		if found := prompt.FindAllStringSubmatch(artel.TextOf(m.Parts), -1); m.Role == artel.RoleUser && found != nil {
			last := found[len(found)-1]
			word, mark, from = last[1], last[2], i
		}
	}
	v, ok := s.sessions.Load(mark)
	if !ok || len(r.Tools) == 0 { // titles, summaries and the like
		return say(r, model.TextDelta("Files."))
	}
	switch word {
	case "wait":
		return v.(*session).wait(ctx)
	case "again":
		return v.(*session).late()
	case "break":
		return v.(*session).broken()
	}
	return v.(*session).work(r, r.Messages[from:])
}

// say answers beside the conversation: with a title, a summary and the like.
func say(r *model.Request, deltas ...model.Delta) iter.Seq2[model.Delta, error] {
	if r.Format.JSON {
		return fake.Echo(context.Background(), r)
	}
	return bill(artel.Usage{Calls: 1, InputTokens: 1000, OutputTokens: 20}, deltas...)
}

// say answers in the conversation, each time for another number of tokens.
func (s *session) say(deltas ...model.Delta) iter.Seq2[model.Delta, error] {
	n := int64(len(s.billed))
	usage := artel.Usage{Calls: 1, InputTokens: 5003 + 101*n, CachedTokens: 4001 + 10*n, OutputTokens: 31 + 7*n, ThoughtTokens: 11 + n}
	s.billed = append(s.billed, usage)
	return bill(usage, deltas...)
}

func bill(usage artel.Usage, deltas ...model.Delta) iter.Seq2[model.Delta, error] {
	finish := model.Finish{Reason: model.StopEnd, Usage: usage}
	return func(yield func(model.Delta, error) bool) {
		for _, d := range deltas {
			if _, ok := d.(model.CallDelta); ok {
				finish.Reason = model.StopTools
			}
			if !yield(d, nil) {
				return
			}
		}
		yield(finish, nil)
	}
}

// wait is an answer that does not end before its client leaves.
func (s *session) wait(ctx context.Context) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if !yield(model.TextDelta("It begins."), nil) {
			return
		}
		s.mu.Lock()
		first := s.step == 0
		s.step = 1
		s.mu.Unlock()
		if !first {
			return
		}
		close(s.begun)
		<-ctx.Done()
		close(s.left)
	}
}

// The files of the task, before and after it.
const (
	notesBefore = "first line\nsecond: grün “quoted” \\back\\slash\nthird line\n"
	notesAfter  = "first line\nsecond: grün “quoted” \\back\\slash\nthird line, changed: \\u00e9 é <&>\n"
	codeBefore  = "const greet = (name) => {\n\tconst a = `hello ${name}`;\n\treturn a.replace(/\\s+/g, ' ');\n};\n"
	codeAfter   = "const greet = (name) => {\n\tconst a = `hello ${name}`;\n\treturn a.replace(/\\t\"+/g, \" \");\n};\n"
	made        = "# Made\n\n\"double\", 'single', `back`, \\n is no newline, ünï — 漢字\n\tindented\n"
	pageTag     = `<img alt="%s" src="%s">`
	pageBefore  = "<!doctype html>\n<h1>Page</h1>\n" + pageTag + "\n<p>The end.</p>\n"
)

// seenTag is the tag of the page in the result of a tool, which may be quoted in
// JSON, with what stands for the picture.
var seenTag = regexp.MustCompile(`<img alt=\\*"old\\*" src=\\*"([^"\\]*)\\*">`)

// An act is what the model wants to be done.
type act struct {
	verb         string // read, look, write, edit or shoot
	dir, file    string
	text         string // the text to write
	before, with string // a whole line of the file, and what takes its place
}

func (a act) path() string { return filepath.Join(a.dir, a.file) }

// acts are the steps of the task. What the page holds in place of the picture is
// known when it has been read.
func acts(dir, source string) []act {
	line := func(text string, n int) string { return strings.Split(text, "\n")[n] }
	all := []act{
		{verb: "read", file: "notes.txt"},
		{verb: "look", file: "alpha.png"},
		{verb: "write", file: "made.md", text: made},
		{verb: "edit", file: "notes.txt", before: line(notesBefore, 2), with: line(notesAfter, 2)},
		{verb: "read", file: "greet.js"},
		{verb: "edit", file: "greet.js", before: line(codeBefore, 2), with: line(codeAfter, 2)},
		{verb: "read", file: "page.html"},
		{verb: "edit", file: "page.html", before: fmt.Sprintf(pageTag, "old", source), with: fmt.Sprintf(pageTag, "new", source)},
		{verb: "write", file: "copy.html", text: fmt.Sprintf(pageTag, "copy", source) + "\n"},
		{verb: "shoot"},
	}
	for i := range all {
		all[i].dir = dir
	}
	return all
}

// work asks for the next step of the task, which follows from the calls so far.
func (s *session) work(r *model.Request, messages []model.Message) iter.Seq2[model.Delta, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offered == nil {
		for _, t := range r.Tools {
			s.offered = append(s.offered, t.Name)
		}
	}
	source := s.observe(messages)
	done, searched := 0, false
	for _, m := range messages {
		if m.Role == artel.RoleAssistant {
			for _, c := range artel.CallsOf(m.Parts) {
				if c.Name == searchTool {
					searched = true
				} else {
					done++
				}
			}
		}
	}
	steps := acts(s.dir, source)
	if !s.shoots {
		steps = steps[:len(steps)-1]
	}
	for ; done < len(steps); done++ {
		if done < s.step { // another conversation of the program over the same words
			return say(r, model.TextDelta("Files."))
		}
		s.step = done + 1
		call, ok := callFor(r.Tools, steps[done])
		if !ok && steps[done].verb == "shoot" && !searched && slices.Contains(toolNames(r.Tools), searchTool) {
			s.step--
			call, ok = model.CallDelta{ID: "call_search", Name: searchTool, Arguments: json.RawMessage(`{"query":"shot screen"}`)}, true
			return s.say(call)
		}
		if !ok {
			s.problems = append(s.problems, fmt.Sprintf("no tool to %s among %q", steps[done].verb, toolNames(r.Tools)))
			return s.say(model.TextDelta("I have no tool for that."))
		}
		call.ID = artel.CallID("call_" + strconv.Itoa(done+1))
		return s.say(call)
	}
	s.ended = true
	return s.say(model.TextDelta("All is done."))
}

func toolNames(tools []model.ToolSpec) []string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

// observe notes what of the files reached the model, and returns what stands for
// the picture in the page; empty: the page was not read.
func (s *session) observe(messages []model.Message) (source string) {
	s.results = nil
	for _, m := range messages {
		for _, result := range artel.ResultsOf(m.Parts) {
			s.results = append(s.results, fmt.Sprintf("%s %v", artel.Shorten(result.Content, 300), result.Parts))
			s.read = s.read || strings.Contains(plain(result.Content), `grün “quoted”`)
			if found := seenTag.FindStringSubmatch(result.Content); found != nil {
				source = found[1]
			}
			s.look(result.Parts, "✓")
			if strings.Contains(result.Content, s.base64[:48]) && !slices.Contains(s.problems, inText) {
				s.problems = append(s.problems, inText)
			}
		}
		s.look(m.Parts, "carried")
	}
	return source
}

// look notes in which way the picture arrived, if it is among parts.
func (s *session) look(parts artel.Parts, way string) {
	for _, p := range artel.MediaOf(parts) {
		switch {
		case p.Ref.Digest == s.screen:
			s.shot = cmp.Or(s.shot, way)
		case s.looked != "" || p.Kind != artel.KindImage || p.Ref.Digest == s.embedded:
		case p.Ref.Digest == s.picture:
			s.looked = way
		default:
			s.looked = "re-encoded"
		}
	}
}

// searchTool finds tools of MCP servers for models to which Codex does not name them.
const searchTool = "tool_search"

const inText = "base64 reached the model as text"

// plain undoes the escapes of JSON in a text that holds some.
func plain(s string) string { return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(s) }

// dataURI is the picture as a page embeds it.
func dataURI(png []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(png)
}

// callFor is the call that does a, of the tools that a program offers.
func callFor(tools []model.ToolSpec, a act) (model.CallDelta, bool) {
	for _, known := range hands {
		if i := slices.IndexFunc(tools, func(t model.ToolSpec) bool { return known.is(t.Name) }); i >= 0 {
			if arguments := known.do(a); arguments != nil {
				var schema struct{ Properties map[string]any }
				if json.Unmarshal(tools[i].Schema, &schema) == nil && len(schema.Properties) > 0 {
					maps.DeleteFunc(arguments, func(name string, _ any) bool { _, ok := schema.Properties[name]; return !ok })
				}
				b, err := json.Marshal(arguments)
				return model.CallDelta{Name: tools[i].Name, Arguments: b}, err == nil
			}
		}
	}
	return model.CallDelta{}, false
}
