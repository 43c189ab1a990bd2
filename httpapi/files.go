// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/artelhq/artel/internal/peer"
)

// A FileQuery says how to serve a file.
type FileQuery struct {
	Preview bool `query:"preview" doc:"show PDF, SVG, HTML and XML in place, sandboxed, instead of offering them for download"`
	Width   int  `query:"width" minimum:"1" maximum:"1024" doc:"of a picture, or of the first page of a PDF: a small one, PNG or JPEG, at least so many pixels wide (in steps of 64, 128, 256, 512, 1024) where it has them"`
}

// A SignatureQuery opens a file without further rights.
type SignatureQuery struct {
	Sig string `query:"sig" maxLength:"512" doc:"a signature of this file, from POST …/sign; no other right is needed"`
}

// Resolve implements huma.Resolver: Sig is what [Guard] read.
func (in *SignatureQuery) Resolve(ctx huma.Context) []error {
	r, _ := humago.Unwrap(ctx)
	sig, err := signatureOf(r.URL.RawQuery)
	if err != nil {
		return []error{newProblem(http.StatusForbidden, app.CodeSignatureInvalid, err.Error())}
	}
	in.Sig = sig
	return nil
}

// A Signing asks for an address that opens a file.
type Signing struct {
	ExpiresIn int `json:"expires_in,omitempty" minimum:"1" maximum:"604800" default:"3600" doc:"seconds until it opens nothing any more"`
}

// A SignedFile is an address that opens one file without further rights.
type SignedFile struct {
	URL       string    `json:"url" doc:"a path of this server, or an address where files.public_base or content_host is configured"`
	Ref       string    `json:"ref" doc:"what it opens: these bytes, also after later changes of the artifact"`
	ExpiresAt time.Time `json:"expires_at"`
}

func fileOp(op huma.Operation) huma.Operation {
	op.Responses["200"] = &huma.Response{
		Description: "the bytes; Range, If-Range, If-None-Match and HEAD as RFC 9110 says, the ETag is the digest",
		Content:     map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
	}
	return op
}

// redirectable documents the redirect to a CDN.
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
				return f.serveOrRedirect(ctx, artel.Ref{}, in.FileQuery)(files.OpenSigned(ctx, in.Ref, in.Sig))
			}
			ref, err := artel.ParseRef(in.Ref)
			if err != nil {
				return nil, err
			}
			return f.serveOrRedirect(ctx, ref, in.FileQuery)(files.Open(ctx, in.Ref))
		})
	register(f, redirectable(fileOp(f.op(http.MethodGet, "/files/tool_results/{name}", "read-named-file", "Read bytes by their digest", http.StatusOK))),
		func(ctx context.Context, in *struct {
			Name string `path:"name" doc:"the 64 hexadecimal digits of a SHA-256, and an extension, which decides nothing"`
			FileQuery
			SignatureQuery
		},
		) (*huma.StreamResponse, error) {
			if in.Sig != "" {
				return f.serveOrRedirect(ctx, artel.Ref{}, in.FileQuery)(files.OpenNamedSigned(ctx, in.Name, in.Sig))
			}
			file, err := files.OpenNamed(ctx, in.Name)
			return f.serveOrRedirect(ctx, artel.BlobRef(file.Digest), in.FileQuery)(file, err)
		})
	register(f, f.op(http.MethodPost, "/files/{ref}/sign", "sign-file", "Make an address that opens a file without further rights, for a while", http.StatusOK),
		func(ctx context.Context, in *struct {
			RequestHeader
			Ref  string `path:"ref" doc:"a ref as one percent-encoded segment"`
			Body Signing
		},
		) (*body[SignedFile], error) {
			s, err := files.Sign(ctx, in.Ref, time.Duration(in.Body.ExpiresIn)*time.Second)
			if c := f.o.ContentHost; c != "" && strings.HasPrefix(s.URL, "/") {
				p := peer.Of(in.request)
				s.URL = c.origin(p) + p.Prefix + s.URL
			}
			return answer(SignedFile{URL: s.URL, Ref: s.Ref.String(), ExpiresAt: s.Expires}, err)
		})
}

// serveOrRedirect serves the file of a ref, or redirects to the CDN. Previews and
// thumbnails are never there.
func (f *server) serveOrRedirect(ctx context.Context, ref artel.Ref, q FileQuery) func(app.File, error) (*huma.StreamResponse, error) {
	return func(file app.File, err error) (*huma.StreamResponse, error) {
		if err == nil && !q.Preview && q.Width == 0 {
			if there := f.app.Files.Elsewhere(ctx, file); there != "" {
				defer file.Content.Close()
				return redirect(there), nil
			}
		}
		return f.serveContent(ctx, ref, q)(file, err)
	}
}

// serveContent serves the file of a ref or its thumbnail. Previews are on the content
// host, if there is one, to which their addresses are signed.
func (f *server) serveContent(ctx context.Context, ref artel.Ref, q FileQuery) func(app.File, error) (*huma.StreamResponse, error) {
	return func(file app.File, err error) (*huma.StreamResponse, error) {
		if err == nil && q.Preview && q.Width == 0 && f.o.ContentHost != "" && file.Signed == 0 {
			return f.preview(ctx, ref, file)
		}
		if err == nil && q.Width > 0 {
			file, err = f.app.Files.Thumbnail(ctx, file, q.Width)
		}
		if err != nil {
			return nil, err
		}
		return serveFile(file, q)
	}
}

// redirect sends the client to an address whose signature outlasts the cached
// redirect.
func redirect(to string) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		_, w := humago.Unwrap(hc)
		w.Header().Set("Location", to)
		w.Header().Set("Cache-Control", "private, max-age=600")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.WriteHeader(http.StatusFound)
	}}
}

// serveFile streams a file so that nothing in it can act on the page's origin:
// scripts are off, and whatever a browser would run or render is a download (see
// also [Inert]). Pages that are shown in place are [inert].
func serveFile(file app.File, q FileQuery) (*huma.StreamResponse, error) {
	var content io.ReadSeeker = file.Content
	etag, mediaType := string(file.Digest), contentType(file.Info)
	if q.Preview && isMarkup(file.Info.MediaType) {
		if q.Preview = file.Info.Size <= maxPreview; q.Preview {
			page, err := inert(file.Content, file.Info)
			if err != nil {
				return nil, errors.Join(err, file.Content.Close())
			}
			content, etag, mediaType = strings.NewReader(page), etag+"-preview", mime.FormatMediaType(file.Info.MediaType, map[string]string{"charset": "utf-8"})
		}
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer file.Content.Close()
		r, w := humago.Unwrap(hc)
		h := w.Header()
		h.Set("Content-Type", mediaType)
		h.Set("Content-Security-Policy", contentPolicy(file.Info))
		h.Set("Content-Disposition", disposition(file, q.Preview))
		h.Set("ETag", `"`+etag+`"`)
		h.Set("Referrer-Policy", "no-referrer")
		setCacheHeaders(h, file)
		http.ServeContent(w, r, "", file.Modified, content)
	}}, nil
}

// setCacheHeaders sets who may cache a file and which pages may use it. A
// signed address is public until it expires; other files are for this origin
// only.
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

// contentPolicy forbids a file everything that a document may do. For sound and
// film that are opened directly, a browser makes a document that loads them
// again and must have the same origin for that; scripts stay off.
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

// disposition lets a browser show harmless files: raster images, audio, video
// and plain text. Others are downloads; PDF, SVG, HTML and XML unless a preview
// is asked for.
func disposition(file app.File, preview bool) string {
	kind := "attachment"
	switch t := file.Info.MediaType; {
	case t == "application/pdf", isMarkup(t):
		if preview {
			kind = "inline"
		}
	case strings.HasPrefix(t, "message/"), strings.HasPrefix(t, "multipart/"): // pages in one file
	case slices.Contains([]artel.MediaKind{artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindText}, file.Info.Kind):
		kind = "inline"
	}
	return dispositionOf(kind, file.Filename)
}

// dispositionOf names a file as RFC 6266 says: in ASCII, and also in UTF-8 if
// that differs. Names have no folders, no invisible characters and no direction
// marks.
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
