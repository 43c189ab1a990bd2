// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// serveFiles serves the paths under /v1/files, in the format of OpenAI or
// Anthropic. rest is the path below it.
func (s *server) serveFiles(w http.ResponseWriter, r *http.Request, d provider.Editor, rest string) {
	x := s.newExchange(w, r, d)
	x.finish(x.dispatchFiles(rest))
}

func (x *exchange) dispatchFiles(rest string) error {
	leave, err := x.admit()
	if err != nil {
		return err
	}
	defer leave()
	id, verb, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	reads := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	switch {
	case id == "" && x.r.Method == http.MethodPost:
		return x.upload()
	case id == "" && reads:
		return x.listFiles()
	case id != "" && verb == "" && reads:
		return x.describeFile(id)
	case id != "" && verb == "" && x.r.Method == http.MethodDelete:
		if err := x.gw.backend.Uploads.Delete(x.r.Context(), id, x.key); err != nil {
			return fileNotFound(id, err)
		}
		if x.d.Dialect() == model.Anthropic {
			return x.writeJSON(map[string]any{"id": id, "type": "file_deleted"})
		}
		return x.writeJSON(map[string]any{"id": id, "object": "file", "deleted": true})
	case id != "" && verb == "content" && reads:
		return x.fileContent(id)
	case verb != "" && verb != "content":
		return &provider.Fault{Status: http.StatusNotFound, Message: "Invalid URL (" + x.r.Method + " " + artel.Shorten(x.r.URL.Path, 200) + ")"}
	}
	return notAllowed(x.r)
}

func fileNotFound(id string, err error) error {
	if artel.KindOf(err) != artel.NotFound {
		return err
	}
	return &provider.Fault{Status: http.StatusNotFound, Code: "file_not_found", Param: "id", Message: "No such File object: " + artel.Shorten(id, 100)}
}

// The limits of expires_after are those of the OpenAI API.
const (
	minExpiry     = time.Hour
	maxExpiry     = 30 * 24 * time.Hour
	maxFieldBytes = 1000 // bytes

	formBytes = 64 << 10 // of a form at most, beside its file
)

// upload stores the file of a form, whose fields may be in any order.
func (x *exchange) upload() error {
	ctx := x.r.Context()
	decoded, err := x.decodeBody()
	if err != nil {
		return err
	}
	defer decoded()
	size := x.r.ContentLength
	if x.r.Header.Get("Content-Encoding") != "" {
		size = -1 // of the compressed body
	}
	ctx, release, err := x.gw.backend.Uploads.Reserve(ctx, size, min(max(size, 0), formBytes))
	if err != nil {
		return err
	}
	defer release()
	var file *backend.Upload
	fields := map[string]string{}
	for part, err := range form.Parts(x.r.Body, x.r.Header.Get("Content-Type")) {
		if err != nil {
			return err
		}
		if part.Name == "file" {
			if file != nil {
				return provider.InvalidRequest("A request uploads one file, and this one has two.")
			}
			f, err := x.gw.backend.Uploads.Stage(ctx, part, part.Filename, part.ContentType)
			if err != nil {
				return err
			}
			file = &f
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, maxFieldBytes+1))
		if err != nil {
			return err
		}
		if len(value) > maxFieldBytes {
			return provider.InvalidRequest("The field %s has more than %d bytes.", artel.Shorten(part.Name, 80), maxFieldBytes)
		}
		fields[part.Name] = string(value)
	}
	switch {
	case file == nil:
		return &provider.Fault{Status: http.StatusBadRequest, Param: "file", Message: "'file' is a required property"}
	case file.Filename == "":
		return &provider.Fault{Status: http.StatusBadRequest, Param: "file", Message: "The file has no name."}
	case fields["purpose"] == "" && x.d.Dialect() != model.Anthropic:
		return &provider.Fault{Status: http.StatusBadRequest, Param: "purpose", Message: "'purpose' is a required property"}
	}
	life, err := expiryOf(fields)
	if err != nil {
		return err
	}
	file.Purpose = fields["purpose"]
	created, err := x.gw.backend.Uploads.Create(ctx, *file, x.key, life)
	if err != nil {
		return err
	}
	x.entry.Changes = append(x.entry.Changes, Change{Did: DidKeep, Ref: artel.BlobRef(created.Digest), MediaType: created.Info.MediaType})
	return x.writeJSON(x.fileObject(created))
}

// expiryOf reads expires_after, whose fields are named as in a query.
func expiryOf(fields map[string]string) (time.Duration, error) {
	seconds, there := fields["expires_after[seconds]"]
	if !there {
		return 0, nil
	}
	n, err := strconv.ParseInt(seconds, 10, 32)
	life := time.Duration(n) * time.Second
	if err != nil || fields["expires_after[anchor]"] != "created_at" || life < minExpiry || life > maxExpiry {
		return 0, &provider.Fault{
			Status: http.StatusBadRequest, Param: "expires_after",
			Message: "'expires_after' wants the anchor created_at and between 3600 and 2592000 seconds.",
		}
	}
	return life, nil
}

// fileObject describes a file in the format of the client's dialect.
func (x *exchange) fileObject(f backend.Upload) any {
	if x.d.Dialect() == model.Anthropic {
		return map[string]any{
			"id": f.ID, "type": "file", "filename": f.Filename, "mime_type": f.Info.MediaType, "size_bytes": f.Info.Size,
			"created_at": f.CreatedAt.Format(time.RFC3339), "downloadable": true,
		}
	}
	out := map[string]any{
		"id": f.ID, "object": "file", "bytes": f.Info.Size, "created_at": f.CreatedAt.Unix(), "filename": f.Filename,
		"purpose": f.Purpose, "status": "processed",
	}
	if !f.ExpiresAt.IsZero() {
		out["expires_at"] = f.ExpiresAt.Unix()
	}
	return out
}

func (x *exchange) listFiles() error {
	q := x.r.URL.Query()
	anthropic := x.d.Dialect() == model.Anthropic
	after, oldest, reversed := q.Get("after"), q.Get("order") == "asc", false
	limit, most := 10_000, 10_000
	if anthropic {
		after, oldest, limit, most = q.Get("after_id"), false, 20, 1000
		if before := q.Get("before_id"); before != "" {
			after, oldest, reversed = before, true, true
		}
	}
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > most {
			return &provider.Fault{Status: http.StatusBadRequest, Param: "limit", Message: "'limit' wants a number from 1 to " + strconv.Itoa(most) + "."}
		}
		limit = n
	}
	all, more, err := x.gw.backend.Uploads.List(x.r.Context(), x.key, after, oldest, limit)
	if err != nil {
		return err
	}
	if reversed {
		slices.Reverse(all)
	}
	entries := make([]any, 0, len(all))
	for _, f := range all {
		if p := q.Get("purpose"); p == "" || p == f.Purpose || anthropic {
			entries = append(entries, x.fileObject(f))
		}
	}
	out := map[string]any{"data": entries, "has_more": more, "first_id": nil, "last_id": nil}
	if len(all) > 0 {
		out["first_id"], out["last_id"] = all[0].ID, all[len(all)-1].ID
	}
	if !anthropic {
		out["object"] = "list"
	}
	return x.writeJSON(out)
}

func (x *exchange) describeFile(id string) error {
	f, err := x.gw.backend.Uploads.Find(x.r.Context(), id, x.key)
	if err != nil {
		return fileNotFound(id, err)
	}
	return x.writeJSON(x.fileObject(f))
}

// fileContent sends the bytes of a file, or a range of them. Its headers keep
// browsers from running them.
func (x *exchange) fileContent(id string) error {
	f, err := x.gw.backend.Uploads.Find(x.r.Context(), id, x.key)
	if err != nil {
		return fileNotFound(id, err)
	}
	r, err := x.gw.backend.Uploads.Open(x.r.Context(), f)
	if err != nil {
		return err
	}
	defer r.Close()
	h := x.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	if f.Info.IsBinary() && f.Info.MediaType != "" {
		h.Set("Content-Type", f.Info.MediaType)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Filename}))
	h.Set("ETag", `"`+string(f.Digest)+`"`)
	http.ServeContent(x.w, x.r, "", f.CreatedAt, r)
	x.entry.Status = x.w.status
	return writeError(x.w.failure())
}
