// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
)

func step(content, routing string, s artel.Step, why artel.Reason, need artel.Capability) artel.Route {
	return artel.Route{ContentType: content, Routing: routing, Step: s, Reason: why, Need: need}
}

// TestLadder walks down the rungs.
func TestLadder(t *testing.T) {
	all := route.Forms{Converted: true, Extracted: true, Transcribed: true, Transcriber: "ear", MaxRecording: 1000, Captioner: "eye"}
	unasked := all
	unasked.Extracted, unasked.Transcribed = false, false
	silent := all
	silent.Transcriber, silent.Captioner = "", ""
	sees, reads := can(artel.CanVision), can(artel.CanFile)
	sided := sees
	sided.MaxSide = model.Fact[int]{Value: 100, Source: model.FromOperator}
	paged := reads
	paged.MaxPages = model.Fact[int]{Value: 9, Source: model.FromOperator}
	requests := sees
	requests.MaxRequestBytes = model.Fact[int64]{Value: 100, Source: model.FromOperator}
	png := artel.MediaInfo{Kind: artel.KindImage, MediaType: "image/png", Size: 100, Width: 80, Height: 101}
	pdf := artel.MediaInfo{Kind: artel.KindDocument, MediaType: "application/pdf", Size: 100, Pages: 10}
	huge := png
	huge.Width, huge.Height = 10_000, 10_000
	mp3 := info(artel.KindAudio, "audio/mpeg")
	long := mp3
	long.Size = 1001
	for name, c := range map[string]struct {
		m     artel.MediaInfo
		c     model.Capabilities
		forms route.Forms
		want  artel.Route
	}{
		"too long a side":              {png, sided, all, step("image", "image_url", artel.StepConverted, artel.ReasonOverLimit, "")},
		"too long a side, as it is":    {png, sided, route.Forms{}, step("image", "text", artel.StepDescribed, artel.ReasonOverLimit, "")},
		"within the side":              {png, sees, all, native("image", "image_url")},
		"unknown sides":                {info(artel.KindImage, "image/png"), sided, all, native("image", "image_url")},
		"too many bytes":               {png, limited(sees, 99), unasked, step("image", "image_url", artel.StepConverted, artel.ReasonOverLimit, "")},
		"more than a request":          {png, requests, all, step("image", "image_url", artel.StepConverted, artel.ReasonOverLimit, "")},
		"a type not accepted":          {info(artel.KindImage, "image/bmp"), accepting(sees, "image/png"), all, step("image", "image_url", artel.StepConverted, artel.ReasonNotAccepted, "")},
		"nothing that is written":      {info(artel.KindImage, "image/bmp"), accepting(sees, "image/webp"), unasked, step("image", "text", artel.StepDescribed, artel.ReasonNotAccepted, "")},
		"a type that nobody converts":  {info(artel.KindImage, "image/heic"), accepting(sees, "image/png"), unasked, step("image", "text", artel.StepDescribed, artel.ReasonNotAccepted, "")},
		"HEIC where it is accepted":    {info(artel.KindImage, "image/heic"), accepting(sees, "image/heic"), all, native("image", "image_url")},
		"too many pixels":              {huge, sided, unasked, step("image", "text", artel.StepDescribed, artel.ReasonOverLimit, "")},
		"put into words":               {png, can(), all, step("image", "text", artel.StepTranscribed, artel.ReasonCapabilityMissing, artel.CanVision)},
		"nobody has asked for words":   {png, can(), unasked, step("image", "text", artel.StepDescribed, artel.ReasonCapabilityMissing, artel.CanVision)},
		"nobody puts it into words":    {png, can(), silent, step("image", "text", artel.StepDescribed, artel.ReasonCapabilityMissing, artel.CanVision)},
		"a document":                   {pdf, can(), all, step("binary", "text", artel.StepExtracted, artel.ReasonCapabilityMissing, artel.CanFile)},
		"a document, not asked for":    {pdf, can(), unasked, step("binary", "text", artel.StepDescribed, artel.ReasonCapabilityMissing, artel.CanFile)},
		"a document for who sees only": {pdf, sees, all, step("binary", "text", artel.StepExtracted, artel.ReasonCapabilityMissing, artel.CanFile)},
		"too many pages":               {pdf, paged, all, step("binary", "text", artel.StepExtracted, artel.ReasonOverLimit, "")},
		"few pages":                    {artel.MediaInfo{Kind: artel.KindDocument, MediaType: "application/pdf", Size: 1, Pages: 9}, paged, all, native("binary", "file")},
		"a recording":                  {mp3, can(), all, step("binary", "text", artel.StepTranscribed, artel.ReasonCapabilityMissing, artel.CanAudio)},
		"a video":                      {info(artel.KindVideo, "video/mp4"), can(), all, step("binary", "text", artel.StepTranscribed, artel.ReasonCapabilityMissing, artel.CanVideo)},
		"too long a recording":         {long, can(), all, step("binary", "text", artel.StepDescribed, artel.ReasonOverLimit, "")},
		"sound that nobody hears":      {info(artel.KindAudio, "audio/midi"), can(), all, step("binary", "text", artel.StepDescribed, artel.ReasonCapabilityMissing, artel.CanAudio)},
		"nobody writes it down":        {mp3, can(), silent, step("binary", "text", artel.StepDescribed, artel.ReasonCapabilityMissing, artel.CanAudio)},
		"an archive":                   {info(artel.KindArchive, "application/zip"), can(), all, step("binary", "text", artel.StepDescribed, artel.ReasonCapabilityMissing, artel.CanFile)},
	} {
		got := route.Decide(c.m, route.Target{Capabilities: c.c, Forms: c.forms})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// TestMakers sees each form made only where it is the answer, and a
// description where it cannot be made.
func TestMakers(t *testing.T) {
	forms := route.Forms{Converted: true, Extracted: true, Transcribed: true, Transcriber: "ear", Captioner: "eye"}
	small := accepting(can(artel.CanVision), "image/png")
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		kind      artel.MediaKind
		mediaType string
		fail      error
		want      string // made, and in the answer
		step      artel.Step
		reason    artel.Reason
	}{
		"converted":       {artel.KindImage, "image/bmp", nil, `"url":"data:image/png;base64,bmV3"`, artel.StepConverted, artel.ReasonNotAccepted},
		"not converted":   {artel.KindImage, "image/bmp", broken, `[cannot read] a.bin`, artel.StepDescribed, artel.ReasonNotMade},
		"extracted":       {artel.KindDocument, "application/pdf", nil, `"content":"the text"`, artel.StepExtracted, artel.ReasonCapabilityMissing},
		"not extracted":   {artel.KindDocument, "application/pdf", broken, `[cannot read] a.bin`, artel.StepDescribed, artel.ReasonNotMade},
		"transcribed":     {artel.KindAudio, "audio/mpeg", nil, `"content":"the words"`, artel.StepTranscribed, artel.ReasonCapabilityMissing},
		"not transcribed": {artel.KindAudio, "audio/mpeg", broken, `[cannot read] a.bin`, artel.StepDescribed, artel.ReasonNotMade},
	} {
		b := &body{data: []byte("the old bytes")}
		s := source(c.kind, c.mediaType, b)
		made := 0
		s.Makers = route.Makers{
			Extract:    func() (extract.Extracted, error) { made++; return extract.Extracted{Text: "the text"}, c.fail },
			Transcribe: func(int) (string, error) { made++; return "the words", c.fail },
			Convert: func(f picture.Form) (route.Converted, error) {
				made++
				if !slices.Equal(f.Types, []string{picture.PNG}) {
					t.Errorf("%s: asked for %v", name, f)
				}
				return route.Converted{
					Info: artel.MediaInfo{MediaType: "image/png", Size: 3, Width: 2, Height: 1},
					Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("new")), nil },
				}, c.fail
			},
		}
		r := route.New(s, route.Target{Capabilities: small, Forms: forms}, phrase.English)
		got := encode(t, r)
		if !strings.Contains(got, c.want) || made != 1 || b.opened != 0 {
			t.Errorf("%s: made %d times, %d opened: %s", name, made, b.opened, got)
		}
		var said struct {
			Step   artel.Step
			Reason artel.Reason
			Sent   *struct{ MimeType string }
		}
		if err := json.Unmarshal([]byte(got), &said); err != nil || said.Step != c.step || said.Reason != c.reason || (said.Sent != nil) != (c.step == artel.StepConverted) {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
		s.Makers = route.Makers{} // nobody makes anything
		if got := encode(t, route.New(s, route.Target{Capabilities: small, Forms: forms}, phrase.English)); !strings.Contains(got, `"reason":"not_made"`) {
			t.Errorf("%s without makers: %s", name, got)
		}
	}
}

// TestDescriptionsSayHowToRead ends the description of what has text in it
// with the call that reads it.
func TestDescriptionsSayHowToRead(t *testing.T) {
	for _, c := range []struct {
		kind      artel.MediaKind
		mediaType string
		forms     route.Forms
		want      bool
	}{
		{artel.KindDocument, "application/pdf", route.Forms{}, true},
		{artel.KindAudio, "audio/mpeg", route.Forms{Transcriber: "ear"}, true},
		{artel.KindAudio, "audio/mpeg", route.Forms{}, false},
		{artel.KindImage, "image/png", route.Forms{Captioner: "eye"}, false},
		{artel.KindArchive, "application/zip", route.Forms{}, false},
	} {
		s := source(c.kind, c.mediaType, &body{data: []byte("x")})
		s.ReadAs = "abc"
		for l, line := range map[phrase.Locale]string{phrase.English: "\nIt holds text: read_artifact(id='abc') shows it.", phrase.Chinese: "\n其中有文本：用 read_artifact(id='abc') 读取。"} {
			if got := route.New(s, route.Target{Forms: c.forms}, l).Content; strings.HasSuffix(got, line) != c.want {
				t.Errorf("%s: got %q", c.mediaType, got)
			}
		}
		s.ReadAs = ""
		if got := route.New(s, route.Target{Forms: c.forms}, phrase.English).Content; strings.Contains(got, "read_artifact") {
			t.Errorf("without a name to read it by: %q", got)
		}
	}
}

// TestInvariants holds results to the five invariants over any bytes,
// declarations, capabilities and forms.
func TestInvariants(t *testing.T) {
	kinds := []artel.MediaKind{artel.KindText, artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindDocument, artel.KindArchive, artel.KindOther, "", "nonsense"}
	types := []string{"text/plain", "image/png", "image/bmp", "image/heic", "audio/mpeg", "video/mp4", "application/pdf", "application/zip", "", "broken", "image/png; a=b"}
	words := []artel.Capability{artel.CanText, artel.CanVision, artel.CanFile, artel.CanAudio, artel.CanVideo, "", "telepathy"}
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "data")
		b := &body{data: data}
		s := source(rapid.SampledFrom(kinds).Draw(t, "kind"), rapid.SampledFrom(types).Draw(t, "type"), b)
		s.Info.Width, s.Info.Height, s.Info.Pages = rapid.IntRange(-1, 20_000).Draw(t, "width"), rapid.IntRange(-1, 20_000).Draw(t, "height"), rapid.IntRange(-1, 20).Draw(t, "pages")
		s.ReadAs = rapid.SampledFrom([]string{"", "abc"}).Draw(t, "read as")
		fails := rapid.Bool().Draw(t, "fails")
		var no error
		if fails {
			no = errors.New("no")
		}
		text := extract.Extracted{Text: "made of it", Pages: rapid.IntRange(0, 9).Draw(t, "drawable"), Doubt: rapid.SampledFrom([]string{"", "scanned"}).Draw(t, "doubt")}
		s.Makers = route.Makers{Extract: func() (extract.Extracted, error) { return text, no }, Transcribe: func(int) (string, error) { return "made of it", no }, Pages: func(first, last int, _ picture.Form) ([]route.Converted, error) {
			return drawn(first, last), no
		}, Convert: func(picture.Form) (route.Converted, error) {
			if fails {
				return route.Converted{}, errors.New("no")
			}
			return route.Converted{Info: artel.MediaInfo{MediaType: "image/png", Size: 3}, Open: func() (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader("new")), nil
			}}, nil
		}}
		if s.Info.Kind == artel.KindText {
			s.Text = func() (string, error) { return string(data), nil }
		}
		c := model.Capabilities{}
		c.Input.Value = rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "input")
		if rapid.Bool().Draw(t, "picky") {
			c.Accepts.Value = rapid.SliceOf(rapid.SampledFrom(types)).Draw(t, "accepts")
		}
		c.MaxItemBytes.Value, c.MaxRequestBytes.Value = rapid.Int64Range(-1, 500).Draw(t, "item"), rapid.Int64Range(-1, 500).Draw(t, "request")
		c.MaxSide.Value, c.MaxPages.Value = rapid.IntRange(-1, 9000).Draw(t, "side"), rapid.IntRange(-1, 9).Draw(t, "pages")
		target := route.Target{Capabilities: c, Forms: route.Forms{
			Converted: rapid.Bool().Draw(t, "converted"), Extracted: rapid.Bool().Draw(t, "extracted"), Transcribed: rapid.Bool().Draw(t, "transcribed"),
			Transcriber: rapid.SampledFrom([]artel.ServiceID{"", "ear"}).Draw(t, "ear"), Captioner: rapid.SampledFrom([]artel.ServiceID{"", "eye"}).Draw(t, "eye"),
			MaxRecording: rapid.Int64Range(-1, 500).Draw(t, "recording"), Pages: rapid.Bool().Draw(t, "draws"),
		}}
		r := route.New(s, target, phrase.English)
		var first, second bytes.Buffer
		if err := errors.Join(r.Encode(context.Background(), &first), route.New(s, target, phrase.English).Encode(context.Background(), &second)); err != nil {
			t.Fatalf("it failed: %v", err)
		}
		if first.String() != second.String() { // the same input gives the same answer
			t.Fatalf("two answers:\n%s\n%s", first.String(), second.String())
		}
		var got struct {
			ContentType, Routing string
			Content              *string
			Metadata             *route.Metadata
			IsBinary             *bool
			Step, Reason         *string
			SuggestedServices    []string
			ImageURL, File       json.RawMessage
		}
		if err := json.Unmarshal(first.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Content == nil || got.Metadata == nil || got.IsBinary == nil || got.Step == nil || got.Reason == nil || got.SuggestedServices == nil ||
			!slices.Contains([]string{"text", "image", "binary"}, got.ContentType) ||
			(got.Routing == "image_url") != (got.ImageURL != nil) || (got.Routing == "file") != (got.File != nil) {
			t.Fatalf("incomplete: %s", first.String())
		}
		switch {
		case s.Info.Kind == artel.KindText: // text is never touched; JSON has no place for bytes that are not UTF-8
			if *got.Content != strings.ToValidUTF8(string(data), "\uFFFD") && r.Content != string(data) {
				t.Fatalf("text was changed: %q", *got.Content)
			}
		case len(data) > 24:
			for _, form := range []string{string(data[:24]), base64.StdEncoding.EncodeToString(data[:24])} {
				if strings.Contains(r.Content, form) || strings.Contains(r.ToolContent(), form) {
					t.Fatalf("bytes are in a text: %s", r.Content)
				}
			}
		}
		if b.open != 0 || got.Routing == "text" && b.opened != 0 {
			t.Fatalf("%d opened, %d still open", b.opened, b.open)
		}
	})
}

// TestDoubtful says what replaces the doubtful text of a PDF.
func TestDoubtful(t *testing.T) {
	pdf := artel.MediaInfo{MediaType: "application/pdf", Kind: artel.KindDocument, Size: 1}
	extracted := artel.Route{Step: artel.StepExtracted, Routing: artel.RoutingText, Reason: artel.ReasonCapabilityMissing}
	sees := can(artel.CanVision)
	read := route.Forms{Pages: true, Transcribed: true, Captioner: "eye"}
	for name, c := range map[string]struct {
		m    artel.MediaInfo
		t    route.Target
		want artel.Step
	}{
		"pictures":         {pdf, route.Target{Capabilities: sees, Forms: read}, artel.StepConverted},
		"words":            {pdf, route.Target{Forms: read}, artel.StepTranscribed},
		"nobody reads":     {pdf, route.Target{Forms: route.Forms{Pages: true}}, artel.StepExtracted},
		"nothing draws":    {pdf, route.Target{Capabilities: sees, Forms: route.Forms{Transcribed: true, Captioner: "eye"}}, artel.StepExtracted},
		"not of that type": {artel.MediaInfo{MediaType: "application/rtf", Kind: artel.KindDocument, Size: 1}, route.Target{Capabilities: sees, Forms: read}, artel.StepExtracted},
	} {
		if got := route.Doubtful(extracted, c.m, c.t); got.Step != c.want || got.Reason != extracted.Reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
