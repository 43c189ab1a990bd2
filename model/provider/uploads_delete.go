// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

const (
	// The pauses between attempts grow from firstDeletionPause to lastDeletionPause.
	firstDeletionPause = 5 * time.Second
	lastDeletionPause  = 30 * time.Minute
	// deletionTimeout limits the deletion of one file.
	deletionTimeout = 30 * time.Second
)

// A FileDeleter deletes uploaded files. Every client of a dialect implements it.
type FileDeleter interface {
	// DeleteFile deletes the file with the service's own name. The error is
	// classified like Generate's; for a missing file it may be nil or not.
	DeleteFile(ctx context.Context, service *model.Service, name string) error
}

// Drop removes the files with these digests from the record and queues their
// deletion at the services, which [Uploads.RunDeletions] executes. It does not
// wait. Media that are still used are uploaded again when they are sent.
func (h *Uploads) Drop(digests ...artel.Digest) {
	if h == nil {
		return
	}
	h.mu.Lock()
	any := false
	for key, f := range h.files {
		if slices.Contains(digests, key.Digest) {
			delete(h.files, key)
			h.queueDeletion(uploadRow{uploadKey: key, uploadedFile: f, Dropped: true})
			any = true
		}
	}
	h.mu.Unlock()
	if any {
		h.save()
	}
}

// queueDeletion queues a file for deletion. The caller holds the lock or is
// NewUploads.
func (h *Uploads) queueDeletion(r uploadRow) {
	h.deletions[r.Account+" "+r.Name] = r
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Digests returns the digests of the uploaded media, each once.
func (h *Uploads) Digests() []artel.Digest {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []artel.Digest
	for key := range h.files {
		out = append(out, key.Digest)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// An UploadCount counts the uploaded files (Files) and the queued deletions
// (Dropped).
type UploadCount struct {
	Files   int
	Dropped int
}

// Count counts the record.
func (h *Uploads) Count() UploadCount {
	if h == nil {
		return UploadCount{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return UploadCount{len(h.files), len(h.deletions)}
}

// RunDeletions executes queued deletions until ctx ends. Failures are retried with
// growing pauses until the file expires. services returns the configured services;
// deleters are by dialect, and files of dialects without one expire.
func (h *Uploads) RunDeletions(ctx context.Context, services func() []model.Service, droppers map[model.Dialect]FileDeleter) {
	pause := firstDeletionPause
	for {
		if h.deleteQueued(ctx, services(), droppers) {
			pause = firstDeletionPause
		}
		again := time.NewTimer(lastDeletionPause)
		if h.Count().Dropped > 0 {
			again.Reset(pause)
			pause = min(2*pause, lastDeletionPause)
		}
		select {
		case <-ctx.Done():
			again.Stop()
			return
		case <-h.wake:
			again.Stop()
		case <-again.C:
		}
	}
}

// deleteQueued tries each queued deletion once, and reports whether none is left.
func (h *Uploads) deleteQueued(ctx context.Context, services []model.Service, droppers map[model.Dialect]FileDeleter) bool {
	by := map[string]model.Service{}
	for _, s := range services {
		if droppers[s.Dialect] != nil && s.BaseURL != "" {
			by[accountOf(s)] = s
		}
	}
	h.mu.Lock()
	rows := maps.Clone(h.deletions)
	h.mu.Unlock()
	done := 0
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		row := rows[name]
		s, ok := by[row.Account]
		if !ok || ctx.Err() != nil {
			continue // the service is no longer configured: the file expires
		}
		limited, stop := context.WithTimeout(ctx, deletionTimeout)
		err := droppers[s.Dialect].DeleteFile(limited, &s, row.Name)
		stop()
		if c, is := errors.AsType[*model.CallError](err); err != nil && !(is && (c.Status == http.StatusNotFound || c.Status == http.StatusGone)) {
			if ctx.Err() == nil {
				h.log.Warn("an uploaded file could not be deleted at its service; the deletion is retried", "service", s.ID, "digest", row.Digest, "until", row.Until, "err", err)
			}
			continue
		}
		h.log.Info("an uploaded file was deleted at its service", "service", s.ID, "digest", row.Digest)
		h.mu.Lock()
		delete(h.deletions, name)
		h.mu.Unlock()
		done++
	}
	if done > 0 {
		h.save()
	}
	return done == len(rows)
}
