// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// A block is a piece of media in a client library's own format: bytes or a name.
type block struct {
	data                []byte
	name                model.Name // instead of data
	kind                artel.MediaKind
	mediaType, filename string
}

// FoundMedia are media of a request in a format that no service understands.
type FoundMedia struct {
	Media artel.Media // with the ref of a blob, unless Name is set
	Name  model.Name  // an address or the id of a file; zero: the bytes are in the request
}

// parseParts parses a text that is a JSON list of content parts, which is how
// some client libraries send the result of a tool: the AI SDK (text, image-data,
// file-data, media, image-url, file-url), LangChain (text, and image, audio,
// video or file with the source type base64 or url, with data and a media type,
// or with a url), and image_url as in Chat Completions. It returns the text of
// the parts and their media. Anything unexpected makes it return false: an
// unknown type or member, bad base64 or address, bytes of another type than the
// declared one, a list without media.
func parseParts(text string) (string, []block, bool) {
	if len(text) < minRewrite || text[0] != '[' || text[len(text)-1] != ']' || !strings.Contains(text, `"type"`) {
		return "", nil, false
	}
	d := json.NewDecoder(strings.NewReader(text))
	var parts []part
	if err := d.Decode(&parts); err != nil {
		return "", nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return "", nil, false
	}
	var texts []string
	var blocks []block
	for _, p := range parts {
		t, b, ok := p.parse()
		switch {
		case !ok || b != nil && b.name.By == model.ByFileID:
			return "", nil, false
		case b != nil:
			blocks = append(blocks, *b)
		default:
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n\n"), blocks, len(blocks) > 0
}

// A part is a content part in a client library's format.
type part map[string]json.RawMessage

// A partForm lists the required and optional members of a part beside its type.
type partForm struct{ must, may []string }

// formsOf returns the forms of a type of part; none if the type is unknown.
func formsOf(kind string) []partForm {
	switch kind {
	case "text":
		return []partForm{{must: []string{"text"}, may: []string{"providerOptions", "annotations", "id"}}}
	case "image-data", "file-data", "media": // AI SDK
		return []partForm{{must: []string{"data", "mediaType"}, may: []string{"filename", "providerOptions"}}}
	case "image-url", "file-url":
		return []partForm{{must: []string{"url"}, may: []string{"mediaType", "filename", "providerOptions"}}}
	case "image", "audio", "video", "file": // LangChain, versions 0 and 1
		more := []string{"id", "filename", "metadata", "extras", "index"}
		typed := append(more, "mime_type", "mimeType")
		return []partForm{
			{must: []string{"source_type", "data", "mime_type"}, may: more},
			{must: []string{"source_type", "url"}, may: typed},
			{must: []string{"source_type", "id"}, may: typed},
			{must: []string{"data", "mime_type"}, may: more},
			{must: []string{"data", "mimeType"}, may: more},
			{must: []string{"base64", "mime_type"}, may: more},
			{must: []string{"url"}, may: typed},
			{must: []string{"file_id"}, may: typed},
			{must: []string{"fileId"}, may: typed},
		}
	case "binary": // langchaingo
		return []partForm{{must: []string{"binary"}}}
	case "image_url": // Chat Completions
		return []partForm{{must: []string{"image_url"}}}
	}
	return nil
}

func (f partForm) fits(p part) bool {
	for _, k := range f.must {
		if _, ok := p[k]; !ok {
			return false
		}
	}
	for k := range p {
		if k != "type" && !slices.Contains(f.must, k) && !slices.Contains(f.may, k) {
			return false
		}
	}
	return true
}

// member returns the first member that is a string, or "".
func (p part) member(keys ...string) string {
	for _, k := range keys {
		var s string
		if raw, ok := p[k]; ok && json.Unmarshal(raw, &s) == nil {
			return s
		}
	}
	return ""
}

// parse returns the text of a text part, or the media of any other.
func (p part) parse() (string, *block, bool) {
	kind := p.member("type")
	if !slices.ContainsFunc(formsOf(kind), func(f partForm) bool { return f.fits(p) }) {
		return "", nil, false
	}
	if kind == "text" {
		return p.member("text"), nil, bytes.HasPrefix(p["text"], []byte(`"`))
	}
	if kind == "binary" {
		var inner part
		if json.Unmarshal(p["binary"], &inner) != nil || !(partForm{must: []string{"data", "mime_type"}}).fits(inner) {
			return "", nil, false
		}
		p = inner
	}
	b := &block{filename: p.member("filename"), kind: kindOfPart(kind)}
	declared := p.member("mediaType", "mime_type", "mimeType")
	if declared != "" {
		var err error
		if b.mediaType, _, err = mime.ParseMediaType(declared); err != nil {
			return "", nil, false
		}
	}
	address := p.member("url")
	if kind == "image_url" {
		var inner struct {
			URL    string `json:"url"`
			Detail string `json:"detail"`
		}
		d := json.NewDecoder(bytes.NewReader(p["image_url"]))
		d.DisallowUnknownFields()
		if d.Decode(&inner) != nil && json.Unmarshal(p["image_url"], &inner.URL) != nil {
			return "", nil, false
		}
		address = inner.URL
	}
	source, id := p.member("source_type"), p.member("file_id", "fileId")
	switch _, stated := p["source_type"]; {
	case source == "id":
		b.name = model.Name{By: model.ByFileID, Text: p.member("id")}
		return "", b, b.name.Text != ""
	case !stated && (p["file_id"] != nil || p["fileId"] != nil):
		b.name = model.Name{By: model.ByFileID, Text: id}
		return "", b, id != ""
	case source == "base64" && address == "", !stated && address == "":
		data, err := base64.StdEncoding.DecodeString(p.member("data", "base64"))
		b.data = data
		return "", b, err == nil && len(data) > 0 && b.hasDeclaredType(kind)
	case source == "url", !stated:
		return "", b, b.locate(kind, address)
	}
	return "", nil, false
}

// kindOfPart returns the kind of media in a type of part.
func kindOfPart(kind string) artel.MediaKind {
	switch kind {
	case "image-data", "image-url", "image", "image_url":
		return artel.KindImage
	case "audio":
		return artel.KindAudio
	case "video":
		return artel.KindVideo
	}
	return artel.KindDocument
}

// locate reads a web address or a data URL.
func (b *block) locate(kind, address string) bool {
	if head, rest, ok := strings.Cut(address, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		stated, _, err := mime.ParseMediaType(strings.TrimPrefix(head, "data:"))
		data, bad := base64.StdEncoding.DecodeString(rest)
		if err != nil || bad != nil || len(data) == 0 || b.mediaType != "" && b.mediaType != stated {
			return false
		}
		b.data, b.mediaType = data, stated
		return b.hasDeclaredType(kind)
	}
	u, err := url.Parse(address)
	b.name = model.Name{By: model.ByURL, Text: address}
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && !strings.ContainsAny(address, " \t\r\n")
}

// hasDeclaredType reports whether the detected type of the bytes is the declared
// one, and fits the type of the part.
func (b *block) hasDeclaredType(kind string) bool {
	detected := media.Detect(b.data[:min(len(b.data), run.MaxHead)], media.Hint{})
	major, _, _ := strings.Cut(b.mediaType, "/")
	switch kind {
	case "image-data", "image", "image_url":
		if major != "image" {
			return false
		}
	case "audio", "video":
		if major != kind {
			return false
		}
	}
	return detected.IsBinary() && media.Canonical(b.mediaType) == detected.MediaType
}

// RewritePart parses a JSON content part in the format of LangChain (before its version
// 1 with a source_type, since then without) or of langchaingo, which some of their
// packages send unchanged. Anything unexpected makes it return false, as in
// [Texts.Result].
func (r *Request) RewritePart(ctx context.Context, raw string) (out FoundMedia, ok bool, err error) {
	var parsed part
	if !r.Texts.rewriting.repairs() || json.Unmarshal([]byte(raw), &parsed) != nil {
		return out, false, nil
	}
	switch parsed.member("type") {
	case "image", "audio", "video", "file", "binary":
	default:
		return out, false, nil // the part of a dialect
	}
	_, b, ok := parsed.parse()
	if !ok || b == nil {
		return out, false, nil
	}
	out, err = r.storeBlock(ctx, *b)
	return out, err == nil, err
}

// storeBlock stores the bytes of a block, if it has some.
func (r *Request) storeBlock(ctx context.Context, b block) (FoundMedia, error) {
	if b.name.Text != "" {
		return FoundMedia{artel.Media{Kind: b.kind, MediaType: b.mediaType, Filename: b.filename}, b.name}, nil
	}
	d, _, err := r.Store(ctx, bytes.NewReader(b.data))
	if err != nil {
		return FoundMedia{}, err
	}
	m, _ := r.Media(ctx, d, b.mediaType, b.filename)
	return FoundMedia{Media: m}, nil
}
