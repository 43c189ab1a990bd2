// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

const (
	// heldFrom is the size of media, in bytes, from which on they are sent once
	// and named afterwards. An upload costs a round trip before the first answer
	// and leaves a copy behind; smaller ones are sent again in less time.
	heldFrom = 1 << 20
	// HeldFor is how long services are asked to keep a file: that of Gemini,
	// which nobody can choose, so that it is one for all. Nothing is left behind
	// for longer.
	HeldFor = 48 * time.Hour
	// heldMargin is how long before its end a file is not named anymore, for the
	// call that names it may wait and be tried again.
	heldMargin = time.Hour
	// heldMost bounds the record.
	heldMost = 10_000
	// heldRest is how long an account is spared uploads after one has failed.
	heldRest = 10 * time.Minute
	// maxHeldName bounds what a service may call a file, in bytes.
	maxHeldName = 500
)

// HeldOptions are what the record of files begins with.
type HeldOptions struct {
	Data []byte             // what Save was given last; nil or unreadable: none are known
	Save func([]byte) error // keeps the record; nil: nobody does. Calls do not overlap
	// Address returns where services fetch media, whose MediaType has no
	// parameters; the same for as long as it can, without characters that JSON
	// escapes. nil: nowhere.
	Address func(m artel.Media) string
	Log     *slog.Logger     // told of uploads that fail; nil: nobody
	Now     func() time.Time // nil: [time.Now]
}

// Held knows by what names media can go instead of their bytes, and which files
// services hold: see [Held.Send].
// It is safe for concurrent use; a nil Held sends all media inside requests.
type Held struct {
	save    func([]byte) error
	address func(artel.Media) string
	log     *slog.Logger
	now     func() time.Time

	mu      sync.Mutex
	files   map[heldKey]heldFile
	flights map[heldKey]chan struct{} // closed when the upload has ended
	resting map[string]time.Time      // accounts that are sent no files, addresses or ids, until when
	met     map[heldKey]bool          // media that services have got with an id
	dropped map[string]heldRow        // files that are to be deleted, by account and name
	wake    chan struct{}             // has an element where files were dropped
	saving  sync.Mutex
}

// A heldKey is what a file is found by. The account is a digest of address and
// key, so that the record holds no secret.
type heldKey struct {
	Account   string       `json:"account"`
	Digest    artel.Digest `json:"digest"`
	MediaType string       `json:"media_type"`
}

type heldFile struct {
	Name  string    `json:"name"`
	Until time.Time `json:"until"`
}

type heldRow struct {
	heldKey
	heldFile
	Dropped bool `json:"dropped,omitempty"` // it is to be deleted there
}

// NewHeld returns the record that o begins with.
func NewHeld(o HeldOptions) *Held {
	h := &Held{
		save: o.Save, address: o.Address, log: o.Log, now: o.Now, met: map[heldKey]bool{},
		files: map[heldKey]heldFile{}, flights: map[heldKey]chan struct{}{}, resting: map[string]time.Time{},
		dropped: map[string]heldRow{}, wake: make(chan struct{}, 1),
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.now == nil {
		h.now = time.Now
	}
	var rows []heldRow
	if len(o.Data) > 0 {
		if err := json.Unmarshal(o.Data, &rows); err != nil {
			h.log.Warn("which files services hold cannot be read; they are sent again", "err", err)
			rows = nil
		}
	}
	for _, r := range rows {
		switch {
		case !usableName(r.Name):
		case r.Dropped:
			h.drop(r)
		default:
			h.files[r.heldKey] = r.heldFile
		}
	}
	return h
}

// file finds or makes one file. While one caller uploads it, the others wait.
func (h *Held) file(ctx context.Context, key heldKey, m artel.Media, up Uploader) (heldFile, bool) {
	for {
		h.mu.Lock()
		now := h.now()
		if f, ok := h.files[key]; ok && now.Before(f.Until.Add(-heldMargin)) {
			h.mu.Unlock()
			return f, true
		}
		if now.Before(h.resting[key.Account]) {
			h.mu.Unlock()
			return heldFile{}, false
		}
		flight, flying := h.flights[key]
		if !flying {
			h.flights[key] = make(chan struct{})
			h.mu.Unlock()
			return h.upload(ctx, key, m, up)
		}
		h.mu.Unlock()
		select {
		case <-flight:
		case <-ctx.Done():
			return heldFile{}, false // the call itself says so
		}
	}
}

func (h *Held) upload(ctx context.Context, key heldKey, m artel.Media, up Uploader) (f heldFile, ok bool) {
	var err error
	defer func() {
		h.mu.Lock()
		switch {
		case ok:
			h.files[key] = f
			delete(h.dropped, key.Account+" "+f.Name) // a service may give a name twice
		case err != nil && ctx.Err() == nil && artel.CodeOf(err) != CodeMediaUnreadable:
			h.resting[key.Account] = h.now().Add(heldRest)
		}
		close(h.flights[key])
		delete(h.flights, key)
		h.mu.Unlock()
		if ok {
			h.keep()
		}
	}()
	f.Name, f.Until, err = up.Upload(ctx, m)
	if err == nil && !usableName(f.Name) {
		err = errors.New("the service gave the file no usable name")
	}
	if err != nil {
		if ctx.Err() == nil {
			h.log.Warn("a file could not be sent ahead; it stays inside the request", "digest", key.Digest, "err", err)
		}
		return heldFile{}, false
	}
	return f, true
}

// keep saves the record, without what has ended, and of too many without those
// that end first.
func (h *Held) keep() {
	if h.save == nil {
		return
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	now := h.now()
	maps.DeleteFunc(h.files, func(_ heldKey, f heldFile) bool { return !now.Before(f.Until) })
	rows := make([]heldRow, 0, len(h.files))
	for key, f := range h.files {
		rows = append(rows, heldRow{heldKey: key, heldFile: f})
	}
	slices.SortFunc(rows, func(a, b heldRow) int {
		return cmp.Or(b.Until.Compare(a.Until), cmp.Compare(a.Digest, b.Digest), cmp.Compare(a.Account, b.Account), cmp.Compare(a.MediaType, b.MediaType))
	})
	for _, r := range rows[min(len(rows), heldMost):] {
		delete(h.files, r.heldKey)
	}
	rows = rows[:min(len(rows), heldMost)]
	maps.DeleteFunc(h.dropped, func(_ string, r heldRow) bool { return !now.Before(r.Until) })
	for _, name := range slices.Sorted(maps.Keys(h.dropped)) {
		rows = append(rows, h.dropped[name])
	}
	h.mu.Unlock()
	data, err := json.Marshal(rows)
	if err == nil {
		err = h.save(data)
	}
	if err != nil {
		h.log.Warn("which files services hold could not be saved", "err", err)
	}
}

// accountOf says whose files those of a service are.
func accountOf(s model.Service) string {
	family := s.Dialect
	if family == model.OpenAIResponses {
		family = model.OpenAI // they share their files
	}
	sum := sha256.Sum256([]byte(string(family) + "\x00" + s.BaseURL + "\x00" + s.APIKey.Reveal()))
	return artel.NewDigest(sum).Hex()[:32]
}

// usableName reports whether a service's name for a file can be written into
// requests.
func usableName(name string) bool {
	return name != "" && len(name) <= maxHeldName && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' || r == '\\'
	})
}
