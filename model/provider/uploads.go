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
	// uploadMinSize is the size of media, in bytes, from which they are uploaded
	// once and then named. An upload costs a round trip and leaves a copy at the
	// service; smaller media are sent again in less time.
	uploadMinSize = 1 << 20
	// UploadLifetime is how long services are asked to keep a file: Gemini's fixed
	// lifetime, used for all services.
	UploadLifetime = 48 * time.Hour
	// uploadMargin is how long before its expiry a file is no longer named, because
	// the call can wait and be retried.
	uploadMargin = time.Hour
	// maxUploads limits the record.
	maxUploads = 10_000
	// uploadBackoff is the pause of uploads to an account after a failure.
	uploadBackoff = 10 * time.Minute
	// maxUploadName limits the name of a file at its service, in bytes.
	maxUploadName = 500
)

// UploadsOptions are the options of [NewUploads].
type UploadsOptions struct {
	Data []byte             // the newest record that Save received; nil or unreadable: empty
	Save func([]byte) error // stores the record; may be nil. Calls do not overlap
	// Address returns the URL of media for services, "" if there is none. MediaType
	// has no parameters. The URL should stay the same as long as possible, and has
	// no characters that JSON escapes. May be nil.
	Address func(m artel.Media) string
	Log     *slog.Logger     // of failed uploads; may be nil
	Now     func() time.Time // nil: [time.Now]
}

// Uploads records which files were uploaded to services, and sends requests with
// names in place of media; see [Uploads.Send]. It is safe for concurrent use. A nil
// Uploads sends all media inside requests.
type Uploads struct {
	store   func([]byte) error
	address func(artel.Media) string
	log     *slog.Logger
	now     func() time.Time

	mu         sync.Mutex
	files      map[uploadKey]uploadedFile
	inFlight   map[uploadKey]chan struct{} // closed at the end of the upload
	backoff    map[string]time.Time        // accounts that are sent no files, addresses or ids, until when
	sentWithID map[uploadKey]bool          // media that services have got with an id
	deletions  map[string]uploadRow        // files that are to be deleted, by account and name
	wake       chan struct{}               // has an element where files were dropped
	saving     sync.Mutex
}

// An uploadKey identifies a file. Account is a digest of address and key, so that
// the record contains no secret.
type uploadKey struct {
	Account   string       `json:"account"`
	Digest    artel.Digest `json:"digest"`
	MediaType string       `json:"media_type"`
}

type uploadedFile struct {
	Name  string    `json:"name"`
	Until time.Time `json:"until"`
}

type uploadRow struct {
	uploadKey
	uploadedFile
	Dropped bool `json:"dropped,omitempty"` // it is to be deleted there
}

// NewUploads returns a record that starts with o.Data.
func NewUploads(o UploadsOptions) *Uploads {
	h := &Uploads{
		store: o.Save, address: o.Address, log: o.Log, now: o.Now, sentWithID: map[uploadKey]bool{},
		files: map[uploadKey]uploadedFile{}, inFlight: map[uploadKey]chan struct{}{}, backoff: map[string]time.Time{},
		deletions: map[string]uploadRow{}, wake: make(chan struct{}, 1),
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.now == nil {
		h.now = time.Now
	}
	var rows []uploadRow
	if len(o.Data) > 0 {
		if err := json.Unmarshal(o.Data, &rows); err != nil {
			h.log.Warn("the record of uploaded files cannot be read; they are uploaded again", "err", err)
			rows = nil
		}
	}
	for _, r := range rows {
		switch {
		case !usableName(r.Name):
		case r.Dropped:
			h.queueDeletion(r)
		default:
			h.files[r.uploadKey] = r.uploadedFile
		}
	}
	return h
}

// find returns the file of m, and uploads it if necessary. Concurrent callers wait
// for one upload.
func (h *Uploads) find(ctx context.Context, key uploadKey, m artel.Media, up FileAPI) (uploadedFile, bool) {
	for {
		h.mu.Lock()
		now := h.now()
		if f, ok := h.files[key]; ok && now.Before(f.Until.Add(-uploadMargin)) {
			h.mu.Unlock()
			return f, true
		}
		if now.Before(h.backoff[key.Account]) {
			h.mu.Unlock()
			return uploadedFile{}, false
		}
		flight, flying := h.inFlight[key]
		if !flying {
			h.inFlight[key] = make(chan struct{})
			h.mu.Unlock()
			return h.upload(ctx, key, m, up)
		}
		h.mu.Unlock()
		select {
		case <-flight:
		case <-ctx.Done():
			return uploadedFile{}, false // the call reports it
		}
	}
}

func (h *Uploads) upload(ctx context.Context, key uploadKey, m artel.Media, up FileAPI) (f uploadedFile, ok bool) {
	var err error
	defer func() {
		h.mu.Lock()
		switch {
		case ok:
			h.files[key] = f
			delete(h.deletions, key.Account+" "+f.Name) // a service may give a name twice
		case err != nil && ctx.Err() == nil && artel.CodeOf(err) != CodeMediaUnreadable:
			h.backoff[key.Account] = h.now().Add(uploadBackoff)
		}
		close(h.inFlight[key])
		delete(h.inFlight, key)
		h.mu.Unlock()
		if ok {
			h.save()
		}
	}()
	f.Name, f.Until, err = up.Upload(ctx, m)
	if err == nil && !usableName(f.Name) {
		err = errors.New("the service gave the file no usable name")
	}
	if err != nil {
		if ctx.Err() == nil {
			h.log.Warn("a file could not be uploaded; it is sent inside the request", "digest", key.Digest, "err", err)
		}
		return uploadedFile{}, false
	}
	return f, true
}

// save stores the record without expired files; of too many, those that expire
// first are removed.
func (h *Uploads) save() {
	if h.store == nil {
		return
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	now := h.now()
	maps.DeleteFunc(h.files, func(_ uploadKey, f uploadedFile) bool { return !now.Before(f.Until) })
	rows := make([]uploadRow, 0, len(h.files))
	for key, f := range h.files {
		rows = append(rows, uploadRow{uploadKey: key, uploadedFile: f})
	}
	slices.SortFunc(rows, func(a, b uploadRow) int {
		return cmp.Or(b.Until.Compare(a.Until), cmp.Compare(a.Digest, b.Digest), cmp.Compare(a.Account, b.Account), cmp.Compare(a.MediaType, b.MediaType))
	})
	for _, r := range rows[min(len(rows), maxUploads):] {
		delete(h.files, r.uploadKey)
	}
	rows = rows[:min(len(rows), maxUploads)]
	maps.DeleteFunc(h.deletions, func(_ string, r uploadRow) bool { return !now.Before(r.Until) })
	for _, name := range slices.Sorted(maps.Keys(h.deletions)) {
		rows = append(rows, h.deletions[name])
	}
	h.mu.Unlock()
	data, err := json.Marshal(rows)
	if err == nil {
		err = h.store(data)
	}
	if err != nil {
		h.log.Warn("the record of uploaded files could not be saved", "err", err)
	}
}

// accountOf returns the account whose files a service can name.
func accountOf(s model.Service) string {
	family := s.Dialect
	if family == model.OpenAIResponses {
		family = model.OpenAI // both have the same files
	}
	sum := sha256.Sum256([]byte(string(family) + "\x00" + s.BaseURL + "\x00" + s.APIKey.Reveal()))
	return artel.NewDigest(sum).Hex()[:32]
}

// usableName reports whether a name of a file can be written into requests without
// escaping.
func usableName(name string) bool {
	return name != "" && len(name) <= maxUploadName && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' || r == '\\'
	})
}
