// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
)

func can(cs ...artel.Capability) model.Capabilities {
	c := model.TextOnly()
	c.Input.Value = append(c.Input.Value, cs...)
	return c
}

func accepting(c model.Capabilities, types ...string) model.Capabilities {
	c.Accepts = model.Fact[[]string]{Value: types, Source: model.FromOperator}
	return c
}

func limited(c model.Capabilities, n int64) model.Capabilities {
	c.MaxItemBytes = model.Fact[int64]{Value: n, Source: model.FromOperator}
	return c
}

func info(kind artel.MediaKind, mediaType string) artel.MediaInfo {
	return artel.MediaInfo{Kind: kind, MediaType: mediaType, Size: 100}
}

var (
	text  = info(artel.KindText, "text/plain")
	png   = info(artel.KindImage, "image/png")
	pdf   = info(artel.KindDocument, "application/pdf")
	mp3   = info(artel.KindAudio, "audio/mpeg")
	mp4   = info(artel.KindVideo, "video/mp4")
	zip   = info(artel.KindArchive, "application/zip")
	other = info(artel.KindOther, "application/octet-stream")
)

func native(contentType, routing string) artel.Route {
	return artel.Route{ContentType: contentType, Routing: routing, Step: artel.StepNative}
}

func described(contentType string, reason artel.Reason, need artel.Capability) artel.Route {
	return artel.Route{ContentType: contentType, Routing: "text", Step: artel.StepDescribed, Reason: reason, Need: need}
}

func missing(contentType string, need artel.Capability) artel.Route {
	return described(contentType, artel.ReasonCapabilityMissing, need)
}

func TestDecide(t *testing.T) {
	asText := artel.Route{ContentType: "text", Routing: "text", Step: artel.StepNative, Reason: artel.ReasonText}
	all := can(artel.CanVision, artel.CanFile, artel.CanAudio, artel.CanVideo)
	sized := func(m artel.MediaInfo, n int64) artel.MediaInfo { m.Size = n; return m }
	typed := func(m artel.MediaInfo, s string) artel.MediaInfo { m.MediaType = s; return m }

	for name, c := range map[string]struct {
		m    artel.MediaInfo
		caps model.Capabilities
		want artel.Route
	}{
		"text needs nothing":                       {text, model.Capabilities{}, asText},
		"text passes an accepts list":              {text, accepting(can(), "image/png"), asText},
		"text passes a limit":                      {text, limited(can(), 1), asText},
		"empty text is text":                       {sized(text, 0), can(), asText},
		"image with vision":                        {png, can(artel.CanVision), native("image", "image_url")},
		"image with file only":                     {png, can(artel.CanFile), missing("image", artel.CanVision)},
		"image with nothing":                       {png, can(), missing("image", artel.CanVision)},
		"image with nothing known":                 {png, model.Capabilities{}, missing("image", artel.CanVision)},
		"document with file":                       {pdf, can(artel.CanFile), native("binary", "file")},
		"document with vision only":                {pdf, can(artel.CanVision), missing("binary", artel.CanFile)},
		"archive with file":                        {zip, can(artel.CanFile), native("binary", "file")},
		"archive with nothing":                     {zip, can(), missing("binary", artel.CanFile)},
		"unknown type with file":                   {other, can(artel.CanFile), native("binary", "file")},
		"unknown type with nothing":                {other, can(), missing("binary", artel.CanFile)},
		"audio with audio":                         {mp3, can(artel.CanAudio), native("binary", "file")},
		"audio with file":                          {mp3, can(artel.CanFile), native("binary", "file")},
		"audio with video":                         {mp3, can(artel.CanVideo), missing("binary", artel.CanAudio)},
		"audio with file that excludes it":         {mp3, accepting(can(artel.CanFile), "application/pdf"), described("binary", artel.ReasonNotAccepted, "")},
		"audio with file that includes it":         {mp3, accepting(can(artel.CanFile), "audio/*"), native("binary", "file")},
		"video with video":                         {mp4, can(artel.CanVideo), native("binary", "file")},
		"video with file":                          {mp4, can(artel.CanFile), native("binary", "file")},
		"video with audio":                         {mp4, can(artel.CanAudio), missing("binary", artel.CanVideo)},
		"accepted image":                           {png, accepting(can(artel.CanVision), "image/png"), native("image", "image_url")},
		"excluded image":                           {png, accepting(can(artel.CanVision), "image/jpeg"), described("image", artel.ReasonNotAccepted, "")},
		"an accepts list of nothing":               {pdf, accepting(all), native("binary", "file")},
		"an empty accepts list":                    {pdf, accepting(all, []string{}...), native("binary", "file")},
		"a missing capability before accepts":      {png, accepting(can(), "image/jpeg"), missing("image", artel.CanVision)},
		"at the limit":                             {pdf, limited(all, 100), native("binary", "file")},
		"over the limit":                           {pdf, limited(all, 99), described("binary", artel.ReasonOverLimit, "")},
		"an impossible limit is none":              {pdf, limited(all, -1), native("binary", "file")},
		"empty image":                              {sized(png, 0), all, described("image", artel.ReasonEmpty, "")},
		"empty file":                               {sized(other, 0), all, described("binary", artel.ReasonEmpty, "")},
		"impossible size":                          {sized(pdf, -5), all, described("binary", artel.ReasonEmpty, "")},
		"no facts at all":                          {sized(artel.MediaInfo{}, 9), all, described("binary", artel.ReasonUndetected, "")},
		"no media type":                            {typed(other, ""), all, described("binary", artel.ReasonUndetected, "")},
		"damaged media type":                       {typed(pdf, "application/pdf; x=\"\n"), all, described("binary", artel.ReasonUndetected, "")},
		"damaged kind":                             {info("picture", "image/png"), all, described("binary", artel.ReasonUndetected, "")},
		"image with a type that would break a URI": {typed(png, `image/png",`), all, described("binary", artel.ReasonUndetected, "")},
		"image kind with another type":             {typed(png, "application/pdf"), all, described("binary", artel.ReasonUndetected, "")},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "an empty accepts list" {
				c.caps.Accepts.Value = []string{}
				c.want = described("binary", artel.ReasonNotAccepted, "")
			}
			if diff := cmp.Diff(c.want, route.Decide(c.m, route.Target{Capabilities: c.caps})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideSuggestsOthersWhoCould(t *testing.T) {
	suggest := func(need artel.Capability, mediaType string) []artel.ServiceID {
		if need == artel.CanVision && mediaType == "image/png" {
			return []artel.ServiceID{"me", "sees", "sees-too"}
		}
		return nil
	}
	for name, c := range map[string]struct {
		m    artel.MediaInfo
		caps model.Capabilities
		want []artel.ServiceID
	}{
		"capability missing": {png, can(), []artel.ServiceID{"sees", "sees-too"}},
		"not accepted":       {png, accepting(can(artel.CanVision), "image/gif"), []artel.ServiceID{"sees", "sees-too"}},
		"over the limit":     {png, limited(can(artel.CanVision), 1), []artel.ServiceID{"sees", "sees-too"}},
		"native":             {png, can(artel.CanVision), nil},
		"nobody can":         {pdf, can(), nil},
		"empty":              {artel.MediaInfo{Kind: artel.KindImage, MediaType: "image/png"}, can(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := route.Decide(c.m, route.Target{Service: "me", Capabilities: c.caps, Suggest: suggest}).Suggested
			if len(got) != len(c.want) || len(c.want) > 0 && !cmp.Equal(c.want, got) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestDecideLeavesTheSuggestedListAlone(t *testing.T) {
	list := []artel.ServiceID{"me", "other"}
	route.Decide(png, route.Target{Service: "me", Suggest: func(artel.Capability, string) []artel.ServiceID { return list }})
	if diff := cmp.Diff([]artel.ServiceID{"me", "other"}, list); diff != "" {
		t.Error(diff)
	}
}

// Anything that could come out of a damaged row or a hostile configuration.
var (
	anyKind = rapid.OneOf(
		rapid.SampledFrom([]artel.MediaKind{
			artel.KindText, artel.KindImage, artel.KindAudio, artel.KindVideo,
			artel.KindDocument, artel.KindArchive, artel.KindOther, "",
		}),
		rapid.Map(rapid.String(), func(s string) artel.MediaKind { return artel.MediaKind(s) }),
	)
	anyType = rapid.OneOf(
		rapid.SampledFrom([]string{"image/png", "image/jpeg", "image/heic", "application/pdf", "audio/mpeg", "video/mp4", "text/plain", "application/octet-stream", ""}),
		rapid.String(),
	)
	anyInfo = rapid.Custom(func(t *rapid.T) artel.MediaInfo {
		return artel.MediaInfo{
			Kind: anyKind.Draw(t, "kind"), MediaType: anyType.Draw(t, "type"),
			DeclaredType: rapid.String().Draw(t, "declared"), Charset: rapid.String().Draw(t, "charset"),
			Size: rapid.Int64Range(-1, 200).Draw(t, "size"), Confidence: rapid.Float64().Draw(t, "confidence"),
		}
	})
	anyCaps = rapid.Custom(func(t *rapid.T) model.Capabilities {
		word := rapid.OneOf(
			rapid.SampledFrom([]artel.Capability{artel.CanText, artel.CanVision, artel.CanFile, artel.CanAudio, artel.CanVideo}),
			rapid.Map(rapid.String(), func(s string) artel.Capability { return artel.Capability(s) }),
		)
		c := model.Capabilities{}
		c.Input.Value = rapid.SliceOfN(word, 0, 6).Draw(t, "input")
		if rapid.Bool().Draw(t, "has accepts") {
			c.Accepts.Value = rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]string{"image/*", "*/*", "audio/*"}), anyType), 0, 4).Draw(t, "accepts")
		}
		c.MaxItemBytes.Value = rapid.SampledFrom([]int64{0, 0, -1, 50, 150}).Draw(t, "limit")
		return c
	})
)

func TestDecideIsTotalTypedAndRepeatable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, c := anyInfo.Draw(t, "info"), anyCaps.Draw(t, "capabilities")
		got := route.Decide(m, route.Target{Capabilities: c})

		// What comes back from a store or a cache decides the same.
		var m2 artel.MediaInfo
		if b, err := json.Marshal(m); err != nil {
			t.Fatal(err)
		} else if err := json.Unmarshal(b, &m2); err != nil {
			t.Fatal(err)
		}
		m2.MediaType = m.MediaType // JSON mends invalid UTF-8, which is not the point here
		m2.Kind = m.Kind
		if diff := cmp.Diff(got, route.Decide(m2, route.Target{Capabilities: c})); diff != "" {
			t.Fatalf("decided differently the second time:\n%s", diff)
		}

		isText := m.Kind == artel.KindText
		if (got.ContentType == "text") != isText || (got.Reason == artel.ReasonText) != isText {
			t.Fatalf("text and binary are confused: %+v", got)
		}
		switch {
		case isText:
		case got.Step == artel.StepNative:
			if got.Reason != artel.ReasonNone || got.Need != "" || got.Suggested != nil || got.Routing == "text" {
				t.Fatalf("native, and yet: %+v", got)
			}
			if m.Size <= 0 || !c.Admits(m.MediaType) || c.MaxItemBytes.Value > 0 && m.Size > c.MaxItemBytes.Value {
				t.Fatalf("the service does not take it: %+v", got)
			}
			if (got.Routing == "image_url") != (m.Kind == artel.KindImage) || (got.ContentType == "image") != (m.Kind == artel.KindImage) {
				t.Fatalf("routed to the wrong field: %+v", got)
			}
			if !c.Has(m.Kind.Needs()) && !c.Has(artel.CanFile) {
				t.Fatalf("the model lacks the capability: %+v", got)
			}
		case got.Step == artel.StepDescribed:
			if got.Reason == artel.ReasonNone || got.Routing != "text" {
				t.Fatalf("described without a reason: %+v", got)
			}
			if (got.Need != "") != (got.Reason == artel.ReasonCapabilityMissing) {
				t.Fatalf("need and reason disagree: %+v", got)
			}
		default:
			t.Fatalf("a step that is not decided here: %+v", got)
		}
	})
}
