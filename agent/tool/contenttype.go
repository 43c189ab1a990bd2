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

// Each result says by its metadata what it is, for pages and programs:
//
//	content_type   image audio video document archive file url json table list diff markdown code text error
//	media_type, file_path, url, size, digest, saved_to_file, ref   of a file that the result is, or whose text it is a preview of
//	media          the same of each of several media that stand in it
//
// There is never an encoding and never data.

// typed returns the metadata of r with a content_type.
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

// withMedia returns the metadata of r with the media that were found in it. A
// result that is one of them, or nothing but blocks of it, has its type.
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

// fileFacts is what is told of the file that an artifact is.
func fileFacts(a artel.Artifact) map[string]any {
	name := FileName(a.Digest, a.MediaType)
	return map[string]any{
		"content_type": ContentType(a.MediaInfo), "media_type": a.MediaType, "file_path": "tool_results/" + name, "url": ToolResultsURL + name,
		"size": a.Size, "digest": a.Digest, "saved_to_file": true, "ref": a.MediaPart().Ref.String(), "filename": a.MediaPart().Filename,
	}
}

// only reports whether a text is a ref, or JSON whose only words are the ref
// and those that a media block has around it.
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

// maxInspected is how much of a long text is looked at to say what it is.
const maxInspected = 64 << 10

// kindOf says what a text is, by what it looks like.
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

// typeOfText is the media type that a text is kept under; "" where nothing but
// its bytes can tell.
func typeOfText(text string) string {
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

// kindOfAddress is for a text that is one address, and nothing else.
func kindOfAddress(s string) (contentType, mediaType string) {
	here := strings.HasPrefix(s, FilesURL) || strings.HasPrefix(s, "tool_results/")
	if !here && !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
		return "", ""
	}
	u, err := url.Parse(s)
	if err != nil || !here && u.Host == "" {
		return "", ""
	}
	// Of bytes that show nothing, the extension alone decides.
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
