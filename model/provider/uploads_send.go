// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"iter"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

const (
	// addressMinSize is the size of media, in bytes, from which services fetch them
	// by URL. Smaller media are sent as fast inside the request.
	addressMinSize = 64 << 10
	// maxSentWithID caps Uploads.sentWithID. When it is exceeded the set is
	// cleared; media are then sent in full again.
	maxSentWithID = 10_000
)

// Suffixes of keys in Uploads.backoff: uploads, URLs and media ids back off separately.
const (
	backoffURL = " url"
	backoffID  = " media_id"
)

// A FileAPI describes how a service gets files, and which names of media it takes.
type FileAPI struct {
	// Takes reports whether the API takes files of a media type by name, in a user
	// message or in the result of a tool.
	Takes func(mediaType string, result bool) bool
	// Fetches reports the same of URLs; nil: it takes none.
	Fetches func(mediaType string, result bool) bool
	// Upload sends the blob of m, whose MediaType has no parameters, and returns
	// its name at the service and its expiry.
	Upload func(ctx context.Context, m artel.Media) (name string, until time.Time, err error)
	// Written says that the request was written elsewhere, so that its media have
	// no ids.
	Written bool
}

// Send calls send with r, whose Names are set for media that are sent by name:
//
//   - by file id, if the operator of the service has configured the transport
//     "file_id" beside "bytes", from 1 MiB. Missing files are uploaded first,
//     once for each account, and named until they expire;
//   - by URL, if "url" is configured, from 64 KiB;
//   - by a media id that the server has received before, if the quirks of the
//     service say that it remembers them.
//
// If the service does not know a name or could not fetch a URL, send is called a
// second time: files are uploaded again, other media are sent as bytes. Media that
// cannot be uploaded are sent as bytes too.
func (h *Uploads) Send(ctx context.Context, r *model.Request, up FileAPI, send func(*model.Request) (*http.Response, error)) (*http.Response, error) {
	if h == nil {
		return send(r)
	}
	b := callNames{account: accountOf(r.Service), up: up, service: r.Service}
	for retried := false; ; retried = true {
		b.names, b.files = map[artel.Digest]model.Name{}, nil
		for m, result := range mediaOf(r.Messages) {
			if _, ok := b.names[m.Ref.Digest]; !ok {
				h.name(ctx, &b, m, result)
			}
		}
		with := *r
		if len(b.names) > 0 {
			with.Names = b.names
		}
		if r.OnNames != nil {
			r.OnNames(b.names)
		}
		resp, err := send(&with)
		if err == nil {
			h.rememberIDs(b, r.Messages)
		}
		if err == nil || retried || len(b.names) == 0 || !h.dropRefused(err, b) {
			return resp, err
		}
	}
}

// A callNames holds the names of one call.
type callNames struct {
	account string
	service model.Service
	up      FileAPI
	names   map[artel.Digest]model.Name
	files   []uploadKey // of the names that are files
}

// name finds a name for m, if there is one.
func (h *Uploads) name(ctx context.Context, b *callNames, m artel.Media, result bool) {
	key := uploadKey{b.account, m.Ref.Digest, m.MediaType}
	by := b.service.Capabilities
	if by.Sends(model.ByFileID) && m.Size >= uploadMinSize && b.up.Takes(m.MediaType, result) {
		if f, ok := h.find(ctx, key, m, b.up); ok {
			b.names[m.Ref.Digest] = model.Name{By: model.ByFileID, Text: f.Name}
			b.files = append(b.files, key)
			return
		}
	}
	if by.Sends(model.ByURL) && m.Size >= addressMinSize && h.address != nil && b.up.Fetches != nil && b.up.Fetches(m.MediaType, result) && !h.backingOff(b.account+backoffURL) {
		if address := h.address(m); usableName(address) {
			b.names[m.Ref.Digest] = model.Name{By: model.ByURL, Text: address}
			return
		}
	}
	if b.remembers() && strings.HasPrefix(m.MediaType, "image/") && !h.backingOff(b.account+backoffID) {
		h.mu.Lock()
		met := h.sentWithID[key]
		h.mu.Unlock()
		if met {
			b.names[m.Ref.Digest] = model.Name{By: model.ByMediaID, Text: string(m.Ref.Digest)}
		}
	}
}

// remembers reports whether the service remembers media by the ids that requests
// give them.
func (b callNames) remembers() bool {
	return !b.up.Written && b.service.Dialect == model.OpenAI && b.service.Quirks().MediaIDs
}

// rememberIDs records that the service has received the media of messages with
// their ids.
func (h *Uploads) rememberIDs(b callNames, messages []model.Message) {
	if !b.remembers() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sentWithID) > maxSentWithID {
		clear(h.sentWithID)
	}
	for m := range mediaOf(messages) {
		if b.names[m.Ref.Digest].By != model.ByURL {
			h.sentWithID[uploadKey{b.account, m.Ref.Digest, m.MediaType}] = true
		}
	}
}

func (h *Uploads) backingOff(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now().Before(h.backoff[what])
}

func (h *Uploads) backOff(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.backoff[what] = h.now().Add(uploadBackoff)
}

// mediaOf yields the media of messages with a blob, their types without parameters,
// and whether they are in the result of a tool.
func mediaOf(messages []model.Message) iter.Seq2[artel.Media, bool] {
	return func(yield func(artel.Media, bool) bool) {
		told := func(p artel.Part, result bool) bool {
			m, ok := p.(artel.Media)
			if !ok || m.Ref.Digest == "" {
				return true
			}
			t, _, err := mime.ParseMediaType(m.MediaType)
			m.MediaType = t
			return err != nil || yield(m, result)
		}
		for _, message := range messages {
			for _, p := range message.Parts {
				if !told(p, false) {
					return
				}
				result, _ := p.(artel.ToolResult)
				for _, p := range result.Parts {
					if !told(p, true) {
						return
					}
				}
			}
		}
	}
}

// dropRefused removes the names that the service refused with err, and reports
// whether there were any. A file that another call has uploaded again meanwhile
// stays.
func (h *Uploads) dropRefused(err error, b callNames) bool {
	c, ok := errors.AsType[*model.CallError](err)
	if !ok {
		return false
	}
	files, addresses, ids := h.dropRefusedFiles(c, b), b.fetchFailed(c), h.dropRefusedIDs(c, b)
	if addresses {
		h.backOff(b.account + backoffURL)
		h.log.Warn("a service could not fetch media by URL; they are sent inside requests for a while", "service", b.service.ID, "err", err)
	}
	return files || addresses || ids
}

func (h *Uploads) dropRefusedFiles(c *model.CallError, b callNames) bool {
	if !slices.Contains([]int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusGone}, c.Status) {
		return false
	}
	var gone []uploadKey
	for _, key := range b.files {
		if strings.Contains(c.Message, path.Base(b.names[key.Digest].Text)) {
			gone = append(gone, key)
		}
	}
	if len(gone) == 0 && c.Status != http.StatusBadRequest && strings.Contains(" "+strings.ToLower(c.Message), " file") {
		gone = b.files // the message does not say which
	}
	h.mu.Lock()
	for _, key := range gone {
		if h.files[key].Name == b.names[key.Digest].Text {
			delete(h.files, key)
		}
	}
	h.mu.Unlock()
	if len(gone) > 0 {
		h.save()
	}
	return len(gone) > 0
}

// fetchFailed reports whether the service could not fetch a URL.
//
// Sources: messages of OpenAI, Anthropic, Gemini, DashScope and vLLM.
func (b callNames) fetchFailed(c *model.CallError) bool {
	if c.Status < 400 || c.Status == http.StatusUnauthorized || c.Status == http.StatusTooManyRequests {
		return false
	}
	said := strings.ToLower(c.Code + " " + c.Message)
	for _, name := range b.names {
		if name.By != model.ByURL {
			continue
		}
		if strings.Contains(c.Message, name.Text) {
			return true
		}
		for _, word := range []string{"invalid_image_url", "url_error", "url_timeout", "download", "fetch", "retrieve", "robots.txt", "only https", "unable to access", "could not access", "cannot access"} {
			if strings.Contains(said, word) {
				return true
			}
		}
	}
	return false
}

// dropRefusedIDs removes the ids of a refused call. Unless the server reports a
// cache miss, it may not support ids at all, so they back off.
func (h *Uploads) dropRefusedIDs(c *model.CallError, b callNames) bool {
	if !slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError}, c.Status) {
		return false
	}
	any := false
	h.mu.Lock()
	for digest, name := range b.names {
		if name.By == model.ByMediaID {
			any = true
			for key := range h.sentWithID {
				if key.Account == b.account && key.Digest == digest {
					delete(h.sentWithID, key)
				}
			}
		}
	}
	h.mu.Unlock()
	if any && !strings.Contains(strings.ToLower(c.Message), "cache miss") {
		h.backOff(b.account + backoffID)
	}
	return any
}
