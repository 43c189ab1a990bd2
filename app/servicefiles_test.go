// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
)

// holdings are bytes that services hold.
type holdings struct{ held, dropped []artel.Digest }

// Drop implements [app.ServiceFiles].
func (h *holdings) Drop(ds ...artel.Digest) { h.dropped = append(h.dropped, ds...) }

// Digests implements [app.ServiceFiles].
func (h *holdings) Digests() []artel.Digest { return h.held }

// TestHeldElsewhere: services are asked to delete the bytes of deleted artifacts
// and of garbage. Uploads of the gateway are tested in gateway/backend.
func TestHeldElsewhere(t *testing.T) {
	held := &holdings{}
	b := newBench(t, nil, func(c *app.Config) { c.Files.ServiceFiles = held })
	ctx, c := apptest.Context(t), b.conversation()
	staged, err := b.Artifacts.Stage(ctx, c, app.Upload{Body: strings.NewReader("one"), Filename: "a.bin"})
	if err != nil {
		t.Fatal(err)
	}
	added, err := b.Artifacts.Add(ctx, c, []artifact.Staged{staged})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Edits.Delete(ctx, app.ArtifactAt{Conversation: c, ID: added[0].ID}); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(held.dropped, staged.Digest) {
		t.Errorf("of a deleted artifact were dropped %v, want %s", held.dropped, staged.Digest)
	}

	held.dropped = nil
	gone := artel.NewDigest([32]byte{7})
	held.held = []artel.Digest{gone, staged.Digest}
	for _, dry := range []bool{true, false} {
		if _, err := b.Storage.Collect(ctx, app.CollectOptions{Grace: app.DefaultGrace, DryRun: dry}); err != nil {
			t.Fatal(err)
		}
		if dry && held.dropped != nil {
			t.Errorf("a dry run dropped %v", held.dropped)
		}
	}
	if want := []artel.Digest{gone}; !cmp.Equal(held.dropped, want) {
		t.Errorf("with the garbage were dropped %v, want %v", held.dropped, want)
	}
}
