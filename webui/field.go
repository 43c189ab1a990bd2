// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline"
)

// An Input is a configuration field in a form.
type Input struct {
	pipeline.Field
	ID        string // element id
	Name      string // form name
	Title     string
	Text      string // form value
	Empty     bool   // deliberately empty
	Otherwise string // effective value if the field is empty
	Words     bool   // Otherwise is a description, not a value
	Problem   string // why it was rejected; "": not tried, or valid
}

// Blank reports whether an empty text is a valid value of its own.
func (i Input) Blank() bool {
	switch i.Type {
	case "text", "textarea", "list":
		return true
	}
	return false
}

// Long reports whether it is multi-line.
func (i Input) Long() bool { return i.Type == "textarea" || i.Type == "list" || i.Type == "json" }

// inputsOf returns the inputs of a configuration. under has the values in
// effect if the configuration has none; the defaults come after it.
func inputsOf(prefix string, fields []pipeline.Field, config, under json.RawMessage, l phrase.Locale) []Input {
	values, below := valuesOf(config), valuesOf(under)
	out := make([]Input, len(fields))
	for i, f := range fields {
		in := Input{Field: f, ID: prefix + "-" + f.Key, Name: "f." + f.Key, Title: fieldLabel(f, l)}
		if v, ok := values[f.Key]; ok {
			in.Text = written(f, v)
			in.Empty = in.Text == ""
		}
		if v, ok := below[f.Key]; ok {
			in.Otherwise = jsonLine(v)
		} else if f.Default != nil {
			in.Otherwise = jsonLine(encoded(f.Default))
		} else if f.Placeholder != "" {
			in.Words = !json.Valid([]byte(f.Placeholder))
			in.Otherwise = translated(l, "page.otherwise_"+f.Key, f.Placeholder)
		}
		out[i] = in
	}
	return out
}

func fieldLabel(f pipeline.Field, l phrase.Locale) string {
	return translated(l, "page.field_"+f.Key, f.Label)
}

// translated returns a processor's English text in the reader's language if it
// equals the English phrase of key. Texts of plugins are returned unchanged.
func translated(l phrase.Locale, key, text string) string {
	if phrase.English.Say(phrase.Key(key), nil) == text {
		return l.Say(phrase.Key(key), nil)
	}
	return text
}

// written formats a value for a form.
func written(f pipeline.Field, v json.RawMessage) string {
	switch f.Type {
	case "text", "textarea", "select":
		var s string
		if json.Unmarshal(v, &s) == nil {
			return s
		}
	case "list":
		var list []string
		if json.Unmarshal(v, &list) == nil {
			return strings.Join(list, "\n")
		}
	case "json":
		return indented(v)
	}
	return string(bytes.TrimSpace(v))
}

// read parses the form value; nil: none. Known problems are described in the
// reader's language.
func (i Input) read(l phrase.Locale) (json.RawMessage, string) {
	text := strings.ReplaceAll(i.Text, "\r\n", "\n")
	if text == "" && !i.Empty || !i.Blank() && strings.TrimSpace(text) == "" {
		return nil, ""
	}
	var v json.RawMessage
	switch i.Type {
	case "text", "textarea", "select":
		v = encoded(text)
	case "list":
		list := slices.DeleteFunc(strings.Split(text, "\n"), func(s string) bool { return strings.TrimSpace(s) == "" })
		for n := range list {
			list[n] = strings.TrimSpace(list[n])
		}
		if len(list) == 0 && !i.Empty {
			return nil, ""
		}
		v = encoded(list)
	default:
		v = json.RawMessage(strings.TrimSpace(text))
	}
	if problem := i.misfit(v, l); problem != "" {
		return nil, problem
	}
	return v, ""
}

func (i Input) misfit(v json.RawMessage, l phrase.Locale) string {
	if i.Type == "number" {
		n, err := strconv.ParseFloat(string(v), 64)
		if err != nil || !json.Valid(v) {
			return l.Say(phrase.PageInputNumber, nil)
		}
		if r := i.Range; r != nil {
			args := map[string]any{"Min": number(r.Min)}
			switch {
			case r.Whole && n != float64(int64(n)):
				return l.Say(phrase.PageInputWhole, nil)
			case r.Max != nil && (n < r.Min || n > *r.Max):
				args["Max"] = number(*r.Max)
				return l.Say(phrase.PageInputRange, args)
			case n < r.Min:
				return l.Say(phrase.PageInputLeast, args)
			}
		}
	}
	if i.Type == "json" && !json.Valid(v) {
		err := json.Unmarshal(v, new(any))
		return l.Say(phrase.PageInputJSON, map[string]any{"Detail": err})
	}
	if err := i.Fits(v); err != nil {
		return err.Error()
	}
	return ""
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// typedFields are the rejected inputs of a processor's form, with their
// problems.
type typedFields struct {
	processor string
	level     pipeline.SettingLevel
	enabled   string
	inputs    []Input
}

// typedSetting parses the setting of a form. Problems are returned by field.
func typedSetting(v url.Values, o settings.Overview, id string, level pipeline.SettingLevel, l phrase.Locale) (pipeline.Setting, *typedFields) {
	s := pipeline.Setting{ID: id}
	typed := &typedFields{processor: id, level: level, enabled: v.Get("enabled")}
	switch typed.enabled {
	case "on", "off":
		on := typed.enabled == "on"
		s.Enabled = &on
	}
	i := slices.IndexFunc(o.Processors, func(p settings.ProcessorState) bool { return p.ID == id })
	if i < 0 {
		return s, nil // the application reports the unknown processor
	}
	var under json.RawMessage
	if d := o.Processors[i].Deployment; d != nil {
		under = d.Config
	}
	typed.inputs = inputsOf(id+"-"+string(level), o.Processors[i].Fields, nil, under, l)
	config, wrong := map[string]json.RawMessage{}, false
	for n := range typed.inputs {
		in := &typed.inputs[n]
		in.Text, in.Empty = v.Get(in.Name), v.Get("empty."+in.Key) != ""
		value, problem := in.read(l)
		if in.Problem = problem; problem != "" {
			wrong = true
		} else if value != nil {
			config[in.Key] = value
		}
	}
	if wrong {
		return s, typed
	}
	if len(config) > 0 {
		s.Config = encoded(config)
	}
	return s, nil
}

// valuesOf returns the values of a configuration by key; empty if it is not an
// object.
func valuesOf(config json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(config, &m) != nil {
		return nil
	}
	for k, v := range m {
		if string(v) == "null" {
			delete(m, k)
		}
	}
	return m
}

// jsonLine formats a value on one line, shortened.
func jsonLine(v json.RawMessage) string {
	var out bytes.Buffer
	if len(v) == 0 || json.Compact(&out, v) != nil {
		return ""
	}
	text, cut := []rune(out.String()), ""
	if len(text) > 200 {
		text, cut = text[:200], "…"
	}
	return string(text) + cut
}

func indented(v json.RawMessage) string {
	var out bytes.Buffer
	if len(v) == 0 || json.Indent(&out, v, "", "  ") != nil {
		return string(v)
	}
	return out.String()
}

// encoded marshals the page's own data.
func encoded(v any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(out.Bytes())
}
