// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// maxUploadAnswer bounds what a service says of a file, in bytes.
const maxUploadAnswer = 1 << 20

// FileForm writes the multipart form of an upload: the fields, each a name and
// a value, then the blob of m as "file". It returns the form's content type
// too. The same file makes the same form.
func FileForm(blobs blob.Store, m artel.Media, fields ...[2]string) (*Body, string, error) {
	var around bytes.Buffer
	w := multipart.NewWriter(&around)
	if err := w.SetBoundary("artel-" + m.Ref.Digest.Hex()[:32]); err != nil {
		return nil, "", err
	}
	for _, f := range fields {
		if err := w.WriteField(f[0], f[1]); err != nil {
			return nil, "", err
		}
	}
	// Services tell formats apart by the name, and keep it for people.
	_, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {mime.FormatMediaType("form-data", map[string]string{"name": "file", "filename": FileName(m)})},
		"Content-Type":        {m.MediaType},
	})
	if err != nil {
		return nil, "", err
	}
	head := around.Len()
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	body := NewBody(blobs)
	_, _ = body.Write(around.Bytes()[:head])
	body.WriteRaw(m.Ref.Digest, m.Size)
	_, _ = body.Write(around.Bytes()[head:])
	return body, w.FormDataContentType(), nil
}

// FileName is what an uploaded file is called at a service: by its digest and
// the end of its name, for what people call their files is nobody else's.
func FileName(m artel.Media) string {
	name := m.Ref.Digest.Hex()[:16]
	if i := strings.LastIndexByte(m.Filename, '.'); i >= 0 {
		end := m.Filename[i+1:]
		plain := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' }
		if end != "" && len(end) <= 8 && !strings.ContainsFunc(end, func(r rune) bool { return !plain(r) }) {
			return name + "." + strings.ToLower(end)
		}
	}
	_, minor, _ := strings.Cut(m.MediaType, "/")
	switch minor {
	case "png", "jpeg", "gif", "webp", "pdf":
		return name + "." + minor
	}
	return name
}

// UploadOpenAI sends a file to OpenAI's Files API, which its two dialects share,
// for purpose ("user_data", or "vision" for pictures).
//
// Source: "Files" of the API's reference.
func UploadOpenAI(ctx context.Context, client *http.Client, f Failures, blobs blob.Store, m artel.Media, purpose string) (string, time.Time, error) {
	until := time.Now().Add(UploadLifetime)
	body, contentType, err := FileForm(blobs, m, [2]string{"purpose", purpose},
		[2]string{"expires_after[anchor]", "created_at"}, [2]string{"expires_after[seconds]", strconv.Itoa(int(UploadLifetime.Seconds()))})
	if err != nil {
		return "", until, f.Refuse(artel.Invalid, "the form of the upload cannot be written: %w", err)
	}
	h := http.Header{"Content-Type": {contentType}, "Accept": {"application/json"}}
	if key := f.Service.APIKey.Reveal(); key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	resp, err := Post(ctx, client, f, strings.TrimSuffix(f.Service.BaseURL, "/")+"/files", body, h)
	if err != nil {
		return "", until, err
	}
	var file struct {
		ID string `json:"id"`
	}
	err = ReadUpload(ctx, f, resp, &file)
	return file.ID, until, err
}

// DropOpenAI deletes a file of OpenAI's Files API.
func DropOpenAI(ctx context.Context, client *http.Client, f Failures, name string) error {
	h := http.Header{}
	if key := f.Service.APIKey.Reveal(); key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	return DeleteFile(ctx, client, f, strings.TrimSuffix(f.Service.BaseURL, "/")+"/files/"+url.PathEscape(name), h)
}

// ReadUpload reads what the service says of a file, and closes the answer.
func ReadUpload(ctx context.Context, f Failures, resp *http.Response, into any) error {
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxUploadAnswer))
	if err != nil {
		return f.Transport(ctx, err)
	}
	if json.Unmarshal(b, into) != nil {
		return f.Broken("the answer to an upload makes no sense")
	}
	return nil
}
