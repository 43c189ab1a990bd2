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
	// addressMinSize is the size of media, in bytes, from which on services fetch
	// them. What is smaller takes no longer inside a request than to be fetched.
	addressMinSize = 64 << 10
	// maxSentWithID bounds how many media are remembered as met; beyond, all are
	// forgotten, and sent with their bytes once more.
	maxSentWithID = 10_000
)

// What an account is spared for a while, behind its name among those resting.
const (
	backoffURL = " url"
	backoffID  = " media_id"
)

// An FileAPI is what names a wing's service takes, and how it gets files.
type FileAPI struct {
	// Takes reports whether the API takes files of a media type by name, in a
	// message of the user, or in the result of a tool.
	Takes func(mediaType string, result bool) bool
	// Fetches reports the same of addresses; nil: it takes none.
	Fetches func(mediaType string, result bool) bool
	// Upload sends the blob of m, whose MediaType has no parameters, and returns
	// what the API calls it and when it ends there.
	Upload func(ctx context.Context, m artel.Media) (name string, until time.Time, err error)
	// Written says that requests are written elsewhere, so that media have no ids
	// in them.
	Written bool
}

// Send calls send with r, in whose Uploads the media are that go by a name:
//
//   - by the id of a file, where the operator of the service has stated the
//     transport "file_id" beside "bytes", media from 1 MiB on. What the service
//     lacks goes up before, once for each account, and is named until it ends
//     there;
//   - by an address, where "url" is stated, from 64 KiB on;
//   - by the id of media that the server has got before with this id, where its
//     quirks say that it knows them again.
//
// Where the service says that it does not know a name, or could not fetch an
// address, send is called a second time: files go up anew, the others go as
// bytes. So do, always, media that cannot be uploaded.
func (h *Uploads) Send(ctx context.Context, r *model.Request, up FileAPI, send func(*model.Request) (*http.Response, error)) (*http.Response, error) {
	if h == nil {
		return send(r)
	}
	b := callNames{account: accountOf(r.Service), up: up, service: r.Service}
	for healed := false; ; healed = true {
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
		if err == nil || healed || len(b.names) == 0 || !h.dropRefused(err, b) {
			return resp, err
		}
	}
}

// A batch is the names of one call.
type callNames struct {
	account string
	service model.Service
	up      FileAPI
	names   map[artel.Digest]model.Name
	files   []uploadKey // those of them that are files
}

// name finds a name for m, if it has one.
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

// remembers reports whether the service knows media by ids that requests give
// them.
func (b callNames) remembers() bool {
	return !b.up.Written && b.service.Dialect == model.OpenAI && b.service.Quirks().MediaIDs
}

// meet notes that the service has got the media of messages, each with its id.
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

// mediaOf goes over the media of messages that have bytes behind them, with
// their types without parameters, and whether a tool's result holds them.
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

// forget drops the names that err, which the service answered with, says are of
// no use, and reports whether there were any. A file that another call has sent
// anew since then stays.
func (h *Uploads) dropRefused(err error, b callNames) bool {
	c, ok := errors.AsType[*model.CallError](err)
	if !ok {
		return false
	}
	files, addresses, ids := h.dropRefusedFiles(c, b), b.fetchFailed(c), h.dropRefusedIDs(c, b)
	if addresses {
		h.backOff(b.account + backoffURL)
		h.log.Warn("a service could not fetch media at their addresses; they go inside requests for a while", "service", b.service.ID, "err", err)
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
		gone = b.files // it does not say which
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

// unfetched reports whether c says that something could not be fetched.
//
// Sources: what OpenAI, Anthropic, Gemini, DashScope and vLLM were seen to say.
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

// dropRefusedIDs drops the ids of a call that was refused: where the words are not
// those of a server that has forgotten them, it may be one that cannot do it.
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
