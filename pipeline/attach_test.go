// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// attaching configures the transcription processor.
func attaching(config string) []pipeline.Setting {
	return []pipeline.Setting{{ID: pipeline.TranscriptionProcessor, Config: json.RawMessage(config)}}
}

func steps(r pipeline.Result) []string {
	var out []string
	for _, d := range r.Record.Decisions {
		out = append(out, strings.TrimSuffix(string(d.Step)+" "+string(d.Reason), " "))
	}
	return out
}

// Attachments stand where the text of their message asks for them.
func TestPlaceholders(t *testing.T) {
	w := newWorld(t)
	notes := w.upload("notes.md", []byte("# Hi 【file::shot.png】"))
	shot := w.upload("shot.png", picture(t))
	const inline = "attachment notes.md v1 (notes.md, text/markdown):\n```\n# Hi 【file::shot.png】\n```"
	const label = "attachment shot.png v1 (shot.png)"
	for _, c := range []struct {
		name, text string
		want       string
	}{
		{"none", "read", "user:read|" + inline + "|" + label + "|artel.Media"},
		{"a text", "read 【file::notes.md】 well", "user:read \n" + inline + "\n well|" + label + "|artel.Media"},
		{"on a line of its own", "read\n【file::notes.md】\nwell", "user:read\n" + inline + "\nwell|" + label + "|artel.Media"},
		{"a picture", "see 【file::shot.png】 there", "user:see " + label + "|artel.Media| there|" + inline},
		{"both", "【file::shot.png】【file::notes.md】", "user:" + label + "|artel.Media|" + inline},
		{"twice", "【file::notes.md】 and again 【 file::x】【file:: notes.md 】", "user:" + inline + "\n and again 【 file::x】attachment notes.md v1 (notes.md)|" + label + "|artel.Media"},
		{"of somebody else", "【file::other.md】【file::】", "user:【file::other.md】【file::】|" + inline + "|" + label + "|artel.Media"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := say("1", "user", c.text)
			m.Parts = append(m.Parts, notes.MediaPart(), shot.MediaPart())
			in := input(service(0, artel.CanVision), m)
			in.Sources, in.Until = w.files, pipeline.TranscriptionProcessor
			r := build(t, in)
			if diff := cmp.Diff([]string{c.want}, shown(r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"native text", "native"}, steps(r)); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
			in.Until = ""
			if got := build(t, in).Record.Processors; got[len(got)-1].Logs != nil {
				t.Errorf("decided again: %+v", got[len(got)-1])
			}
		})
	}
}

// What a service takes or not, and what people want of it, decide who is asked
// for words.
func TestPolicies(t *testing.T) {
	w := newWorld(t)
	shot, tone := w.upload("shot.png", picture(t)), w.upload("tone.mp3", sample(t, "tone.mp3"))
	blind, able := service(0), service(0, artel.CanVision, artel.CanAudio)
	for _, c := range []struct {
		name    string
		service model.Service
		config  string
		want    []string
	}{
		{"a model that takes neither", blind, `{}`, []string{"transcribed capability_missing", "transcribed capability_missing"}},
		{"a model that takes both", able, `{}`, []string{"native", "native"}},
		{"never pictures", blind, `{"never":["image"]}`, []string{"described capability_missing", "transcribed capability_missing"}},
		{"never recordings", blind, `{"never":["audio","video"]}`, []string{"transcribed capability_missing", "described capability_missing"}},
		{"always pictures", able, `{"always":["image"]}`, []string{"transcribed policy", "native"}},
		{"always both", able, `{"always":["image","audio"]}`, []string{"transcribed policy", "transcribed policy"}},
		{"never goes before always", able, `{"always":["image"],"never":["image"]}`, []string{"native", "native"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := w.asked(c.service, shot, tone)
			in.Renditions, _ = w.seeing()
			in.Settings.Agent = attaching(c.config)
			r := build(t, in)
			if diff := cmp.Diff(c.want, steps(r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			words := strings.Contains(text(r), "shot.png v1 (shot.png, image/png), put into words by eye:\n```\n")
			if words != strings.HasPrefix(c.want[0], "transcribed") {
				t.Errorf("got %s", text(r))
			}
		})
	}
	t.Run("asked once", func(t *testing.T) {
		in := w.asked(blind, w.upload("other.png", pngOf(t, drawing(9, 9, 7))))
		maker, server := w.seeing()
		in.Renditions = maker
		build(t, in)
		build(t, in)
		if n := len(server.Requests()); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
	t.Run("nobody to ask", func(t *testing.T) {
		in := w.asked(able, shot, tone)
		in.Settings.Agent = attaching(`{"always":["image","audio"]}`)
		if diff := cmp.Diff([]string{"native", "native"}, steps(build(t, in))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	for _, config := range []string{`{"always":["document"]}`, `{"never":["text"]}`, `{"stale_images":-1}`, `{"inline_limit":0}`} {
		if _, err := builtIn(t).Processors().Check(attaching(config)); err == nil {
			t.Errorf("%s is taken", config)
		}
	}
}

// An old picture is sent in words, and can be seen again.
func TestStaleImages(t *testing.T) {
	w := newWorld(t)
	old, fresh, tone := w.upload("old.png", pngOf(t, drawing(30, 30, 1))), w.upload("fresh.png", pngOf(t, drawing(30, 30, 2))), w.upload("tone.mp3", sample(t, "tone.mp3"))
	with := func(id string, parts ...artel.Part) artel.Message {
		return artel.Message{ID: artel.MessageID(id), Role: artel.RoleUser, Parts: append(artel.Parts{artel.Text{Text: id}}, parts...)}
	}
	in := input(service(0, artel.CanVision, artel.CanAudio), with("1", old.MediaPart(), tone.MediaPart()), say("2", "assistant", "I see."), with("3", fresh.MediaPart()), say("4", "assistant", "Yes."), with("5"))
	in.Sources, in.Tools = w.files, []model.ToolSpec{{Name: "get_artifact"}}
	for config, want := range map[string][]string{
		`{}`:                 {"native", "native", "native"},
		`{"stale_images":3}`: {"native", "native", "native"},
		`{"stale_images":2}`: {"described stale", "native", "native"},
		`{"stale_images":1}`: {"described stale", "native", "described stale"},
	} {
		in.Settings.Agent = attaching(config)
		r := build(t, in)
		if diff := cmp.Diff(want, steps(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", config, diff)
		}
		if want[0] != "native" && !strings.Contains(text(r), "[shown before] old.png (artifact:old.png)") {
			t.Errorf("%s: %s", config, text(r))
		}
	}
	in.Renditions, _ = w.seeing()
	in.Settings.Agent = attaching(`{"stale_images":2}`)
	r := build(t, in)
	if diff := cmp.Diff([]string{"transcribed stale", "native", "native"}, steps(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := text(r); !strings.Contains(got, "old.png v1 (old.png, image/png), put into words by eye:") || !strings.Contains(got, "\nget_artifact(id='old.png') shows it again.") {
		t.Errorf("got %s", got)
	}
}

// What comes after the token limiter has counted is held to the budget too.
func TestLateIsHeldToTheBudget(t *testing.T) {
	w := newWorld(t)
	shot := w.upload("shot.png", picture(t))
	late := pipeline.Processor{ID: "late", Priority: pipeline.PriorityPlugin, Process: emptyText("none")}
	in := w.asked(service(0), shot)
	in.Agent.Context = pipeline.Limits{MaxTokens: 130, ReplyReserve: number(0)}
	in.Settings.Agent = off(pipeline.TranscriptionProcessor)
	_, err := builtIn(t, late).Build(t.Context(), in)
	if artel.KindOf(err) != artel.TooLarge || !slices.Contains([]string{pipeline.AssetResolver, pipeline.TokenLimiter}, err.(*artel.Error).Subject) {
		t.Errorf("got %v", err)
	}
}
