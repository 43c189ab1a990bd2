// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"iter"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/probe"
	"github.com/artelhq/artel/model/provider/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCanariesCanBeRead(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 50 {
		letters := probe.Letters()
		seen[letters] = true
		data, err := probe.Picture(letters)
		if err != nil {
			t.Fatal(err)
		}
		if got := probe.ReadPicture(data); got != letters || len(letters) != 6 {
			t.Fatalf("read %q, drawn %q", got, letters)
		}
		again, _ := probe.Picture(letters)
		if !bytes.Equal(data, again) || len(data) > 4<<10 {
			t.Fatalf("%d bytes, the same again: %v", len(data), bytes.Equal(data, again))
		}
		if got := probe.ReadDocument(probe.Document(letters)); got != letters {
			t.Fatalf("read %q, written %q", got, letters)
		}
	}
	if len(seen) < 49 {
		t.Errorf("only %d of 50 were different", len(seen))
	}
}

// TestOthersAreNoCanaries: whatever else is sent has no letters.
func TestOthersAreNoCanaries(t *testing.T) {
	t.Parallel()
	var noise bytes.Buffer
	m := image.NewGray(image.Rect(0, 0, 46*8, 17*8))
	for i := range m.Pix {
		m.Pix[i] = byte(i * 31)
	}
	m.Set(0, 0, color.White)
	if err := png.Encode(&noise, m); err != nil {
		t.Fatal(err)
	}
	whole, _ := probe.Picture("ACEFHJ")
	for _, data := range [][]byte{nil, []byte("PNG"), noise.Bytes(), whole[:len(whole)/2], probe.Document("ACEFHJ")} {
		if got := probe.ReadPicture(data); got != "" {
			t.Errorf("a picture of %d bytes says %q", len(data), got)
		}
	}
	for _, data := range [][]byte{nil, whole, []byte("%PDF-1.4 (ACEFHJ) Tj"), probe.Document("ACEFHJ")[1:]} {
		if got := probe.ReadDocument(data); got != "" {
			t.Errorf("a document of %d bytes says %q", len(data), got)
		}
	}
}

func FuzzReadPicture(f *testing.F) {
	whole, _ := probe.Picture("ACEFHJ")
	f.Add(whole)
	f.Fuzz(func(t *testing.T, data []byte) {
		if letters := probe.ReadPicture(data); len(letters) > 100 {
			t.Fatal(letters)
		}
	})
}

// upstream is a model that sees, behind a server that behaves.
func upstream(t *testing.T, b fake.Behavior) (*model.Caller, *blob.Memory, model.Service) {
	t.Helper()
	theirs, ours := blob.NewMemory(), blob.NewMemory()
	srv := httptest.NewServer(fake.OpenAI(fake.Options{Open: true, Blobs: theirs, Responder: fake.Sees(theirs, fake.Echo), Behavior: b}))
	t.Cleanup(func() {
		srv.Client().CloseIdleConnections()
		srv.Close()
	})
	caller := model.NewCaller(map[model.Dialect]model.Provider{model.OpenAI: openai.New(openai.Options{Client: srv.Client(), Blobs: ours})},
		model.CallerOptions{Attempts: 1})
	return caller, ours, model.Service{ID: "s", Dialect: model.OpenAI, BaseURL: srv.URL + "/v1", Model: "fake-1", Capabilities: model.TextOnly()}
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		b     fake.Behavior
		want  string // outcomes: picture in user, tool and after tool; PDF in user and tool
		marks string
		most  int // calls
	}{
		{"strict, as OpenAI", fake.Behavior{}, "seen refused seen seen refused", "user image/* true, tool image/* false, after_tool true, user application/pdf true, tool application/pdf false", 6},
		{"sees all", fake.Behavior{ToolMedia: fake.ToolMediaSeen}, "seen seen seen seen seen", "user image/* true, tool image/* true, after_tool true, user application/pdf true, tool application/pdf true", 5},
		{"takes media of tools and loses them", fake.Behavior{ToolMedia: fake.ToolMediaLost}, "seen blind seen seen blind", "user image/* true, tool image/* false, after_tool true, user application/pdf true, tool application/pdf false", 5},
		{"blind", fake.Behavior{DropsMedia: true}, "blind skipped skipped blind skipped", "user image/* false, user application/pdf false", 2},
		{"text only, as DeepSeek", fake.Behavior{Refuses: []fake.Refusal{fake.NoImages, fake.NoFiles}}, "refused skipped skipped refused skipped", "user image/* false, user application/pdf false", 2},
		{"as Mistral", fake.Behavior{Refuses: []fake.Refusal{fake.NoUserAfterTool}}, "seen refused refused seen refused", "user image/* true, tool image/* false, after_tool false, user application/pdf true, tool application/pdf false", 6},
		{"as llama.cpp without a projector", fake.Behavior{Refuses: []fake.Refusal{fake.NoProjector}}, "refused skipped skipped seen refused", "user image/* false, user application/pdf true, tool application/pdf false", 4},
		{"down", fake.Behavior{Mode: fake.ServerError}, "failed skipped skipped skipped skipped", "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			caller, blobs, s := upstream(t, tt.b)
			report, err := probe.Run(t.Context(), caller, blobs, s)
			if err != nil {
				t.Fatal(err)
			}
			var outcomes []string
			for _, r := range report.Results {
				outcomes = append(outcomes, string(r.Outcome))
			}
			if got := strings.Join(outcomes, " "); got != tt.want {
				t.Errorf("got  %s\nwant %s\n%+v", got, tt.want, report.Results)
			}
			if report.Calls > tt.most || report.Calls > probe.MostCalls {
				t.Errorf("%d calls, want at most %d", report.Calls, tt.most)
			}
			var marks []string
			for _, m := range report.Marks(s) {
				mark := strings.Join(strings.Fields(string(m.Place)+" "+m.MediaType), " ")
				if m.OK {
					mark += " true"
				} else {
					mark += " false"
				}
				marks = append(marks, mark)
				if m.Endpoint != s.BaseURL || m.Model != s.Model || m.Source != model.FromProbe || m.Evidence == "" {
					t.Errorf("%+v", m)
				}
			}
			if diff := cmp.Diff(tt.marks, strings.Join(marks, ", ")); diff != "" {
				t.Error(diff)
			}
			if err := blobs.List(t.Context(), func(i blob.Info) bool { t.Errorf("%s is left", i.Digest); return true }); err != nil {
				t.Error(err)
			}
		})
	}
}

// says is a caller that answers with what a function makes of a request.
type says func(r *model.Request) (model.Delta, error)

func (f says) Call(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if d, err := f(r); err != nil {
			yield(nil, err)
		} else if yield(d, nil) {
			yield(model.Finish{Reason: model.StopEnd}, nil)
		}
	}
}

func TestRunJudges(t *testing.T) {
	t.Parallel()
	hasMedia := func(r *model.Request) bool { return len(model.MediaIn(r)) > 0 }
	refuse := func(status int, words string) error {
		return &artel.Error{Kind: artel.Invalid, Err: &model.CallError{Status: status, Message: words, Refusal: model.Classify(status, "", words)}}
	}
	for _, tt := range []struct {
		name  string
		f     says
		want  probe.Outcome
		calls int
	}{
		{"it calls a tool", func(*model.Request) (model.Delta, error) { return model.CallDelta{Name: "open_file"}, nil }, probe.Unclear, 2},
		{"it says nothing", func(*model.Request) (model.Delta, error) { return model.TextDelta(" "), nil }, probe.Unclear, 2},
		{"it guesses", func(*model.Request) (model.Delta, error) { return model.TextDelta("A, B, C, D, E and F"), nil }, probe.Blind, 2},
		{"words that nobody knows, and without a picture it works", func(r *model.Request) (model.Delta, error) {
			if hasMedia(r) {
				return nil, refuse(400, "no")
			}
			return model.TextDelta("yes"), nil
		}, probe.Refused, 3},
		{"words that nobody knows, whatever is sent", func(*model.Request) (model.Delta, error) { return nil, refuse(400, "no") }, probe.Failed, 2},
		{"a wrong key", func(*model.Request) (model.Delta, error) { return nil, refuse(401, "who are you") }, probe.Failed, 1},
		{"the dialect has no place", func(*model.Request) (model.Delta, error) {
			return nil, artel.Errorf(artel.Unsupported, "x", "y", "it takes no such thing")
		}, probe.Refused, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			report, err := probe.Run(t.Context(), tt.f, blob.NewMemory(), model.Service{ID: "s", BaseURL: "u", Model: "m"})
			if err != nil || report.Results[0].Outcome != tt.want || report.Calls != tt.calls {
				t.Errorf("%v, %+v", err, report)
			}
		})
	}
}

func TestRunIsStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	blobs := blob.NewMemory()
	_, err := probe.Run(ctx, says(func(*model.Request) (model.Delta, error) {
		cancel()
		return nil, context.Canceled
	}), blobs, model.Service{ID: "s"})
	if !errors.Is(err, artel.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := blobs.List(t.Context(), func(i blob.Info) bool { t.Errorf("%s is left", i.Digest); return true }); err != nil {
		t.Error(err)
	}
}
