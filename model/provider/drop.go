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
	firstDrop = 5 * time.Second
	lastDrop  = 30 * time.Minute
	// dropTime is how long the deletion of one file may take.
	dropTime = 30 * time.Second
)

// A Dropper deletes files that services hold. Every wing's provider is one.
type Dropper interface {
	// Drop deletes the file that the service calls name. The error is classified
	// as that of Generate; of a file that is not there it may be nil or not.
	Drop(ctx context.Context, service model.Service, name string) error
}

// Drop says that media with these digests were deleted here: services hold them
// no longer than it takes to tell them, which [Held.Reap] does. What is still
// used elsewhere goes up anew when it is sent. Drop does not wait for anybody.
func (h *Held) Drop(digests ...artel.Digest) {
	if h == nil {
		return
	}
	h.mu.Lock()
	any := false
	for key, f := range h.files {
		if slices.Contains(digests, key.Digest) {
			delete(h.files, key)
			h.drop(heldRow{heldKey: key, heldFile: f, Dropped: true})
			any = true
		}
	}
	h.mu.Unlock()
	if any {
		h.keep()
	}
}

// drop notes a file that is to be deleted. The caller holds the lock, or has the
// record alone.
func (h *Held) drop(r heldRow) {
	h.dropped[r.Account+" "+r.Name] = r
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Digests are those of the media that services hold, each once.
func (h *Held) Digests() []artel.Digest {
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

// A HeldCount says how many files services hold, and how many of those that were
// deleted here they have not been told of.
type HeldCount struct {
	Files   int
	Dropped int
}

// Count says how many files services hold.
func (h *Held) Count() HeldCount {
	if h == nil {
		return HeldCount{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return HeldCount{len(h.files), len(h.dropped)}
}

// Reap deletes dropped files at their services until ctx ends. What fails is
// tried again, in growing pauses, until the file ends there by itself. services
// says which are configured; droppers are by dialect, and one that has none
// keeps its files until they end.
func (h *Held) Reap(ctx context.Context, services func() []model.Service, droppers map[model.Dialect]Dropper) {
	pause := firstDrop
	for {
		if h.reap(ctx, services(), droppers) {
			pause = firstDrop
		}
		again := time.NewTimer(lastDrop)
		if h.Count().Dropped > 0 {
			again.Reset(pause)
			pause = min(2*pause, lastDrop)
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
func (h *Held) reap(ctx context.Context, services []model.Service, droppers map[model.Dialect]Dropper) bool {
	by := map[string]model.Service{}
	for _, s := range services {
		if droppers[s.Dialect] != nil && s.BaseURL != "" {
			by[accountOf(s)] = s
		}
	}
	h.mu.Lock()
	rows := maps.Clone(h.dropped)
	h.mu.Unlock()
	done := 0
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		row := rows[name]
		s, ok := by[row.Account]
		if !ok || ctx.Err() != nil {
			continue // of a service that is configured no more: it ends by itself
		}
		limited, stop := context.WithTimeout(ctx, dropTime)
		err := droppers[s.Dialect].Drop(limited, s, row.Name)
		stop()
		if c, is := errors.AsType[*model.CallError](err); err != nil && !(is && (c.Status == http.StatusNotFound || c.Status == http.StatusGone)) {
			if ctx.Err() == nil {
				h.log.Warn("a file that was deleted here could not be deleted at its service; it is tried again", "service", s.ID, "digest", row.Digest, "until", row.Until, "err", err)
			}
			continue
		}
		h.log.Info("a file that was deleted here was deleted at its service", "service", s.ID, "digest", row.Digest)
		h.mu.Lock()
		delete(h.dropped, name)
		h.mu.Unlock()
		done++
	}
	if done > 0 {
		h.keep()
	}
	return done == len(rows)
}

// DeleteFile sends DELETE to url with header. The error is classified by f.
func DeleteFile(ctx context.Context, client *http.Client, f Failures, url string, header http.Header) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
	if err != nil {
		return f.Refuse(artel.Invalid, "the base URL is not usable")
	}
	req.Header = header
	req.Header.Set("User-Agent", "artel")
	resp, err := client.Do(req)
	if err != nil {
		return f.Transport(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return f.Response(resp, time.Now())
	}
	return nil
}
