// SPDX-License-Identifier: Apache-2.0

// Package card reads characters and presets of other programs as agents.
//
// Begin with [Read], which finds out what a file is: a character card (versions
// 1 to 3, as JSON, PNG or CHARX), a world book, or a preset of SillyTavern for
// chat or text completion. The losses name everything that works differently
// here, or not at all.
//
// The package stores nothing. Files come from strangers: sizes are bounded
// before anything is unpacked, and pictures are not decoded.
package card

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/lore"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/pipeline/rule"
)

// A Kind says what a file is.
type Kind string

// The kinds.
const (
	Character Kind = "character"
	Book      Kind = "book"
	Preset    Kind = "preset"
	Rules     Kind = "rules" // regex scripts
)

// Content is what [Read] found in a file.
type Content struct {
	Kind    Kind
	Format  string           // such as "character card 2.0, PNG"
	Agent   agent.Definition // of a character or a preset
	Book    *lore.Book       // of a character or a book; nil: none
	Rules   *rule.Config     // of regex scripts
	Picture []byte           // of a character, as it is in the file; nil: none
	Losses  []Loss
}

// A Loss is a feature of a file that works differently here, or not at all.
type Loss struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Known reports whether a file begins like one that [Read] may take, so that
// callers that accept other files too can choose.
func Known(head []byte) bool {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\uFEFF")))
	return bytes.HasPrefix(head, signature) || bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("{")) || bytes.HasPrefix(head, []byte("["))
}

// Read reads a file. name is that of the file, for files whose content has none.
// A file of another kind, or a damaged one, is of kind Invalid; one that is too
// large of kind TooLarge.
func Read(raw []byte, name string) (Content, error) {
	const op = "card.Read"
	if len(raw) > MaxFile {
		return Content{}, artel.Errorf(artel.TooLarge, op, "file", "more than the limit of %d MB", MaxFile>>20)
	}
	text, picture, container, err := unpack(raw)
	if err != nil {
		return Content{}, artel.Errorf(artel.Invalid, op, "file", "%w", err)
	}
	name = strings.TrimSpace(name)
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	c, err := contentOf(text, cmp.Or(name, "import"))
	if err != nil {
		return Content{}, err
	}
	c.Picture = picture
	c.Format += ", " + container
	return c, nil
}

// unpack returns the JSON of a file, and the picture beside it.
func unpack(raw []byte) (text, picture []byte, container string, err error) {
	switch {
	case bytes.HasPrefix(raw, signature):
		text, found, err := inPNG(raw)
		if err == nil && !found {
			err = errors.New("the picture holds no character card: it has no text chunk chara or ccv3")
		}
		return text, raw, "PNG", err
	case bytes.HasPrefix(raw, []byte("PK\x03\x04")):
		text, picture, err := inArchive(raw)
		return text, picture, "CHARX", err
	}
	return raw, nil, "JSON", nil
}

type fields = map[string]json.RawMessage

// contentOf finds out what JSON is by the keys that it has.
func contentOf(text []byte, name string) (Content, error) {
	const op = "card.Read"
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\uFEFF")))
	var f fields
	err := json.Unmarshal(text, &f)
	has := func(keys ...string) bool {
		return !slices.ContainsFunc(keys, func(k string) bool { return f[k] == nil })
	}
	data := fields{}
	_ = json.Unmarshal(f["data"], &data) // absent, or something else
	switch spec := str(f["spec"]); {
	case err == nil && (spec == "chara_card_v2" || spec == "chara_card_v3") && data["name"] != nil:
		return character(data, "character card "+cmp.Or(str(f["spec_version"]), spec), name)
	case err == nil && has("name", "first_mes") && has("description"), err == nil && has("char_name", "char_persona"):
		return character(version1(f), "character card 1", name)
	case err == nil && has("entries") || spec == "lorebook_v3":
		b, losses, err := lore.Import(text, name)
		c := Content{Kind: Book, Format: "world book", Book: &b}
		for _, l := range losses {
			c.lost(strings.TrimPrefix(l.Entry+": "+l.Field, ": "), "%s", l.Message)
		}
		return c, err
	case err == nil && has("prompts", "prompt_order"), err == nil && has("prompts", "temperature"):
		return chatPreset(f, name)
	case err == nil && (has("temp", "rep_pen") || has("temp", "top_p") || has("temperature", "top_p")):
		return samplingPreset(f, name)
	case err == nil && has("input_sequence"), err == nil && has("story_string"):
		return Content{}, artel.Errorf(artel.Unsupported, op, "file", "it is an instruct or context template of SillyTavern, which formats text for services without chat; services here get messages")
	}
	config, losses, rerr := rule.FromSillyTavern(text, macro.FromSillyTavern)
	if rerr == nil {
		c := Content{Kind: Rules, Format: "regex scripts", Rules: &config}
		for _, l := range losses {
			c.lost(l.Script+": "+l.Field, "%s", l.Message)
		}
		return c, nil
	}
	if err != nil && !bytes.HasPrefix(text, []byte("[")) {
		return Content{}, artel.Errorf(artel.Invalid, op, "file", "it is neither a picture nor JSON that can be read: %w", err)
	}
	return Content{}, artel.Errorf(artel.Invalid, op, "file", "it is no character card, world book, preset or list of regex scripts")
}

func str(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // "" if it is something else
	return s
}

// version1 returns the fields of a card of version 1, or of an older program.
func version1(f fields) fields {
	for old, now := range map[string]string{
		"char_name": "name", "char_persona": "description", "world_scenario": "scenario", "char_greeting": "first_mes", "example_dialogue": "mes_example",
	} {
		if f[now] == nil && f[old] != nil {
			f[now] = f[old]
		}
		delete(f, old)
	}
	return f
}

const maxLosses = 10_000

func (c *Content) lost(field, format string, args ...any) {
	if len(c.Losses) < maxLosses {
		c.Losses = append(c.Losses, Loss{artel.Shorten(field, 120), artel.Shorten(fmt.Sprintf(format, args...), 400)})
	}
}

// macros translates the macros of a text.
func (c *Content) macros(field, text string) string {
	out, lost := macro.FromSillyTavern(text)
	for _, l := range lost {
		c.lost(field, "the macro %s", l)
	}
	return tidy(out)
}

func tidy(s string) string {
	return strings.TrimSpace(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(s, "\uFFFD")))
}

// text reads a text field and translates its macros.
func (c *Content) text(f fields, field string) string {
	raw := f[field]
	if raw == nil || string(raw) == "null" {
		return ""
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		c.lost(field, "%s is no text and does nothing", artel.Shorten(string(raw), 60))
		return ""
	}
	return c.macros(field, s)
}

// AgentName returns a name for an agent that is like a title.
func AgentName(title string) artel.AgentName {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToValidUTF8(title, "") {
		if unicode.IsSpace(r) || r == '/' || !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(r)
	}
	name := strings.Trim(b.String(), ".")
	for len(name) > 100 {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return artel.AgentName(cmp.Or(name, "character"))
}

// defaultPrompt is the role prompt of a character whose card has none.
const defaultPrompt = "Write {{char}}'s next reply in a conversation between {{char}} and {{user}}."

// The ids of the presets that a card makes.
const (
	examplesID = "examples"
	afterID    = "post-history"
	noteID     = "character-note"
)

// character converts the data of a card.
func character(f fields, format, fallback string) (Content, error) {
	c := Content{Kind: Character, Format: format}
	title := tidy(str(f["name"]))
	nickname := tidy(str(f["nickname"]))
	title = cmp.Or(artel.Shorten(strings.ReplaceAll(title, "\n", " "), 200), fallback)
	d := &c.Agent
	d.Name = AgentName(title)
	d.Character = pipeline.Character{
		Name: artel.Shorten(strings.ReplaceAll(cmp.Or(nickname, title), "\n", " "), 200), Description: c.text(f, "description"), Personality: c.text(f, "personality"),
		Scenario: c.text(f, "scenario"), Examples: examples(c.text(f, "mes_example")), Version: artel.Shorten(tidy(str(f["character_version"])), 100),
	}
	d.Description = artel.Shorten(c.about(f, title), 2000)
	c.prompt(f)
	if g := c.text(f, "first_mes"); g != "" {
		d.Greetings = append(d.Greetings, g)
	}
	for _, field := range []string{"alternate_greetings", "group_only_greetings"} {
		var more []string
		if raw := f[field]; raw != nil && json.Unmarshal(raw, &more) != nil {
			c.lost(field, "it is no list of texts and does nothing")
		}
		for _, g := range more {
			if g = c.macros(field, g); g != "" {
				d.Greetings = append(d.Greetings, g)
			}
		}
		if field == "group_only_greetings" && len(more) > 0 {
			c.lost(field, "there are no groups here; these greetings can be chosen like the others")
		}
	}
	if err := c.book(f, title); err != nil {
		return c, err
	}
	c.extensions(f)
	c.assets(f)
	known := []string{
		"name", "nickname", "description", "personality", "scenario", "mes_example", "first_mes", "alternate_greetings", "group_only_greetings", "system_prompt", "post_history_instructions",
		"character_book", "extensions", "assets", "creator_notes", "creator", "character_version", "tags", "creation_date", "modification_date",
		"spec", "spec_version", "data", "avatar", "chat", "create_date", "fav", "talkativeness", "metadata", "creatorcomment", "json_data",
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(known, name) && !empty(f[name]) {
			c.lost(name, "the field is not known here and does nothing")
		}
	}
	if flaws := d.Check(agent.Known{}); len(flaws) > 0 {
		return c, artel.Errorf(artel.Invalid, "card.Read", "file", "the character cannot become an agent: %w", flaws)
	}
	return c, nil
}

// empty reports whether a value says nothing.
func empty(raw json.RawMessage) bool {
	return slices.Contains([]string{"", "null", "false", "0", `""`, "[]", "{}"}, string(bytes.TrimSpace(raw)))
}

// about returns what users read about the character: the creator's notes.
func (c *Content) about(f fields, title string) string {
	notes := tidy(cmp.Or(str(f["creator_notes"]), str(f["creatorcomment"])))
	if creator := tidy(str(f["creator"])); creator != "" {
		notes = strings.TrimSpace(notes + "\n\nCharacter by " + creator + ".")
	}
	var tags []string
	if !c.read(f, "tags", &tags) {
		return cmp.Or(notes, title)
	}
	if len(tags) > 0 {
		c.lost("tags", "agents have no tags here; they are %s", strings.Join(tags, ", "))
	}
	return cmp.Or(notes, title)
}

// prompt makes the role prompt and the presets of a card.
func (c *Content) prompt(f fields) {
	d := &c.Agent
	system := str(f["system_prompt"])
	original := func(s, standard string) string { return originalMacro.ReplaceAllLiteralString(s, standard) }
	system = c.macros("system_prompt", original(system, defaultPrompt))
	parts := []string{cmp.Or(system, defaultPrompt)}
	for _, p := range []struct{ there, text string }{
		{d.Character.Description, "{{description}}"},
		{d.Character.Personality, "{{char}}'s personality: {{personality}}"},
		{d.Character.Scenario, "Scenario: {{scenario}}"},
	} {
		if p.there != "" {
			parts = append(parts, p.text)
		}
	}
	d.Prompt = strings.Join(parts, "\n\n")
	if d.Character.Examples != "" {
		d.Presets = append(d.Presets, pipeline.Preset{ID: examplesID, Text: "Example messages:\n{{mesExamples}}"})
	}
	if after := c.macros("post_history_instructions", original(str(f["post_history_instructions"]), "")); after != "" {
		d.Presets = append(d.Presets, pipeline.Preset{ID: afterID, Text: after, Place: pipeline.Place{Depth: "0"}})
	}
}

var (
	originalMacro = regexp.MustCompile(`(?i)\{\{original\}\}`)
	startMark     = regexp.MustCompile(`(?i)<start>`)
)

// examples separates example conversations, which begin with <START>, by an
// empty line.
func examples(s string) string {
	var out []string
	for _, part := range startMark.Split(s, -1) {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return strings.Join(out, "\n\n")
}

// book reads the world book of a card.
func (c *Content) book(f fields, title string) error {
	raw := f["character_book"]
	var book fields
	if !c.read(f, "character_book", &book) || empty(book["entries"]) {
		return nil
	}
	if str(book["name"]) == "" {
		book["name"], _ = json.Marshal(title) // a string cannot fail
		raw, _ = json.Marshal(book)           // it was JSON
	}
	b, losses, err := lore.Import(raw, title)
	if err != nil {
		return err
	}
	for _, l := range losses {
		c.lost("character_book: "+strings.TrimPrefix(l.Entry+": "+l.Field, ": "), "%s", l.Message)
	}
	c.Book = &b
	return nil
}

// UseBook makes an agent use a world book.
func UseBook(d *agent.Definition, name string) error {
	config, err := json.Marshal(map[string][]string{"books": {name}})
	if err == nil {
		d.Processors = append(d.Processors, pipeline.Setting{ID: pipeline.Lore, Config: config})
	}
	return err
}

// extensions reads what SillyTavern keeps beside the specified fields.
func (c *Content) extensions(f fields) {
	var ext fields
	if !c.read(f, "extensions", &ext) {
		return
	}
	var note struct {
		Prompt string          `json:"prompt"`
		Depth  json.RawMessage `json:"depth"`
		Role   json.RawMessage `json:"role"`
	}
	if !empty(ext["depth_prompt"]) && json.Unmarshal(ext["depth_prompt"], &note) != nil {
		c.lost("extensions.depth_prompt", "it is no note and does nothing")
	} else if strings.TrimSpace(note.Prompt) != "" {
		depth := cmp.Or(strings.Trim(string(note.Depth), `" `), "4")
		if strings.Trim(depth, "0123456789") != "" {
			depth = "4"
		}
		role := artel.Role(str(note.Role))
		if !slices.Contains([]artel.Role{artel.RoleSystem, artel.RoleUser, artel.RoleAssistant}, role) {
			if said := string(note.Role); said != "" && said != "null" && said != `""` {
				c.lost("extensions.depth_prompt", "the role %s is not known; it is system", artel.Shorten(string(note.Role), 40))
			}
			role = artel.RoleSystem
		}
		c.Agent.Presets = append(c.Agent.Presets, pipeline.Preset{ID: noteID, Role: role, Text: c.macros("depth_prompt", note.Prompt), Place: pipeline.Place{Depth: artel.Shorten(depth, 9)}})
	}
	if !empty(ext["regex_scripts"]) {
		config, losses, err := rule.FromSillyTavern(ext["regex_scripts"], macro.FromSillyTavern)
		if err == nil {
			var raw json.RawMessage
			if raw, err = json.Marshal(config); err == nil {
				c.Agent.Processors = append(c.Agent.Processors, pipeline.Setting{ID: pipeline.RegexProcessor, Config: raw})
			}
		}
		if err != nil {
			c.lost("extensions.regex_scripts", "%v", err)
		}
		for _, l := range losses {
			c.lost("extensions.regex_scripts: "+l.Script+": "+l.Field, "%s", l.Message)
		}
	}
	if world := str(ext["world"]); world != "" && c.Book == nil {
		c.lost("extensions.world", "the card names the world book %q without holding it; import that book, and switch it on for this agent", artel.Shorten(world, 80))
	}
	for _, name := range slices.Sorted(maps.Keys(ext)) {
		if !slices.Contains([]string{"depth_prompt", "regex_scripts", "world", "fav", "talkativeness"}, name) && !empty(ext[name]) {
			c.lost("extensions."+name, "it belongs to another program and does nothing")
		}
	}
}

// An asset is a file that belongs to a card of version 3.
type asset struct {
	Type string `json:"type"`
	URI  string `json:"uri"`
	Name string `json:"name"`
}

// read reads a field into v. It is false if the field says nothing, or is
// something else, which is a loss.
func (c *Content) read(f fields, field string, v any) bool {
	if empty(f[field]) {
		return false
	}
	err := json.Unmarshal(f[field], v)
	if err != nil {
		c.lost(field, "%s is not what belongs there and does nothing", artel.Shorten(string(f[field]), 60))
	}
	return err == nil
}

func assetsIn(f fields) (list []asset) {
	_ = json.Unmarshal(f["assets"], &list) // none if it is something else
	return list
}

// assets reports the assets other than the main picture.
func (c *Content) assets(f fields) {
	others := 0
	var all []asset
	c.read(f, "assets", &all)
	for _, a := range all {
		if a.Type != "icon" || a.Name != "main" && a.URI != "ccdefault:" {
			others++
		}
	}
	if others > 0 {
		c.lost("assets", "%d other files (backgrounds, expressions, sounds …) have no use here and are left out", others)
	}
}

// iconOf returns the path in an archive of the main picture of a card; "": none.
func iconOf(text []byte) string {
	var f struct{ Data fields }
	if json.Unmarshal(text, &f) != nil {
		return ""
	}
	best := ""
	for _, a := range assetsIn(f.Data) {
		path, ok := strings.CutPrefix(a.URI, "embeded://")
		if !ok {
			path, ok = strings.CutPrefix(a.URI, "embedded://")
		}
		if ok && a.Type == "icon" && (best == "" || a.Name == "main") {
			best = path
		}
	}
	return best
}
