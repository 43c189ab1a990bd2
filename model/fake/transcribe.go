// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/model/provider/openai"
)

// maxRecording is the limit of the real API, in bytes.
const maxRecording = 25 << 20

// Transcript is the transcript of a recording: a function of its bytes.
func Transcript(d artel.Digest, size int64) string {
	return fmt.Sprintf("This recording has %d bytes, and its digest begins with %s.", size, d.Hex()[:12])
}

// recordings are the file extensions that the real API accepts.
func recordings() []string {
	return []string{"flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"}
}

// transcriptions serves POST /v1/audio/transcriptions. The bytes are hashed while
// they arrive.
func (s *Server) transcriptions(w http.ResponseWriter, r *http.Request) {
	rec := s.begin(r)
	in, e := s.readRecording(r)
	if in.media.Size > 0 {
		rec.Media = []Media{in.media}
	}
	b, ok := s.admit(w, r, rec, e)
	if !ok {
		return
	}
	text := Transcript(in.media.Digest, in.media.Size)
	if b.Mode == HalfStream {
		_, _ = io.WriteString(w, `{"text":"`+text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // net/http's way to break a connection off
	}
	if in.fields["response_format"] == "text" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, text+"\n") // a client that has gone is no concern
		return
	}
	s.reply(w, map[string]any{"text": text})
}

// recordingForm is the form of a request.
type recordingForm struct {
	fields map[string]string
	media  Media
	file   bool
}

// readRecording reads and checks a form, with the messages of the real API.
func (s *Server) readRecording(r *http.Request) (in recordingForm, refused *problem) {
	in.fields = map[string]string{}
	if e := s.authorize(r); e != nil {
		return in, e
	}
	for part, err := range form.Parts(r.Body, r.Header.Get("Content-Type")) {
		if err != nil {
			return in, badForm("", "", "Could not parse multipart form: %v", err)
		}
		if part.Name == "file" {
			if in.file {
				return in, badForm("file", "", "Only one file may be sent.")
			}
			in.file = true
			if e := in.readPart(part); e != nil {
				return in, e
			}
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, 64<<10))
		if err != nil {
			return in, badForm("", "", "Could not parse multipart form: %v", err)
		}
		known := []string{"model", "language", "prompt", "response_format", "temperature"}
		if _, twice := in.fields[part.Name]; twice || !slices.Contains(known, part.Name) {
			return in, badForm(part.Name, "unknown_parameter", "Unknown parameter: '%s'.", artel.Shorten(part.Name, 40))
		}
		in.fields[part.Name] = string(value)
	}
	switch {
	case in.fields["model"] == "":
		return in, badForm("model", "", "you must provide a model parameter")
	case s.hasModel(in.fields["model"]) != nil:
		return in, s.hasModel(in.fields["model"])
	case !in.file:
		return in, badForm("file", "", "you must provide a file parameter")
	}
	if f := in.fields["response_format"]; f != "" && f != "json" && f != "text" {
		return in, badForm("response_format", "", "This fake answers in 'json' and 'text', not '%s'.", artel.Shorten(f, 40))
	}
	if l := in.fields["language"]; l != "" && (len(l) != 2 || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz") != "") {
		return in, badForm("language", "", "Invalid language '%s'. Language parameter must be specified in ISO-639-1 format.", artel.Shorten(l, 40))
	}
	return in, nil
}

// readPart reads the file.
func (in *recordingForm) readPart(part form.Part) *problem {
	ext := strings.TrimPrefix(strings.ToLower(path.Ext(part.Filename)), ".")
	if !slices.Contains(recordings(), ext) {
		return badForm("file", "", "Invalid file format. Supported formats: ['%s']", strings.Join(recordings(), "', '"))
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(part, maxRecording+1))
	switch {
	case err != nil && errors.Is(err, artel.Invalid):
		return badForm("file", "", "Could not parse multipart form: %v", err)
	case err != nil:
		return openAIProblem(failure{status: http.StatusInternalServerError}, err.Error())
	case n > maxRecording:
		e := openai.Bad("file", "", "Maximum content size limit (%d) exceeded", maxRecording)
		e.Status = http.StatusRequestEntityTooLarge
		return ofOpenAI(e)
	case n == 0:
		return badForm("file", "", "The audio file could not be decoded or its format is not supported.")
	}
	in.media = Media{Digest: artel.NewDigest([32]byte(h.Sum(nil))), Size: n}
	return nil
}

func badForm(param, code, format string, args ...any) *problem {
	return ofOpenAI(openai.Bad(param, code, format, args...))
}
