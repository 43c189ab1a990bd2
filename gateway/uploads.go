// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// withUploads returns text with the names of uploaded media instead of their
// payloads.
func (x *exchange) withUploads(text string, r *model.Request) string {
	if len(r.Names) == 0 {
		return text
	}
	types := map[artel.Digest]artel.Media{}
	for _, m := range mediaOf(r) {
		types[m.Ref.Digest] = m
	}
	var edits []edit
	for _, m := range x.scan(text).media {
		found, ok := x.extraction.Find(m.value)
		name := r.Names[found.Digest]
		if !ok || name.Text == "" || m.result >= 0 && x.d.name() == model.Gemini {
			continue // results of Gemini's functions hold bytes only
		}
		if part, ok := x.d.nameMedia(m.part.of(text), types[found.Digest], name); ok {
			edits = append(edits, edit{m.part, part})
		}
	}
	return apply(text, edits)
}

// mediaOf returns the media of a request, in order.
func mediaOf(r *model.Request) []artel.Media {
	var out []artel.Media
	for _, message := range r.Messages {
		for _, part := range message.Parts {
			switch p := part.(type) {
			case artel.Media:
				out = append(out, p)
			case artel.ToolResult:
				for _, part := range p.Parts {
					if m, ok := part.(artel.Media); ok {
						out = append(out, m)
					}
				}
			}
		}
	}
	return out
}

// noteNames returns a function that records which media of r are sent by name.
func (x *exchange) noteNames(r *model.Request) func(map[artel.Digest]model.Name) {
	return func(names map[artel.Digest]model.Name) {
		var all []Change
		seen := map[artel.Digest]bool{}
		for _, m := range mediaOf(r) {
			name, ok := names[m.Ref.Digest]
			if !ok || seen[m.Ref.Digest] {
				continue
			}
			seen[m.Ref.Digest] = true
			did := DidName
			switch name.By {
			case model.ByURL:
				did = DidAddress
			case model.ByMediaID:
				did = DidRemind
			}
			all = append(all, Change{Did: did, Ref: m.Ref, MediaType: m.MediaType, Service: r.Service.ID})
		}
		x.namedMu.Lock()
		x.named = all
		x.namedMu.Unlock()
	}
}

func (x *exchange) clearNamed() {
	x.namedMu.Lock()
	x.named = nil
	x.namedMu.Unlock()
}

// nameMedia implements [partWriter]. Chat Completions takes file ids for PDF
// only, and addresses for pictures only.
func (chat) nameMedia(part string, _ artel.Media, name model.Name) (string, bool) {
	done := false
	out := editMembers(part, func(key string, value gjson.Result) (string, bool) {
		switch {
		case key == "file" && name.By == model.ByFileID:
			done = true
			return `"file":{"file_id":` + quote(name.Text) + `}`, true
		case key == "image_url" && name.By == model.ByURL:
			done = true
			if !value.IsObject() {
				return `"image_url":` + quote(name.Text), true
			}
			return `"image_url":` + editMembers(value.Raw, func(key string, _ gjson.Result) (string, bool) {
				return `"url":` + quote(name.Text), key == "url"
			}), true
		}
		return "", false
	})
	return out, done
}

// nameMedia implements [partWriter].
func (responsesAPI) nameMedia(part string, _ artel.Media, name model.Name) (string, bool) {
	done := false
	out := editMembers(part, func(key string, _ gjson.Result) (string, bool) {
		switch key {
		case "image_url", "file_data":
			done = true
			if name.By == model.ByURL {
				key = strings.Replace(key, "file_data", "file_url", 1)
				return quote(key) + ":" + quote(name.Text), true
			}
			return `"file_id":` + quote(name.Text), true
		case "filename":
			return "", true // the service knows it, or takes none
		}
		return "", false
	})
	return out, done
}

// nameMedia implements [partWriter].
func (messages) nameMedia(part string, _ artel.Media, name model.Name) (string, bool) {
	done := false
	out := editMembers(part, func(key string, _ gjson.Result) (string, bool) {
		if key != "source" {
			return "", false
		}
		done = true
		if name.By == model.ByURL {
			return `"source":{"type":"url","url":` + quote(name.Text) + `}`, true
		}
		return `"source":{"type":"file","file_id":` + quote(name.Text) + `}`, true
	})
	return out, done
}

// nameMedia implements [partWriter].
func (generateContent) nameMedia(part string, m artel.Media, name model.Name) (string, bool) {
	done := false
	out := editMembers(part, func(key string, _ gjson.Result) (string, bool) {
		if key != "inlineData" && key != "inline_data" {
			return "", false
		}
		done = true
		return `"fileData":{"mimeType":` + quote(m.MediaType) + `,"fileUri":` + quote(name.Text) + `}`, true
	})
	return out, done
}
