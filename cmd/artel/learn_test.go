// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/demo"
)

// A refuser is an Artel before a model service that refuses things.
type refuser struct {
	t        *testing.T
	dir      string
	env      []string
	upstream *fake.Server
	process  *process
	client   *httpapi.Client
}

const looks = `-- turn 1 --
@call get_artifact {"ref":"seen.png"}
-- turn 2 --
I have looked at it.
-- turn 3 --
I have looked at it, after I said that I had.
`

// refuses starts both. The model opens the artifact seen.png by a tool where
// tools is set, and else answers at once.
func refuses(t *testing.T, b fake.Behavior, tools bool) *refuser {
	t.Helper()
	script := looks
	if !tools {
		script = "-- turn 1 --\nFine.\n"
	}
	scenario, err := demo.ParseScenario([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	blobs := blob.NewMemory()
	upstream := fake.OpenAI(fake.Options{Open: true, Blobs: blobs, Behavior: b, Responder: fake.Sees(blobs, demo.New(blobs, demo.Options{Scenario: scenario}).Generate)})
	srv := httptest.NewServer(upstream)
	t.Cleanup(srv.Close)
	r := &refuser{t: t, dir: t.TempDir(), upstream: upstream}
	r.env = with(bareEnvironment(r.dir), "OPENAI_BASE_URL="+srv.URL+"/v1")
	r.start()
	return r
}

func (r *refuser) start() {
	r.process = serving(r.t, r.dir, r.env)
	r.client = httpapi.NewClient(r.process.url, nil)
}

func (r *refuser) conversation() artel.Conversation {
	r.t.Helper()
	c, err := r.client.CreateConversation(r.t.Context(), httpapi.NewConversation{})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// send sends a message with files and waits for the end of its run.
func (r *refuser) send(c artel.ConversationID, files map[string][]byte) artel.Run {
	r.t.Helper()
	var attached []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		attached = append(attached, string(r.upload(c, name, files[name]).ID))
	}
	sent, err := r.client.Send(r.t.Context(), c, httpapi.NewMessage{Text: "Look.", Attachments: attached})
	if err != nil {
		r.t.Fatal(err)
	}
	for e, err := range r.client.Events(r.t.Context(), c, 0, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		if e.Type == artel.EventRunFinished && e.Run == sent.RunID {
			break
		}
	}
	run, err := r.client.Run(r.t.Context(), sent.RunID)
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

func (r *refuser) upload(c artel.ConversationID, name string, data []byte) artel.Artifact {
	r.t.Helper()
	a, err := r.client.Upload(r.t.Context(), c, name, "", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// statuses are those of the calls since the last time, and how many media each had.
func (r *refuser) statuses(from int) (refused, answered, media int) {
	for _, q := range r.upstream.Requests()[from:] {
		if q.Status == 200 {
			answered++
			media += len(q.Media)
		} else {
			refused++
		}
	}
	return refused, answered, media
}

func (r *refuser) service() httpapi.ServiceView {
	r.t.Helper()
	list, err := r.client.Services(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return list.Items[0]
}

func pngOf(t *testing.T, width, height int, seed byte) []byte {
	t.Helper()
	m := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White, color.Black, color.Gray{seed}})
	m.Pix[0] = 2
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRefusalsAreLearned: a refused request is repeated without what the service
// refuses. Once a second run has confirmed the refusal, later runs leave it out at
// once, also after a restart.
func TestRefusalsAreLearned(t *testing.T) {
	t.Parallel()
	small, pdf := pngOf(t, 40, 30, 1), sampleBytes(t, "report.pdf")
	for _, tt := range []struct {
		name    string
		b       fake.Behavior
		tools   bool
		files   map[string][]byte
		mark    model.Mark // what is learned; its zero fields are not compared
		refused int        // calls of the first run that are refused
	}{
		{"pictures", fake.Behavior{Refuses: []fake.Refusal{fake.NoImages}}, false, map[string][]byte{"a.png": small}, model.Mark{Place: model.InUser, MediaType: "image/*"}, 1},
		{"pictures by a server's fault", fake.Behavior{Refuses: []fake.Refusal{fake.NoProjector}}, false, map[string][]byte{"a.png": small}, model.Mark{Place: model.InUser, MediaType: "image/*"}, 1},
		{"files", fake.Behavior{Refuses: []fake.Refusal{fake.NoFiles}}, false, map[string][]byte{"a.png": small, "b.pdf": pdf}, model.Mark{Place: model.InUser, MediaType: "application/pdf"}, 1},
		{"a user after a tool", fake.Behavior{Refuses: []fake.Refusal{fake.NoUserAfterTool}}, true, map[string][]byte{"seen.png": small}, model.Mark{Place: model.AfterTool}, 1},
		{"two pictures", fake.Behavior{Refuses: []fake.Refusal{fake.OneImage}}, false, map[string][]byte{"a.png": small, "b.png": pngOf(t, 41, 30, 2)}, model.Mark{Limit: model.RefusedCount, Value: 1}, 1},
		{"large sides", fake.Behavior{Refuses: []fake.Refusal{fake.SmallImages}}, false, map[string][]byte{"a.png": pngOf(t, 3000, 20, 3)}, model.Mark{Limit: model.RefusedSide, Value: 2000}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := refuses(t, tt.b, tt.tools)
			c := r.conversation().ID
			if run := r.send(c, tt.files); run.State != artel.RunDone {
				t.Fatalf("%+v %+v", run, run.Error)
			}
			refused, answered, _ := r.statuses(0)
			if refused != tt.refused || answered == 0 {
				t.Errorf("%d calls were refused, %d answered", refused, answered)
			}
			marks := r.service().Marks
			if !slices.ContainsFunc(marks, func(m httpapi.ServiceMark) bool {
				return m.Place == tt.mark.Place && m.MediaType == tt.mark.MediaType && m.Digest == tt.mark.Digest &&
					m.Limit == string(tt.mark.Limit) && m.Value == tt.mark.Value && !m.OK && m.Source == model.FromLearned && m.Evidence != "" && m.Until.After(m.At)
			}) {
				t.Errorf("learned: %+v", marks)
			}
			// The conversation continues, with what was refused still in it; so does
			// a new one, and one after a restart.
			if run := r.send(c, nil); run.State != artel.RunDone {
				t.Errorf("the next message: %+v", run.Error)
			}
			if refused, _, _ := r.statuses(0); refused > tt.refused+1 {
				t.Errorf("%d calls were refused until it was confirmed", refused)
			}
			before := len(r.upstream.Requests())
			if err := r.process.stop(); err != nil {
				t.Fatal(err)
			}
			r.start()
			if run := r.send(r.conversation().ID, tt.files); run.State != artel.RunDone {
				t.Errorf("after a restart: %+v", run.Error)
			}
			if refused, _, _ := r.statuses(before); refused != 0 && tt.mark.Limit == "" {
				t.Errorf("%d calls were refused that need not have been made", refused)
			}
		})
	}
}

// TestOneBadPictureIsOneDescription: a damaged picture is found before the service is
// asked, and the good picture of the conversation is still sent.
func TestOneBadPictureIsOneDescription(t *testing.T) {
	t.Parallel()
	r := refuses(t, fake.Behavior{Refuses: []fake.Refusal{fake.WholeImages}}, false)
	c := r.conversation().ID
	good := pngOf(t, 40, 30, 1)
	r.send(c, map[string][]byte{"good.png": good})
	before := len(r.upstream.Requests())
	if run := r.send(c, map[string][]byte{"bad.png": good[:len(good)-20]}); run.State != artel.RunDone {
		t.Fatalf("%+v", run.Error)
	}
	refused, answered, media := r.statuses(before)
	if refused != 0 || answered != 1 || media != 1 {
		t.Errorf("%d refused, %d answered with %d pictures", refused, answered, media)
	}
	last := r.upstream.Requests()[len(r.upstream.Requests())-1]
	if !strings.Contains(string(last.Body), "[file failed: bad.png]") {
		t.Errorf("the bad one is not described: %s", last.Body)
	}
}

// TestRefusedForGood: a service that refuses everything fails the run with its
// own words after the second call, and nothing is learned.
func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	r := refuses(t, fake.Behavior{}, false)
	if err := r.upstream.Behave(fake.Behavior{Mode: fake.BadRequest}); err != nil {
		t.Fatal(err)
	}
	run := r.send(r.conversation().ID, map[string][]byte{"a.png": pngOf(t, 4, 3, 1)})
	if run.State != artel.RunFailed || run.Error == nil || !strings.Contains(run.Error.Message, "Bad request") {
		t.Errorf("%+v %+v", run, run.Error)
	}
	if refused, answered, _ := r.statuses(0); refused != 2 || answered != 0 {
		t.Errorf("%d refused, %d answered", refused, answered)
	}
	if marks := r.service().Marks; len(marks) > 0 {
		t.Errorf("learned: %+v", marks)
	}
}

// TestProbe: what was tried out stands over what the service says, and is used.
func TestProbe(t *testing.T) {
	t.Parallel()
	r := refuses(t, fake.Behavior{ToolMedia: fake.ToolMediaSeen, Refuses: []fake.Refusal{fake.NoFiles}}, true)
	out, _, err := verb(t.Context(), r.dir, r.env, "models", "probe", "--server", r.process.url)
	if err != nil || !strings.Contains(out, "openai") || !strings.Contains(out, "refused") || strings.Count(out, "seen") != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	s := r.service()
	if s.Placement.ToolImage == nil || !*s.Placement.ToolImage || s.Sources["placement.tool_image"] != model.FromProbe ||
		!slices.Contains(s.Refuses, "application/pdf") || s.Sources["refuses"] != model.FromProbe || !slices.Contains(s.Input, artel.CanVision) {
		t.Errorf("%+v", s)
	}
	// The picture of a tool stays in its result from now on.
	open := func(seed byte) {
		t.Helper()
		c := r.conversation().ID
		r.upload(c, "seen.png", pngOf(t, 40, 30, seed))
		if run := r.send(c, nil); run.State != artel.RunDone {
			t.Fatalf("%+v", run.Error)
		}
	}
	open(1)
	requests := r.upstream.Requests()
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, `"role":"tool"`) || !strings.Contains(body[strings.Index(body, `"role":"tool"`):], "image_url") {
		t.Errorf("sent: %s", body)
	}
	// Until the service refuses it there: the newer counts.
	if err := r.upstream.Behave(fake.Behavior{}); err != nil {
		t.Fatal(err)
	}
	open(2)
	if s := r.service(); !*s.Placement.ToolImage {
		t.Errorf("one refusal is no proof: %+v", s)
	}
	open(3)
	if s := r.service(); *s.Placement.ToolImage || s.Sources["placement.tool_image"] != model.FromLearned {
		t.Errorf("%+v", s)
	}
	// What was learned can be forgotten; an unknown mark is an error.
	for _, m := range r.service().Marks {
		if m.MediaType == "application/pdf" {
			if _, _, err := verb(t.Context(), r.dir, r.env, "models", "forget", "openai", m.ID, "--server", r.process.url); err != nil {
				t.Error(err)
			}
		}
	}
	if s := r.service(); len(s.Refuses) > 0 || *s.Placement.ToolImage || len(s.Marks) == 0 {
		t.Errorf("%+v", s)
	}
	for _, args := range [][]string{{"openai", "no-such-mark"}, {"nobody"}} {
		if _, _, err := verb(t.Context(), r.dir, r.env, append([]string{"models", "forget", "--server", r.process.url}, args...)...); err == nil {
			t.Errorf("%q was forgotten", args)
		}
	}
	if err := r.process.stop(); err != nil {
		t.Fatal(err)
	}
	shown, _, err := verb(t.Context(), r.dir, with(r.env, "ARTEL_DATA="+r.dir+"/data"), "models")
	if err != nil || !strings.Contains(shown, "placement.tool_image") || !strings.Contains(shown, "learned") || !strings.Contains(shown, "probe") {
		t.Errorf("%v\n%s", err, shown)
	}
}

func sampleBytes(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(samplePath(name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
