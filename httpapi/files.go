// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
)

// A FileQuery says how a file is to be shown.
type FileQuery struct {
	Preview bool   `query:"preview" doc:"show PDF, SVG, HTML and XML in place, sandboxed, instead of offering them for download"`
	Width   int    `query:"width" minimum:"1" maximum:"1024" doc:"of a picture: a small one, PNG or JPEG, at least so many pixels wide (in steps of 64, 128, 256, 512, 1024) where it has them"`
	Dest    string `header:"Sec-Fetch-Dest" hidden:"true"`
}

// A SignatureQuery opens a file whoever asks.
type SignatureQuery struct {
	Sig string `query:"sig" maxLength:"512" doc:"a signature of this file, from POST …/sign; it alone decides, whoever asks"`
}

// A Signing asks for an address that opens a file.
type Signing struct {
	ExpiresIn int `json:"expires_in,omitempty" minimum:"1" maximum:"604800" default:"3600" doc:"seconds until it opens nothing any more"`
}

// A SignedFile is an address that opens one file for whoever has it.
type SignedFile struct {
	URL       string    `json:"url" doc:"a path of this server, or an address where files.public_base is configured"`
	Ref       string    `json:"ref" doc:"what it opens: these bytes, also when the artifact goes on"`
	ExpiresAt time.Time `json:"expires_at"`
}

func fileOp(op huma.Operation) huma.Operation {
	op.Responses["200"] = &huma.Response{
		Description: "the bytes; Range, If-Range, If-None-Match and HEAD as RFC 9110 says, the ETag is the digest",
		Content:     map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
	}
	return op
}

// found describes where else a file may be.
func redirectable(op huma.Operation) huma.Operation {
	op.Responses["302"] = &huma.Response{Description: "the same bytes, at files.public_base, where that is configured and the ref never means other bytes"}
	return op
}

func (f *server) files() {
	files := f.app.Files
	register(f, redirectable(fileOp(f.op(http.MethodGet, "/files/{ref}", "read-file", "Read the bytes that a ref points to", http.StatusOK))),
		func(ctx context.Context, in *struct {
			Ref string `path:"ref" doc:"a ref as one percent-encoded segment"`
			FileQuery
			SignatureQuery
		},
		) (*huma.StreamResponse, error) {
			if in.Sig != "" {
				return f.serveOrRedirect(ctx, in.FileQuery)(files.OpenSigned(ctx, in.Ref, in.Sig))
			}
			return f.serveOrRedirect(ctx, in.FileQuery)(files.Open(ctx, in.Ref))
		})
	register(f, redirectable(fileOp(f.op(http.MethodGet, "/files/tool_results/{name}", "read-named-file", "Read bytes by their digest", http.StatusOK))),
		func(ctx context.Context, in *struct {
			Name string `path:"name" doc:"the 64 hexadecimal digits of a SHA-256, and an extension, which decides nothing"`
			FileQuery
			SignatureQuery
		},
		) (*huma.StreamResponse, error) {
			if in.Sig != "" {
				return f.serveOrRedirect(ctx, in.FileQuery)(files.OpenNamedSigned(ctx, in.Name, in.Sig))
			}
			return f.serveOrRedirect(ctx, in.FileQuery)(files.OpenNamed(ctx, in.Name))
		})
	register(f, f.op(http.MethodPost, "/files/{ref}/sign", "sign-file", "Make an address that opens a file for whoever has it, for a while", http.StatusOK),
		func(ctx context.Context, in *struct {
			Ref  string `path:"ref" doc:"a ref as one percent-encoded segment"`
			Body Signing
		},
		) (*body[SignedFile], error) {
			s, err := files.Sign(ctx, in.Ref, time.Duration(in.Body.ExpiresIn)*time.Second)
			return answer(SignedFile{URL: s.URL, Ref: s.Ref.String(), ExpiresAt: s.Expires}, err)
		})
}

// file serves what was opened, or says where it is. What is shown in place, and
// what is made here, comes from here.
func (f *server) serveOrRedirect(ctx context.Context, q FileQuery) func(app.File, error) (*huma.StreamResponse, error) {
	return func(file app.File, err error) (*huma.StreamResponse, error) {
		if err == nil && !q.Preview && q.Width == 0 {
			if there := f.app.Files.Elsewhere(ctx, file); there != "" {
				defer file.Content.Close()
				return redirect(there), nil
			}
		}
		return f.serveContent(ctx, q)(file, err)
	}
}

// here serves what was opened, or a small picture of it.
func (f *server) serveContent(ctx context.Context, q FileQuery) func(app.File, error) (*huma.StreamResponse, error) {
	return func(file app.File, err error) (*huma.StreamResponse, error) {
		if err == nil && q.Width > 0 {
			file, err = f.app.Files.Thumbnail(ctx, file, q.Width)
		}
		if err != nil {
			return nil, err
		}
		return serveFile(file, q)
	}
}

// redirect sends to an address whose signature lasts longer than the answer
// may be remembered.
func redirect(to string) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		_, w := humago.Unwrap(hc)
		w.Header().Set("Location", to)
		w.Header().Set("Cache-Control", "private, max-age=600")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.WriteHeader(http.StatusFound)
	}}
}

// actors are the destinations of a fetch for which a browser would run what it
// gets, or let it rule what others look like. Files are for none of them.
func activeDestinations() []string {
	return []string{"script", "style", "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet", "xslt", "manifest"}
}

// serveFile streams a file so that nothing in it can act on the page's
// origin: the type is not guessed, scripts are off, and what a browser would
// run or render is offered for download.
func serveFile(file app.File, q FileQuery) (*huma.StreamResponse, error) {
	if slices.Contains(activeDestinations(), q.Dest) {
		_ = file.Content.Close()
		return nil, artel.Errorf(artel.Denied, "httpapi", "Sec-Fetch-Dest", "files are not served as %s: what people and models made never runs on this page", q.Dest)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer file.Content.Close()
		r, w := humago.Unwrap(hc)
		h := w.Header()
		h.Set("Content-Type", contentType(file.Info))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", contentPolicy(file.Info))
		h.Set("Content-Disposition", disposition(file, q.Preview))
		h.Set("ETag", `"`+string(file.Digest)+`"`)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Vary", "Sec-Fetch-Dest") // a cache gives a script nothing that was fetched as a picture
		setCacheHeaders(h, file)
		http.ServeContent(w, r, "", file.Modified, file.Content)
	}}, nil
}

// remember says who may keep a file for how long, and which pages may use it.
// A signature lets everybody who has it, so also a cache that knows the whole
// address, until it ends; anything else is for this origin alone.
func setCacheHeaders(h http.Header, file app.File) {
	switch {
	case file.Signed > 0:
		h.Set("Cache-Control", fmt.Sprintf("public, max-age=%d, immutable", int(file.Signed.Seconds())))
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "Accept-Ranges, Content-Disposition, Content-Range, ETag")
		return
	case file.Immutable:
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	default:
		h.Set("Cache-Control", "private, no-cache")
	}
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// policy takes from a file all that a document may do. A browser shows sound
// and film that are opened by themselves in a document that loads them once
// more, which has to be of the same origin for that; script stays off.
func contentPolicy(m artel.MediaInfo) string {
	if m.Kind == artel.KindAudio || m.Kind == artel.KindVideo {
		return "sandbox allow-same-origin; default-src 'none'; media-src 'self'; style-src 'unsafe-inline'"
	}
	return "sandbox; default-src 'none'; style-src 'unsafe-inline'"
}

func contentType(m artel.MediaInfo) string {
	charset := map[string]string{}
	if m.Kind == artel.KindText && m.Charset != "" {
		charset["charset"] = m.Charset
	}
	return cmp.Or(mime.FormatMediaType(m.MediaType, charset), "application/octet-stream")
}

// disposition lets a browser show what is harmless: raster images, audio,
// video and plain text. The rest is for download; PDF, SVG, HTML and XML unless
// a preview is asked for.
func disposition(file app.File, preview bool) string {
	kind := "attachment"
	switch t := file.Info.MediaType; {
	case t == "application/pdf", strings.Contains(t, "html"), strings.Contains(t, "xml"), strings.Contains(t, "xsl"):
		if preview {
			kind = "inline"
		}
	case strings.HasPrefix(t, "message/"), strings.HasPrefix(t, "multipart/"): // pages in one file
	case slices.Contains([]artel.MediaKind{artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindText}, file.Info.Kind):
		kind = "inline"
	}
	return dispositionOf(kind, file.Filename)
}

// dispositionOf names a file as RFC 6266 says: in UTF-8 for who reads it so, and
// before that in ASCII for everybody else, where the two differ. Names have no
// folders, nothing that nobody sees, and nothing that turns them around.
func dispositionOf(kind, name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' {
			return '_'
		}
		return r
	}, artel.Visible(strings.ToValidUTF8(name, "_")))
	ascii := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || r == '"' || r == '%' { // some browsers decode percent signs, and stop at quotes
			return '_'
		}
		return r
	}, name)
	params := map[string]string{}
	if name != "" {
		params["filename"] = ascii
	}
	if ascii != name {
		params["filename*"] = "UTF-8''" + percent(name)
	}
	return mime.FormatMediaType(kind, params)
}

// percent encodes a name as RFC 8187 says.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
