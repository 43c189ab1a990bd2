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
	"mime"
	"net/http"
	"path"
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
	Log  *slog.Logger       // told of uploads that fail; nil: nobody
	Now  func() time.Time   // nil: [time.Now]
}

// Held knows which files services hold, and by what names: media of at least
// 1 MiB go up once per account and are named in requests until they end there.
// That is so for services whose operator has stated the transport "file_id"
// beside "bytes", and for no others, for a copy stays behind with the service.
// It is safe for concurrent use; a nil Held sends all media inside requests.
type Held struct {
	save func([]byte) error
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	files   map[heldKey]heldFile
	flights map[heldKey]chan struct{} // closed when the upload has ended
	resting map[string]time.Time      // accounts, until when
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
		save: o.Save, log: o.Log, now: o.Now,
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

// An Uploader is how a wing sends files to its service.
type Uploader struct {
	// Takes reports whether the API takes files of a media type by name, in a
	// message of the user, or in the result of a tool.
	Takes func(mediaType string, result bool) bool
	// Upload sends the blob of m, whose MediaType has no parameters, and returns
	// what the API calls it and when it ends there.
	Upload func(ctx context.Context, m artel.Media) (name string, until time.Time, err error)
}

// Send calls send with r, in whose Held the files are that the service holds;
// those that it lacks go up before. Where the service says that it does not
// know one of them, they go up anew and send is called a second time. Media
// that cannot be uploaded stay inside the request.
func (h *Held) Send(ctx context.Context, r *model.Request, up Uploader, send func(*model.Request) (*http.Response, error)) (*http.Response, error) {
	if h == nil || !r.Service.Capabilities.Sends(model.ByFileID) {
		return send(r)
	}
	account := accountOf(r.Service)
	for healed := false; ; healed = true {
		named, keys := h.name(ctx, account, r, up)
		if len(named) == 0 {
			return send(r)
		}
		with := *r
		with.Held = named
		if r.OnHeld != nil {
			r.OnHeld(named)
		}
		resp, err := send(&with)
		if healed || !h.forget(err, keys, named) {
			return resp, err
		}
	}
}

// name returns the names of the media of r, uploading those that have none.
func (h *Held) name(ctx context.Context, account string, r *model.Request, up Uploader) (map[artel.Digest]string, []heldKey) {
	named := map[artel.Digest]string{}
	var keys []heldKey
	for m := range large(r.Messages, up.Takes) {
		if _, ok := named[m.Ref.Digest]; ok {
			continue
		}
		key := heldKey{account, m.Ref.Digest, m.MediaType}
		if f, ok := h.file(ctx, key, m, up); ok {
			named[m.Ref.Digest] = f.Name
			keys = append(keys, key)
		}
	}
	return named, keys
}

// large goes over the media that are worth a name.
func large(messages []model.Message, takes func(string, bool) bool) func(yield func(artel.Media) bool) {
	return func(yield func(artel.Media) bool) {
		worth := func(p artel.Part, result bool) (artel.Media, bool) {
			m, ok := p.(artel.Media)
			if !ok || m.Ref.Digest == "" || m.Size < heldFrom {
				return m, false
			}
			t, _, err := mime.ParseMediaType(m.MediaType)
			m.MediaType = t
			return m, err == nil && takes(t, result)
		}
		for _, message := range messages {
			for _, p := range message.Parts {
				if m, ok := worth(p, false); ok && !yield(m) {
					return
				}
				result, ok := p.(artel.ToolResult)
				if !ok {
					continue
				}
				for _, p := range result.Parts {
					if m, ok := worth(p, true); ok && !yield(m) {
						return
					}
				}
			}
		}
	}
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

// forget drops the files that err, which the service answered with, says are
// not there by the names that were sent, and reports whether there were any. A
// file that another call has sent anew since then stays.
func (h *Held) forget(err error, keys []heldKey, named map[artel.Digest]string) bool {
	c, ok := errors.AsType[*model.CallError](err)
	if !ok || !slices.Contains([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusGone}, c.Status) {
		return false
	}
	var gone []heldKey
	for _, key := range keys {
		if strings.Contains(c.Message, path.Base(named[key.Digest])) {
			gone = append(gone, key)
		}
	}
	if len(gone) == 0 && c.Status != http.StatusBadRequest && strings.Contains(" "+strings.ToLower(c.Message), " file") {
		gone = keys // it does not say which
	}
	h.mu.Lock()
	for _, key := range gone {
		if h.files[key].Name == named[key.Digest] {
			delete(h.files, key)
		}
	}
	h.mu.Unlock()
	if len(gone) > 0 {
		h.keep()
	}
	return len(gone) > 0
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
