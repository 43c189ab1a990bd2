// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// The metadata of a result describe it, for pages and programs:
//
//	content_type   image audio video document archive file url json table list diff markdown code text error
//	media_type, file_path, url, size, digest, saved_to_file, ref   of the file that the result is, or is a preview of
//	media          the same for each of several media in it
//
// Metadata never hold encodings or data.

// withContentType returns the metadata of r with a content_type.
func withContentType(r Result) map[string]any {
	if _, ok := r.Metadata["content_type"]; ok {
		return r.Metadata
	}
	m := maps.Clone(r.Metadata)
	if m == nil {
		m = map[string]any{}
	}
	kind, mediaType := kindOf(r.Content)
	if r.IsError {
		kind, mediaType = "error", ""
	}
	m["content_type"] = kind
	if _, ok := m["media_type"]; !ok && mediaType != "" {
		m["media_type"] = mediaType
	}
	return m
}

// withMedia returns the metadata of r with the media found in it. A result that
// consists of just one of them has its type.
func withMedia(r Result, kept []artel.Artifact) map[string]any {
	m := maps.Clone(r.Metadata)
	if m == nil {
		m = map[string]any{}
	}
	if len(kept) == 1 && onlyRef(r.Content, kept[0].MediaPart().Ref.String()) && !r.IsError {
		maps.Copy(m, fileFacts(kept[0]))
		return m
	}
	list := make([]map[string]any, len(kept))
	for i, a := range kept {
		list[i] = fileFacts(a)
	}
	m["media"] = list
	return m
}

// fileFacts returns the metadata of an artifact's file.
func fileFacts(a artel.Artifact) map[string]any {
	name := FileName(a.Digest, a.MediaType)
	return map[string]any{
		"content_type": ContentType(a.MediaInfo), "media_type": a.MediaType, "file_path": "tool_results/" + name, "url": ToolResultsURL + name,
		"size": a.Size, "digest": a.Digest, "saved_to_file": true, "ref": a.MediaPart().Ref.String(), "filename": a.MediaPart().Filename,
	}
}

// onlyRef reports whether a text is just a ref, or JSON with no other words
// than the ref and the fields of a media block.
func onlyRef(text, ref string) bool {
	text = strings.TrimSpace(text)
	if text == ref {
		return true
	}
	if text == "" || text[0] != '{' && text[0] != '[' && text[0] != '"' || !strings.Contains(text, ref) {
		return false
	}
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	return onlyBlocks(v, ref, "")
}

func onlyBlocks(v any, ref, key string) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if !onlyBlocks(x, ref, k) {
				return false
			}
		}
		return true
	case []any:
		for _, x := range v {
			if !onlyBlocks(x, ref, key) {
				return false
			}
		}
		return true
	case string:
		if v == ref {
			return true
		}
		if len(v) > 1 && (v[0] == '{' || v[0] == '[') {
			return onlyRef(v, ref)
		}
		switch key {
		case "text", "content", "caption", "title", "result", "output", "message", "description", "alt":
			return v == ""
		}
		return len(v) <= 200
	}
	return true
}

var (
	looksMarkdown = regexp.MustCompile(`(?m)^(#{1,6} \S|\x60{3}|\|[ :|-]*-{3}[ :|-]*\|?\s*$|[-*] \[[ xX]\] )`)
	looksDiff     = regexp.MustCompile(`(?m)^(diff --git |--- \S.*\n\+\+\+ \S|@@ -\d+(,\d+)? \+\d+(,\d+)? @@)`)
	looksList     = regexp.MustCompile(`(?m)\A\s*((?:[-*+•]|\d+[.)]) .*\n)+(?:[-*+•]|\d+[.)]) .*\s*\z`)
	looksCode     = regexp.MustCompile(`(?m)(^\s*(func |def |class |import |package |#include|public |private |const |let |var |fn |use |SELECT |CREATE )|[;{}]\s*$|^#!/)`)
)

// maxInspected is how many bytes of a text are inspected to find its type.
const maxInspected = 64 << 10

// kindOf guesses the type of a text from its syntax.
func kindOf(text string) (contentType, mediaType string) {
	trimmed := strings.TrimSpace(text)
	head := trimmed[:min(len(trimmed), maxInspected)]
	switch {
	case trimmed == "":
		return "text", ""
	case !strings.ContainsAny(head, " \t\n") && len(trimmed) < 4096:
		if kind, mediaType := kindOfAddress(trimmed); kind != "" {
			return kind, mediaType
		}
	}
	if c := trimmed[0]; (c == '{' || c == '[') && json.Valid([]byte(trimmed)) {
		if c == '[' {
			return "list", "application/json"
		}
		return "json", "application/json"
	}
	switch {
	case looksDiff.MatchString(head):
		return "diff", "text/x-diff"
	case looksMarkdown.MatchString(head):
		return "markdown", "text/markdown"
	case looksList.MatchString(head):
		return "list", ""
	}
	mediaType = media.Detect([]byte(head), media.Hint{}).MediaType
	switch kind := contentTypeOfText(mediaType); {
	case kind != "text":
		return kind, mediaType
	case len(looksCode.FindAllStringIndex(head, -1))*3 > strings.Count(head, "\n")+1 && strings.Count(head, "\n") > 1:
		return "code", ""
	}
	return "text", ""
}

func contentTypeOfText(mediaType string) string {
	return ContentType(artel.MediaInfo{MediaType: mediaType, Kind: media.KindOf(mediaType)})
}

// TypeOfText returns the media type under which a text is stored.
func TypeOfText(text string) string {
	switch kind, mediaType := kindOf(text); kind {
	case "json", "table", "diff", "markdown":
		return mediaType
	case "list":
		if mediaType == "application/json" {
			return mediaType
		}
	}
	return "text/plain"
}

// kindOfAddress returns the type of a text that is a single address.
func kindOfAddress(s string) (contentType, mediaType string) {
	here := strings.HasPrefix(s, FilesURL) || strings.HasPrefix(s, "tool_results/")
	if !here && !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
		return "", ""
	}
	u, err := url.Parse(s)
	if err != nil || !here && u.Host == "" {
		return "", ""
	}
	// The bytes have no known signature, so that the extension decides.
	info := media.Detect([]byte{0xfe, 0x00, 0x80, 0x01}, media.Hint{Filename: "x" + path.Ext(u.Path)})
	if info.DetectedBy == artel.FromExtension {
		switch info.Kind {
		case artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindDocument, artel.KindArchive:
			return string(info.Kind), info.MediaType
		}
	}
	if here {
		return "file", ""
	}
	return "url", ""
}
