// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

const (
	// fileWait is the longest that a file may be in work at the service: films
	// are looked at before they can be named.
	fileWait = 5 * time.Minute
	// The pauses between two looks at such a file grow from one to the other.
	firstLook = 100 * time.Millisecond
	lastLook  = 5 * time.Second
)

// A heldFile is what the Files API says of a file.
type heldFile struct {
	Name    string    `json:"name"` // "files/abc"
	URI     string    `json:"uri"`
	State   string    `json:"state"`
	Expires time.Time `json:"expirationTime"`
}

// uploader sends files for the service s. Function responses hold bytes alone.
func (p *Provider) uploader(s model.Service) provider.FileAPI {
	return provider.FileAPI{
		Takes: func(mediaType string, result bool) bool {
			return mimeWord(mediaType) != "" && !(result && s.Capabilities.ToolImage.Value)
		},
		Fetches: func(mediaType string, result bool) bool {
			// Its first two generations fetch nothing; sound and films it fetches from
			// few places.
			old := strings.Contains(s.Model, "gemini-1") || strings.Contains(s.Model, "gemini-2.0")
			word := mimeWord(mediaType)
			return !old && !(result && s.Capabilities.ToolImage.Value) && (word == "application/pdf" || strings.HasPrefix(word, "image/"))
		},
		Upload: func(ctx context.Context, m artel.Media) (string, time.Time, error) {
			f := provider.Failures{Op: "gemini.Upload", Service: s}
			file, err := p.upload(ctx, f, m)
			if err == nil {
				file, err = p.settle(ctx, f, file)
			}
			if err != nil {
				return "", time.Time{}, err
			}
			if file.Expires.IsZero() {
				file.Expires = time.Now().Add(provider.UploadLifetime)
			}
			return file.URI, file.Expires, nil
		},
	}
}

// upload begins an upload, and sends the bytes to where the service wants them.
//
// Source: "Files API" of the Gemini API's documentation.
func (p *Provider) upload(ctx context.Context, f provider.Failures, m artel.Media) (heldFile, error) {
	word := mimeWord(m.MediaType)
	begin := provider.NewBody(nil)
	begin.WriteString(`{"file":{"display_name":"` + provider.FileName(m) + `"}}`)
	resp, err := provider.Post(ctx, p.with.HTTP(), f, uploadAddress(f.Service.BaseURL), begin, p.fileHeader(f.Service, http.Header{
		"Content-Type":                        {"application/json"},
		"X-Goog-Upload-Protocol":              {"resumable"},
		"X-Goog-Upload-Command":               {"start"},
		"X-Goog-Upload-Header-Content-Length": {strconv.FormatInt(m.Size, 10)},
		"X-Goog-Upload-Header-Content-Type":   {word},
	}))
	if err != nil {
		return heldFile{}, err
	}
	_ = resp.Body.Close() // the header says all
	to, err := url.Parse(resp.Header.Get("X-Goog-Upload-Url"))
	base, baseErr := url.Parse(f.Service.BaseURL)
	// Nowhere else: what a service answers must not send people's files about.
	if err != nil || baseErr != nil || to.Host == "" || to.Host != base.Host || to.Scheme != base.Scheme {
		return heldFile{}, f.Wrong("the service named no address of its own for an upload")
	}
	body := provider.NewBody(p.with.Blobs)
	body.WriteRaw(m.Ref.Digest, m.Size)
	resp, err = provider.Post(ctx, p.with.HTTP(), f, to.String(), body, http.Header{ // the address is the key
		"Content-Type": {word}, "X-Goog-Upload-Offset": {"0"}, "X-Goog-Upload-Command": {"upload, finalize"},
	})
	if err != nil {
		return heldFile{}, err
	}
	var said struct {
		File heldFile `json:"file"`
	}
	err = provider.ReadUpload(ctx, f, resp, &said)
	return said.File, err
}

// settle waits until a file can be named.
func (p *Provider) settle(ctx context.Context, f provider.Failures, file heldFile) (heldFile, error) {
	ctx, cancel := context.WithTimeout(ctx, fileWait)
	defer cancel()
	for pause := firstLook; file.State == "PROCESSING"; pause = min(2*pause, lastLook) {
		if !fileName().MatchString(file.Name) {
			return file, f.Wrong("the service gave a file no usable name")
		}
		select {
		case <-ctx.Done():
			return file, f.Transport(ctx, context.Cause(ctx))
		case <-time.After(pause):
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, model.GeminiBase(f.Service.BaseURL)+"/"+file.Name, nil)
		if err != nil {
			return file, f.Refuse(artel.Invalid, "the base URL is not usable")
		}
		req.Header = p.fileHeader(f.Service, http.Header{"User-Agent": {"artel"}})
		resp, err := p.with.HTTP().Do(req)
		if err != nil {
			return file, f.Transport(ctx, err)
		}
		if resp.StatusCode/100 != 2 {
			err = f.Response(resp, time.Now())
			_ = resp.Body.Close()
			return file, err
		}
		if err := provider.ReadUpload(ctx, f, resp, &file); err != nil {
			return file, err
		}
	}
	if file.State == "FAILED" {
		return file, f.Wrong("the service could not read a file")
	}
	return file, nil
}

var fileName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^files/[A-Za-z0-9_-]+$`) })

func (p *Provider) fileHeader(s model.Service, h http.Header) http.Header {
	h.Set("Accept", "application/json")
	if key := s.APIKey.Reveal(); key != "" {
		h.Set("X-Goog-Api-Key", key)
	}
	return h
}

// uploadAddress returns where uploads begin: "/upload" stands before the
// version.
func uploadAddress(base string) string {
	base = model.GeminiBase(base)
	i := strings.LastIndexByte(base, '/')
	return base[:i] + "/upload" + base[i:] + "/files"
}

// SendWithUploads implements [provider.Holder].
func (p *Provider) SendWithUploads(ctx context.Context, r *model.Request, send func(*model.Request) (*http.Response, error)) (*http.Response, error) {
	up := p.uploader(r.Service)
	up.Written = true
	return p.with.Uploads.Send(ctx, r, up, send)
}

// DeleteFile implements [provider.Dropper].
func (p *Provider) DeleteFile(ctx context.Context, s model.Service, name string) error {
	f := provider.Failures{Op: "gemini.Drop", Service: s}
	file := "files/" + path.Base(name) // the record has its address
	if !fileName().MatchString(file) {
		return f.Refuse(artel.Invalid, "the service gave a file no usable name")
	}
	err := provider.DeleteFile(ctx, p.with.HTTP(), f, model.GeminiBase(s.BaseURL)+"/"+file, p.fileHeader(s, http.Header{}))
	if c, ok := errors.AsType[*model.CallError](err); ok && c.Status == http.StatusForbidden && strings.Contains(c.Message, "may not exist") {
		return nil // what is not there looks to the API as what is another's
	}
	return err
}
