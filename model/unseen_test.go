// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// TestMeasureUnseen: figures that are clear are learned from, others are not.
func TestMeasureUnseen(t *testing.T) {
	t.Parallel()
	const words, picture = 400, 1600 // tokens
	count := func(r *model.Request) (int, error) {
		n := 0
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				switch p := p.(type) {
				case artel.Text:
					n += len(p.Text)
				case artel.Media:
					n += picture
				case artel.ToolResult:
					n += len(p.Content) + picture*len(artel.MediaOf(p.Parts))
				}
			}
		}
		return n, nil
	}
	request := func(source model.Provenance, text int, parts artel.Parts, more ...artel.Part) *model.Request {
		s := service("a")
		s.Capabilities.ToolImage = model.Fact[bool]{Value: true, Source: source}
		return &model.Request{Service: s, Messages: []model.Message{
			{Role: artel.RoleUser, Parts: append(artel.Parts{artel.Text{Text: strings.Repeat("x", text)}}, more...)},
			{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: "c", Parts: parts}}},
		}}
	}
	one := artel.Parts{part(1, "image/png")} // 3 MB
	for name, tt := range map[string]struct {
		r        *model.Request
		reported int64
		want     string
	}{
		"seen":                           {request(model.FromDialect, words, one), words + picture, ""},
		"seen, for little":               {request(model.FromDialect, words, one), words + picture/3, ""},
		"not seen":                       {request(model.FromDialect, words, one), words + 12, "were not billed"},
		"not seen, and the text is long": {request(model.FromDialect, 100*words, one), 100*words + 12, ""},
		"text":                           {request(model.FromDialect, words, one), 1_500_000, "were billed as text"},
		"nothing reported":               {request(model.FromDialect, words, one), 0, ""},
		"the operator knows":             {request(model.FromOperator, words, one), words + 12, ""},
		"a probe knows":                  {request(model.FromProbe, words, one), words + 12, ""},
		"elsewhere too":                  {request(model.FromDialect, words, one, part(2, "image/png")), words + 12, ""},
		"twice the same":                 {request(model.FromDialect, words, append(one, one...)), words + picture/3, ""},
		"no pictures":                    {request(model.FromDialect, words, nil), words, ""},
		"a document":                     {request(model.FromDialect, words, artel.Parts{part(1, "application/pdf")}), words, ""},
	} {
		m, ok := model.MeasureUnseen(tt.r, model.MediaIn(tt.r), count, tt.reported)
		if ok != (tt.want != "") || !strings.Contains(m.Evidence, tt.want) {
			t.Errorf("%s: %v, %+v", name, ok, m)
		}
		if ok && (m.Place != model.InTool || m.MediaType != "image/*" || m.OK || !m.Applies() || m.Endpoint == "") {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
