// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Transcribe implements [model.Transcriber] with the endpoint
// /audio/transcriptions. The recording is read from the blob store while it is
// sent.
func (p *Provider) Transcribe(ctx context.Context, r *model.Recording) (string, error) {
	f := provider.Failures{Op: "openai.Transcribe", Service: &r.Service}
	extension := model.RecordingExtension(r.Media.MediaType)
	if extension == "" || !r.Media.Ref.IsBlob() {
		return "", f.Refuse(artel.Unsupported, "media of type %s cannot be transcribed", r.Media.MediaType)
	}
	body, contentType, err := p.form(r, extension)
	if err != nil {
		return "", f.Refuse(artel.Invalid, "the form cannot be written")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := p.Post(ctx, f, provider.Endpoint(&r.Service, "/audio/transcriptions"), body, "application/json", http.Header{"Content-Type": {contentType}})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, model.MaxAnswer+1))
	if err != nil {
		return "", f.Transport(ctx, err)
	}
	if len(answer) > model.MaxAnswer {
		return "", f.Refuse(artel.TooLarge, "the transcript is too long")
	}
	return transcript(f, answer)
}

// transcript reads the answer. Some servers write the plain text whatever format
// was requested.
func transcript(f provider.Failures, answer []byte) (string, error) {
	var said struct {
		Text  *string         `json:"text"`
		Error json.RawMessage `json:"error"`
	}
	trimmed := bytes.TrimSpace(answer)
	err := json.Unmarshal(trimmed, &said)
	switch {
	case err == nil && said.Text != nil:
		return strings.ToValidUTF8(*said.Text, "\uFFFD"), nil
	case err == nil && len(said.Error) > 0:
		return "", f.Reported(trimmed)
	case bytes.HasPrefix(trimmed, []byte("{")), bytes.HasPrefix(trimmed, []byte("<")), !utf8.Valid(trimmed):
		return "", f.Refuse(artel.Unavailable, "the answer is no transcript")
	}
	return string(trimmed), nil
}

// form writes the multipart form. The file comes last, so that a server that streams
// has read the settings before it.
func (p *Provider) form(r *model.Recording, extension string) (*provider.Body, string, error) {
	fields := [][2]string{{"model", r.Service.Model}, {"response_format", "json"}}
	if r.Language != "" {
		fields = append(fields, [2]string{"language", r.Language})
	}
	// The name is made of the type: services recognize formats by it.
	return provider.FileForm(p.Options.Blobs, r.Media, textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="recording` + extension + `"`},
		"Content-Type":        {"application/octet-stream"},
	}, fields...)
}
