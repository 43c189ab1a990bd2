// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
)

const (
	// keepFiles is how many of the newest files are stored, with digest and size but
	// without their bytes.
	keepFiles = 1000
	// maxFile is the smallest limit of the real APIs, in bytes.
	maxFile = 500 << 20
	// geminiHost is the host in the URIs of the Gemini API's files, also of this fake.
	geminiHost = "https://generativelanguage.googleapis.com/v1beta/"
)

// A storedFile is one upload.
type storedFile struct {
	id, name, purpose, mediaType string
	media                        Media
	created, expires             time.Time
	polls                        int // how often it was requested: Gemini processes videos at first
}

// file returns a file that has not expired.
func (s *Server) file(id string) (storedFile, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.files, func(f *storedFile) bool { return f.id == id })
	if i < 0 || !s.options.Now().Before(s.files[i].expires) {
		return storedFile{}, false
	}
	s.files[i].polls++
	return *s.files[i], true
}

func (s *Server) deleteFile(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = slices.DeleteFunc(s.files, func(f *storedFile) bool { return f.id == id })
}

func (s *Server) storeFile(f storedFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files = append(s.files, &f); len(s.files) > keepFiles {
		s.files = slices.Delete(s.files, 0, len(s.files)-keepFiles)
	}
}

// takeFile hashes the bytes of a file while they arrive.
func takeFile(r io.Reader) (Media, error) {
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(r, maxFile+1))
	if err == nil && n > maxFile {
		err = fmt.Errorf("the file is larger than %d bytes", maxFile)
	}
	return Media{Digest: artel.NewDigest([32]byte(h.Sum(nil))), Size: n}, err
}

// readFile reads the form of an upload with the known fields.
func readFile(r *http.Request, known ...string) (f storedFile, fields map[string]string, problem string) {
	fields = map[string]string{}
	for part, err := range form.Parts(r.Body, r.Header.Get("Content-Type")) {
		if err != nil {
			return f, nil, "Could not parse multipart form: " + err.Error()
		}
		if part.Name == "file" {
			f.name, f.mediaType = part.Filename, part.ContentType
			if f.media, err = takeFile(part); err != nil {
				return f, nil, err.Error()
			}
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, 64<<10))
		if err != nil || !slices.Contains(known, part.Name) {
			return f, nil, "Unknown parameter: '" + artel.Shorten(part.Name, 40) + "'."
		}
		fields[part.Name] = string(value)
	}
	if f.media.Size == 0 {
		return f, nil, "file: Field required"
	}
	return f, fields, ""
}

// fileIDs returns the ids of files in a request.
func fileIDs(body []byte) []string { return valuesOf(body, "file_id") }

// valuesOf returns the texts that follow one of the keys anywhere in JSON.
func valuesOf(body []byte, keys ...string) (values []string) {
	d := json.NewDecoder(bytes.NewReader(body))
	for named := false; ; {
		t, err := d.Token()
		if err != nil {
			return values
		}
		s, _ := t.(string)
		if named && s != "" {
			values = append(values, s)
		}
		named = slices.Contains(keys, s)
	}
}

// noFile returns the first unknown file id of a request, or "".
func (s *Server) noFile(body []byte) string {
	for _, id := range fileIDs(body) {
		if _, ok := s.file(id); !ok {
			return id
		}
	}
	return ""
}

// fileRoutes adds the endpoints of the Files API of OpenAI or Anthropic.
func (s *Server) fileRoutes(base string, read func(*http.Request) (storedFile, *problem), show func(storedFile) any, missing func(id string) *problem) {
	s.mux.HandleFunc("POST "+base+"/files", func(w http.ResponseWriter, r *http.Request) {
		rec := s.begin(r)
		p := s.authorize(r)
		var f storedFile
		if p == nil {
			f, p = read(r)
		}
		if p == nil {
			rec.Media = []Media{f.media}
		}
		if _, ok := s.admit(w, r, rec, p); !ok {
			return
		}
		s.storeFile(f)
		s.reply(w, show(f))
	})
	s.mux.HandleFunc("GET "+base+"/files/{id}", s.oneFile(show, missing))
	s.mux.HandleFunc("DELETE "+base+"/files/{id}", s.oneFile(func(f storedFile) any {
		s.deleteFile(f.id)
		return map[string]any{"id": f.id, "object": "file", "type": "file_deleted", "deleted": true}
	}, missing))
}

func (s *Server) oneFile(show func(storedFile) any, missing func(id string) *problem) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p := s.authorize(r); p != nil {
			refuse(w, p)
			return
		}
		f, ok := s.file(r.PathValue("id"))
		if !ok {
			refuse(w, missing(r.PathValue("id")))
			return
		}
		s.reply(w, show(f))
	}
}

// openAIFile reads an upload to OpenAI.
func (s *Server) openAIFile(r *http.Request) (storedFile, *problem) {
	f, fields, wrong := readFile(r, "purpose", "expires_after[anchor]", "expires_after[seconds]")
	if wrong != "" {
		return f, badForm("file", "", "%s", wrong)
	}
	purposes := []string{"assistants", "batch", "fine-tune", "vision", "user_data", "evals"}
	if !slices.Contains(purposes, fields["purpose"]) {
		return f, badForm("purpose", "", "'%s' is not one of ['%s'] - 'purpose'", artel.Shorten(fields["purpose"], 40), strings.Join(purposes, "', '"))
	}
	f.id, f.purpose, f.created = s.nextID("file-"), fields["purpose"], s.options.Now()
	f.expires = f.created.AddDate(100, 0, 0)
	if after, ok := fields["expires_after[seconds]"]; ok {
		n, err := strconv.Atoi(after)
		if err != nil || n < 3600 || n > 2592000 || fields["expires_after[anchor]"] != "created_at" {
			return f, badForm("expires_after", "", "Invalid 'expires_after': expected 'created_at' and between 3600 and 2592000 seconds.")
		}
		f.expires = f.created.Add(time.Duration(n) * time.Second)
	}
	return f, nil
}

func showOpenAI(f storedFile) any {
	return map[string]any{
		"id": f.id, "object": "file", "bytes": f.media.Size, "created_at": f.created.Unix(), "expires_at": f.expires.Unix(),
		"filename": f.name, "purpose": f.purpose, "status": "processed",
	}
}

func noOpenAIFile(id string) *problem {
	e := openai.Bad("id", "", "No such File object: %s", artel.Shorten(id, 200))
	e.Status = http.StatusNotFound
	return ofOpenAI(e)
}

// anthropicFile reads an upload to Anthropic.
func (s *Server) anthropicFile(r *http.Request) (storedFile, *problem) {
	if r.Header.Get(anthropic.VersionHeader) == "" {
		return storedFile{}, s.ofAnthropic(anthropic.Bad("anthropic-version", "header is required"))
	}
	f, fields, wrong := readFile(r, "expires_in_seconds")
	if wrong != "" {
		return f, s.ofAnthropic(anthropic.Bad("", "%s", wrong))
	}
	f.id, f.created = s.nextID("file_"), s.options.Now()
	f.expires = f.created.AddDate(100, 0, 0)
	if after, ok := fields["expires_in_seconds"]; ok {
		n, err := strconv.Atoi(after)
		if err != nil || n < 3600 || n > 7776000 {
			return f, s.ofAnthropic(anthropic.Bad("expires_in_seconds", "Input should be between 3600 and 7776000"))
		}
		f.expires = f.created.Add(time.Duration(n) * time.Second)
	}
	return f, nil
}

func showAnthropic(f storedFile) any {
	return map[string]any{
		"id": f.id, "type": "file", "filename": f.name, "mime_type": f.mediaType, "size_bytes": f.media.Size,
		"created_at": f.created.UTC(), "expires_at": f.expires.UTC(), "downloadable": false,
	}
}

func (s *Server) noAnthropicFile(id string) *problem {
	return s.ofAnthropic(anthropic.Refused(http.StatusNotFound, "File not found: %s", artel.Shorten(id, 200)))
}

// geminiFiles adds the endpoints of the Gemini API's files. An upload has two
// steps, the second at the address that the first returns. Videos are being
// processed until they have been requested once.
func (s *Server) geminiFiles() {
	missing := func(id string) *problem {
		return ofGemini(gemini.Fail(http.StatusForbidden, "You do not have permission to access the File %s or it may not exist.", artel.Shorten(id, 200)))
	}
	s.mux.HandleFunc("POST /upload/v1beta/files", s.beginGeminiFile)
	s.mux.HandleFunc("POST /upload/v1beta/sessions/{id}", s.endGeminiFile)
	s.mux.HandleFunc("GET /v1beta/files/{id}", s.oneFile(showGemini, missing))
	s.mux.HandleFunc("DELETE /v1beta/files/{id}", s.oneFile(func(f storedFile) any {
		s.deleteFile(f.id)
		return map[string]any{}
	}, missing))
}

func (s *Server) beginGeminiFile(w http.ResponseWriter, r *http.Request) {
	rec := s.begin(r)
	size, err := strconv.ParseInt(r.Header.Get("X-Goog-Upload-Header-Content-Length"), 10, 64)
	p := s.authorize(r)
	switch {
	case p != nil:
	case r.Header.Get("X-Goog-Upload-Protocol") != "resumable", r.Header.Get("X-Goog-Upload-Command") != "start":
		p = ofGemini(gemini.Bad("Upload must be started with the resumable protocol."))
	case err != nil || size <= 0 || r.Header.Get("X-Goog-Upload-Header-Content-Type") == "":
		p = ofGemini(gemini.Bad("Failed to parse Content-Length or Content-Type of the upload."))
	}
	if p != nil {
		s.fail(w, rec, p)
		return
	}
	s.record(rec)
	now := s.options.Now()
	f := storedFile{
		id: s.nextID("session-"), mediaType: r.Header.Get("X-Goog-Upload-Header-Content-Type"), media: Media{Size: size},
		created: now, expires: now.Add(time.Hour),
	}
	s.storeFile(f)
	w.Header().Set("X-Goog-Upload-Status", "active")
	w.Header().Set("X-Goog-Upload-URL", "http://"+r.Host+"/upload/v1beta/sessions/"+f.id)
}

func (s *Server) endGeminiFile(w http.ResponseWriter, r *http.Request) {
	rec := s.begin(r)
	f, ok := s.file(r.PathValue("id"))
	media, err := takeFile(r.Body)
	switch {
	case !ok || !strings.HasPrefix(f.id, "session-"):
		s.fail(w, rec, ofGemini(gemini.Fail(http.StatusNotFound, "Upload session not found.")))
		return
	case err != nil, media.Size != f.media.Size, r.Header.Get("X-Goog-Upload-Offset") != "0", r.Header.Get("X-Goog-Upload-Command") != "upload, finalize":
		s.fail(w, rec, ofGemini(gemini.Bad("Upload is not of the %d bytes that were announced.", f.media.Size)))
		return
	}
	rec.Media = []Media{media}
	s.record(rec)
	s.deleteFile(f.id)
	f.id, f.media, f.polls, f.expires = s.nextID(""), media, 0, s.options.Now().Add(48*time.Hour)
	s.storeFile(f)
	w.Header().Set("X-Goog-Upload-Status", "final")
	s.reply(w, map[string]any{"file": showGemini(f)})
}

func showGemini(f storedFile) any {
	state := "ACTIVE"
	if strings.HasPrefix(f.mediaType, "video/") && f.polls < 2 {
		state = "PROCESSING"
	}
	return map[string]any{
		"name": "files/" + f.id, "uri": geminiHost + "files/" + f.id, "mimeType": f.mediaType, "sizeBytes": strconv.FormatInt(f.media.Size, 10),
		"createTime": f.created.UTC(), "expirationTime": f.expires.UTC(), "state": state,
	}
}

// hasGeminiFile reports whether a request may name a file.
func (s *Server) hasGeminiFile(name string) bool {
	id, ok := strings.CutPrefix(name, "files/")
	if ok {
		_, ok = s.file(id)
	}
	return ok && !strings.HasPrefix(id, "session-")
}
