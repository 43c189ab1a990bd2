// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
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
func ParseServicesFile(file string, data []byte, getenv func(string) string) ([]Service, []string, error) {
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
	services, warnings := ParseServices(doc.Services, file, getenv)
	return services, warnings, nil
}

// ParseServices makes services of decoded entries of an llmservices.json or of
// services in artel.yaml; origin is where they come from. What is wrong in an
// entry never fails: it is left out and told in a warning, which holds no
// secret. Capabilities that are not declared come from the built-in catalog.
//
// An entry is an object. id is required; model and baseURL are too, unless the
// service serves for routing only. apiKey may be "${NAME}", which getenv
// expands. The rest is optional: name, dialect, description, capabilities
// {input, output}, capabilityTags, accepts (media types), limits {item_bytes},
// placement {tool_image, tool_file} (whether tool results may carry them),
// context_window, max_output (maxTokens is the same), tokenizer,
// maxConcurrentRequests, timeout (milliseconds of silence).
func ParseServices(entries []any, origin string, getenv func(string) string) ([]Service, []string) {
	var services []Service
	var warnings []string
	seen := map[artel.ServiceID]bool{}
	for i, raw := range entries {
		e := &entry{label: fmt.Sprintf("services[%d]", i), warnings: &warnings}
		fields, ok := raw.(map[string]any)
		if !ok {
			e.warn("is no object and is left out")
			continue
		}
		e.fields = fields
		s := e.service(origin, getenv)
		switch {
		case s.ID == "":
			e.warn("has no id and is left out")
		case seen[s.ID]:
			e.warn("has the id of an earlier entry and is left out")
		default:
			seen[s.ID] = true
			services = append(services, s)
		}
	}
	return services, warnings
}

// entry reads one object and collects what is wrong in it.
type entry struct {
	label    string // for warnings
	fields   map[string]any
	known    []string // keys that were asked for
	warnings *[]string
}

func (e *entry) warn(format string, args ...any) {
	*e.warnings = append(*e.warnings, e.label+" "+fmt.Sprintf(format, args...))
}

func (e *entry) service(origin string, getenv func(string) string) Service {
	id := e.text("id")
	if id != "" {
		e.label = fmt.Sprintf("service %q", artel.Shorten(id, 60))
	}
	s := Service{
		ID:            artel.ServiceID(id),
		Name:          e.text("name"),
		Dialect:       OpenAI,
		BaseURL:       strings.TrimRight(e.text("baseURL"), "/"),
		Model:         e.text("model"),
		APIKey:        e.secret("apiKey", getenv),
		Tags:          e.texts("capabilityTags"),
		Description:   e.text("description"),
		MaxConcurrent: int(e.number("maxConcurrentRequests")),
		Timeout:       time.Duration(min(e.number("timeout"), maxTimeout)) * time.Millisecond,
		Origin:        origin,
	}
	if s.Name == "" {
		s.Name = id
	}
	if d := Dialect(e.text("dialect")); slices.Contains(Dialects(), d) {
		s.Dialect = d
	} else if d != "" {
		s.BaseURL = "" // nobody knows how to call it
		e.warn("dialect %q is not one of %q; it serves for routing only", artel.Shorten(string(d), 40), Dialects())
	}
	var declared Capabilities
	declared, s.Output = e.capabilities()
	s.Capabilities = combine(declared, Catalog(s.Model))
	e.rest("")
	return s
}

const maxTimeout = 24 * 60 * 60 * 1000 // a day of milliseconds; more would be a mistake, and overflow

func (e *entry) capabilities() (c Capabilities, output []string) {
	c = TextOnly()
	if caps, ok := e.object("capabilities"); ok {
		if words, ok := caps.list("input"); ok {
			c.Input = known(FromOperator, caps.inputs(words))
		}
		output = caps.texts("output")
		caps.rest("capabilities.")
	}
	if types, ok := e.list("accepts"); ok {
		c.Accepts = known(FromOperator, e.mediaTypes(types))
	}
	if limits, ok := e.object("limits"); ok {
		if n := limits.number("item_bytes"); n > 0 {
			c.MaxItemBytes = known(FromOperator, n)
		}
		limits.rest("limits.")
	}
	if place, ok := e.object("placement"); ok {
		image, imageSaid := place.flag("tool_image")
		file, fileSaid := place.flag("tool_file")
		if imageSaid || fileSaid {
			// There is one answer for all media: yes only if nothing says no.
			c.ToolMedia = known(FromOperator, (image || !imageSaid) && (file || !fileSaid))
		}
		place.rest("placement.")
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
	if v := e.text("tokenizer"); v != "" {
		c.Tokenizer = known(FromOperator, v)
	}
	return c, output
}

// inputs keeps the words that are inputs, text first.
func (e *entry) inputs(words []string) []artel.Capability {
	inputs := []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile, artel.CanAudio, artel.CanVideo}
	out := inputs[:1:1]
	for _, w := range words {
		c := artel.Capability(w)
		switch {
		case slices.Contains(out, c):
		case slices.Contains(inputs, c):
			out = append(out, c)
		case w == "structured_output" || w == "tool_calling": // legal there, but nothing that one can send
		default:
			e.warn("capabilities.input: %q is not one of %q and is left out", artel.Shorten(w, 40), inputs)
		}
	}
	return out
}

func (e *entry) mediaTypes(raw []string) []string {
	out := []string{}
	for _, v := range raw {
		t, _, err := mime.ParseMediaType(v)
		if err != nil || strings.Count(t, "/") != 1 {
			e.warn(`accepts: %q is no media type and is left out`, artel.Shorten(v, 60))
			continue
		}
		out = append(out, t)
	}
	return out
}

// rest warns about keys that nobody asked for.
func (e *entry) rest(prefix string) {
	for _, k := range slices.Sorted(maps.Keys(e.fields)) {
		if slices.Contains(e.known, k) {
			continue
		}
		if near := Nearest(k, e.known); near != "" {
			e.warn("has the unknown key %q; the nearest known one is %q", prefix+artel.Shorten(k, 60), prefix+near)
		} else {
			e.warn("has the unknown key %q", prefix+artel.Shorten(k, 60))
		}
	}
}

// value returns what is at key; null counts as absent.
func (e *entry) value(key string) (any, bool) {
	e.known = append(e.known, key)
	v := e.fields[key]
	return v, v != nil
}

func (e *entry) mistyped(key, want string) {
	e.warn("%s is not %s and counts as not given", key, want)
}

func (e *entry) text(key string) string {
	v, ok := e.value(key)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		e.mistyped(key, "a text")
	}
	return strings.TrimSpace(s)
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

func (e *entry) secret(key string, getenv func(string) string) Secret {
	return Secret(variable.ReplaceAllStringFunc(e.text(key), func(ref string) string {
		name := ref[2 : len(ref)-1]
		v := getenv(name)
		if v == "" {
			e.warn("%s: the environment variable %s is empty", key, name)
		}
		return v
	}))
}

func (e *entry) texts(key string) []string {
	out, _ := e.list(key)
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
		e.mistyped(key, "a list of texts")
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
		e.mistyped(key, "an object")
		return nil, false
	}
	return &entry{label: e.label, fields: fields, warnings: e.warnings}, true
}

func (e *entry) flag(key string) (value, given bool) {
	v, ok := e.value(key)
	if !ok {
		return false, false
	}
	b, ok := v.(bool)
	if !ok {
		e.mistyped(key, "true or false")
	}
	return b, ok
}

// number returns a whole number from 0 to 2^53, 0 where it is not given.
func (e *entry) number(key string) int64 {
	v, ok := e.value(key)
	if !ok {
		return 0
	}
	// Decoders of JSON and YAML differ in the type of a number, not in its text.
	f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if _, isText := v.(string); isText || err != nil || f < 0 || f > 1<<53 || f != float64(int64(f)) {
		e.mistyped(key, "a whole number from 0")
		return 0
	}
	return int64(f)
}
