// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const me, them = artel.Owner("me"), artel.Owner("them")

// watched counts what is asked of a blob store, and may hold openers up.
type watched struct {
	blob.Store
	opened, put atomic.Int32
	gate        func(context.Context) error // nil: open
}

func (w *watched) Open(ctx context.Context, d artel.Digest) (blob.Reader, error) {
	w.opened.Add(1)
	if w.gate != nil {
		if err := w.gate(ctx); err != nil {
			return nil, err
		}
	}
	return w.Store.Open(ctx, d)
}

func (w *watched) Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error) {
	w.put.Add(1)
	return w.Store.Put(ctx, r, limit)
}

// bench is a maker over services that a fake server plays.
type bench struct {
	*rendition.Maker
	t      *testing.T
	blobs  *watched
	server *fake.Server
	config rendition.Config
	now    time.Time
}

func newBench(t *testing.T, o rendition.Options) *bench {
	t.Helper()
	s := rowstest.Open(t)
	b := &bench{t: t, blobs: &watched{Store: blob.NewMemory()}, server: fake.OpenAI(fake.Options{}), now: time.Now()}
	web := httptest.NewServer(b.server)
	t.Cleanup(web.Close)
	vision := model.TextOnly()
	vision.Input = model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision}, Source: model.FromOperator}
	service := func(id artel.ServiceID, d model.Dialect, c model.Capabilities) model.Service {
		return model.Service{ID: id, Dialect: d, BaseURL: web.URL + "/v1", Model: "m-" + string(id), APIKey: "k", Capabilities: c}
	}
	o.Now = func() time.Time { return b.now }
	b.config = rendition.Config{
		Store: s, Blobs: b.blobs, Options: o,
		Services: model.NewRegistry([]model.Service{
			service("ear", model.OpenAI, model.TextOnly()), service("eye", model.OpenAI, vision),
			service("blind", model.OpenAI, model.TextOnly()), service("gem", model.Gemini, vision),
		}, ""),
		Caller: model.NewCaller(map[model.Dialect]model.Provider{
			model.OpenAI: openai.New(openai.Options{Client: web.Client(), Blobs: b.blobs}),
		}, model.CallerOptions{Attempts: 1}),
	}
	b.Maker = rendition.New(b.config)
	return b
}

// put keeps bytes and says what they are.
func (b *bench) put(name string, data []byte) rendition.Source {
	b.t.Helper()
	kept, err := b.blobs.Store.Put(b.t.Context(), bytes.NewReader(data), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	info := media.Measure(b.t.Context(), media.Detect(data, media.Hint{Filename: name}), bytes.NewReader(data))
	info.Size = kept.Size
	return rendition.Source{Digest: kept.Digest, MediaInfo: info}
}

func (b *bench) file(name string) rendition.Source {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join("../../testdata/files", name))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.put(name, data)
}

func (b *bench) picture(s rendition.Source, f picture.Form) rendition.Rendition {
	b.t.Helper()
	r, err := b.Picture(b.t.Context(), me, s, f)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestPictureIsMadeOnce(t *testing.T) {
	b := newBench(t, rendition.Options{})
	s := b.file("pic.bmp")
	var wg sync.WaitGroup
	var got [20]rendition.Rendition
	for i := range got {
		wg.Go(func() { got[i] = b.picture(s, picture.Form{Side: 10}) })
	}
	wg.Wait()
	for _, r := range got {
		if r != got[0] || r.MediaType != picture.PNG && r.MediaType != picture.JPEG || max(r.Width, r.Height) != 10 || r.Kind != artel.KindImage || r.Size == 0 {
			t.Errorf("got %+v", r)
		}
	}
	if n := b.blobs.put.Load(); n != 1 {
		t.Errorf("it was made %d times", n)
	}
	b.Maker = rendition.New(b.config) // as after a restart
	opened := b.blobs.opened.Load()
	if again := b.picture(s, picture.Form{Side: 10}); again != got[0] || b.blobs.opened.Load() != opened {
		t.Errorf("after a restart: got %+v, want %+v, %d opened", again, got[0], b.blobs.opened.Load()-opened)
	}
	if other := b.picture(s, picture.Form{Side: 11}); other.Digest == got[0].Digest || other.Width == got[0].Width {
		t.Errorf("another form: got %+v", other)
	}

	// Rows of one owner say nothing to another.
	put := b.blobs.put.Load()
	if r, err := b.Picture(t.Context(), them, s, picture.Form{Side: 10}); err != nil || r != got[0] || b.blobs.put.Load() == put {
		t.Errorf("somebody else: got %+v, %v", r, err)
	}
}

func TestWhatIsGoneIsMadeAgain(t *testing.T) {
	b := newBench(t, rendition.Options{})
	s := b.file("pic.tiff")
	r := b.picture(s, picture.Form{})
	if gone, err := b.blobs.Delete(t.Context(), r.Digest, time.Now().Add(time.Hour)); err != nil || !gone {
		t.Fatal(err)
	}
	if again := b.picture(s, picture.Form{}); again != r {
		t.Errorf("got %+v, want %+v", again, r)
	}
	src, err := b.Open(t.Context(), r.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if data, err := io.ReadAll(src); err != nil || int64(len(data)) != r.Size {
		t.Errorf("got %d bytes, %v", len(data), err)
	}
	if _, err := b.Picture(t.Context(), me, rendition.Source{Digest: artel.NewDigest([32]byte{9})}, picture.Form{}); artel.KindOf(err) != artel.NotFound {
		t.Errorf("what never was: got %v", err)
	}
}

func TestFailuresAreRemembered(t *testing.T) {
	b := newBench(t, rendition.Options{})
	s := b.put("broken.png", []byte("\x89PNG\r\n\x1a\n and no more"))
	for i, step := range []struct {
		later  time.Duration
		opened int32
	}{{0, 1}, {time.Minute, 1}, {10 * time.Minute, 2}} {
		b.now = b.now.Add(step.later)
		_, err := b.Picture(t.Context(), me, s, picture.Form{})
		if artel.KindOf(err) != artel.Invalid || b.blobs.opened.Load() != step.opened {
			t.Errorf("step %d: got %v; opened %d times, want %d", i, err, b.blobs.opened.Load(), step.opened)
		}
	}
}

// TestSomebodyElseGoesOn sees the first asker leave while it makes, and the
// second take over.
func TestSomebodyElseGoesOn(t *testing.T) {
	b := newBench(t, rendition.Options{})
	s := b.file("pic.webp")
	began, left := make(chan struct{}), false
	b.blobs.gate = func(ctx context.Context) error {
		if left {
			return nil
		}
		left = true
		close(began)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	first, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := b.Picture(first, me, s, picture.Form{}); artel.KindOf(err) != artel.Canceled {
			t.Errorf("who left: got %v", err)
		}
	})
	<-began
	wg.Go(func() { b.picture(s, picture.Form{}) })
	leave()
	wg.Wait()
}

func TestTranscript(t *testing.T) {
	b := newBench(t, rendition.Options{Transcription: rendition.Transcription{Service: "ear", Model: "whisper-1", MaxBytes: 100_000}})
	if id, limit, ok := b.Transcriber(); id != "ear" || limit != 100_000 || !ok {
		t.Errorf("got %s, %d, %v", id, limit, ok)
	}
	s := b.file("tone.mp3")
	want := rendition.Text{Text: fake.Transcript(s.Digest, s.Size), Service: "ear"}
	for range 2 {
		if got, err := b.Transcript(t.Context(), me, s); got != want || err != nil {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	asked := b.server.Requests()
	if len(asked) != 1 || asked[0].Media[0].Digest != s.Digest {
		t.Errorf("asked %+v", asked)
	}

	video := b.file("clip.mp4")
	if got, err := b.Transcript(t.Context(), me, video); err != nil || got.Text != fake.Transcript(video.Digest, video.Size) {
		t.Errorf("a video: got %+v, %v", got, err)
	}
	large := s
	large.Size = 100_001
	for name, c := range map[string]struct {
		s    rendition.Source
		want artel.Kind
	}{
		"too large": {large, artel.TooLarge},
		"a picture": {b.file("red.png"), artel.Unsupported},
	} {
		if _, err := b.Transcript(t.Context(), me, c.s); artel.KindOf(err) != c.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, id := range []artel.ServiceID{"", "nobody", "gem"} {
		b.config.Options.Transcription.Service = id
		m := rendition.New(b.config)
		if _, err := m.Transcript(t.Context(), them, s); artel.KindOf(err) != artel.Unsupported {
			t.Errorf("service %q: got %v", id, err)
		}
	}
}

// TestServicesAreAskedAgainSoon remembers a refusal for less time than damage.
func TestServicesAreAskedAgainSoon(t *testing.T) {
	b := newBench(t, rendition.Options{Transcription: rendition.Transcription{Service: "ear"}})
	s := b.file("tone.wav")
	if err := b.server.Behave(fake.Behavior{Mode: fake.ServerError, Times: 1}); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		later time.Duration
		want  artel.Kind
		asked int
	}{{0, artel.Unavailable, 1}, {time.Second, artel.Unavailable, 1}, {time.Minute, "", 2}} {
		b.now = b.now.Add(step.later)
		_, err := b.Transcript(t.Context(), me, s)
		if (err == nil) != (step.want == "") || err != nil && artel.KindOf(err) != step.want || len(b.server.Requests()) != step.asked {
			t.Errorf("step %d: got %v, asked %d times", i, err, len(b.server.Requests()))
		}
	}
}

func TestCaption(t *testing.T) {
	b := newBench(t, rendition.Options{Caption: rendition.Caption{Service: "eye", Prompt: "What is it?"}})
	wide := image.NewNRGBA(image.Rect(0, 0, 2000, 10))
	for x := range 2000 {
		wide.Set(x, 5, color.NRGBA{uint8(x), uint8(x / 8), 0, 255})
	}
	var data bytes.Buffer
	if err := png.Encode(&data, wide); err != nil {
		t.Fatal(err)
	}
	native, bitmap, large := b.file("red.png"), b.file("pic.bmp"), b.put("wide.png", data.Bytes())
	for name, s := range map[string]rendition.Source{"as it is": native, "converted": bitmap, "scaled": large} {
		before := len(b.server.Requests())
		var first rendition.Text
		for range 2 {
			got, err := b.Caption(t.Context(), me, s)
			if err != nil || got.Service != "eye" || got.Text == "" || first.Text != "" && got != first {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
			first = got
		}
		asked := b.server.Requests()[before:]
		if len(asked) != 1 || len(asked[0].Media) != 1 || (asked[0].Media[0].Digest == s.Digest) != (name == "as it is") || !strings.Contains(string(asked[0].Body), "What is it?") {
			t.Errorf("%s: asked %+v", name, asked)
		}
	}
	if _, err := b.Caption(t.Context(), me, b.file("tone.mp3")); artel.KindOf(err) != artel.Unsupported {
		t.Errorf("a recording: got %v", err)
	}
	for _, id := range []artel.ServiceID{"", "nobody", "blind"} {
		b.config.Options.Caption.Service = id
		m := rendition.New(b.config)
		if _, err := m.Caption(t.Context(), me, native); artel.KindOf(err) != artel.Unsupported {
			t.Errorf("service %q: got %v", id, err)
		}
	}
}
