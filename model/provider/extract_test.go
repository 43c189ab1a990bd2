// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model/provider"
)

// somewhere is a rule with every form of payload.
func somewhere(path []string) provider.Encoding {
	switch strings.Join(path, ".") {
	case "a..plain":
		return provider.PlainBase64
	case "a..web":
		return provider.WebBase64
	case "a..url":
		return provider.DataURL
	case "a..any":
		return provider.AnyBase64
	case "a..source.data":
		return provider.TypedBase64
	}
	return provider.NoEncoding
}

// into returns the options that keep payloads in s.
func into(s blob.Store) provider.DecodeOptions {
	return provider.DecodeOptions{Sink: func(ctx context.Context, r io.Reader) (artel.Digest, int64, error) {
		info, err := s.Put(ctx, r, 0)
		return info.Digest, info.Size, err
	}}
}

// TestExtract tells for each form what is extracted, and that nothing shows that it
// was away.
func TestExtract(t *testing.T) {
	t.Parallel()
	long := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("an image"), 9000))
	prose := strings.Repeat("a text without a media type ", 4000)
	for name, c := range map[string]struct {
		in   string
		want []string // the payloads, decoded; "!" for what is no base64
		kept string   // the text where it comes back in another form; empty: as it was
	}{
		"plain":                  {`{"a":[{"plain":"aGVsbG8="}]}`, []string{"hello"}, ""},
		"plain is bad":           {`{"a":[{"plain":"hello"}]}`, []string{"!"}, `{"a":[{"plain":""}]}`},
		"web":                    {`{"a":[{"web":"aGVsbG8="},{"web":"aGVsbG8"},{"web":"_-8="},{"web":"\u005f\u002d8"},{"web":""},{"web":"dw"}]}`, []string{"hello", "hello", "\xff\xef", "\xff\xef", "", "w"}, `{"a":[{"web":"aGVsbG8="},{"web":"aGVsbG8="},{"web":"/+8="},{"web":"/+8="},{"web":""},{"web":"dw=="}]}`},
		"web, long":              {`{"a":[{"web":"` + strings.TrimRight(long, "=") + `"}]}`, []string{strings.Repeat("an image", 9000)}, `{"a":[{"web":"` + long + `"}]}`},
		"web, other letters":     {`{"a":[{"web":"` + strings.Repeat("____----", 9000) + `"}]}`, []string{strings.Repeat("\xff\xff\xff\xfb\xef\xbe", 9000)}, `{"a":[{"web":"` + strings.Repeat("////++++", 9000) + `"}]}`},
		"web, both's letters":    {`{"a":[{"web":"` + strings.Repeat("_/__-+--", 9000) + `"}]}`, []string{strings.Repeat("\xff\xff\xff\xfb\xef\xbe", 9000)}, `{"a":[{"web":"` + strings.Repeat("////++++", 9000) + `"}]}`},
		"web is bad":             {`{"a":[{"web":"hello"},{"web":"h"},{"web":"a=G="},{"web":"a b="}]}`, []string{"!", "!", "!", "!"}, `{"a":[{"web":""},{"web":""},{"web":""},{"web":""}]}`},
		"elsewhere":              {`{"b":[{"plain":"aGVsbG8="}],"plain":"aGVsbG8=","a":{"plain":"aGVsbG8="}}`, nil, ""},
		"data URL":               {`{"a":[{"url":"data:image/png;base64,aGVsbG8="}, {"url" : "data:a/b;x=y;base64,aGVsbG8="}]}`, []string{"hello", "hello"}, ""},
		"no data URL":            {`{"a":[{"url":"https://example.com/aGVsbG8="},{"url":"data:text/plain,aGVsbG8="}]}`, nil, ""},
		"any is a data URL":      {`{"a":[{"any":"data:image/png;base64,aGVsbG8="}]}`, []string{"hello"}, ""},
		"any is plain":           {`{"a":[{"any":"aGVsbG8="}]}`, []string{"hello"}, ""},
		"escapes":                {`{"\u0061":[{"plai\u006e":"\/\u002b8="}]}`, []string{"\xff\xef"}, `{"\u0061":[{"plai\u006e":"/+8="}]}`},
		"typed before":           {`{"a":[{"source":{"type":"base64","data":"aGVsbG8="}}]}`, []string{"hello"}, ""},
		"typed after":            {`{"a":[{"source":{"data":"aGVsbG8=","media_type":"image/png","type":"base64"}},{"source":{"data":"dw==","type":"base64"}}]}`, []string{"hello", "w"}, ""},
		"typed after, long":      {`{"a":[{"source":{"data":"` + long + `","type":"base64"}}]}`, []string{strings.Repeat("an image", 9000)}, ""},
		"typed after, bad":       {`{"a":[{"source":{"data":"hello","type":"base64"}}]}`, []string{"!"}, `{"a":[{"source":{"data":"","type":"base64"}}]}`},
		"typed otherwise":        {`{"a":[{"source":{"type":"text","data":"aGVsbG8="}},{"source":{"data":"aGVsbG8=","type":"text"}},{"source":{"data":"aGVsbG8="}}]}`, nil, ""},
		"typed after, long text": {`{"a":[{"source":{"data":"` + prose + `","type":"text"}}]}`, nil, ""},
		"a type inside":          {`{"a":[{"source":{"data":"aGVsbG8=","x":{"type":"base64"}}}]}`, nil, ""},
		"no JSON":                {`}]"{"`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, in := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
				store := blob.NewMemory()
				l, err := provider.Extract(t.Context(), in, somewhere, into(store))
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, m := range l.Payloads() {
					if m.Bad {
						got = append(got, "!")
						continue
					}
					r, err := store.Open(t.Context(), m.Digest)
					if err != nil {
						t.Fatal(err)
					}
					data, err := io.ReadAll(r)
					if err = errors.Join(err, r.Close()); err != nil || int64(len(data)) != m.Size {
						t.Fatal(err, len(data), m.Size)
					}
					got = append(got, string(data))
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Error(d)
				}
				want := c.kept
				if want == "" {
					want = c.in
				}
				body := l.Body(l.JSON(), store)
				r := body.Open(t.Context())
				back, err := io.ReadAll(r)
				if err = errors.Join(err, r.Close()); err != nil || string(back) != want || body.Len() != int64(len(want)) {
					t.Errorf("%v: it comes back as %.200q, want %.200q", err, back, want)
				}
				if json.Valid([]byte(c.in)) != json.Valid(l.Elided()) {
					t.Errorf("elided: %s", l.Elided())
				}
			}
		})
	}
}

func TestExtractRefuses(t *testing.T) {
	t.Parallel()
	for code, in := range map[string]string{
		provider.CodeTooDeep:      strings.Repeat("[", 300),
		provider.CodeTextTooLarge: `"` + strings.Repeat("x", 2<<20) + `"`,
	} {
		_, err := provider.Extract(t.Context(), strings.NewReader(in), somewhere, provider.DecodeOptions{MaxText: 1 << 20})
		if artel.CodeOf(err) != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
	broken := errors.New("the disk is full")
	for _, in := range []string{`{"a":[{"plain":"aGVsbG8="}]}`, `{"a":[{"source":{"data":"aGVsbG8=","type":"base64"}}]}`} {
		_, err := provider.Extract(t.Context(), strings.NewReader(in), somewhere, provider.DecodeOptions{
			Sink: func(context.Context, io.Reader) (artel.Digest, int64, error) { return "", 0, broken },
		})
		if !errors.Is(err, broken) {
			t.Errorf("the sink's error is lost: %v", err)
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add([]byte(`{"a":[{"plain":"aGVsbG8=","url":"data:image/png;base64,aGVsbG8=","any":"aGVsbG8="},{"source":{"data":"aGVsbG8=","type":"base64"}}]}`))
	f.Add([]byte(`{"a":[{"web":"_-8"},{"web":"aGVsbG8="}]}`))
	f.Add([]byte(`{"a":[{"source":{"data":"\u0061GVsbG8=","x":{"plain":"="},"type":"bas\u006564"`))
	f.Fuzz(func(t *testing.T, in []byte) {
		store := blob.NewMemory()
		whole, err := provider.Extract(t.Context(), bytes.NewReader(in), somewhere, into(store))
		pieces, err2 := provider.Extract(t.Context(), iotest.OneByteReader(bytes.NewReader(in)), somewhere, into(store))
		if (err == nil) != (err2 == nil) {
			t.Fatalf("whole: %v, in pieces: %v", err, err2)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(whole.Elided(), pieces.Elided()) {
			t.Fatalf("the pieces it comes in change what is read: %q %q", whole.Elided(), pieces.Elided())
		}
		if json.Valid(in) && !json.Valid(whole.JSON()) {
			t.Fatalf("%q becomes %q", in, whole.JSON())
		}
		for _, m := range whole.Payloads() {
			if m.Bad {
				return
			}
		}
		if !json.Valid(in) {
			if json.Valid(whole.JSON()) {
				t.Fatalf("%q is no JSON, and becomes %q", in, whole.JSON())
			}
			return
		}
		r := whole.Body(whole.JSON(), store).Open(t.Context())
		defer r.Close()
		back, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := provider.Extract(t.Context(), bytes.NewReader(back), somewhere, into(store))
		if err != nil || !bytes.Equal(again.Elided(), whole.Elided()) {
			t.Fatalf("%q comes back as %q", in, back)
		}
	})
}

// TestExtractAgain: a request whose payloads were extracted is decoded without its bytes, with
// what was added to it.
func TestExtractAgain(t *testing.T) {
	t.Parallel()
	rule := func(path []string) provider.Encoding {
		if path[len(path)-1] == "url" {
			return provider.DataURL
		}
		return provider.NoEncoding
	}
	l, err := provider.Extract(t.Context(), strings.NewReader(`{"url":"data:image/png;base64,AAAA"}`), rule, provider.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := artel.NewDigest([32]byte{7})
	text := bytes.Replace(l.JSON(), []byte("}"), []byte(`,"more":"`+l.Add("data:audio/wav;base64,", d, 3)+`"}`), 1)
	again, err := provider.Extract(t.Context(), l.Reader(text), rule, provider.DecodeOptions{MaxText: 1})
	if err != nil || !bytes.Equal(again.JSON(), text) || len(again.Payloads()) != 2 {
		t.Fatalf("%s, %v", again.JSON(), err)
	}
	var got map[string]string
	if err := json.Unmarshal(again.JSON(), &got); err != nil {
		t.Fatal(err)
	}
	if m, mediaType, ok := again.DataURL(got["more"]); !ok || m.Digest != d || m.Size != 3 || mediaType != "audio/wav" {
		t.Errorf("%+v, %q, %v", m, mediaType, ok)
	}
	if n := again.Body(text, nil).Len(); n != int64(len(`{"url":"data:image/png;base64,AAAA","more":"data:audio/wav;base64,AAAA"}`)) {
		t.Errorf("the body has %d bytes", n)
	}
}
