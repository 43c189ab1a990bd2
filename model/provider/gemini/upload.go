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
	// processingTimeout limits how long the service may process a file, such as a
	// video, before requests can name it.
	processingTimeout = 5 * time.Minute
	// The pauses between two polls of such a file double from firstPoll to lastPoll.
	firstPoll = 100 * time.Millisecond
	lastPoll  = 5 * time.Second
)

// An uploadedFile is a file as the Files API describes it.
type uploadedFile struct {
	Name    string    `json:"name"` // "files/abc"
	URI     string    `json:"uri"`
	State   string    `json:"state"`
	Expires time.Time `json:"expirationTime"`
}

// files describes the Files API. Function responses hold bytes alone.
func files(c *provider.Client, s *model.Service) provider.FileAPI {
	return provider.FileAPI{
		Takes: func(mediaType string, result bool) bool {
			return MIMEType(mediaType) != "" && !(result && s.Capabilities.ToolImage.Value)
		},
		Fetches: func(mediaType string, result bool) bool {
			// The first two generations fetch nothing; later ones fetch sound and
			// video from few places.
			old := strings.Contains(s.Model, "gemini-1") || strings.Contains(s.Model, "gemini-2.0")
			word := MIMEType(mediaType)
			return !old && !(result && s.Capabilities.ToolImage.Value) && (word == "application/pdf" || strings.HasPrefix(word, "image/"))
		},
		Upload: func(ctx context.Context, m artel.Media) (string, time.Time, error) {
			f := provider.Failures{Op: "gemini.Upload", Service: s}
			file, err := upload(ctx, c, f, m)
			if err == nil {
				file, err = waitUntilActive(ctx, c, f, file)
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

// upload starts an upload, and sends the bytes to the address that the service
// returns.
//
// Source: "Files API" of the Gemini API's documentation.
func upload(ctx context.Context, c *provider.Client, f provider.Failures, m artel.Media) (uploadedFile, error) {
	word := MIMEType(m.MediaType)
	begin := provider.NewBody(nil)
	begin.WriteString(`{"file":{"display_name":"` + provider.FileName(m) + `"}}`)
	resp, err := c.Post(ctx, f, uploadAddress(f.Service.BaseURL), begin, "application/json", http.Header{
		"X-Goog-Upload-Protocol":              {"resumable"},
		"X-Goog-Upload-Command":               {"start"},
		"X-Goog-Upload-Header-Content-Length": {strconv.FormatInt(m.Size, 10)},
		"X-Goog-Upload-Header-Content-Type":   {word},
	})
	if err != nil {
		return uploadedFile{}, err
	}
	_ = resp.Body.Close() // the header says all
	to, err := url.Parse(resp.Header.Get("X-Goog-Upload-Url"))
	base, baseErr := url.Parse(f.Service.BaseURL)
	// Only to the service's own host: its answer must not redirect a user's files.
	if err != nil || baseErr != nil || to.Host == "" || to.Host != base.Host || to.Scheme != base.Scheme {
		return uploadedFile{}, f.Wrong("the service named no address of its own for an upload")
	}
	body := provider.NewBody(c.Options.Blobs)
	body.WriteRaw(m.Ref.Digest, m.Size)
	resp, err = provider.PostPlain(ctx, c.Options.Client, f, to.String(), body, http.Header{ // the address is the key
		"Content-Type": {word}, "X-Goog-Upload-Offset": {"0"}, "X-Goog-Upload-Command": {"upload, finalize"},
	})
	if err != nil {
		return uploadedFile{}, err
	}
	var answer struct {
		File uploadedFile `json:"file"`
	}
	err = provider.ReadUpload(ctx, f, resp, &answer)
	return answer.File, err
}

// waitUntilActive polls an uploaded file until the service has processed it.
func waitUntilActive(ctx context.Context, c *provider.Client, f provider.Failures, file uploadedFile) (uploadedFile, error) {
	ctx, cancel := context.WithTimeout(ctx, processingTimeout)
	defer cancel()
	for pause := firstPoll; file.State == "PROCESSING"; pause = min(2*pause, lastPoll) {
		if !fileName().MatchString(file.Name) {
			return file, f.Wrong("the service gave a file no usable name")
		}
		select {
		case <-ctx.Done():
			return file, f.Transport(ctx, context.Cause(ctx))
		case <-time.After(pause):
		}
		resp, err := c.Fetch(ctx, f, http.MethodGet, model.GeminiBase(f.Service.BaseURL)+"/"+file.Name)
		if err != nil {
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

// uploadAddress returns the address that starts uploads: "/upload" precedes the
// version.
func uploadAddress(base string) string {
	base = model.GeminiBase(base)
	i := strings.LastIndexByte(base, '/')
	return base[:i] + "/upload" + base[i:] + "/files"
}

// DeleteFile implements [provider.FileDeleter]. The name is the address of the
// file, which [provider.Uploads] records.
func (p *Provider) DeleteFile(ctx context.Context, s *model.Service, name string) error {
	id := path.Base(name)
	if !fileName().MatchString("files/" + id) {
		return provider.Failures{Op: "gemini.DeleteFile", Service: s}.Refuse(artel.Invalid, "the service gave a file no usable name")
	}
	err := p.Client.DeleteFile(ctx, s, id)
	if c, ok := errors.AsType[*model.CallError](err); ok && c.Status == http.StatusForbidden && strings.Contains(c.Message, "may not exist") {
		return nil // the API says the same of a missing file and of one of another account
	}
	return err
}
