// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"encoding/json"
	"html/template"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/render"
)

// A Value is rendered by kind: a tool result, or the content of an artifact.
type Value struct {
	Kind          string
	HTML          template.HTML // of kind html only
	URL           template.URL  // of the bytes, or of the link
	Thumb         template.URL  // smaller version of a picture; "": the picture itself
	Embedded      bool          // URL is a data URI: nothing to link to
	Width, Height int           // of a picture or video, in pixels; 0: unknown
	Name          string
	File          File     // metadata on its card
	Delivery      Delivery // how a model received it
}

// The kinds of values.
const (
	valueHTML  = "html"
	valueError = "error" // as html
	valueImage = "image"
	valueAudio = "audio"
	valueVideo = "video"
	valuePDF   = "pdf"
	valueFrame = "frame" // a sandboxed page
	valueLink  = "link"  // to another site, which is not contacted
	valueFile  = "file"
)

// maxShown is the maximum of text on a page, in bytes: browsers take many
// seconds to lay out megabytes.
const maxShown = 200_000

// shorten cuts a text to maxShown, and returns the shown size; "" if it is
// complete.
func shorten(text string) (shown, cut string) {
	if len(text) <= maxShown {
		return text, ""
	}
	shown = strings.ToValidUTF8(text[:maxShown], "")
	return shown, phrase.Size(int64(len(shown)))
}

// arguments renders the arguments of a call.
func (v view) arguments(args json.RawMessage) Value {
	if html, ok := render.JSON(args, v.options()); ok {
		return Value{Kind: valueHTML, HTML: html}
	}
	return v.plain(string(args))
}

// result renders a tool result. Its media come first or, without any, the file
// named by its metadata (url, file_path or data) or by a content that is a URL
// or base64. Then comes the content by its declared or detected type. m is the
// message that contains the result.
func (v view) result(m artel.MessageID, first int, res artel.ToolResult) []Value {
	var out []Value
	for _, p := range res.Parts {
		if media, ok := p.(artel.Media); ok {
			shown := v.media(media)
			shown.Delivery = v.deliveryOf(m, first+len(out))
			out = append(out, shown)
		}
	}
	s := stated(res.Metadata)
	content := res.Content
	if len(out) == 0 && !res.IsError {
		if found, all := v.named(s, content); found.Kind != "" {
			out = append(out, found)
			if all {
				content = ""
			}
		}
	}
	switch {
	case content == "":
	case res.IsError || s.kind == "error":
		e := v.plain(content)
		e.Kind = valueError
		out = append(out, e)
	default:
		out = append(out, v.resultText(content, s, len(out) > 0))
	}
	return out
}

// facts is the metadata of a result.
type facts struct {
	kind, mediaType, name     string
	url, path, encoding, data string
	ref                       artel.Ref
	size                      int64
}

func stated(metadata map[string]any) facts {
	field := func(name string) string { s, _ := metadata[name].(string); return s }
	size, _ := metadata["size"].(float64)
	f := facts{
		kind: field("content_type"), mediaType: field("media_type"), name: artel.Visible(field("filename")),
		url: field("url"), path: field("file_path"), encoding: field("encoding"), data: field("data"), size: int64(size),
	}
	if ref, err := artel.ParseRef(field("ref")); err == nil {
		f.ref = ref
	}
	if f.name == "" && f.path != "" {
		f.name = artel.Visible(path.Base(strings.ReplaceAll(f.path, `\`, "/")))
	}
	return f
}

// named renders the file or URL that a result is about, by priority; without
// any its Kind is empty. all reports that nothing else is in the content.
func (v view) named(s facts, content string) (out Value, all bool) {
	whole := strings.TrimSpace(content)
	if a := fileAddress(s.url); a != "" {
		return v.serverFile(s, a), fileAddress(whole) != "" || whole == s.url
	}
	if webAddress(s.url) {
		return v.link(s.url, s.name), whole == s.url
	}
	if s.url == "" && s.path != "" {
		if a := addressOfPath(s.path); a != "" {
			return v.serverFile(s, a), whole == s.path || fileAddress(whole) != ""
		}
		return Value{Kind: valueFile, Name: s.name, File: v.card(s, "")}, whole == s.path
	}
	for _, held := range []string{s.url, s.data} {
		if declared, data, ok := dataURI(held); ok {
			return v.embedded(data, declared, s.name), whole == held
		}
	}
	if s.data != "" && (s.encoding == "base64" || s.encoding == "") {
		return v.embedded(s.data, s.mediaType, s.name), whole == s.data || v.looksEmbedded(whole)
	}
	if a := fileAddress(whole); a != "" {
		return v.serverFile(s, a), true
	}
	if declared, data, ok := dataURI(whole); ok {
		return v.embedded(data, declared, s.name), true
	}
	if webAddress(whole) {
		return v.link(whole, s.name), true
	}
	if v.looksEmbedded(whole) {
		return v.embedded(whole, s.mediaType, s.name), true
	}
	return Value{}, false
}

// media is the kind of the result's bytes: its content type, or text if that
// names a text format.
func (s facts) media() artel.MediaKind {
	switch s.kind {
	case "json", "table", "list", "diff", "markdown", "code", "text":
		return artel.KindText
	}
	return artel.MediaKind(s.kind)
}

// serverFile renders a file of this server.
func (v view) serverFile(s facts, address string) Value {
	info := artel.MediaInfo{MediaType: s.mediaType, Kind: s.media(), Size: s.size}
	switch major, _, _ := strings.Cut(s.mediaType, "/"); major {
	case "image", "audio", "video":
		info.Kind = artel.MediaKind(major)
	}
	if s.name == "" {
		if u, err := url.PathUnescape(path.Base(address)); err == nil {
			s.name = artel.Visible(u)
		}
	}
	return v.fileValue(info, template.URL(address), v.card(s, address)) //nolint:gosec // fileAddress has checked it
}

// card returns the metadata shown on a file's card.
func (v view) card(s facts, address string) File {
	var about []string
	if s.mediaType != "" {
		about = append(about, typeName(v.locale, s.mediaType))
	}
	if s.size > 0 {
		about = append(about, phrase.Size(s.size))
	}
	view := address
	if s.ref.Artifact != "" {
		view = artifactURL(v.conversation, s.ref)
	}
	return File{
		Name: s.name, Icon: iconOf(s.media(), s.mediaType), URL: view, About: strings.Join(about, " · "),
		Download: template.URL(address), //nolint:gosec // "" or an address of this server's files
	}
}

// link renders a web URL. Nothing is fetched: a fetch would reveal what the
// user reads.
func (v view) link(address, name string) Value {
	u, err := url.Parse(address)
	if err != nil {
		return v.plain(address)
	}
	if name == "" {
		name = address
	}
	return Value{Kind: valueLink, URL: template.URL(address), Name: name, File: File{Name: name, About: u.Host}} //nolint:gosec // webAddress has checked it
}

// media renders pictures, sound and video in place, and other files as cards.
func (v view) media(m artel.Media) Value {
	f := v.file(m)
	f.Download = template.URL(app.FileURL(m.Ref)) //nolint:gosec // made of a ref
	return v.fileValue(m.Info(), f.Download, f)
}

// pictures are the types that every browser displays.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif", "image/svg+xml", "image/x-icon", "image/vnd.microsoft.icon"}

// Larger pictures, in pixels of width or in bytes, are shown as a smaller
// version, unless their size is unknown. Animations are not, because only one
// frame would remain.
const (
	shownWidth = 1024
	shownBytes = 256 << 10
)

// tooLarge reports whether a picture exceeds the pixels that can be scaled
// down. A browser would need gigabytes to draw it.
func tooLarge(width, height int) bool { return int64(width)*int64(height) > app.MaxPixels }

// fileValue renders the bytes at a URL by type.
func (v view) fileValue(info artel.MediaInfo, address template.URL, f File) Value {
	out := Value{Kind: valueFile, URL: address, Name: f.Name, File: f, Width: info.Width, Height: info.Height}
	switch {
	case info.Kind == artel.KindImage && tooLarge(info.Width, info.Height):
	case info.MediaType == "image/tiff" && strings.HasPrefix(string(address), app.FilesURL):
		out.Kind, out.URL = valueImage, address+"?width=1024" // browsers cannot display the original
	case info.MediaType == "image/svg+xml", info.Kind == artel.KindImage && (info.MediaType == "" || slices.Contains(pictures, info.MediaType)):
		out.Kind = valueImage
		if (info.Width > shownWidth || info.Size > shownBytes) && info.MediaType != "image/gif" && app.Reducible(info.MediaType) && strings.HasPrefix(string(address), app.FilesURL) {
			out.Thumb = address + "?width=1024"
		}
	case info.Kind == artel.KindAudio:
		out.Kind = valueAudio
	case info.Kind == artel.KindVideo:
		out.Kind = valueVideo
	case info.MediaType == "application/pdf":
		out.Kind, out.URL = valuePDF, address+"?preview=true#view=FitH&navpanes=0"
	}
	out.File.About = v.measured(info, f.About)
	return out
}

// measured appends the dimensions of a picture and the duration of a recording.
func (v view) measured(info artel.MediaInfo, about string) string {
	parts := []string{about}
	if about == "" {
		parts = nil
	}
	if info.Width > 0 && info.Height > 0 {
		parts = append(parts, dimensions(info.Width, info.Height))
	}
	if info.Duration > 0 {
		parts = append(parts, playtime(info.Duration))
	}
	if info.Pages > 0 {
		parts = append(parts, v.locale.Say(phrase.PagePages, map[string]any{"Count": info.Pages}))
	}
	return strings.Join(parts, " · ")
}

// playtime formats seconds: "0:07", "1:02:03".
func playtime(seconds float64) string {
	n := int(seconds + 0.5)
	two := func(n int) string { return string(rune('0'+n/10%10)) + string(rune('0'+n%10)) }
	if n >= 3600 {
		return itoa(n/3600) + ":" + two(n/60%60) + ":" + two(n%60)
	}
	return itoa(n/60) + ":" + two(n%60)
}

// resultText renders the text of a result. The slice of an artifact is rendered like
// the artifact. beside means that the declared type refers to a file shown
// already.
func (v view) resultText(content string, s facts, beside bool) Value {
	if body, ok := slice(content); ok {
		if s.kind == string(artel.KindDocument) {
			s.kind = "markdown" // extracted text is Markdown
		}
		return v.text(body, s.kind, s.mediaType, s.name)
	}
	if beside {
		return v.text(content, "text", "", "")
	}
	switch s.kind {
	case "", "text", "json", "list", "table", "diff", "markdown", "code":
		return v.text(content, s.kind, s.mediaType, s.name)
	}
	// An unknown type: text if it is printable.
	if strings.ContainsFunc(content, func(r rune) bool { return r == '\uFFFD' || r < ' ' && !strings.ContainsRune("\t\r\n\f\x1b", r) }) {
		s.size = int64(len(content))
		return Value{Kind: valueFile, Name: s.name, File: v.card(s, "")}
	}
	return v.text(content, "", s.mediaType, s.name)
}

// slice returns the text inside a result of read_artifact.
func slice(content string) (body string, ok bool) {
	if !strings.HasPrefix(content, "<artifact_slice ") {
		return "", false
	}
	_, body, ok = strings.Cut(content, "</title>\n")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(body, "\n</artifact_slice>")
}

// text renders a text by its content type: json, list, table, diff, markdown or
// code; without one, JSON becomes a tree and other text stays plain.
func (v view) text(text, contentType, mediaType, name string) Value {
	text, cut := shorten(text)
	html := func(h template.HTML) Value {
		if cut != "" {
			h += v.cutNote(cut)
		}
		return Value{Kind: valueHTML, HTML: h}
	}
	switch contentType {
	case "markdown":
		return html(tasks(v.locale, render.Markdown(text, v.options())))
	case "diff":
		return html(render.Diff(text, v.options()))
	case "table":
		if h, ok := render.Table(text, 0, v.options()); ok {
			return html(h)
		}
	case "code":
		return html(render.Code(text, render.LanguageOf(name, mediaType)))
	case "json", "list", "":
		if h, ok := render.JSON([]byte(text), v.options()); ok {
			return html(h)
		}
	}
	p := v.plain(text)
	return html(p.HTML)
}

func (v view) plain(text string) Value {
	return Value{Kind: valueHTML, HTML: `<pre class="text" tabindex="0" role="group" aria-label="` + render.Text(v.locale.Say(phrase.PageText, nil)) + `">` + render.Text(text) + "</pre>"}
}

func (v view) cutNote(shown string) template.HTML {
	return `<p class="hint">` + render.Text(v.locale.Say(phrase.PageCut, map[string]any{"Shown": shown})) + "</p>"
}
