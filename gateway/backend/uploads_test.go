// SPDX-License-Identifier: Apache-2.0

package backend_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// droppedBytes records the bytes that services were asked to delete.
type droppedBytes struct{ dropped []artel.Digest }

// Drop implements [app.ServiceFiles].
func (d *droppedBytes) Drop(ds ...artel.Digest) { d.dropped = append(d.dropped, ds...) }

// Digests implements [app.ServiceFiles].
func (d *droppedBytes) Digests() []artel.Digest { return nil }

// A deleted upload is deleted at services, too, and only its own key can delete it.
func TestDeleteUpload(t *testing.T) {
	db := rowstest.Open(t)
	services := &droppedBytes{}
	a, err := app.New(app.Config{
		Store: db, Blobs: blob.NewMemory(), Notifier: event.NewNotifier(), Services: model.NewRegistry(nil, ""), Files: app.FileOptions{ServiceFiles: services},
	})
	if err != nil {
		t.Fatal(err)
	}
	uploads := backend.New(a, backend.Options{}).Uploads
	ctx, key := apptest.Context(t), backend.Key{Name: "one"}
	file, err := uploads.Stage(ctx, strings.NewReader("two"), "b.bin", "")
	if err == nil {
		file, err = uploads.Create(ctx, file, key, time.Hour)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := uploads.Delete(ctx, file.ID, backend.Key{Name: "other"}); artel.KindOf(err) != artel.NotFound || services.dropped != nil {
		t.Errorf("with another key: %v, dropped %v", err, services.dropped)
	}
	if err := uploads.Delete(ctx, file.ID, key); err != nil {
		t.Fatal(err)
	}
	if want := []artel.Digest{file.Digest}; !cmp.Equal(services.dropped, want) {
		t.Errorf("dropped %v, want %v", services.dropped, want)
	}
}
