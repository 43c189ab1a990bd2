// SPDX-License-Identifier: Apache-2.0

package form_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/form"
)

func build(t testing.TB, files int) (contentType string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary("the-boundary"); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		part, err := w.CreateFormFile("file", fmt.Sprintf("%d.txt", i))
		if err == nil {
			_, err = fmt.Fprintf(part, "content %d", i)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.Bytes()
}

// read returns "name=body" of every part.
func read(body io.Reader, contentType string) (got []string, err error) {
	for part, err := range form.Parts(body, contentType) {
		if err != nil {
			return got, err
		}
		b, err := io.ReadAll(part)
		if err != nil {
			return got, err
		}
		got = append(got, part.Filename+"="+string(b))
	}
	return got, nil
}

func TestWhole(t *testing.T) {
	t.Parallel()
	contentType, body := build(t, 3)
	for name, r := range map[string]io.Reader{
		"at once":      bytes.NewReader(body),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(body)),
		"by halves":    iotest.HalfReader(bytes.NewReader(body)),
	} {
		got, err := read(r, contentType)
		if err != nil || strings.Join(got, " ") != "0.txt=content 0 1.txt=content 1 2.txt=content 2" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A form that was cut off anywhere is refused, and the sender is to blame.
func TestCut(t *testing.T) {
	t.Parallel()
	contentType, body := build(t, 2)
	end := bytes.LastIndex(body, []byte("--")) + 2
	for cut := range end {
		for _, r := range []io.Reader{
			bytes.NewReader(body[:cut]),
			io.MultiReader(bytes.NewReader(body[:cut]), iotest.ErrReader(errors.New("reset"))),
		} {
			if _, err := read(r, contentType); !errors.Is(err, artel.Invalid) || artel.CodeOf(err) != form.CodeMalformed {
				t.Fatalf("cut at %d of %d: %v", cut, end, err)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	contentType, many := build(t, form.MaxParts+1)
	if got, err := read(bytes.NewReader(many), contentType); !errors.Is(err, artel.TooLarge) || len(got) != form.MaxParts {
		t.Errorf("%d parts, %v", len(got), err)
	}
	for _, bad := range []string{"", "text/plain", "multipart/form-data", "multipart/mixed; boundary=x", "multipart/form-data; boundary="} {
		if _, err := read(strings.NewReader("x"), bad); artel.CodeOf(err) != form.CodeMalformed {
			t.Errorf("%q: %v", bad, err)
		}
	}
	latin := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"caf\xe9\"\r\n\r\nx\r\n--b--\r\n"
	if _, err := read(strings.NewReader(latin), "multipart/form-data; boundary=b"); artel.CodeOf(err) != form.CodeMalformed {
		t.Errorf("a name that is not UTF-8: %v", err)
	}
}

// Nothing that arrives makes it panic, and it always ends.
func FuzzParts(f *testing.F) {
	contentType, body := build(f, 2)
	f.Add(contentType, body)
	f.Add("multipart/form-data; boundary=b", []byte("--b--"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		got, err := read(bytes.NewReader(body), contentType)
		if len(got) > form.MaxParts || err != nil && artel.KindOf(err) == artel.Internal {
			t.Errorf("%d parts, %v", len(got), err)
		}
	})
}
