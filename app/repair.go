// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"slices"
	"strings"

	"github.com/artelhq/artel/media"
)

// A block is media that a client has written into a string.
type block struct {
	data                []byte
	mediaType, filename string
}

// repaired reads a text that is the JSON of a list of content parts, as some
// client libraries send the result of a tool: the AI SDK (text, image-data,
// file-data, media) and LangChain (text, and image, audio, video or file with
// the source type base64, or with data and a media type). It returns the text of
// the parts and their media. Any doubt makes it false: a part of another type or
// with other members, base64 that is not, bytes that are not what they are said
// to be, a list without media.
func repaired(text string) (string, []block, bool) {
	if len(text) < mendsFrom || text[0] != '[' || text[len(text)-1] != ']' || !strings.Contains(text, `"type"`) {
		return "", nil, false
	}
	d := json.NewDecoder(strings.NewReader(text))
	var parts []map[string]json.RawMessage
	if err := d.Decode(&parts); err != nil {
		return "", nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return "", nil, false
	}
	var texts []string
	var blocks []block
	for _, p := range parts {
		t, b, ok := repairedPart(p)
		switch {
		case !ok:
			return "", nil, false
		case b != nil:
			blocks = append(blocks, *b)
		default:
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n\n"), blocks, len(blocks) > 0
}

// A partForm says which members a part must and may have beside its type.
type partForm struct{ must, may []string }

// formsOf returns the forms of the parts of a type; none: it is not known.
func formsOf(kind string) []partForm {
	switch kind {
	case "text":
		return []partForm{{must: []string{"text"}, may: []string{"providerOptions", "annotations", "id"}}}
	case "image-data", "file-data", "media": // AI SDK
		return []partForm{{must: []string{"data", "mediaType"}, may: []string{"filename", "providerOptions"}}}
	case "image", "audio", "video", "file": // LangChain, of both its versions
		more := []string{"id", "filename", "metadata", "extras"}
		return []partForm{
			{must: []string{"source_type", "data", "mime_type"}, may: more},
			{must: []string{"data", "mime_type"}, may: more},
			{must: []string{"data", "mimeType"}, may: more},
		}
	}
	return nil
}

func (f partForm) fits(p map[string]json.RawMessage) bool {
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

func repairedPart(p map[string]json.RawMessage) (string, *block, bool) {
	member := func(keys ...string) string {
		for _, k := range keys {
			var s string
			if raw, ok := p[k]; ok && json.Unmarshal(raw, &s) == nil {
				return s
			}
		}
		return ""
	}
	kind := member("type")
	if !slices.ContainsFunc(formsOf(kind), func(f partForm) bool { return f.fits(p) }) {
		return "", nil, false
	}
	if kind == "text" {
		return member("text"), nil, bytes.HasPrefix(p["text"], []byte(`"`))
	}
	if source, ok := p["source_type"]; ok && string(source) != `"base64"` {
		return "", nil, false
	}
	declared, _, err := mime.ParseMediaType(member("mediaType", "mime_type", "mimeType"))
	if err != nil {
		return "", nil, false
	}
	data, err := base64.StdEncoding.DecodeString(member("data"))
	if err != nil || len(data) == 0 {
		return "", nil, false
	}
	b := &block{data, declared, member("filename")}
	return "", b, b.isWhatItSays(kind)
}

// isWhatItSays reports whether the bytes show the type that is declared for
// them, and that fits the type of the part.
func (b *block) isWhatItSays(kind string) bool {
	shown := media.Detect(b.data[:min(len(b.data), MaxHead)], media.Hint{})
	major, _, _ := strings.Cut(b.mediaType, "/")
	switch kind {
	case "image-data", "image":
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
