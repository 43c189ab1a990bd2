// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

func TestMintedIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(label string) time.Time {
			return time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(t, label))
		}
		a, b := at("a"), at("b")
		x, y := artel.NewMessageID(a), artel.NewMessageID(b)
		if got, err := artel.ParseMessageID(string(x)); err != nil || got != x {
			t.Fatalf("%q is not accepted: %v", x, err)
		}
		if x == y {
			t.Fatalf("%q came twice", x)
		}
		if a.Before(b) && x >= y || b.Before(a) && y >= x {
			t.Fatalf("%q of %v and %q of %v do not sort by time", x, a, y, b)
		}
	})
	now := time.Now()
	if id := artel.NewConversationID(now); !accepted(artel.ParseConversationID(string(id))) {
		t.Errorf("conversation %q is not accepted", id)
	}
	if id := artel.NewRunID(now); !accepted(artel.ParseRunID(string(id))) {
		t.Errorf("run %q is not accepted", id)
	}
}

func accepted[ID any](_ ID, err error) bool { return err == nil }

func TestForeignIDsNameNothing(t *testing.T) {
	good := string(artel.NewRunID(time.Now()))
	for _, s := range []string{
		"", "run_", good[:29], good + "0", "cnv_" + good[4:], strings.ToUpper(good), good[:29] + "u", good[:29] + "/", strings.Repeat("r", 300),
	} {
		id, err := artel.ParseRunID(s)
		if !errors.Is(err, artel.NotFound) {
			t.Errorf("%q: got %v, want kind not_found", s, err)
		}
		if id != "" {
			t.Errorf("%q: a refused identifier came back as %q", s, id)
		}
	}
}

func TestParseArtifactID(t *testing.T) {
	for _, s := range []string{"task_plan", "_", "7", "a.b-c", "计划", "é", "e\u0301", "हिंदी", "Ⅷ", strings.Repeat("x", 64), strings.Repeat("界", 64)} {
		if id, err := artel.ParseArtifactID(s); err != nil || string(id) != s {
			t.Errorf("%q: got %q, %v", s, id, err)
		}
	}
	for _, s := range []string{
		"", ".a", "-a", "\u0301a", "a b", "a/b", `a\b`, "a@1", "a\n", "a\x00", "a:b", "\xff", "a\xff", "\uFFFD", "..", strings.Repeat("x", 65), strings.Repeat("界", 65),
	} {
		id, err := artel.ParseArtifactID(s)
		if artel.KindOf(err) != artel.Invalid || id != "" {
			t.Errorf("%q: got %q, %v", s, id, err)
		}
	}
}

func FuzzParseArtifactID(f *testing.F) {
	for _, s := range []string{"task_plan", "计划", ".", "", "a\n", "\xff", strings.Repeat("界", 65)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := artel.ParseArtifactID(s)
		if err != nil {
			if artel.KindOf(err) != artel.Invalid || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q: %q", s, err)
			}
			return
		}
		if string(id) != s || !utf8.ValidString(s) || utf8.RuneCountInString(s) > artel.MaxArtifactID || strings.ContainsAny(s, "/\\@: \n\x00") || s[0] == '.' {
			t.Fatalf("%q was accepted", s)
		}
		ref := artel.Ref{Artifact: id}
		if back, err := artel.ParseRef(ref.String()); err != nil || back != ref {
			t.Fatalf("%q came back from its ref as %+v, %v", s, back, err)
		}
	})
}

func TestErrorText(t *testing.T) {
	cause := errors.New("no space left")
	err := artel.Errorf(artel.Unavailable, "blob.Put", "sha256-00", "writing: %w", cause)
	if got := err.Error(); got != "sha256-00: writing: no space left" {
		t.Errorf("got %q", got)
	}
	if !errors.Is(err, artel.Unavailable) || !errors.Is(err, cause) || errors.Is(err, artel.NotFound) {
		t.Error("the kind or the cause is not found")
	}
	if got := (&artel.Error{Kind: artel.Denied}).Error(); got != "denied" {
		t.Errorf("an error without a cause says %q", got)
	}
}

func TestKindOf(t *testing.T) {
	inner := artel.Errorf(artel.NotFound, "store.Get", "x", "gone")
	tests := []struct {
		err  error
		want artel.Kind
	}{
		{nil, ""},
		{errors.New("x"), artel.Internal},
		{artel.Conflict, artel.Conflict},
		{fmt.Errorf("a: %w", inner), artel.NotFound},
		{artel.Errorf(artel.Invalid, "a.B", "", "b: %w", inner), artel.Invalid},
		{fmt.Errorf("a: %w", context.Canceled), artel.Canceled},
		{context.DeadlineExceeded, artel.Canceled},
		{errors.Join(errors.New("x"), inner), artel.NotFound},
	}
	for _, tt := range tests {
		if got := artel.KindOf(tt.err); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.err, got, tt.want)
		}
	}
	for _, k := range artel.Kinds() {
		if got := artel.KindOf(artel.Errorf(k, "", "", "x")); got != k || k.Error() != string(k) {
			t.Errorf("%q: got %q", k, got)
		}
	}
}

func TestCodeOf(t *testing.T) {
	coded := &artel.Error{Kind: artel.NotFound, Code: artel.CodeArtifactNotFound}
	tests := []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("x"), "internal"},
		{artel.Conflict, "conflict"},
		{coded, "artifact_not_found"},
		{artel.Errorf(artel.Invalid, "", "", "no code"), "invalid"},
		{artel.Errorf(artel.Invalid, "", "", "outer: %w", coded), "artifact_not_found"},
		{fmt.Errorf("a: %w", &artel.Error{Kind: artel.Invalid, Err: fmt.Errorf("b: %w", coded)}), "artifact_not_found"},
	}
	for _, tt := range tests {
		if got := artel.CodeOf(tt.err); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestShorten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(0, 40).Draw(t, "n")
		got := artel.Shorten(s, n)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t\x00\x7f\u0085\u2028") {
			t.Fatalf("%q is not one clean line", got)
		}
		whole := strings.TrimSuffix(got, "…")
		if len(whole) > n && len(s) > n {
			t.Fatalf("%q holds more than %d bytes", got, n)
		}
		if len(s) <= n && strings.HasSuffix(got, "…") != strings.HasSuffix(s, "…") {
			t.Fatalf("%q was cut to %q though it fits", s, got)
		}
	})
}

func TestRunStateFinal(t *testing.T) {
	open := []artel.RunState{artel.RunQueued, artel.RunRunning, artel.RunWaiting}
	for _, s := range []artel.RunState{
		artel.RunQueued, artel.RunRunning, artel.RunWaiting,
		artel.RunDone, artel.RunFailed, artel.RunCancelled, artel.RunInterrupted, artel.RunTimedOut,
	} {
		if s.Final() == slices.Contains(open, s) {
			t.Errorf("%s: Final is %v", s, s.Final())
		}
		if want := !s.Final() && s != artel.RunQueued; s.Active() != want {
			t.Errorf("%s: AtWork is %v", s, s.Active())
		}
	}
}

func TestUsageAdd(t *testing.T) {
	got := artel.Usage{Calls: 1, InputTokens: 2, OutputTokens: 3, CachedTokens: 4}.Add(artel.Usage{Calls: 10, InputTokens: 20, OutputTokens: 30, CachedTokens: 40})
	if want := (artel.Usage{Calls: 11, InputTokens: 22, OutputTokens: 33, CachedTokens: 44}); got != want {
		t.Errorf("got %+v", got)
	}
}

func TestNeeds(t *testing.T) {
	want := map[artel.MediaKind]artel.Capability{
		artel.KindText: artel.CanText, artel.KindImage: artel.CanVision, artel.KindAudio: artel.CanAudio, artel.KindVideo: artel.CanVideo,
		artel.KindDocument: artel.CanFile, artel.KindArchive: artel.CanFile, artel.KindOther: artel.CanFile, "": artel.CanFile,
	}
	for kind, need := range want {
		if got := kind.Needs(); got != need {
			t.Errorf("%q: got %q, want %q", kind, got, need)
		}
		if (artel.MediaInfo{Kind: kind}).IsBinary() != (kind != artel.KindText) {
			t.Errorf("%q: IsBinary is wrong", kind)
		}
	}
}

func TestEventOfEveryPayload(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	seen := map[artel.EventType]bool{}
	for _, p := range []artel.Payload{
		artel.RunStarted{},
		artel.UserInput{},
		artel.AgentStarted{},
		artel.MessageDelta{},
		artel.MessageCompleted{},
		artel.ToolStarted{},
		artel.ToolCompleted{},
		artel.ArtifactCreated{},
		artel.ArtifactUpdated{},
		artel.UsageReported{},
		artel.RunFinished{},
	} {
		if s, ok := p.(artel.ToolStarted); ok {
			s.Arguments = json.RawMessage(`{}`)
			p = s
		}
		e, err := artel.NewEvent("run_1", "lead", now, p)
		if err != nil {
			t.Errorf("%T: %v", p, err)
			continue
		}
		if seen[e.Type] || e.Type == "" || e.Seq != 0 || !e.Time.Equal(now) || !json.Valid(e.Data) {
			t.Errorf("%T: got %+v", p, e)
		}
		seen[e.Type] = true
	}
	_, err := artel.NewEvent("", "", now, artel.ToolStarted{Arguments: json.RawMessage("{")})
	if artel.KindOf(err) != artel.Internal {
		t.Errorf("a payload that cannot be written: got %v", err)
	}
}

func TestArtifactOfVersion(t *testing.T) {
	made, changed := time.Unix(1, 0).UTC(), time.Unix(2, 0).UTC()
	v := artel.Version{
		Number: 3, Author: "lead", Update: artel.UpdateDelete, Title: "Chart", Provenance: artel.SourceUserUpload,
		MediaInfo: artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage, Size: 9, Width: 4, Height: 5},
		Digest:    artel.NewDigest(sha256.Sum256(nil)), InBlob: true, CreatedAt: changed,
	}
	got := v.Artifact("cnv_1", "chart", made)
	want := artel.Artifact{
		ID: "chart", Conversation: "cnv_1", Ref: artel.Ref{Conversation: "cnv_1", Artifact: "chart"}, Version: 3, Title: "Chart",
		MediaInfo: v.MediaInfo, Binary: true, Digest: v.Digest, InBlob: true, Source: artel.SourceUserUpload, LastEditor: "lead",
		Deleted: true, CreatedAt: made, UpdatedAt: changed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	part := got.MediaPart()
	if part.Ref.Version != 3 || part.Filename != "chart" || part.Width != 4 || part.Kind != artel.KindImage {
		t.Errorf("got part %+v", part)
	}
	got.Filename = "Chart.PNG"
	if part := got.MediaPart(); part.Filename != "Chart.PNG" {
		t.Errorf("got filename %q", part.Filename)
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"\u202egnp.exe.txt": "gnp.exe.txt", "a\x00b\n.txt": "ab.txt", "报告 é.md": "报告 é.md", "a\u2066b\u2069": "ab",
	} {
		if got := artel.Visible(given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}
