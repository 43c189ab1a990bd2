// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// dropper notes what it is asked to delete, and answers in turn.
type dropper struct {
	mu      sync.Mutex
	asked   []string
	answers []error
}

// DeleteFile implements [provider.FileDeleter].
func (d *dropper) DeleteFile(_ context.Context, s *model.Service, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, string(s.ID)+" "+name)
	if len(d.answers) == 0 {
		return nil
	}
	err := d.answers[0]
	d.answers = d.answers[1:]
	return err
}

// TestDrop: what was deleted here is deleted at its service, also after a
// failure and a restart, and goes up anew when it is sent again.
func TestDrop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var saved []byte
		options := provider.UploadsOptions{Save: func(b []byte) error { saved = b; return nil }}
		h := provider.NewUploads(options)
		r := largeRequest()
		if _, err := sent(t, h, r, "file-1"); err != nil {
			t.Fatal(err)
		}
		digest := artel.NewDigest([32]byte{1})
		if got := h.Digests(); !cmp.Equal(got, []artel.Digest{digest}) {
			t.Fatalf("held are %v", got)
		}
		h.Drop(artel.NewDigest([32]byte{2}))
		if n := h.Count(); n != (provider.UploadCount{Files: 1}) {
			t.Errorf("another's deletion leaves %+v", n)
		}
		h.Drop(digest)
		options.Data = saved
		h = provider.NewUploads(options) // a restart
		if n := h.Count(); n != (provider.UploadCount{Dropped: 1}) {
			t.Fatalf("after a restart there are %+v", n)
		}
		busy := &model.CallError{Status: http.StatusServiceUnavailable}
		d := &dropper{answers: []error{busy, busy, &model.CallError{Status: http.StatusNotFound}}}
		other := r.Service
		other.ID, other.APIKey = "other", "another key"
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			h.RunDeletions(ctx, func() []model.Service { return []model.Service{other, r.Service} }, map[model.Dialect]provider.FileDeleter{r.Service.Dialect: d})
		})
		time.Sleep(time.Hour) // of the bubble
		synctest.Wait()
		if want := []string{"s file-1", "s file-1", "s file-1"}; !cmp.Equal(d.asked, want) {
			t.Errorf("asked for %v, want %v", d.asked, want)
		}
		if n := h.Count(); n != (provider.UploadCount{}) || string(saved) != "[]" {
			t.Errorf("in the end there are %+v, saved %s", n, saved)
		}
		if names, err := sent(t, h, r, "file-2"); err != nil || names[0] != "file-2" {
			t.Errorf("sent again as %v, %v", names, err)
		}
		h.Drop(digest)
		synctest.Wait()
		if n := len(d.asked); n != 4 {
			t.Errorf("a later deletion was not done at once: %v", d.asked)
		}
		stop()
		wg.Wait()
	})
}
