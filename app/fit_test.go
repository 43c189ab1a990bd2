// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media/mediatest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// A sample is a file of testdata/files as a browser would have it.
type sample struct {
	name     string
	declared string
	data     []byte
}

func (s sample) candidate() run.Candidate {
	return run.Candidate{
		Filename: s.name, DeclaredType: s.declared, Size: int64(len(s.data)), Head: s.data[:min(len(s.data), run.MaxHead)],
	}
}

// samples has files of the corpus: of each kind the first media types, and of
// text the first charsets.
func samples(t *testing.T) []sample {
	t.Helper()
	corpus, err := mediatest.Read(filepath.Join("..", "testdata", "files"))
	if err != nil {
		t.Fatal(err)
	}
	var all []sample
	had := map[artel.MediaKind][]string{}
	for _, f := range corpus.Files {
		variant := f.Type
		if f.Charset != "" {
			variant = f.Charset
		}
		if len(had[f.Kind]) == 6 || slices.Contains(had[f.Kind], variant) {
			continue
		}
		had[f.Kind] = append(had[f.Kind], variant)
		data, err := corpus.Bytes(f.File)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sample{name: f.File, data: data})
	}
	return append(
		all,
		sample{"Lügen über: Bilder (1).PNG", "image/png", []byte("%PDF-1.4\n1 0 obj<</Type/Page >>\n%%EOF")},
		sample{"nothing.bin", "application/octet-stream", nil},
		sample{"nothing.txt", "", nil},
		sample{"long.txt", "text/plain", bytes.Repeat([]byte("a line of 世界\n"), 8_000)}, // longer than what is looked at
	)
}

// spy keeps the first message of what it is asked.
type spy struct{ parts artel.Parts }

func (s *spy) provider() model.Provider {
	return provide(func(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		if i := slices.IndexFunc(r.Messages, func(m model.Message) bool { return m.Role == artel.RoleUser }); i >= 0 {
			s.parts = r.Messages[i].Parts
		}
		if yield(model.TextDelta("ok"), nil) {
			yield(model.Finish{Reason: model.StopEnd}, nil)
		}
	})
}

// anyService draws services of every dialect with any capabilities.
func anyService() *rapid.Generator[model.Service] {
	inputs := rapid.SliceOfDistinct(rapid.SampledFrom([]artel.Capability{artel.CanVision, artel.CanFile, artel.CanAudio, artel.CanVideo}), rapid.ID)
	accepts := rapid.SliceOf(rapid.SampledFrom([]string{
		"image/*", "image/png", "image/bmp", "application/pdf", "audio/*", "audio/wav", "video/mp4", "application/zip", "application/octet-stream",
	}))
	seldom := rapid.SampledFrom([]bool{true, false, false})
	return rapid.Custom(func(t *rapid.T) model.Service {
		s := model.Service{ID: "it", BaseURL: "http://127.0.0.1:1", Model: "m", Capabilities: model.TextOnly()}
		s.Dialect = rapid.SampledFrom([]model.Dialect{model.OpenAI, model.OpenAI, model.Gemini, model.Demo}).Draw(t, "dialect")
		s.Capabilities.Input = model.Fact[[]artel.Capability]{Value: append([]artel.Capability{artel.CanText}, inputs.Draw(t, "input")...), Source: model.FromOperator}
		if seldom.Draw(t, "picky") {
			s.Capabilities.Accepts = model.Fact[[]string]{Value: accepts.Draw(t, "accepts"), Source: model.FromOperator}
		}
		if seldom.Draw(t, "small") {
			s.Capabilities.MaxItemBytes = model.Fact[int64]{Value: rapid.Int64Range(1, 20_000).Draw(t, "bytes"), Source: model.FromOperator}
		}
		if s.Dialect == model.OpenAI && seldom.Draw(t, "narrow endpoint") {
			s.Carries = []string{"image/png", "image/jpeg"}
		}
		return s
	})
}

// TestFitIsWhatARunSends: whatever the service can take, each file reaches it
// in the form that was foretold.
func TestFitIsWhatARunSends(t *testing.T) {
	seen := &spy{}
	p := seen.provider()
	var registry *model.Registry
	b := newBench(t, p, func(c *app.Config) {
		registry = c.Services
		c.Providers[model.OpenAI], c.Providers[model.Gemini] = p, p
	})
	c := b.conversation()
	var files []run.Candidate
	var kept []artel.Artifact
	var ids []string
	for _, f := range samples(t) {
		staged, err := b.Artifacts.Stage(apptest.Context(t), c, app.Upload{Body: bytes.NewReader(f.data), Filename: f.name, DeclaredType: f.declared})
		if err != nil {
			t.Fatal(err)
		}
		up, err := b.Artifacts.Add(apptest.Context(t), c, []artifact.Staged{staged})
		if err != nil {
			t.Fatal(err)
		}
		files, kept, ids = append(files, f.candidate()), append(kept, up[0]), append(ids, string(up[0].ID))
	}
	services := anyService()
	native, described, other := 0, 0, map[artel.Step]int{}
	for seed := range 30 {
		s := services.Example(seed)
		registry.Replace([]model.Service{s}, nil, "it")
		fits, err := b.Models.Fit(apptest.Context(t), "it", files)
		if err != nil || len(fits) != len(files) {
			t.Fatalf("%d of %d, %v", len(fits), len(files), err)
		}
		in := run.Input{Text: "Again.", Service: "it"} // the first message's files are decided anew
		if seed == 0 {
			in.Attachments = ids
		}
		r := b.ended(b.send(c, in))
		if r.State != artel.RunDone {
			t.Fatalf("%+v", r.Error)
		}
		media, text := map[string]bool{}, ""
		for _, p := range seen.parts {
			switch p := p.(type) {
			case artel.Media:
				media[p.Filename] = true
			case artel.Text:
				text += p.Text + "\n"
			}
		}
		for i, fit := range fits {
			said := func(format string, args ...any) {
				t.Errorf("seed %d, %s %+v: %s of %+v", seed, s.Dialect, s.Capabilities, fmt.Sprintf(format, args...), fit)
			}
			if k := kept[i]; fit.Info.MediaType != k.MediaType || fit.Info.Kind != k.Kind || fit.Info.Size != k.Size {
				said("%+v is kept", k.MediaInfo)
			}
			switch {
			case !fit.Info.IsBinary():
				if !fit.Native || fit.Reason != artel.ReasonText || fit.Text != "" || !strings.Contains(text, "attachment "+ids[i]+" v1 (") {
					said("the text is not sent")
				}
			case fit.Native:
				native++
				if !media[fit.Filename] || fit.Text != "" {
					said("the bytes are not sent")
				}
			case fit.Step != artel.StepDescribed:
				// The samples are not all whole, and what is damaged is described.
				other[fit.Step]++
				if fit.Text != "" || !media[fit.Filename] && !strings.Contains(text, ids[i]) {
					said("no form is sent")
				}
			default:
				described++
				if media[fit.Filename] || fit.Text == "" || !strings.Contains(text, fit.Text) {
					said("the description is not sent")
				}
			}
		}
	}
	if native < 50 || described < 50 || other[artel.StepConverted] < 5 || other[artel.StepExtracted] < 50 {
		t.Errorf("%d went as they are, %d were described, others %v: the services are all alike", native, described, other)
	}
}

func TestFit(t *testing.T) {
	eyes := model.Service{ID: "eyes", Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:1", Model: "m", Capabilities: model.TextOnly()}
	eyes.Capabilities.Input.Value = append(eyes.Capabilities.Input.Value, artel.CanVision)
	boaster := eyes // says that it takes every file, but its wire has no place for them
	boaster.ID = "boaster"
	boaster.Capabilities.Input.Value = []artel.Capability{artel.CanText, artel.CanFile, artel.CanVideo}
	routing := eyes
	routing.ID, routing.BaseURL = "routing", ""
	b := newBench(t, nil, func(c *app.Config) {
		c.Services.Replace([]model.Service{{ID: "plain", Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:1", Model: "m", Capabilities: model.TextOnly()}, eyes, boaster, routing}, nil, "plain")
	})
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00")
	files := []run.Candidate{
		{Filename: "a.png", Size: 5_000_000, Head: png},
		{Filename: "clip.mp4", Size: 7, Head: []byte("\x00\x00\x00\x18ftypisom")},
		{Filename: "notes.md", DeclaredType: "text/markdown", Size: 3, Head: []byte("# x")},
	}
	fits, err := b.Models.Fit(apptest.Context(t), "", files)
	if err != nil {
		t.Fatal(err)
	}
	want := "[cannot read] a.png (artifact:a.png)\ntype: PNG image\nsize: 4.8 MB\nThis model cannot read this kind of file. Ask an agent that can."
	if f := fits[0]; f.Native || f.Need != artel.CanVision || f.Reason != artel.ReasonCapabilityMissing || f.Text != want || !cmp.Equal(f.Suggested, []artel.ServiceID{"eyes", "routing"}) {
		t.Errorf("%+v", f)
	}
	if f := fits[1]; f.Info.Size != 12 || len(f.Suggested) != 0 || f.Native {
		t.Errorf("%+v", f) // boaster cannot be sent a video
	}
	if f := fits[2]; !f.Native || f.Text != "" || f.Info.MediaType != "text/markdown" {
		t.Errorf("%+v", f)
	}
	for _, id := range []artel.ServiceID{"eyes", "routing"} {
		if fits, err := b.Models.Fit(apptest.Context(t), id, files[:1]); err != nil || !fits[0].Native || fits[0].Text != "" {
			t.Errorf("%s: %+v, %v", id, fits, err)
		}
	}
	if _, err := b.Models.Fit(apptest.Context(t), "nobody", nil); !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), "plain, eyes") {
		t.Errorf("an unknown service: %v", err)
	}
	if _, err := b.Models.Fit(apptest.Context(t), "", []run.Candidate{{Filename: "a.png", Size: 4}}); !errors.Is(err, artel.Invalid) {
		t.Errorf("without its first bytes: %v", err)
	}
	gone, leave := context.WithCancel(apptest.Context(t))
	leave()
	if _, err := b.Models.Fit(gone, "", files); !errors.Is(err, artel.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
