// SPDX-License-Identifier: Apache-2.0

package app

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
)

// A block is media that a client library has written in a form of its own: bytes,
// or where they are.
type block struct {
	data                []byte
	name                model.Name // in the place of data
	kind                artel.MediaKind
	mediaType, filename string
}

// MendedMedia are media that a client has sent in a way that no service
// understands.
type MendedMedia struct {
	artel.Media            // with a blob's ref; without where a name stands for the bytes
	Name        model.Name // an address, or the id of a file; zero: there are bytes
}

// repaired reads a text that is the JSON of a list of content parts, as some
// client libraries send the result of a tool: the AI SDK (text, image-data,
// file-data, media, image-url, file-url), LangChain (text, and image, audio,
// video or file with the source type base64 or url, or with data and a media
// type, or an url), and image_url as in Chat Completions. It returns the text of
// the parts and their media. Any doubt makes it false: a part of another type or
// with other members, base64 that is not, bytes that are not what they are said
// to be, what is no address, a list without media.
func repaired(text string) (string, []block, bool) {
	if len(text) < mendsFrom || text[0] != '[' || text[len(text)-1] != ']' || !strings.Contains(text, `"type"`) {
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
		t, b, ok := p.repaired()
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

// A part is a content part of a client library.
type part map[string]json.RawMessage

// A partForm says which members a part must and may have beside its type.
type partForm struct{ must, may []string }

// formsOf returns the forms of the parts of a type; none: it is not known.
func formsOf(kind string) []partForm {
	switch kind {
	case "text":
		return []partForm{{must: []string{"text"}, may: []string{"providerOptions", "annotations", "id"}}}
	case "image-data", "file-data", "media": // AI SDK
		return []partForm{{must: []string{"data", "mediaType"}, may: []string{"filename", "providerOptions"}}}
	case "image-url", "file-url":
		return []partForm{{must: []string{"url"}, may: []string{"mediaType", "filename", "providerOptions"}}}
	case "image", "audio", "video", "file": // LangChain, of both its versions
		more := []string{"id", "filename", "metadata", "extras"}
		typed := append(more, "mime_type", "mimeType")
		return []partForm{
			{must: []string{"source_type", "data", "mime_type"}, may: more},
			{must: []string{"source_type", "url"}, may: typed},
			{must: []string{"source_type", "id"}, may: typed},
			{must: []string{"data", "mime_type"}, may: more},
			{must: []string{"data", "mimeType"}, may: more},
			{must: []string{"url"}, may: typed},
		}
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

// member returns the first string among members; "": there is none.
func (p part) member(keys ...string) string {
	for _, k := range keys {
		var s string
		if raw, ok := p[k]; ok && json.Unmarshal(raw, &s) == nil {
			return s
		}
	}
	return ""
}

func (p part) repaired() (string, *block, bool) {
	kind := p.member("type")
	if !slices.ContainsFunc(formsOf(kind), func(f partForm) bool { return f.fits(p) }) {
		return "", nil, false
	}
	if kind == "text" {
		return p.member("text"), nil, bytes.HasPrefix(p["text"], []byte(`"`))
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
	source := p.member("source_type")
	switch _, stated := p["source_type"]; {
	case source == "id":
		b.name = model.Name{By: model.ByFileID, Text: p.member("id")}
		return "", b, b.name.Text != ""
	case source == "base64" && address == "", !stated && address == "":
		data, err := base64.StdEncoding.DecodeString(p.member("data"))
		b.data = data
		return "", b, err == nil && len(data) > 0 && b.isWhatItSays(kind)
	case source == "url", !stated:
		return "", b, b.locate(kind, address)
	}
	return "", nil, false
}

// kindOfPart is what a part of a type holds.
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

// locate reads an address: of the web, or one that holds the bytes.
func (b *block) locate(kind, address string) bool {
	if head, rest, ok := strings.Cut(address, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		stated, _, err := mime.ParseMediaType(strings.TrimPrefix(head, "data:"))
		data, bad := base64.StdEncoding.DecodeString(rest)
		if err != nil || bad != nil || len(data) == 0 || b.mediaType != "" && b.mediaType != stated {
			return false
		}
		b.data, b.mediaType = data, stated
		return b.isWhatItSays(kind)
	}
	u, err := url.Parse(address)
	b.name = model.Name{By: model.ByURL, Text: address}
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && !strings.ContainsAny(address, " \t\r\n")
}

// isWhatItSays reports whether the bytes show the type that is declared for
// them, and that fits the type of the part.
func (b *block) isWhatItSays(kind string) bool {
	shown := media.Detect(b.data[:min(len(b.data), MaxHead)], media.Hint{})
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
	return shown.IsBinary() && media.Canonical(b.mediaType) == shown.MediaType
}

// MendPart reads a content part, which is JSON, in the form that LangChain had
// before its version 1 (with a source_type) and some of its packages send on as it
// is. Any doubt makes it false, as with a text.
func (p *Passage) MendPart(ctx context.Context, raw string) (out MendedMedia, ok bool, err error) {
	var parsed part
	if !p.repair || json.Unmarshal([]byte(raw), &parsed) != nil || parsed["source_type"] == nil {
		return out, false, nil
	}
	_, b, ok := parsed.repaired()
	if !ok || b == nil {
		return out, false, nil
	}
	out, err = p.take(ctx, *b)
	return out, err == nil, err
}

// take takes the bytes of a block in, if it has some.
func (p *Passage) take(ctx context.Context, b block) (MendedMedia, error) {
	if b.name.Text != "" {
		return MendedMedia{artel.Media{Kind: b.kind, MediaType: b.mediaType, Filename: b.filename}, b.name}, nil
	}
	d, _, err := p.Keep(ctx, bytes.NewReader(b.data))
	if err != nil {
		return MendedMedia{}, err
	}
	return MendedMedia{Media: p.Media(ctx, d, b.mediaType, b.filename)}, nil
}
