// SPDX-License-Identifier: Apache-2.0

// Package skill reads and writes skills in the format of agentskills.io: a
// folder with the file SKILL.md, which has YAML front matter and instructions in
// Markdown, and with further files, such as scripts, references and templates.
//
// Begin with [ReadZIP] or [ReadFS], which check a folder and all its names, or with
// [Parse] for SKILL.md alone. Files are never changed, so that [WriteZIP] returns
// what was read, byte for byte. Nothing here runs a script.
package skill

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// FileName is the name of the file that makes a folder a skill.
const FileName = "SKILL.md"

// Limits of SKILL.md. Those of names and descriptions are of the format.
const (
	MaxName          = 64
	MaxDescription   = 1024 // code points
	maxCompatibility = 500  // code points
	maxText          = 256 << 10
	maxFront         = 16 << 10
	maxNesting       = 20
	maxMetadata      = 100
)

// A Skill is the front matter of SKILL.md.
type Skill struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"` // what it does and when to use it
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"` // what it needs
	Metadata      map[string]string `json:"metadata,omitempty"`
	AllowedTools  []string          `json:"allowed_tools,omitempty"` // has no effect; see [NoteTools]
	Unknown       []string          `json:"unknown,omitempty"`       // other keys, which stay in the file
}

// A Code says what a [Note] is about.
type Code string

// The codes. The value of a note is in brackets.
const (
	NoteUnknown  Code = "unknown"  // keys of the front matter that the format does not have (their names)
	NoteTools    Code = "tools"    // allowed-tools, which gives no permission here (the tools)
	NoteMetadata Code = "metadata" // keys of metadata whose values are no texts (their names)
	NoteFolder   Code = "folder"   // the folder has another name (its name)
	NoteScripts  Code = "scripts"  // scripts, which are never run (how many)
	NoteSkipped  Code = "skipped"  // files of the system that were left out (their paths)
	NoteNoText   Code = "no_text"  // there are no instructions after the front matter
)

// A Note says what works differently here, or not at all.
type Note struct {
	Code  Code   `json:"code"`
	Value string `json:"value,omitempty"`
}

// In returns the text of the note in a language.
func (n Note) In(l phrase.Locale) string {
	return l.Say(phrase.Key("skill.note_"+string(n.Code)), map[string]any{"Value": n.Value})
}

// mark is the line around the front matter.
const mark = "---"

// Parse reads SKILL.md. The error, of kind Invalid, has all mistakes.
func Parse(src []byte) (s Skill, notes []Note, err error) {
	const op = "skill.Parse"
	if len(src) > maxText {
		return s, nil, artel.Errorf(artel.TooLarge, op, FileName, "has %d bytes, and at most %d are read; move parts of it to other files", len(src), maxText)
	}
	if !utf8.Valid(src) {
		return s, nil, artel.Errorf(artel.Invalid, op, FileName, "is not UTF-8")
	}
	front, body, ok := split(string(src))
	if !ok {
		return s, nil, artel.Errorf(artel.Invalid, op, FileName, `want YAML front matter between two lines of "---", with name and description, then the instructions`)
	}
	fields, err := decode(front)
	if err != nil {
		return s, nil, artel.Errorf(artel.Invalid, op, FileName, "front matter: %w", err)
	}
	if notes, err = s.read(fields); err != nil {
		return s, nil, artel.Errorf(artel.Invalid, op, FileName, "%w", err)
	}
	if strings.TrimSpace(body) == "" {
		notes = append(notes, Note{Code: NoteNoText})
	}
	return s, notes, nil
}

// Text returns the instructions of SKILL.md, without the front matter.
func Text(src string) string {
	if _, body, ok := split(src); ok {
		return strings.TrimLeft(body, "\r\n")
	}
	return src
}

// split keeps a line in the place of the opening mark, so that line numbers in the
// parser's errors match the file.
func split(src string) (front, body string, ok bool) {
	rest := strings.TrimPrefix(src, "\uFEFF")
	first, rest, _ := strings.Cut(rest, "\n")
	if strings.TrimRight(first, " \t\r") != mark {
		return "", "", false
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		next := min(len(rest), at+len(line)+1)
		if strings.TrimRight(line, " \t\r") == mark {
			return "\n" + rest[:at], rest[next:], true
		}
		at = next
	}
	return "", "", false
}

// decode reads YAML without anchors and tags, with which few bytes can stand for
// many. The decoder panics on some inputs.
func decode(front string) (fields map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("this YAML cannot be read")
		}
	}()
	if len(front) > maxFront {
		return nil, fmt.Errorf("has %d bytes, and at most %d are read", len(front), maxFront)
	}
	front = strings.ReplaceAll(front, "\r\n", "\n")
	depth := 0
	for _, t := range lexer.Tokenize(front) {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
			return nil, fmt.Errorf("line %d: write the value without anchors, aliases and tags", t.Position.Line)
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if depth > maxNesting || t.Position != nil && t.Position.IndentNum > 2*maxFront/maxNesting {
			return nil, fmt.Errorf("line %d: the values are nested too deeply", t.Position.Line)
		}
	}
	if err := yaml.NewDecoder(bytes.NewReader([]byte(front))).Decode(&fields); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(artel.Shorten(strings.TrimSpace(yaml.FormatError(err, false, false)), 300))
	}
	var written struct {
		Metadata map[string]literal `yaml:"metadata"`
	}
	if m, ok := fields["metadata"].(map[string]any); ok && yaml.Unmarshal([]byte(front), &written) == nil {
		for key, v := range m {
			switch v.(type) {
			case string, nil, map[string]any, []any:
			default:
				m[key] = string(written.Metadata[key])
			}
		}
	}
	return fields, nil
}

// A literal is a value as it is written, so that the version 1.0 does not become 1.
type literal string

// UnmarshalYAML implements [yaml.BytesUnmarshaler].
func (l *literal) UnmarshalYAML(b []byte) error {
	*l = literal(strings.TrimSpace(string(b)))
	return nil
}

// validName is the form of a name in the format.
var validName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// IsName reports whether a skill can have a name.
func IsName(name string) bool { return len(name) <= MaxName && validName.MatchString(name) }

// read takes the fields of the front matter.
func (s *Skill) read(fields map[string]any) (notes []Note, err error) {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	text := func(key string, most int) string {
		v, there := fields[key]
		delete(fields, key)
		t, ok := scalar(v)
		if there && v != nil && !ok {
			wrong("%s: want a text", key)
		}
		t = strings.TrimSpace(t)
		if n := utf8.RuneCountInString(t); n > most {
			wrong("%s: has %d characters, and at most %d are allowed", key, n, most)
		}
		return t
	}
	switch s.Name = text("name", MaxName); {
	case s.Name == "":
		wrong("name: is missing")
	case !IsName(s.Name):
		wrong("name: %q has other characters than a-z, 0-9 and single hyphens between them; want a name like pdf-forms", artel.Shorten(s.Name, 80))
	}
	if s.Description = text("description", MaxDescription); s.Description == "" {
		wrong("description: is missing; agents choose skills by what it says")
	}
	s.License, s.Compatibility = text("license", maxLicense), text("compatibility", maxCompatibility)
	tools, known := listed(fields["allowed-tools"])
	if delete(fields, "allowed-tools"); !known {
		wrong("allowed-tools: want names with spaces between them")
	}
	if s.AllowedTools = tools; len(tools) > 0 {
		notes = append(notes, Note{NoteTools, artel.Shorten(strings.Join(tools, ", "), 300)})
	}
	odd, err := s.metadata(fields["metadata"])
	if delete(fields, "metadata"); err != nil {
		problems = append(problems, err)
	}
	if len(odd) > 0 {
		notes = append(notes, Note{NoteMetadata, artel.Shorten(strings.Join(odd, ", "), 300)})
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		s.Unknown = append(s.Unknown, artel.Shorten(key, 80))
	}
	if len(s.Unknown) > 0 {
		notes = append(notes, Note{NoteUnknown, artel.Shorten(strings.Join(s.Unknown, ", "), 300)})
	}
	return notes, joined(problems)
}

// maxLicense bounds a license, which is a name or names a file.
const maxLicense = 1000

func (s *Skill) metadata(v any) (odd []string, err error) {
	if v == nil {
		return nil, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("metadata: want keys with texts")
	}
	if len(m) > maxMetadata {
		return nil, fmt.Errorf("metadata: has %d keys, and at most %d are allowed", len(m), maxMetadata)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		t, ok := scalar(m[key])
		if !ok {
			odd = append(odd, artel.Shorten(key, 80))
			continue
		}
		if s.Metadata == nil {
			s.Metadata = map[string]string{}
		}
		s.Metadata[key] = t
	}
	return odd, nil
}

// scalar returns a value that is no list and no mapping as a text.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case map[string]any, []any:
		return "", false
	default:
		return fmt.Sprint(v), true
	}
}

// listed returns names with spaces or commas between them, or a list of names.
func listed(v any) ([]string, bool) {
	if list, ok := v.([]any); ok {
		var out []string
		for _, x := range list {
			name, ok := scalar(x)
			if !ok {
				return nil, false
			}
			out = append(out, name)
		}
		return out, true
	}
	t, ok := scalar(v)
	return strings.FieldsFunc(t, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\t' }), ok
}

// joined makes one line of several problems.
func joined(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
