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
	// The pauses between two attempts to delete files at their services grow from
	// one to the other.
	firstDeletionPause = 5 * time.Second
	lastDeletionPause  = 30 * time.Minute
	// deletionTimeout is how long the deletion of one file may take.
	deletionTimeout = 30 * time.Second
)

// A FileDeleter deletes files that services hold. Every wing's provider is one.
type FileDeleter interface {
	// Delete deletes the file that the service calls name. The error is classified
	// as that of Generate; of a file that is not there it may be nil or not.
	DeleteFile(ctx context.Context, service model.Service, name string) error
}

// Delete says that media with these digests were deleted here: services hold them
// no longer than it takes to tell them, which [Uploads.RunDeletions] does. What is still
// used elsewhere goes up anew when it is sent. Delete does not wait for anybody.
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

// drop notes a file that is to be deleted. The caller holds the lock, or has the
// record alone.
func (h *Uploads) queueDeletion(r uploadRow) {
	h.deletions[r.Account+" "+r.Name] = r
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Digests are those of the media that services hold, each once.
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

// A UploadCount says how many files services hold, and how many of those that were
// deleted here they have not been told of.
type UploadCount struct {
	Files   int
	Dropped int
}

// Count says how many files services hold.
func (h *Uploads) Count() UploadCount {
	if h == nil {
		return UploadCount{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return UploadCount{len(h.files), len(h.deletions)}
}

// RunDeletions deletes dropped files at their services until ctx ends. What fails is
// tried again, in growing pauses, until the file ends there by itself. services
// says which are configured; droppers are by dialect, and one that has none
// keeps its files until they end.
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

// reap tries each dropped file once, and reports whether none is left.
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
			continue // of a service that is configured no more: it ends by itself
		}
		limited, stop := context.WithTimeout(ctx, deletionTimeout)
		err := droppers[s.Dialect].DeleteFile(limited, s, row.Name)
		stop()
		if c, is := errors.AsType[*model.CallError](err); err != nil && !(is && (c.Status == http.StatusNotFound || c.Status == http.StatusGone)) {
			if ctx.Err() == nil {
				h.log.Warn("a file that was deleted here could not be deleted at its service; it is tried again", "service", s.ID, "digest", row.Digest, "until", row.Until, "err", err)
			}
			continue
		}
		h.log.Info("a file that was deleted here was deleted at its service", "service", s.ID, "digest", row.Digest)
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
