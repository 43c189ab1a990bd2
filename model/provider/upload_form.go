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
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// maxUploadAnswer limits the answer to an upload, in bytes.
const maxUploadAnswer = 1 << 20

// FileForm writes the multipart form of an upload: fields, each a name and a value,
// then the blob of m as "file" with the header part. It returns the content type of
// the form too. Equal input gives an equal form.
func FileForm(blobs blob.Store, m artel.Media, part textproto.MIMEHeader, fields ...[2]string) (*Body, string, error) {
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
	if _, err := w.CreatePart(part); err != nil {
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

// FileName returns the name of an uploaded file at the service: its digest and its
// extension, by which services recognize formats. The user's own name stays here.
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

// UploadForm sends the blob of m to the Files API as a multipart form with
// fields, and returns the id that the answer gives it.
//
// Sources: "Files" of the references of OpenAI and of Anthropic.
func (c *Client) UploadForm(ctx context.Context, f Failures, m artel.Media, fields ...[2]string) (string, time.Time, error) {
	until := time.Now().Add(UploadLifetime)
	body, contentType, err := FileForm(c.Options.Blobs, m, textproto.MIMEHeader{
		"Content-Disposition": {mime.FormatMediaType("form-data", map[string]string{"name": "file", "filename": FileName(m)})},
		"Content-Type":        {m.MediaType},
	}, fields...)
	if err != nil {
		return "", until, f.Refuse(artel.Invalid, "the form of the upload cannot be written: %w", err)
	}
	resp, err := c.Post(ctx, f, c.dialect.FilesURL(f.Service), body, "application/json", http.Header{"Content-Type": {contentType}})
	if err != nil {
		return "", until, err
	}
	var file struct {
		ID string `json:"id"`
	}
	err = ReadUpload(ctx, f, resp, &file)
	return file.ID, until, err
}

// ReadUpload reads the JSON of a response about a file into v, and closes it.
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
