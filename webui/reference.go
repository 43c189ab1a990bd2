// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// Reference is the reference of the API, made from its OpenAPI document.
type Reference struct {
	Groups  []ReferenceGroup
	Schemas []ReferenceSchema
}

// ReferenceGroup has the operations whose paths begin with one word.
type ReferenceGroup struct {
	Name       string
	Operations []ReferenceOperation
}

// ReferenceOperation is a method of a path.
type ReferenceOperation struct {
	ID, Method, Path, Summary, Description string
	Parameters                             []ReferenceField
	Bodies                                 []ReferenceBody // one for each media type
	Answers                                []ReferenceBody
	Sample                                 string // a command; "": none
}

// ReferenceBody is the body of a request or of an answer.
type ReferenceBody struct {
	Status      string // of an answer
	Description string
	MediaType   string
	Type        ReferenceType
	Fields      []ReferenceField
	Example     string // "": none
}

// ReferenceSchema is a schema that has a name.
type ReferenceSchema struct {
	Name   string
	Type   ReferenceType
	Fields []ReferenceField
}

// ReferenceField is a parameter, or a property of an object.
type ReferenceField struct {
	Name     string
	In       string // of a parameter
	Type     ReferenceType
	Required bool
	About    string
	Bounds   string // "": none
}

// ReferenceType is a type in words. Schema is the name of the one it leads to; "": none.
type ReferenceType struct {
	Text, Schema string
}

// The parts of an OpenAPI document that are shown.
type (
	apiDocument struct {
		Paths      map[string]map[string]apiOperation `json:"paths"`
		Components struct {
			Schemas map[string]*apiSchema `json:"schemas"`
		} `json:"components"`
	}
	apiOperation struct {
		ID          string                 `json:"operationId"`
		Summary     string                 `json:"summary"`
		Description string                 `json:"description"`
		Parameters  []apiParameter         `json:"parameters"`
		RequestBody apiResponse            `json:"requestBody"`
		Responses   map[string]apiResponse `json:"responses"`
		Samples     []struct {
			Source string `json:"source"`
		} `json:"x-codeSamples"`
	}
	apiParameter struct {
		Name        string     `json:"name"`
		In          string     `json:"in"`
		Required    bool       `json:"required"`
		Description string     `json:"description"`
		Schema      *apiSchema `json:"schema"`
	}
	apiResponse struct {
		Description string `json:"description"`
		Content     map[string]struct {
			Schema  *apiSchema      `json:"schema"`
			Example json.RawMessage `json:"example"`
		} `json:"content"`
	}
	apiSchema struct {
		Ref         string                `json:"$ref"`
		Type        any                   `json:"type"` // a word, or a list of them
		Format      string                `json:"format"`
		Description string                `json:"description"`
		Enum        []any                 `json:"enum"`
		Default     any                   `json:"default"`
		Items       *apiSchema            `json:"items"`
		Properties  map[string]*apiSchema `json:"properties"`
		Required    []string              `json:"required"`
		Values      json.RawMessage       `json:"additionalProperties"` // a schema, or whether there may be any
		OneOf       []*apiSchema          `json:"oneOf"`
		Minimum     *float64              `json:"minimum"`
		Maximum     *float64              `json:"maximum"`
		MinLength   *int                  `json:"minLength"`
		MaxLength   *int                  `json:"maxLength"`
		MinItems    *int                  `json:"minItems"`
		MaxItems    *int                  `json:"maxItems"`
	}
)

// methodOrder is the order of the operations of a path.
var methodOrder = []string{"get", "post", "put", "patch", "delete"}

// parseReference reads an OpenAPI document.
func parseReference(document []byte) (Reference, error) {
	var doc apiDocument
	if err := json.Unmarshal(document, &doc); err != nil {
		return Reference{}, artel.Errorf(artel.Internal, "webui.Reference", "", "%w", err)
	}
	var out Reference
	groups := map[string]int{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/"), "/")
		at, ok := groups[name]
		if !ok {
			at = len(out.Groups)
			groups[name] = at
			out.Groups = append(out.Groups, ReferenceGroup{Name: name})
		}
		for _, method := range methodOrder {
			if o, ok := doc.Paths[path][method]; ok {
				out.Groups[at].Operations = append(out.Groups[at].Operations, operationOf(method, path, o))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name]
		out.Schemas = append(out.Schemas, ReferenceSchema{name, s.words(), s.fields("", 0)})
	}
	return out, nil
}

func operationOf(method, path string, o apiOperation) ReferenceOperation {
	out := ReferenceOperation{ID: o.ID, Method: strings.ToUpper(method), Path: path, Summary: o.Summary, Description: o.Description}
	for _, p := range o.Parameters {
		if p.Schema == nil {
			p.Schema = &apiSchema{}
		}
		out.Parameters = append(out.Parameters, ReferenceField{p.Name, p.In, p.Schema.words(), p.Required, cmp.Or(p.Description, p.Schema.Description), p.Schema.bounds()})
	}
	out.Bodies = bodiesOf("", o.RequestBody)
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		out.Answers = append(out.Answers, bodiesOf(status, o.Responses[status])...)
	}
	if len(o.Samples) > 0 {
		out.Sample = o.Samples[0].Source
	}
	return out
}

func bodiesOf(status string, r apiResponse) (all []ReferenceBody) {
	for _, mediaType := range slices.Sorted(maps.Keys(r.Content)) {
		c := r.Content[mediaType]
		b := ReferenceBody{Status: status, Description: r.Description, MediaType: mediaType, Type: c.Schema.words(), Fields: c.Schema.fields("", 0)}
		var pretty bytes.Buffer
		if len(c.Example) > 0 && json.Indent(&pretty, c.Example, "", "  ") == nil {
			b.Example = pretty.String()
		}
		all = append(all, b)
	}
	if len(all) == 0 && status != "" {
		all = append(all, ReferenceBody{Status: status, Description: r.Description})
	}
	return all
}

// words names the type of a schema.
func (s *apiSchema) words() ReferenceType {
	switch {
	case s == nil:
		return ReferenceType{Text: "any"}
	case s.Ref != "":
		return ReferenceType{Schema: s.Ref[strings.LastIndex(s.Ref, "/")+1:]}
	case len(s.OneOf) > 0:
		var all []string
		for _, o := range s.OneOf {
			t := o.words()
			all = append(all, cmp.Or(t.Text, t.Schema))
		}
		return ReferenceType{Text: strings.Join(all, " | ")}
	}
	kind := fmt.Sprint(cmp.Or(s.Type, any("any")))
	if all, ok := s.Type.([]any); ok {
		var names []string
		for _, t := range all {
			names = append(names, fmt.Sprint(t))
		}
		kind = strings.Join(names, " | ")
	}
	switch {
	case strings.HasPrefix(kind, "array") && s.Items != nil:
		t := s.Items.words()
		return ReferenceType{strings.TrimSpace(strings.Replace(kind, "array", "array of", 1) + " " + t.Text), t.Schema}
	case kind == "object" && len(s.Values) > 0 && s.Values[0] == '{':
		var values apiSchema
		if json.Unmarshal(s.Values, &values) == nil {
			t := values.words()
			return ReferenceType{strings.TrimSpace("map of " + t.Text), t.Schema}
		}
	case s.Format != "":
		kind += " (" + s.Format + ")"
	}
	return ReferenceType{Text: kind}
}

// maxNesting is how deep the fields of objects without a name are listed.
const maxNesting = 4

// fields lists the properties of an object, and of objects without a name in it.
func (s *apiSchema) fields(prefix string, depth int) (all []ReferenceField) {
	if s == nil || depth > maxNesting {
		return nil
	}
	if strings.HasPrefix(fmt.Sprint(s.Type), "array") || strings.HasPrefix(fmt.Sprint(s.Type), "[array") {
		return s.Items.fields(prefix+"[].", depth+1)
	}
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		return cmp.Or(-compareBool(slices.Contains(s.Required, a), slices.Contains(s.Required, b)), strings.Compare(a, b))
	})
	for _, name := range names {
		p := s.Properties[name]
		all = append(all, ReferenceField{prefix + name, "", p.words(), slices.Contains(s.Required, name), p.Description, p.bounds()})
		if p.Ref == "" {
			all = append(all, p.fields(prefix+name+".", depth+1)...)
		}
	}
	return all
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// bounds lists what limits the values of a schema.
func (s *apiSchema) bounds() string {
	var all []string
	add := func(name string, set bool, v any) {
		if set {
			all = append(all, fmt.Sprintf("%s: %v", name, v))
		}
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprint(v))
		}
		all = append(all, strings.Join(values, " | "))
	}
	add("default", s.Default != nil, s.Default)
	for _, b := range []struct {
		name string
		v    *float64
	}{{"minimum", s.Minimum}, {"maximum", s.Maximum}} {
		if b.v != nil {
			add(b.name, true, *b.v)
		}
	}
	for _, b := range []struct {
		name string
		v    *int
	}{{"minLength", s.MinLength}, {"maxLength", s.MaxLength}, {"minItems", s.MinItems}, {"maxItems", s.MaxItems}} {
		if b.v != nil {
			add(b.name, true, *b.v)
		}
	}
	return strings.Join(all, ", ")
}

// showReference shows the reference of the API.
func (ui *handler) showReference(w http.ResponseWriter, r *http.Request) {
	ref, err := ui.reference()
	var f frame
	if err == nil {
		f, err = ui.frame(r, "")
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageReference, nil)
	ui.show(w, r, http.StatusOK, "reference.html", struct {
		frame
		Reference Reference
	}{f, ref})
}
