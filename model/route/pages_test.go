// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model/route"
)

// drawn returns pages whose bytes are "p" and their number.
func drawn(first, last int) []route.Converted {
	var all []route.Converted
	for n := first; n <= last; n++ {
		data := fmt.Sprintf("p%d", n)
		all = append(all, route.Converted{
			Info: artel.MediaInfo{MediaType: picture.PNG, Kind: artel.KindImage, Size: int64(len(data))},
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(data)), nil },
		})
	}
	return all
}

// TestPages sends the pages of a PDF with doubtful text to a model that sees, reads them for
// one that does not, and otherwise keeps the text.
func TestPages(t *testing.T) {
	sees, blind := can(artel.CanVision), can()
	few := sees
	few.MaxImages.Value = 2
	words := route.Forms{Pages: true, Extracted: true, Transcribed: true, Captioner: "eye"}
	for name, c := range map[string]struct {
		target route.Target
		doubt  string
		fail   error
		step   artel.Step
		want   string
	}{
		"shown":             {route.Target{Capabilities: sees, Forms: words}, "scanned", nil, artel.StepConverted, `"pages":3}`},
		"shown unasked":     {route.Target{Capabilities: sees, Forms: route.Forms{Pages: true}}, "scanned", nil, artel.StepConverted, `"pages":3}`},
		"as many as fit":    {route.Target{Capabilities: few, Forms: words}, "scanned", nil, artel.StepConverted, `"pages":2,"pagesLeft":1}`},
		"not drawn":         {route.Target{Capabilities: sees, Forms: words}, "scanned", errors.New("no"), artel.StepExtracted, `"content":"the text"`},
		"described":         {route.Target{Capabilities: sees, Forms: route.Forms{Pages: true}}, "scanned", errors.New("no"), artel.StepDescribed, "[cannot read] a.bin"},
		"read":              {route.Target{Capabilities: blind, Forms: words}, "scanned", nil, artel.StepTranscribed, `"content":"3 pages read"`},
		"not read":          {route.Target{Capabilities: blind, Forms: words}, "scanned", errors.New("no"), artel.StepExtracted, `"content":"the text"`},
		"good text":         {route.Target{Capabilities: sees, Forms: words}, "", nil, artel.StepExtracted, `"content":"the text"`},
		"good text unasked": {route.Target{Capabilities: sees, Forms: route.Forms{Pages: true}}, "", nil, artel.StepDescribed, "[cannot read] a.bin"},
		"taken":             {route.Target{Capabilities: can(artel.CanVision, artel.CanFile), Forms: words}, "scanned", nil, artel.StepNative, `"file":{"type":"file"`},
	} {
		s := source(artel.KindDocument, "application/pdf", &body{data: []byte("%PDF")})
		s.Makers = route.Makers{
			Extract: func() (extract.Extracted, error) {
				return extract.Extracted{Text: "the text", Pages: 3, Doubt: c.doubt}, nil
			},
			Transcribe: func(pages int) (string, error) { return fmt.Sprintf("%d pages read", pages), c.fail },
			Pages:      func(first, last int, _ picture.Form) ([]route.Converted, error) { return drawn(first, last), c.fail },
		}
		r := route.New(s, c.target, phrase.English)
		got := encode(t, r)
		if r.Route.Step != c.step || r.Native() != (c.step == artel.StepConverted || c.step == artel.StepNative) || !strings.Contains(got, c.want) || !json.Valid([]byte(got)) {
			t.Errorf("%s: %s", name, got)
		}
		if name == "shown" && !strings.HasSuffix(got, `"imageUrl":{"type":"image_url","image_url":{"url":"data:image/png;base64,cDE="}},`+
			`"furtherPages":[{"type":"image_url","image_url":{"url":"data:image/png;base64,cDI="}},{"type":"image_url","image_url":{"url":"data:image/png;base64,cDM="}}]}`+"\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestChosenPages shows what a model gets that asks for pages.
func TestChosenPages(t *testing.T) {
	s := source(artel.KindDocument, "application/pdf", &body{data: []byte("%PDF")})
	s.Makers.Pages = func(first, last int, _ picture.Form) ([]route.Converted, error) {
		if first > 9 {
			return nil, artel.Errorf(artel.NotFound, "", "", "there is no page %d", first)
		}
		return drawn(first, min(last, 9)), nil
	}
	target := route.Target{Capabilities: can(artel.CanVision, artel.CanFile), Forms: route.Forms{Pages: true}}
	r, err := route.Pages(s, target, 8, 12, phrase.English)
	if err != nil {
		t.Fatal(err)
	}
	if got := encode(t, r); !strings.Contains(got, `"step":"converted","reason":""`) || !strings.Contains(got, `"pages":2}`) || !strings.Contains(got, "base64,cDg=") {
		t.Errorf("got %s", got)
	}
	blind, plain := target, s
	blind.Capabilities, plain.Info.MediaType = can(artel.CanFile), "application/zip"
	for name, c := range map[string]struct {
		s     route.Source
		t     route.Target
		first int
		want  artel.Kind
	}{"beyond the end": {s, target, 10, artel.NotFound}, "blind": {s, blind, 1, artel.Unsupported}, "no PDF": {plain, target, 1, artel.Unsupported}} {
		if _, err := route.Pages(c.s, c.t, c.first, c.first, phrase.English); artel.KindOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
