// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"encoding/base64"
	"html/template"
	"net/url"
	"regexp"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/phrase"
)

// Tool results of other programs may name files in other ways than by refs, and
// may embed them. Embedded bytes are identified by content before they are
// shown; active content is shown as text or picture only.

// maxInline is the maximum of embedded base64 shown as media, in characters.
const maxInline = 140_000

// fileAddress returns the path of a URL under which this server serves files,
// cleaned, or "".
func fileAddress(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, app.FilesURL) || strings.Contains(u.Path, "..") || strings.ContainsAny(s, "\\ \t\r\n") {
		return ""
	}
	return u.EscapedPath()
}

var storedResult = regexp.MustCompile(`^/?tool_results/[0-9a-f]{64}(\.[A-Za-z0-9]{1,10})?$`)

// addressOfPath returns the URL for the file path in a result, or "" if this
// server does not know the path.
func addressOfPath(p string) string {
	if storedResult.MatchString(p) {
		return app.FilesURL + strings.TrimPrefix(p, "/")
	}
	if strings.HasPrefix(p, "blob:") || strings.HasPrefix(p, "artifact:") || strings.HasPrefix(p, "artel:") {
		if ref, err := artel.ParseRef(p); err == nil && (ref.IsBlob() || ref.Conversation != "") {
			return app.FileURL(ref)
		}
	}
	return fileAddress(p)
}

// webAddress reports whether s is an http or https URL.
func webAddress(s string) bool {
	if len(s) > 2000 || strings.ContainsAny(s, " \t\r\n\"<>") {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// dataURI splits a base64 data URI.
func dataURI(s string) (declared, data string, ok bool) {
	rest, ok := strings.CutPrefix(s, "data:")
	if !ok {
		return "", "", false
	}
	head, data, ok := strings.Cut(rest, ",")
	if !ok || len(head) > 200 || !strings.HasSuffix(strings.ToLower(head), ";base64") {
		return "", "", false
	}
	declared, _, _ = strings.Cut(head, ";")
	return declared, data, true
}

var base64Text = regexp.MustCompile(`^[A-Za-z0-9+/_\-\s]{64,}={0,2}\s*$`)

// embedded renders bytes embedded as base64, by their detected type.
func (v view) embedded(data, declared, name string) Value {
	about := typeName(v.locale, declared)
	card := func(k phrase.Key) Value {
		return Value{Kind: valueFile, Name: name, File: File{Name: name, Icon: "file-x", About: strings.TrimPrefix(about+" · "+v.locale.Say(k, nil), " · ")}}
	}
	if len(data) > maxInline {
		return card(phrase.PageTooLargeInline)
	}
	raw, ok := decode64(data)
	if !ok || len(raw) == 0 {
		return card(phrase.PageBrokenInline)
	}
	info := v.app.Mechanisms.Sniff(raw, app.Upload{DeclaredType: declared, Filename: name})
	if info.Kind == artel.KindText && info.MediaType != "image/svg+xml" {
		return v.text(string(raw), app.ContentType(info), info.MediaType, name)
	}
	if name == "" {
		name = "result" + app.Extension(info.MediaType)
	}
	f := File{
		Name: name, Icon: iconOf(info.Kind, info.MediaType), About: typeName(v.locale, info.MediaType) + " · " + phrase.Size(info.Size),
		// A download only: opened, a page would run in a window of its own.
		Download: template.URL("data:application/octet-stream;base64," + base64.StdEncoding.EncodeToString(raw)), //nolint:gosec // the bytes are encoded here
	}
	out := v.fileValue(info, template.URL("data:"+info.MediaType+";base64,"+base64.StdEncoding.EncodeToString(raw)), f) //nolint:gosec // the type is one of those that were found in the bytes
	out.Embedded = true
	if out.Kind != valueImage && out.Kind != valueAudio && out.Kind != valueVideo {
		out = Value{Kind: valueFile, Name: name, File: f}
	}
	return out
}

// looksEmbedded reports whether a text is base64 of a binary file.
func (v view) looksEmbedded(s string) bool {
	if len(s) < 64 || !base64Text.MatchString(s[:min(len(s), 4096)]) && !base64Text.MatchString(s) {
		return false
	}
	head := strings.Join(strings.Fields(s[:min(len(s), 4096)]), "")
	raw, ok := decode64(head[:len(head)/4*4])
	if !ok {
		return false
	}
	info := v.app.Mechanisms.Sniff(raw, app.Upload{})
	return info.IsBinary() && info.DetectedBy == artel.FromSignature
}

// decode64 decodes base64 of either alphabet, padded or not.
func decode64(s string) ([]byte, bool) {
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(strings.Join(strings.Fields(s), "")), "=")
	raw, err := base64.RawStdEncoding.DecodeString(s)
	return raw, err == nil
}
