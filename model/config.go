// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
)

// ParseServicesFile reads an llmservices.json, {"services": [entry, …]}, as
// [ParseServices] does. A file that cannot be parsed is of kind Invalid, and
// the error names file and line.
func ParseServicesFile(file string, data []byte, getenv func(string) string) ([]Service, []Finding, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var doc struct {
		Services []any `json:"services"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	at := dec.InputOffset()
	if err == nil {
		if _, extra := dec.Token(); extra != io.EOF {
			err = errors.New("more follows after the end of the object")
		}
	}
	if err == nil && doc.Services == nil {
		err = errors.New(`no list "services"`)
	}
	if err != nil {
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = e.Offset
		} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			at, err = e.Offset, errors.New(`want {"services": [entries]}`)
		} else if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			at, err = int64(len(data)), errors.New("the file ends too early")
		}
		line := 1 + bytes.Count(data[:min(at, int64(len(data)))], []byte("\n"))
		return nil, nil, artel.Errorf(artel.Invalid, "model.ParseServicesFile", file, "line %d: %w", line, err)
	}
	services, findings := ParseServices(doc.Services, file, getenv, entryLines(data)...)
	return services, findings, nil
}

// entryLines returns the first lines of the entries of a valid file. Of duplicate
// keys the last one counts, as in parsing.
func entryLines(data []byte) []int {
	dec := json.NewDecoder(bytes.NewReader(data))
	var lines []int
	_, err := dec.Token() // the brace
	for err == nil && dec.More() {
		var key json.Token
		if key, err = dec.Token(); err != nil {
			break
		}
		if name, _ := key.(string); !strings.EqualFold(name, "services") {
			var value json.RawMessage
			err = dec.Decode(&value)
			continue
		}
		var bracket json.Token
		if bracket, err = dec.Token(); err != nil || bracket != json.Delim('[') {
			return nil // null, and another list elsewhere
		}
		lines = nil
		for err == nil && dec.More() {
			var value json.RawMessage
			if err = dec.Decode(&value); err == nil {
				begin := int(dec.InputOffset()) - len(value)
				lines = append(lines, 1+bytes.Count(data[:begin], []byte("\n")))
			}
		}
		_, err = dec.Token()
	}
	return lines
}

// ParseServices makes services of the decoded entries of an llmservices.json or an
// artel.yaml; origin is the name of that file, and lines are the first lines of
// the entries, if known. Invalid keys and values are ignored and reported in the
// entry's finding (see [Finding.Warnings]), which holds no secret. Missing
// capabilities come from the built-in catalog.
//
// Only id is required; without model or baseURL a service is for routing only.
// apiKey may be "${NAME}", which getenv expands. docs/configuration.md lists all
// keys.
func ParseServices(entries []any, origin string, getenv func(string) string, lines ...int) ([]Service, []Finding) {
	var services []Service
	var findings []Finding
	seen := map[artel.ServiceID]bool{}
	for i, raw := range entries {
		f := Finding{Source: InConfiguration, Place: origin, Found: FoundNothing}
		if i < len(lines) {
			f.Line = lines[i]
		}
		if fields, ok := raw.(map[string]any); !ok {
			f.Problem = NoObject
		} else if s, ok := f.read(fields, getenv); ok {
			if seen[s.ID] {
				f.Problem, f.Detail = IDTaken, string(s.ID)
			} else {
				seen[s.ID] = true
				services, f.Services = append(services, s), []artel.ServiceID{s.ID}
			}
		}
		findings = append(findings, f)
	}
	return services, findings
}

// read makes a service of an entry and reports its flaws in f.
func (f *Finding) read(fields map[string]any, getenv func(string) string) (Service, bool) {
	e := &entry{fields: fields, finding: f}
	s := e.service(f.Place, getenv)
	f.Name = artel.Shorten(string(s.ID), 60)
	if s.ID == "" {
		f.Problem, f.Detail = NoID, ""
		return s, false
	}
	return s, true
}

// entry reads one object and collects its flaws.
type entry struct {
	fields  map[string]any
	under   string   // key of the object and a point: "limits."
	known   []string // keys that were read
	finding *Finding
}

func (e *entry) flaw(code FlawCode, key, value string) {
	e.finding.Flaws = append(e.finding.Flaws, Flaw{code, e.under + artel.Shorten(key, 60), artel.Shorten(value, 60)})
}

func (e *entry) service(origin string, getenv func(string) string) Service {
	id := e.text("id")
	s := Service{
		ID:            artel.ServiceID(id),
		Name:          e.text("name"),
		Dialect:       OpenAI,
		BaseURL:       strings.TrimRight(cmp.Or(e.text("baseURL"), e.text("base_url")), "/"),
		Model:         e.text("model"),
		APIKey:        cmp.Or(e.secret("apiKey", getenv), e.secret("api_key", getenv)),
		Tags:          e.texts("capabilityTags"),
		Description:   e.text("description"),
		MaxConcurrent: int(e.number("maxConcurrentRequests")),
		Timeout:       time.Duration(min(e.number("timeout"), maxTimeout)) * time.Millisecond,
		FirstTimeout:  time.Duration(min(e.number("firstTimeout"), maxTimeout)) * time.Millisecond,
		Origin:        origin,
	}
	if v, ok := e.value("processors"); ok {
		s.Processors = e.entries("processors", v)
	}
	s.Fallbacks, s.ForContext, s.ForFilter = e.ids("fallbacks"), e.ids("context_fallbacks"), e.ids("filter_fallbacks")
	s.Extra = e.extras(getenv)
	if s.Name == "" {
		s.Name = id
	}
	s.Models, s.AllModels = e.models()
	s.OtherModels = e.texts("other_models")
	if kind := Server(e.text("discovery")); kind == AnyServer || slices.Contains(Servers(), kind) {
		s.Server = kind
	} else {
		e.flaw(UnknownWord, "discovery", string(kind))
	}
	if s.Auth = e.auth(); s.Auth.Kind != AuthKey && s.Server == AnyServer {
		s.Server = NoServer // the lists of models of clouds have forms of their own
	}
	if d := Dialect(e.text("dialect")); slices.Contains(Dialects(), d) {
		s.Dialect = d
	} else if d != "" {
		s.BaseURL = "" // it cannot be called
		e.finding.Problem, e.finding.Detail = DialectUnknown, artel.Shorten(string(d), 40)
	}
	if s.Dialect == OpenAI {
		s.QuirkSettings = e.quirks()
	}
	var declared Capabilities
	declared, s.Output = e.capabilities()
	s.Capabilities = combine(declared, s.builtIn())
	e.rest()
	return s
}

// models reads a list of models, or the word all.
func (e *entry) models() (names []string, all bool) {
	v, ok := e.value("models")
	if word, is := v.(string); ok && is {
		if all = word == "all"; !all {
			e.flaw(UnknownWord, "models", word)
		}
		return nil, all
	}
	return e.texts("models"), false
}

const maxTimeout = 24 * 60 * 60 * 1000 // a day in milliseconds

func (e *entry) capabilities() (c Capabilities, output []string) {
	c = TextOnly()
	if caps, ok := e.object("capabilities"); ok {
		if words, ok := caps.list("input"); ok {
			c.Input = known(FromOperator, caps.inputs(words))
		}
		output = caps.texts("output")
		caps.rest()
	}
	if types, ok := e.list("accepts"); ok {
		c.Accepts = known(FromOperator, e.mediaTypes("accepts", types))
	}
	if limits, ok := e.object("limits"); ok {
		limits.bound(&c.MaxItemBytes, "item_bytes")
		limits.bound(&c.MaxRequestBytes, "request_bytes")
		limits.count(&c.MaxSide, "side")
		limits.count(&c.MaxImages, "images")
		limits.count(&c.Many, "many")
		limits.count(&c.MaxSideOfMany, "side_of_many")
		limits.count(&c.MaxPages, "pages")
		limits.rest()
	}
	if place, ok := e.object("placement"); ok {
		place.flag(&c.ToolImage, "tool_image")
		place.flag(&c.ToolFile, "tool_file")
		place.flag(&c.UserAfterTool, "user_after_tool")
		place.rest()
	}
	if words, ok := e.list("transport"); ok {
		c.Transport = known(FromOperator, e.transports(words))
	}
	if n := e.number("context_window"); n > 0 {
		c.ContextWindow = known(FromOperator, int(n))
	}
	tokens := e.number("maxTokens")
	if n := e.number("max_output"); n > 0 {
		tokens = n
	}
	if tokens > 0 {
		c.MaxOutput = known(FromOperator, int(tokens))
	}
	if price, ok := e.object("price"); ok {
		c.Price = price.price()
		price.rest()
	}
	if v := e.text("tokenizer"); v != "" {
		c.Tokenizer = known(FromOperator, v)
	}
	return c, output
}

// price reads US dollars per million tokens. Cached tokens default to the price of
// input.
func (e *entry) price() Fact[Price] {
	var p Price
	input := e.dollars("input", &p.Input, true)
	output := e.dollars("output", &p.Output, true)
	p.CacheRead, p.CacheWrite = p.Input, p.Input
	e.dollars("cache_read", &p.CacheRead, false)
	e.dollars("cache_write", &p.CacheWrite, false)
	if !input || !output {
		return Fact[Price]{}
	}
	return known(FromOperator, p)
}

// dollars reads a number from 0 and reports whether it was given.
func (e *entry) dollars(key string, to *float64, needed bool) bool {
	v, ok := e.value(key)
	if !ok {
		if needed {
			e.mistyped(key, wantDollars)
		}
		return false
	}
	f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if _, isText := v.(string); isText || err != nil || !(f >= 0 && f <= 1e6) {
		e.mistyped(key, wantDollars)
		return false
	}
	*to = f
	return true
}

// inputs returns the known inputs among words, text first.
func (e *entry) inputs(words []string) []artel.Capability {
	inputs := []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile, artel.CanAudio, artel.CanVideo}
	out := inputs[:1:1]
	for _, w := range words {
		c := artel.Capability(w)
		switch {
		case slices.Contains(out, c):
		case slices.Contains(inputs, c):
			out = append(out, c)
		case w == "structured_output" || w == "tool_calling": // valid words, but no inputs
		default:
			e.flaw(UnknownWord, "input", w)
		}
	}
	return out
}

// transports returns the known transports among words.
func (e *entry) transports(words []string) []Transport {
	out := []Transport{}
	for _, w := range words {
		if t := Transport(w); !slices.Contains(Transports(), t) {
			e.flaw(UnknownWord, "transport", w)
		} else if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

func (e *entry) mediaTypes(key string, raw []string) []string {
	out := []string{}
	for _, v := range raw {
		t, _, err := mime.ParseMediaType(v)
		if err != nil || strings.Count(t, "/") != 1 {
			e.flaw(NoMediaType, key, v)
			continue
		}
		out = append(out, t)
	}
	return out
}

// rest reports the keys that were not read.
func (e *entry) rest() {
	for _, k := range slices.Sorted(maps.Keys(e.fields)) {
		if slices.Contains(e.known, k) {
			continue
		}
		near := nearestKey(k, e.known)
		if near != "" {
			near = e.under + near
		}
		e.flaw(UnknownKey, k, near)
	}
}

// nearestKey is [Nearest] for keys in any spelling: API_KEY is apiKey.
func nearestKey(key string, known []string) string {
	fold := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	for _, k := range known {
		if fold(k) == fold(key) {
			return k
		}
	}
	for _, meant := range [][2]string{ // the names that other programs use
		{"provider", "dialect"},
		{"type", "dialect"},
		{"format", "dialect"},
		{"protocol", "dialect"},
		{"url", "baseURL"},
		{"endpoint", "baseURL"},
		{"host", "baseURL"},
		{"apibase", "baseURL"},
		{"address", "baseURL"},
		{"key", "apiKey"},
		{"token", "apiKey"},
		{"secret", "apiKey"},
	} {
		if meant[0] == fold(key) && slices.Contains(known, meant[1]) {
			return meant[1]
		}
	}
	return Nearest(key, known)
}

// value returns the value of key; null counts as absent.
func (e *entry) value(key string) (any, bool) {
	e.known = append(e.known, key)
	v := e.fields[key]
	return v, v != nil
}

// entries returns a list of objects as JSON; nil if v is no such list.
func (e *entry) entries(key string, v any) json.RawMessage {
	list, ok := v.([]any)
	ok = ok && !slices.ContainsFunc(list, func(x any) bool { _, is := x.(map[string]any); return !is })
	b, err := json.Marshal(list)
	if !ok || err != nil {
		e.mistyped(key, wantEntries)
		return nil
	}
	return b
}

func (e *entry) mistyped(key, want string) { e.flaw(WrongType, key, want) }

func (e *entry) text(key string) string {
	v, ok := e.value(key)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		e.mistyped(key, wantText)
	}
	return strings.TrimSpace(s)
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

func (e *entry) secret(key string, getenv func(string) string) Secret {
	return Secret(variable.ReplaceAllStringFunc(e.text(key), func(ref string) string {
		name := ref[2 : len(ref)-1]
		v := getenv(name)
		if v == "" {
			e.flaw(EmptyVariable, key, name)
		}
		return v
	}))
}

func (e *entry) texts(key string) []string {
	out, _ := e.list(key)
	return out
}

func (e *entry) ids(key string) []artel.ServiceID {
	var out []artel.ServiceID
	for _, id := range e.texts(key) {
		out = append(out, artel.ServiceID(id))
	}
	return out
}

func (e *entry) list(key string) ([]string, bool) {
	v, ok := e.value(key)
	if !ok {
		return nil, false
	}
	raw, ok := v.([]any)
	out := make([]string, 0, len(raw))
	for _, r := range raw {
		s, isText := r.(string)
		ok = ok && isText
		out = append(out, strings.TrimSpace(s))
	}
	if !ok {
		e.mistyped(key, wantTexts)
		return nil, false
	}
	return out, true
}

func (e *entry) object(key string) (*entry, bool) {
	v, ok := e.value(key)
	if !ok {
		return nil, false
	}
	fields, ok := v.(map[string]any)
	if !ok {
		e.mistyped(key, wantObject)
		return nil, false
	}
	return &entry{fields: fields, under: e.under + key + ".", finding: e.finding}, true
}

// flag reads a fact, if given.
func (e *entry) flag(fact *Fact[bool], key string) {
	v, ok := e.value(key)
	if !ok {
		return
	}
	b, ok := v.(bool)
	if !ok {
		e.mistyped(key, wantFlag)
		return
	}
	*fact = known(FromOperator, b)
}

// bound reads a limit; 0: no limit.
func (e *entry) bound(fact *Fact[int64], key string) {
	if n, ok := e.given(key); ok {
		*fact = known(FromOperator, n)
	}
}

// count is bound for an int.
func (e *entry) count(fact *Fact[int], key string) {
	if n, ok := e.given(key); ok {
		*fact = known(FromOperator, int(n))
	}
}

// number returns a whole number from 0 to 2^53; 0 if not given.
func (e *entry) number(key string) int64 {
	n, _ := e.given(key)
	return n
}

// given is number, and whether it was given.
func (e *entry) given(key string) (int64, bool) {
	v, ok := e.value(key)
	if !ok {
		return 0, false
	}
	// JSON and YAML decoders return numbers of different types with the same text.
	f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if _, isText := v.(string); isText || err != nil || f < 0 || f > 1<<53 || f != float64(int64(f)) {
		e.mistyped(key, wantNumber)
		return 0, false
	}
	return int64(f), true
}

// ParseEntry makes a service of one entry like [ParseServices], and refuses what that
// reports: the error of kind Invalid holds [Flaws]. Variables of the environment are
// not expanded and the credentials of the machine not used, because entries that do
// not come from a file of the machine must not read either.
func ParseEntry(fields map[string]any, origin string) (Service, error) {
	f := Finding{Source: Stored, Place: origin}
	s, ok := f.read(fields, func(string) string { return "" })
	flaws := slices.Clone(Flaws(f.Flaws))
	for i, flaw := range flaws {
		if flaw.Code == EmptyVariable {
			flaws[i].Code = OnlyInFiles
		}
	}
	if s.Auth.Kind != AuthKey {
		flaws = append(flaws, Flaw{Code: OnlyInFiles, Key: "auth"})
	}
	if u, err := url.Parse(s.BaseURL); s.BaseURL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		flaws = append(flaws, Flaw{Code: WrongType, Key: "baseURL", Value: wantAddress})
	}
	switch {
	case !ok && !slices.ContainsFunc(flaws, func(f Flaw) bool { return f.Key == "id" }):
		flaws = append(flaws, Flaw{Code: WrongType, Key: "id", Value: wantText})
	case f.Problem == DialectUnknown:
		flaws = append(flaws, Flaw{Code: UnknownWord, Key: "dialect", Value: f.Detail})
	}
	if len(flaws) > 0 {
		return s, &artel.Error{Op: "model.ParseEntry", Subject: artel.Shorten(string(s.ID), 60), Kind: artel.Invalid, Err: flaws}
	}
	return s, nil
}

// Nearest returns the most similar known word, or "" if more than a third of the
// letters of word would have to change.
func Nearest(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := editDistance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// editDistance counts letters to change, add, drop, or swap with their
// neighbor ("modle"), by bytes: keys are ASCII.
func editDistance(a, b string) int {
	var before []int // the row before row
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
