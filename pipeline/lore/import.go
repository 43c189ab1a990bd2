// SPDX-License-Identifier: Apache-2.0

package lore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/macro"
)

// A Loss is a feature of an imported file that works differently here, or not at
// all.
type Loss struct {
	Entry   string `json:"entry,omitempty"` // "": the book
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Import reads a book: World Info of SillyTavern, a lorebook of a character card
// (character_book of version 2, also as lorebook_v3), or a book of this package.
// name is used if the file has none. The losses name every field with another
// effect here. A file of another kind is of kind Invalid.
func Import(raw []byte, name string) (Book, []Loss, error) {
	const op = "lore.Import"
	raw = bytes.TrimPrefix(bytes.TrimSpace(raw), []byte("\uFEFF"))
	if b, ok := ownFormat(raw); ok {
		b.Name = cleanName(cmp.Or(strings.TrimSpace(b.Name), name))
		return b, nil, b.Check()
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return Book{}, nil, artel.Errorf(artel.Invalid, op, "file", "it is no JSON object: %w", err)
	}
	if text(f["spec"]) == "lorebook_v3" {
		var data fields
		if err := json.Unmarshal(f["data"], &data); err != nil {
			return Book{}, nil, artel.Errorf(artel.Invalid, op, "data", "%w", err)
		}
		f = data
	}
	entries, err := entriesOf(f["entries"])
	if err != nil {
		return Book{}, nil, artel.Errorf(artel.Invalid, op, "entries", "%w", err)
	}
	if len(entries) > MaxEntries {
		return Book{}, nil, artel.Errorf(artel.TooLarge, op, "entries", "%d entries, and at most %d are taken", len(entries), MaxEntries)
	}
	i := importing{ids: map[string]bool{}}
	r := i.reader("", f)
	b := Book{Name: cleanName(cmp.Or(strings.TrimSpace(r.text("name")), name)), Description: r.text("description")}
	b.ScanDepth = r.number("scan_depth", maxScanDepth)
	if n := r.number("token_budget", 10*maxNumber); n != nil {
		b.TokenBudget = *n
	}
	b.Recursive = r.flag("recursive_scanning")
	r.ignore("entries", "originalData", "spec", "data", "spec_version")
	r.rest()
	for _, e := range entries {
		b.Entries = append(b.Entries, i.entry(e))
	}
	if err := b.Check(); err != nil {
		return Book{}, nil, err
	}
	return b, i.losses, nil
}

// ownFormat reads a book of this package, which has no fields but its own.
func ownFormat(raw []byte) (b Book, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(&b)
	return b, err == nil && b.Entries != nil
}

// cleanName returns a name without the characters that names cannot have.
func cleanName(s string) string {
	return strings.TrimSpace(artel.Shorten(strings.NewReplacer("/", "-", "\n", " ", "\r", " ", "\x00", "").Replace(s), maxName))
}

type fields = map[string]json.RawMessage

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // "" if it is something else
	return s
}

// entriesOf reads a list of entries, or an object whose keys are their numbers.
func entriesOf(raw json.RawMessage) ([]fields, error) {
	errNone := errors.New("it holds no entries of a world book")
	raw = bytes.TrimSpace(raw)
	var list []fields
	switch {
	case len(raw) == 0:
		return nil, errNone
	case raw[0] == '[':
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
	default:
		var numbered map[string]fields
		if err := json.Unmarshal(raw, &numbered); err != nil {
			return nil, err
		}
		keys := slices.SortedFunc(maps.Keys(numbered), func(a, b string) int {
			x, errX := strconv.Atoi(a)
			y, errY := strconv.Atoi(b)
			if errX == nil && errY == nil {
				return cmp.Compare(x, y)
			}
			return cmp.Compare(a, b)
		})
		for _, k := range keys {
			if numbered[k]["uid"] == nil && numbered[k] != nil {
				numbered[k]["uid"], _ = json.Marshal(k) // a string cannot fail
			}
			list = append(list, numbered[k])
		}
	}
	for _, e := range list {
		if e == nil || e["content"] == nil && e["key"] == nil && e["keys"] == nil {
			return nil, errNone
		}
	}
	return list, nil
}

// importing collects what an import loses.
type importing struct {
	ids    map[string]bool
	losses []Loss
}

const maxLosses = 10_000

func (i *importing) lost(entry, field, format string, args ...any) {
	if len(i.losses) < maxLosses {
		i.losses = append(i.losses, Loss{entry, field, fmt.Sprintf(format, args...)})
	}
}

func (i *importing) reader(entry string, f fields) *reader {
	return &reader{importing: i, entry: entry, fields: f, read: map[string]bool{}}
}

// A reader reads the fields of one object, and knows which it has read.
type reader struct {
	*importing
	entry  string
	fields fields
	read   map[string]bool
}

func (r *reader) ignore(names ...string) {
	for _, n := range names {
		r.read[n] = true
	}
}

// rest reports the fields that were not read and say something.
func (r *reader) rest() {
	for _, name := range slices.Sorted(maps.Keys(r.fields)) {
		if !r.read[name] && !empty(r.fields[name]) {
			r.lost(r.entry, name, "the field is not known here and does nothing")
		}
	}
}

// empty reports whether a value says nothing.
func empty(raw json.RawMessage) bool {
	return slices.Contains([]string{"", "null", "false", "0", `""`, "[]", "{}"}, string(bytes.TrimSpace(raw)))
}

// decode reads a field into dst. It is false if the field is absent or null, or
// of another type, which is a loss.
func (r *reader) decode(name string, dst any) bool {
	r.read[name] = true
	raw := r.fields[name]
	if raw == nil || string(raw) == "null" {
		return false
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		r.lost(r.entry, name, "%s is not of the right type and does nothing", artel.Shorten(string(raw), 60))
		return false
	}
	return true
}

func (r *reader) text(name string) (s string) {
	r.decode(name, &s)
	return s
}

// flag reads a boolean; nil: absent.
func (r *reader) flag(name string) *bool {
	var b bool
	if !r.decode(name, &b) {
		return nil
	}
	return &b
}

func (r *reader) on(name string) bool { return valueOr(r.flag(name), false) }

// number reads a whole number from 0 to most; nil: absent, or a loss.
func (r *reader) number(name string, most int) *int {
	var x float64
	if !r.decode(name, &x) {
		return nil
	}
	n := int(math.Round(min(max(x, -1), 1e15)))
	if n < 0 || n > most {
		r.lost(r.entry, name, "%v is not from 0 to %d and does nothing", x, most)
		return nil
	}
	return &n
}

func (r *reader) count(name string) int { return valueOr(r.number(name, maxNumber), 0) }

// list reads a list of texts, or a text with commas.
func (r *reader) list(name string) []string {
	r.read[name] = true
	raw := r.fields[name]
	var out []string
	if err := json.Unmarshal(raw, &out); err != nil && len(raw) > 0 {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			r.decode(name, &out) // a loss
			return nil
		}
		out = strings.Split(s, ",")
	}
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// macros translates the macros of a text.
func (r *reader) macros(field, text string) string {
	out, lost := macro.FromSillyTavern(text)
	for _, l := range lost {
		r.lost(r.entry, field, "the macro %s", l)
	}
	return out
}

// entry converts one entry of any format.
func (i *importing) entry(f fields) BookEntry {
	e := BookEntry{ID: i.id(f)}
	r := i.reader("", f)
	e.Name = artel.Shorten(cmp.Or(strings.TrimSpace(r.text("comment")), strings.TrimSpace(r.text("name"))), maxName)
	if f["key"] != nil {
		e.Keys = r.list("key")
	} else {
		e.Keys = r.list("keys")
	}
	r.entry = e.Title()
	e.Content = r.text("content")
	r.ignore("uid", "id", "displayIndex", "addMemo", "extensions", "hash", "world", "display_index")
	ext := i.reader(r.entry, nil)
	_ = json.Unmarshal(f["extensions"], &ext.fields) // of a card; absent in World Info
	if f["keys"] == nil {
		r.worldInfo(&e)
	} else {
		r.card(&e, ext)
	}
	for k := range e.Keys {
		e.Keys[k] = r.macros("keys", e.Keys[k])
	}
	for k := range e.Secondary {
		e.Secondary[k] = r.macros("secondary_keys", e.Secondary[k])
	}
	r.decorators(&e)
	e.Content = r.macros("content", e.Content)
	r.rest()
	ext.rest()
	if err := e.check(); err != nil {
		r.lost(r.entry, "", "the entry is disabled: %v", err)
		e = BookEntry{ID: e.ID, Name: e.Name, Content: artel.Shorten(e.Content, MaxContent/4), Enabled: new(bool)}
	}
	return e
}

// id returns the id of an entry, unique in the book.
func (i *importing) id(f fields) string {
	raw := cmp.Or(string(f["uid"]), string(f["id"]))
	id := artel.Shorten(strings.Trim(raw, `" `), 60)
	if id == "" || id == "null" {
		id = strconv.Itoa(len(i.ids))
	}
	out := id
	for n := 2; i.ids[out]; n++ {
		out = id + "-" + strconv.Itoa(n)
	}
	i.ids[out] = true
	return out
}

// worldInfo reads the fields of World Info.
func (r *reader) worldInfo(e *BookEntry) {
	if r.on("disable") {
		e.Enabled = new(bool)
	}
	e.Constant = r.on("constant")
	second := r.list("keysecondary")
	if selective := r.flag("selective"); selective == nil || *selective {
		e.Secondary = second
	}
	r.logic(e, r.number("selectiveLogic", 3))
	e.Order, e.Depth = r.whole("order", 100), valueOr(r.number("depth", maxNumber), 4)
	r.position(e, valueOr(r.number("position", maxNumber), 0), r.number("role", 2))
	if r.on("useProbability") || r.fields["useProbability"] == nil {
		e.Probability = r.percent("probability")
	} else {
		r.ignore("probability")
	}
	e.ScanDepth = r.number("scanDepth", maxScanDepth)
	e.CaseSensitive, e.WholeWords = r.flag("caseSensitive"), r.flag("matchWholeWords")
	e.ExcludeRecursion, e.PreventRecursion = r.on("excludeRecursion"), r.on("preventRecursion")
	e.DelayUntilRecursion = r.level("delayUntilRecursion")
	e.Sticky, e.Cooldown, e.Delay = r.count("sticky"), r.count("cooldown"), r.count("delay")
	e.Groups, e.GroupOverride, e.GroupWeight = r.list("group"), r.on("groupOverride"), r.weight("groupWeight")
	e.IgnoreBudget = r.on("ignoreBudget")
	r.unsupported("vectorized", "useGroupScoring", "automationId", "triggers", "outletName")
	r.filter("characterFilter")
	r.ignore("matchPersonaDescription", "matchCharacterDescription", "matchCharacterPersonality", "matchCharacterDepthPrompt", "matchScenario", "matchCreatorNotes")
	for _, name := range slices.Sorted(maps.Keys(r.fields)) {
		if strings.HasPrefix(name, "match") && name != "matchWholeWords" && !empty(r.fields[name]) {
			r.lost(r.entry, name, "keys are sought in messages alone")
		}
	}
}

// card reads the fields of a character card, and those that SillyTavern keeps in
// its extensions.
func (r *reader) card(e *BookEntry, ext *reader) {
	if enabled := r.flag("enabled"); enabled != nil && !*enabled {
		e.Enabled = new(bool)
	}
	e.Constant = r.on("constant")
	second := r.list("secondary_keys")
	if selective := r.flag("selective"); selective != nil && *selective || selective == nil && ext.fields["selectiveLogic"] != nil {
		e.Secondary = second
	}
	e.Order = r.whole("insertion_order", 100)
	e.Priority = r.number("priority", maxNumber)
	e.CaseSensitive = cmp.Or(r.flag("case_sensitive"), ext.flag("case_sensitive"))
	if r.on("use_regex") {
		for i, k := range e.Keys {
			if !isPattern(k) {
				e.Keys[i] = "/" + k + "/"
			}
		}
	}
	e.Depth = valueOr(ext.number("depth", maxNumber), 4)
	e.Probability = ext.percent("probability")
	if use := ext.flag("useProbability"); use != nil && !*use {
		e.Probability = nil
	}
	e.ScanDepth, e.WholeWords = ext.number("scan_depth", maxScanDepth), ext.flag("match_whole_words")
	e.ExcludeRecursion, e.PreventRecursion = ext.on("exclude_recursion"), ext.on("prevent_recursion")
	e.DelayUntilRecursion = ext.level("delay_until_recursion")
	e.Sticky, e.Cooldown, e.Delay = ext.count("sticky"), ext.count("cooldown"), ext.count("delay")
	e.Groups, e.GroupOverride, e.GroupWeight = ext.list("group"), ext.on("group_override"), ext.weight("group_weight")
	e.IgnoreBudget = ext.on("ignore_budget")
	r.logic(e, ext.number("selectiveLogic", 3))
	position := 0
	switch p := r.text("position"); p {
	case "", "before_char":
	case "after_char":
		position = 1
	default:
		r.lost(r.entry, "position", "%q is not known; it stands before the role prompt", artel.Shorten(p, 40))
	}
	if n := ext.number("position", maxNumber); n != nil {
		position = *n
	}
	r.position(e, position, ext.number("role", 2))
	ext.ignore("display_index")
	ext.unsupported("vectorized", "use_group_scoring", "automation_id", "triggers", "outlet_name")
	for _, name := range slices.Sorted(maps.Keys(ext.fields)) {
		if strings.HasPrefix(name, "match_") && name != "match_whole_words" {
			if ext.ignore(name); !empty(ext.fields[name]) {
				ext.lost(r.entry, name, "keys are sought in messages alone")
			}
		}
	}
}

func (r *reader) logic(e *BookEntry, n *int) {
	if n != nil {
		e.Logic = []Logic{"", NotAll, NotAny, All}[*n]
	}
}

// position converts a position and a role by their numbers in World Info.
func (r *reader) position(e *BookEntry, n int, role *int) {
	depth := e.Depth
	e.Depth = 0
	switch n {
	case 0:
	case 1:
		e.Position = AfterPrompt
	case 4:
		e.Position, e.Depth = AtDepth, depth
		if role != nil {
			e.Role = []artel.Role{"", artel.RoleUser, artel.RoleAssistant}[*role]
		}
	case 2, 3:
		e.Position, e.Depth = AtDepth, 4
		r.lost(r.entry, "position", "there is no author's note here; the entry stands at depth 4")
	case 5, 6:
		e.Position = AfterPrompt
		r.lost(r.entry, "position", "example messages have no place of their own here; the entry stands after the role prompt")
	default:
		e.Enabled = new(bool)
		r.lost(r.entry, "position", "%d (an outlet, or unknown) is no place here; the entry is disabled", n)
	}
}

func (r *reader) whole(name string, standard int) int {
	var x float64
	if !r.decode(name, &x) {
		return standard
	}
	return int(math.Round(min(max(x, -maxNumber), maxNumber)))
}

// percent reads a probability; nil: certain.
func (r *reader) percent(name string) *float64 {
	var x float64
	if !r.decode(name, &x) || x >= 100 {
		return nil
	}
	x = max(x, 0)
	return &x
}

// weight reads a weight, of which 100 is the default.
func (r *reader) weight(name string) int {
	if n := r.number(name, maxNumber); n != nil && *n != 100 {
		return *n
	}
	return 0
}

// level reads a flag or a number.
func (r *reader) level(name string) int {
	if raw := string(r.fields[name]); raw == "true" || raw == "false" {
		if r.on(name) {
			return 1
		}
		return 0
	}
	return r.count(name)
}

// unsupported reports fields that have no effect here, if they say something.
func (r *reader) unsupported(names ...string) {
	for _, name := range names {
		if r.ignore(name); !empty(r.fields[name]) {
			r.lost(r.entry, name, "it has no counterpart here and does nothing")
		}
	}
}

// filter reports a filter by characters.
func (r *reader) filter(name string) {
	var f struct {
		Names []string `json:"names"`
		Tags  []string `json:"tags"`
	}
	if r.decode(name, &f) && len(f.Names)+len(f.Tags) > 0 {
		r.lost(r.entry, name, "books are chosen by agent here; the entry fires for every agent that has the book")
	}
}

// decorators reads the lines that begin with @@ at the head of a text of version
// 3, and removes them.
func (r *reader) decorators(e *BookEntry) {
	done := false // the last decorator, of which a line with @@@ is the alternative, was understood
	for {
		line, rest, _ := strings.Cut(strings.TrimLeft(e.Content, "\n\r"), "\n")
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "@@") {
			return
		}
		e.Content = strings.TrimLeft(rest, "\n\r")
		alternative := strings.HasPrefix(line, "@@@")
		if alternative && done {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimLeft(line, "@"), " ")
		if done = r.decorator(e, name, strings.TrimSpace(value)); !done {
			r.lost(r.entry, "@@"+artel.Shorten(name, 40), "the decorator does nothing here")
		}
	}
}

func (r *reader) decorator(e *BookEntry, name, value string) bool {
	n, err := strconv.Atoi(value)
	number := err == nil && n >= 0 && n <= maxNumber
	keys := func() []string {
		list := strings.Split(value, ",")
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
		return slices.DeleteFunc(list, func(s string) bool { return s == "" })
	}
	switch {
	case name == "depth" && number:
		e.Position, e.Depth = AtDepth, n
	case name == "role" && slices.Contains([]string{"system", "user", "assistant"}, value):
		e.Role = artel.Role(value)
	case name == "scan_depth" && number && n <= maxScanDepth:
		e.ScanDepth = &n
	case name == "position" && value == "before_desc":
		e.Position = BeforePrompt
	case name == "position" && value == "after_desc":
		e.Position = AfterPrompt
	case name == "activate":
		e.Constant = true
	case name == "dont_activate":
		e.Enabled = new(bool)
	case name == "additional_keys" && len(e.Secondary) == 0:
		e.Secondary, e.Logic = keys(), Any
	case name == "exclude_keys" && len(e.Secondary) == 0:
		e.Secondary, e.Logic = keys(), NotAny
	default:
		return false
	}
	return true
}
