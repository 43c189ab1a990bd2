// SPDX-License-Identifier: Apache-2.0

package scrub_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel/media/scrub"
)

// TestMediaChangesNothingElse: what seems to be media and is none stays byte
// for byte, and real media beside it are taken.
func TestMediaChangesNothingElse(t *testing.T) {
	const png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
	keep := func(_ context.Context, r io.Reader, _ scrub.Hint) (string, error) {
		_, err := io.Copy(io.Discard, r)
		return "REF", err
	}
	flawed := []string{
		"data:image/png;base64,not base64!", `{"type":"image-data","data":"none","mediaType":"image/png"}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%%%"}}`, "plain words, and a path/to/some+where", `{\"data\":\"x\"}`,
		`{"type":"image-data","data":"aGVsbG8gd29ybGQgdGhpcyBpcyBubyBwaWN0dXJlIGF0IGFsbA==","mediaType":"image/png"}`,
	}
	rapid.Check(t, func(rt *rapid.T) {
		var in, want strings.Builder
		var originals []string
		for range rapid.IntRange(0, 6).Draw(rt, "pieces") {
			if rapid.IntRange(0, 3).Draw(rt, "real") == 0 {
				in.WriteString(png + " ")
				want.WriteString("REF ")
				continue
			}
			s := rapid.SampledFrom(flawed).Draw(rt, "flawed") + "\n"
			in.WriteString(s)
			want.WriteString(s)
		}
		got, err := scrub.Media(t.Context(), in.String(), keep, func(original, by string) string {
			originals = append(originals, original)
			return by
		})
		// The matched texts, put back, give the text.
		for _, original := range originals {
			if original != png {
				rt.Fatalf("a match is %q", original)
			}
		}
		if back := strings.ReplaceAll(got, "REF", png); back != in.String() {
			rt.Fatalf("%s\nput back is\n%s", in.String(), back)
		}
		if err != nil || got != want.String() {
			rt.Fatalf("%v\n%s\nbecame\n%s\nwant\n%s", err, in.String(), got, want.String())
		}
	})
}
