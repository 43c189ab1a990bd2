// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

func genRef() *rapid.Generator[artel.Ref] {
	id := rapid.StringMatching(`[\p{L}\p{N}_][\p{L}\p{M}\p{N}_.\-]{0,63}`)
	return rapid.Custom(func(t *rapid.T) artel.Ref {
		if rapid.Bool().Draw(t, "blob") {
			return artel.BlobRef(artel.NewDigest(sha256.Sum256([]byte(rapid.String().Draw(t, "bytes")))))
		}
		r := artel.Ref{Artifact: artel.ArtifactID(id.Draw(t, "id")), Version: rapid.IntRange(0, 1<<30).Draw(t, "version")}
		if rapid.Bool().Draw(t, "long") {
			r.Conversation = artel.NewConversationID(time.UnixMilli(rapid.Int64Range(0, 1<<40).Draw(t, "time")))
		}
		return r
	})
}

func TestRefRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genRef().Draw(t, "ref")
		s := want.String()
		if got, err := artel.ParseRef(s); err != nil || got != want {
			t.Fatalf("%q: got %+v, %v", s, got, err)
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got artel.Ref
		if err := json.Unmarshal(data, &got); err != nil || got != want {
			t.Fatalf("%s: got %+v, %v", data, got, err)
		}
		if want.Immutable() != (want.IsBlob() || want.Version > 0) || want.IsZero() {
			t.Fatalf("%q: Immutable or IsZero is wrong", s)
		}
		if rest, ok := strings.CutPrefix(s, "artifact:"); ok {
			if got, err := artel.ParseRef(rest); err != nil || got != want {
				t.Fatalf("%q without its scheme: got %+v, %v", s, got, err)
			}
			got, err := artel.ParseRef("artel://" + rest)
			if want.Conversation == "" {
				if err == nil {
					t.Fatalf("artel://%s has no conversation and was accepted", rest)
				}
			} else if err != nil || got != want {
				t.Fatalf("artel://%s: got %+v, %v", rest, got, err)
			}
		}
	})
}

func TestParseRefRefuses(t *testing.T) {
	conv := string(artel.NewConversationID(time.Now()))
	for _, s := range []string{
		"", "artifact:", "artifact:@1", "artifact:a@", "artifact:a@0", "artifact:a@01", "artifact:a@+1", "artifact:a@-1", "artifact:a@1@2",
		"artifact:a@99999999999999999999", "artifact:a/b", "artifact:" + conv + "/", "artifact:" + conv + "/a/b", "artifact:../a", "artel://a",
		"artel://" + conv, "blob:", "blob:sha256-", "blob:sha256-" + strings.Repeat("A", 64), "blob:sha256-" + strings.Repeat("a", 63),
		"blob:md5-" + strings.Repeat("a", 64), "https://a", "artifact:a b", "artifact:\xff", strings.Repeat("a", 1000),
	} {
		r, err := artel.ParseRef(s)
		if !errors.Is(err, artel.NotFound) || artel.CodeOf(err) != artel.CodeArtifactNotFound || !r.IsZero() {
			t.Errorf("%q: got %+v, %v", s, r, err)
		}
	}
}

// TestLongestRef holds the length limit to the longest ref that there is.
func TestLongestRef(t *testing.T) {
	// Four bytes a letter, 64 letters, an int64 for the version.
	want := artel.Ref{
		Conversation: artel.NewConversationID(time.Now()),
		Artifact:     artel.ArtifactID(strings.Repeat("\U00020000", artel.MaxArtifactID)), Version: 1<<63 - 1,
	}
	if got, err := artel.ParseRef(want.String()); err != nil || got != want {
		t.Errorf("%d bytes: %v", len(want.String()), err)
	}
}

func TestRefText(t *testing.T) {
	if s := (artel.Ref{}).String(); s != "" {
		t.Errorf("the zero ref is %q", s)
	}
	r := artel.Ref{Artifact: "a"}
	if err := r.UnmarshalText(nil); err != nil || !r.IsZero() {
		t.Errorf("the empty text is %+v, %v", r, err)
	}
	r = artel.Ref{Artifact: "a"}
	if err := r.UnmarshalText([]byte("a/b")); err == nil || r.Artifact != "a" {
		t.Errorf("a refused text left %+v, %v", r, err)
	}
}

func TestDigest(t *testing.T) {
	d := artel.NewDigest(sha256.Sum256([]byte("abc")))
	const hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if d != "sha256-"+hex || d.Hex() != hex {
		t.Errorf("got %q, %q", d, d.Hex())
	}
	if got, err := artel.ParseDigest(string(d)); err != nil || got != d {
		t.Errorf("got %q, %v", got, err)
	}
	for _, s := range []string{"", hex, "sha256-" + hex[1:], "sha256-" + hex + "0", "sha256-" + strings.ToUpper(hex), "sha1-" + hex} {
		if got, err := artel.ParseDigest(s); artel.KindOf(err) != artel.NotFound || got != "" {
			t.Errorf("%q: got %q, %v", s, got, err)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"artifact:a@1", "artel://cnv_01hzzzzzzzzzzzzzzzzzzzzzzz/a", "blob:sha256-" + strings.Repeat("0", 64), "a", "artifact:artifact:a", "计划@3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := artel.ParseRef(s)
		if err != nil {
			if artel.CodeOf(err) != artel.CodeArtifactNotFound {
				t.Fatalf("%q: code %q", s, artel.CodeOf(err))
			}
			return
		}
		if back, err := artel.ParseRef(r.String()); err != nil || back != r {
			t.Fatalf("%q is %+v, and %q is %+v, %v", s, r, r.String(), back, err)
		}
	})
}
