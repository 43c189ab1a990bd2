// SPDX-License-Identifier: Apache-2.0

package route_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model/route"
)

// body counts how often it is opened and whether all was closed.
type body struct {
	data         []byte
	opened, open int
}

func (b *body) Open() (io.ReadCloser, error) {
	b.opened++
	b.open++
	return struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(b.data), closer(func() error { b.open--; return nil })}, nil
}

type closer func() error

func (c closer) Close() error { return c() }

func source(kind artel.MediaKind, mediaType string, b *body) route.Source {
	return route.Source{
		ID: "abc", Filename: "a.bin", CreatedAt: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC),
		Info: artel.MediaInfo{Kind: kind, MediaType: mediaType, Size: int64(len(b.data))},
		Text: func() (string, error) { return string(b.data), nil },
		Open: b.Open,
	}
}

func encode(t interface{ Fatal(...any) }, r *route.Result) string {
	var buf bytes.Buffer
	if err := r.Encode(context.Background(), &buf); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestEncode(t *testing.T) {
	meta := func(kind, binaryType string) string {
		s := `"metadata":{"id":"abc","type":"` + kind + `","filename":"a.bin","mimeType":"MT","size":5,"createdAt":"2026-11-21T01:02:03Z"`
		if binaryType != "" {
			s += `,"binaryType":"` + binaryType + `"`
		}
		return s + "}"
	}
	vf := can(artel.CanVision, artel.CanFile)
	for name, c := range map[string]struct {
		kind      artel.MediaKind
		mediaType string
		t         route.Target
		want      string
	}{
		"text": {artel.KindText, "text/plain", route.Target{}, `{"contentType":"text","routing":"text","content":"<&>\u0001\"",` +
			meta("text", "") + `,"isBinary":false,"step":"native","reason":"text","need":null,"suggestedServices":[]}`},
		"image": {artel.KindImage, "image/png", route.Target{Capabilities: vf}, `{"contentType":"image","routing":"image_url","content":"artifact content (a.bin)",` +
			meta("image", "image") + `,"isBinary":true,"step":"native","reason":"","need":null,"suggestedServices":[],` +
			`"imageUrl":{"type":"image_url","image_url":{"url":"data:image/png;base64,PCY+ASI="}}}`},
		"file": {artel.KindArchive, "application/zip", route.Target{Capabilities: vf}, `{"contentType":"binary","routing":"file","content":"artifact content (a.bin)",` +
			meta("archive", "other") + `,"isBinary":true,"step":"native","reason":"","need":null,"suggestedServices":[],` +
			`"file":{"type":"file","file":{"filename":"a.bin","mimeType":"application/zip","data":"PCY+ASI="}}}`},
		"described": {
			artel.KindImage, "image/png",
			route.Target{Suggest: func(artel.Capability, string) []artel.ServiceID { return []artel.ServiceID{"sees"} }},
			`{"contentType":"image","routing":"text","content":"[cannot read] a.bin (artifact:abc)\ntype: PNG image\nsize: 5 B\nThis model cannot read this kind of file. Ask an agent that can.",` +
				meta("image", "image") + `,"isBinary":true,"step":"described","reason":"capability_missing","need":"vision","suggestedServices":["sees"]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &body{data: []byte("<&>\x01\"")}
			got := encode(t, route.New(source(c.kind, c.mediaType, b), c.t, phrase.English))
			if want := strings.Replace(c.want, "MT", c.mediaType, 1) + "\n"; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if wantOpened := strings.Count(c.want, "PCY+ASI="); b.opened != wantOpened || b.open != 0 {
				t.Errorf("opened %d times, want %d; left open: %d", b.opened, wantOpened, b.open)
			}
		})
	}
}

func TestEncodeWithoutAnArtifact(t *testing.T) {
	b := &body{data: []byte("x")}
	s := source(artel.KindOther, "application/octet-stream", b)
	s.ID, s.Filename, s.CreatedAt = "", "", time.Time{}
	got := encode(t, route.New(s, route.Target{Capabilities: can(artel.CanFile)}, phrase.Chinese))
	for _, want := range []string{
		`"metadata":{"id":"","type":"other","mimeType":"application/octet-stream","size":1,"binaryType":"other"}`,
		`"content":"工件内容 (未知文件)"`, `"filename":"未知文件"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
}

func TestEncodeNamesTheURLOfALargePayload(t *testing.T) {
	b := &body{}
	s := source(artel.KindDocument, "application/pdf", b)
	s.Info.Size = route.InlineLimit + 1
	s.URL = "/files/x?a=1&b"
	got := encode(t, route.New(s, route.Target{Capabilities: can(artel.CanFile)}, phrase.English))
	if want := `"file":{"type":"file","file":{"filename":"a.bin","mimeType":"application/pdf","url":"/files/x?a=1&b"}}}`; !strings.HasSuffix(got, want+"\n") {
		t.Errorf("got %s", got)
	}
	s.Info.Kind, s.Info.MediaType = artel.KindImage, "image/png"
	got = encode(t, route.New(s, route.Target{Capabilities: can(artel.CanVision)}, phrase.English))
	if want := `"imageUrl":{"type":"image_url","image_url":{"url":"/files/x?a=1&b"}}}`; !strings.HasSuffix(got, want+"\n") {
		t.Errorf("got %s", got)
	}
	if b.opened != 0 {
		t.Error("the bytes were opened")
	}

	for name, c := range map[string]struct {
		size int64
		url  string
	}{
		"at the limit":  {route.InlineLimit, s.URL},
		"without a URL": {route.InlineLimit + 3, ""},
	} {
		s.Info.Size, s.URL = c.size, c.url
		s.Open = func() (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zeros{}, c.size)), nil }
		written := 0
		count := writerFunc(func(p []byte) (int, error) { written += len(p); return len(p), nil })
		if err := route.New(s, route.Target{Capabilities: can(artel.CanVision)}, phrase.English).Encode(t.Context(), count); err != nil {
			t.Fatal(err)
		}
		if written < base64.StdEncoding.EncodedLen(int(c.size)) {
			t.Errorf("a payload %s is not carried: %d bytes", name, written)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestUnreadableBytesAreAResult(t *testing.T) {
	broken := errors.New("disk /dev/sda1 is on fire")
	for name, mutate := range map[string]func(*route.Source){
		"fails to open": func(s *route.Source) { s.Open = func() (io.ReadCloser, error) { return nil, broken } },
		"no way in":     func(s *route.Source) { s.Open = nil },
		"text fails": func(s *route.Source) {
			s.Info.Kind = artel.KindText
			s.Text = func() (string, error) { return "half", broken }
		},
		"no text": func(s *route.Source) { s.Info.Kind, s.Text = artel.KindText, nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := source(artel.KindImage, "image/png", &body{data: []byte("x")})
			mutate(&s)
			got := encode(t, route.New(s, route.Target{Capabilities: can(artel.CanVision)}, phrase.English))
			want := `{"contentType":"binary","routing":"text","content":"[file failed: a.bin]\nerror: the file's bytes cannot be read\nCheck whether the file is damaged.",`
			if !strings.HasPrefix(got, want) || !strings.Contains(got, `"step":"described","reason":"unreadable","need":null,"suggestedServices":[]}`) {
				t.Errorf("got %s", got)
			}
			if strings.Contains(got, "fire") || strings.Contains(got, "half") {
				t.Errorf("internal details are told: %s", got)
			}
		})
	}
}

type failingWriter struct{ left int }

var errFull = errors.New("full")

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestEncodeFailsInMidBody(t *testing.T) {
	b := &body{data: make([]byte, 200_000)}
	s := source(artel.KindImage, "image/png", b)
	target := route.Target{Capabilities: can(artel.CanVision)}
	check := func(t *testing.T, err error, kind artel.Kind) {
		t.Helper()
		if !errors.Is(err, kind) || !strings.HasPrefix(err.Error(), "a.bin: ") {
			t.Errorf("got %v of kind %s, want %s", err, artel.KindOf(err), kind)
		}
		if b.open != 0 {
			t.Error("the bytes were left open")
		}
	}
	t.Run("fewer bytes", func(t *testing.T) {
		s := s
		s.Info.Size += 10
		check(t, route.New(s, target, "").Encode(t.Context(), io.Discard), artel.Unavailable)
	})
	t.Run("more bytes", func(t *testing.T) {
		s := s
		s.Info.Size -= 10
		check(t, route.New(s, target, "").Encode(t.Context(), io.Discard), artel.Unavailable)
	})
	t.Run("writer", func(t *testing.T) {
		for _, left := range []int{0, 300, 100_000, 266_000, 267_000} {
			check(t, route.New(s, target, "").Encode(t.Context(), &failingWriter{left}), artel.Unavailable)
		}
	})
	t.Run("canceled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var buf bytes.Buffer
		check(t, route.New(s, target, "").Encode(ctx, &buf), artel.Canceled)
		if buf.Len() > 0 {
			t.Error("something was written")
		}
	})
	t.Run("canceled inside", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
		check(t, route.New(s, target, "").Encode(ctx, w), artel.Canceled)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestToolContent(t *testing.T) {
	b := &body{data: []byte("123")}
	vision := route.Target{Capabilities: can(artel.CanVision)}
	if got := route.New(source(artel.KindText, "application/json", b), vision, "").ToolContent(); got != "123" {
		t.Errorf("text: got %q", got)
	}
	if got := route.New(source(artel.KindImage, "image/png", b), route.Target{}, "").ToolContent(); !strings.HasPrefix(got, "[cannot read] a.bin (artifact:abc)\n") {
		t.Errorf("described: got %q", got)
	}
	r := route.New(source(artel.KindImage, "image/png", b), vision, "")
	want := `{"contentType":"image","routing":"image_url","step":"native","metadata":{"id":"abc","type":"image","filename":"a.bin","mimeType":"image/png","size":3,"createdAt":"2026-11-21T01:02:03Z","binaryType":"image"}}`
	if got := r.ToolContent(); got != want || !r.Native() {
		t.Errorf("native: got %s", got)
	}
	if b.opened != 0 {
		t.Error("the bytes were opened")
	}
}

// The shape of a result, for reading it back strictly.
type decoded struct {
	ContentType       string            `json:"contentType"`
	Routing           string            `json:"routing"`
	Content           *string           `json:"content"`
	ImageURL          *imageURL         `json:"imageUrl"`
	File              *file             `json:"file"`
	Metadata          *route.Metadata   `json:"metadata"`
	IsBinary          *bool             `json:"isBinary"`
	Step              string            `json:"step"`
	Reason            *string           `json:"reason"`
	Need              *string           `json:"need"`
	SuggestedServices []artel.ServiceID `json:"suggestedServices"`
}

type imageURL struct {
	Type     string `json:"type"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

type file struct {
	Type string `json:"type"`
	File struct {
		Filename string `json:"filename"`
		MimeType string `json:"mimeType"`
		Data     string `json:"data"`
	} `json:"file"`
}

var dataURL = regexp.MustCompile(`^data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]+=*$`)

func TestResultsKeepTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		info := anyInfo.Draw(t, "info")
		isText := info.Kind == artel.KindText
		var content []byte
		if isText {
			content = []byte(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
				"123", "null", "[1]", `{"a":1,"a":2}`, "aGVsbG8=", "\ufeffbom\r\n", "</script>&", "data:image/png;base64,AAAA", "", "\u2028",
			})).Draw(t, "text"))
		} else {
			content = rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "bytes")
		}
		info.Size = int64(len(content))
		b := &body{data: content}
		s := route.Source{
			ID: rapid.String().Draw(t, "id"), Filename: rapid.String().Draw(t, "filename"), Info: info,
			Text: func() (string, error) { return string(content), nil }, Open: b.Open,
		}
		target := route.Target{Capabilities: anyCaps.Draw(t, "capabilities")}
		locale := rapid.SampledFrom(phrase.Locales()).Draw(t, "locale")

		raw := encode(t, route.New(s, target, locale))
		if again := encode(t, route.New(s, target, locale)); again != raw {
			t.Fatalf("not repeatable:\n%s\n%s", raw, again)
		}
		var got decoded
		dec := json.NewDecoder(strings.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&got); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		if dec.More() || got.Content == nil || got.Metadata == nil || got.IsBinary == nil || got.Reason == nil || got.SuggestedServices == nil {
			t.Fatalf("incomplete: %s", raw)
		}
		if *got.IsBinary == isText {
			t.Fatalf("isBinary is %t: %s", *got.IsBinary, raw)
		}
		if (got.ImageURL != nil) != (got.Routing == "image_url") || (got.File != nil) != (got.Routing == "file") {
			t.Fatalf("routing and payload disagree: %s", raw)
		}
		if isText {
			if *got.Content != string(content) {
				t.Fatalf("text %q came back as %q", content, *got.Content)
			}
			return
		}
		want := base64.StdEncoding.EncodeToString(content)
		payload := ""
		switch got.Routing {
		case "image_url":
			if !dataURL.MatchString(got.ImageURL.ImageURL.URL) && !strings.ContainsAny(info.MediaType, "!#$&^_") {
				t.Fatalf("not the form of a data URI: %s", got.ImageURL.ImageURL.URL)
			}
			prefix := "data:" + info.MediaType + ";base64,"
			p, ok := strings.CutPrefix(got.ImageURL.ImageURL.URL, prefix)
			if !ok || got.ImageURL.Type != "image_url" {
				t.Fatalf("wrong type: %s", raw)
			}
			payload = p
		case "file":
			if got.File.Type != "file" || got.File.File.MimeType != info.MediaType {
				t.Fatalf("wrong type: %s", raw)
			}
			payload = got.File.File.Data
		default:
			if b.opened != 0 {
				t.Fatal("the bytes were opened for a text answer")
			}
		}
		if payload != "" && payload != want {
			t.Fatalf("payload differs: %s", raw)
		}
		// No window of the payload is in any text.
		rest := strings.Replace(raw, `"`+payload+`"`, "", 1)
		if i := strings.LastIndex(rest, "base64,"+payload); payload != "" && i >= 0 {
			rest = rest[:i]
		}
		names := s.ID + s.Filename + info.MediaType
		for i := 0; i+24 <= len(want); i++ {
			if w := want[i : i+24]; strings.Contains(rest, w) && !strings.Contains(names, w) {
				t.Fatalf("base64 in a text field: %s", rest)
			}
		}
	})
}

func TestEncodeMatchesTheStandardEncodingAroundChunks(t *testing.T) {
	const chunk = 48 << 10
	for _, n := range []int{1, 2, 3, 4, chunk - 1, chunk, chunk + 1, chunk + 2, 3*chunk - 1, 3 * chunk} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i * 7)
		}
		b := &body{data: data}
		got := encode(t, route.New(source(artel.KindImage, "image/png", b), route.Target{Capabilities: can(artel.CanVision)}, ""))
		if want := "data:image/png;base64," + base64.StdEncoding.EncodeToString(data) + "\"}}}\n"; !strings.HasSuffix(got, want) {
			t.Errorf("%d bytes are encoded wrongly", n)
		}
	}
}

func TestResultDoesNotChangeItsRouteWhenUnreadable(t *testing.T) {
	s := source(artel.KindImage, "image/png", &body{data: []byte("x")})
	s.Open = nil
	r := route.New(s, route.Target{Capabilities: can(artel.CanVision)}, "")
	before := r.Route
	encode(t, r)
	if diff := cmp.Diff(before, r.Route); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkTextOnlyAnswer(b *testing.B) {
	s := source(artel.KindImage, "image/png", &body{})
	s.Info.Size = 10 << 30
	for b.Loop() {
		if err := route.New(s, route.Target{}, "").Encode(b.Context(), io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
}

func BenchmarkImage10MB(b *testing.B) {
	s := source(artel.KindImage, "image/png", &body{data: make([]byte, 10<<20)})
	target := route.Target{Capabilities: can(artel.CanVision)}
	b.SetBytes(10 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if err := route.New(s, target, "").Encode(b.Context(), io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
