// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
)

// recorded are requests and their answers, which TestExamples makes and keeps up to
// date. Long lists and texts in them are shortened.
//
//go:embed examples.json
var recorded []byte

// An Example is a request that was made, and its answer.
type Example struct {
	ID       string            `json:"id"` // of the operation
	Method   string            `json:"method"`
	Path     string            `json:"path"` // with the query
	Header   map[string]string `json:"header,omitempty"`
	Request  json.RawMessage   `json:"request,omitempty"` // the body; a string: not JSON
	Status   int               `json:"status"`
	Response json.RawMessage   `json:"response,omitempty"`
}

// curl returns the request as a command.
func (e Example) curl() string {
	var b strings.Builder
	b.WriteString("curl ")
	if e.Method != "GET" {
		b.WriteString("-X " + e.Method + " ")
	}
	b.WriteString(`"$ARTEL_URL` + e.Path + `" -H "Authorization: Bearer $ARTEL_TOKEN"`)
	for _, name := range []string{"Content-Type", "If-Match", "X-Filename"} {
		if v := e.Header[name]; v != "" {
			b.WriteString(" \\\n  -H '" + name + ": " + v + "'")
		}
	}
	if len(e.Request) > 0 {
		text := string(e.Request)
		var plain string
		if json.Unmarshal(e.Request, &plain) == nil {
			text = plain
		}
		b.WriteString(" \\\n  --data-binary '" + strings.ReplaceAll(text, "'", `'\''`) + "'")
	}
	return b.String()
}

// addExamples puts the examples into the OpenAPI document.
func addExamples(doc *huma.OpenAPI) {
	var all []Example
	if err := json.Unmarshal(recorded, &all); err != nil {
		panic(err) // the file is embedded
	}
	byID := map[string]Example{}
	for _, e := range all {
		byID[e.ID] = e
	}
	for _, path := range doc.Paths {
		for _, o := range []*huma.Operation{path.Get, path.Put, path.Post, path.Patch, path.Delete} {
			if o == nil {
				continue
			}
			e, ok := byID[o.OperationID]
			if !ok {
				continue
			}
			o.Extensions = map[string]any{"x-codeSamples": []any{map[string]any{"lang": "Shell", "source": e.curl()}}}
			if o.RequestBody != nil {
				exemplify(o.RequestBody.Content["application/json"], e.Request)
			}
			if r := o.Responses[strconv.Itoa(e.Status)]; r != nil {
				exemplify(r.Content["application/json"], e.Response)
			}
		}
	}
}

func exemplify(m *huma.MediaType, value json.RawMessage) {
	if m == nil || len(value) == 0 {
		return
	}
	if err := json.Unmarshal(value, &m.Example); err != nil {
		panic(err) // the file is embedded
	}
}

// Document returns the OpenAPI document of the API of a as JSON.
func Document(a *app.App, version string) ([]byte, error) {
	b, err := json.Marshal(newServer(a, Options{Version: version}).api.OpenAPI())
	if err != nil {
		return nil, artel.Errorf(artel.Internal, "httpapi.Document", "", "%w", err)
	}
	return b, nil
}
