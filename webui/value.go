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

// A Value is something that is shown by what it is: the result of a tool, or
// the content of an artifact.
type Value struct {
	Kind          string
	HTML          template.HTML // of kind html, and nothing else
	URL           template.URL  // of the bytes, or where a link leads
	Thumb         template.URL  // of a picture: a smaller one; "": the picture itself
	Held          bool          // URL holds the bytes, so that nothing leads there
	Width, Height int           // of a picture or film, in pixels; 0: not known
	Name          string
	File          File // what is written about it
	Way           Way  // how a model got it
}

// The kinds of values.
const (
	valueHTML  = "html"
	valueError = "error" // as html
	valueImage = "image"
	valueAudio = "audio"
	valueVideo = "video"
	valuePDF   = "pdf"
	valueFrame = "frame" // a page that may do nothing
	valueLink  = "link"  // to another site, which is not asked for anything
	valueFile  = "file"
)

// maxShown is how much of a text, in bytes, a page holds: browsers take many
// seconds to lay out megabytes of it.
const maxShown = 200_000

// shorten cuts a text to what a page holds, and says how much that is; "" where
// it is all.
func shorten(text string) (shown, cut string) {
	if len(text) <= maxShown {
		return text, ""
	}
	shown = strings.ToValidUTF8(text[:maxShown], "")
	return shown, phrase.Size(int64(len(shown)))
}

// arguments shows what a tool was called with.
func (v view) arguments(args json.RawMessage) Value {
	if html, ok := render.JSON(args, v.options()); ok {
		return Value{Kind: valueHTML, HTML: html}
	}
	return v.plain(string(args))
}

// result shows what a tool returned. Media that travel with it come first; in
// their place may stand what its metadata name, by url, by file_path, or as
// data, and else an address or bytes that are the whole content. Then comes the
// content by the type that is stated, or by what it looks like. m is the
// message that holds the result.
func (v view) result(m artel.MessageID, first int, res artel.ToolResult) []Value {
	var out []Value
	for _, p := range res.Parts {
		if media, ok := p.(artel.Media); ok {
			shown := v.media(media)
			shown.Way = v.wayOf(m, first+len(out))
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
		out = append(out, v.said(content, s, len(out) > 0))
	}
	return out
}

// facts is what metadata say about a result.
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

// named is the file or address that a result is about, in the order of
// priority; a Value without a kind where there is none. all reports whether the
// content says nothing else.
func (v view) named(s facts, content string) (out Value, all bool) {
	whole := strings.TrimSpace(content)
	if a := fileAddress(s.url); a != "" {
		return v.addressed(s, a), fileAddress(whole) != "" || whole == s.url
	}
	if webAddress(s.url) {
		return v.link(s.url, s.name), whole == s.url
	}
	if s.url == "" && s.path != "" {
		if a := addressOfPath(s.path); a != "" {
			return v.addressed(s, a), whole == s.path || fileAddress(whole) != ""
		}
		return Value{Kind: valueFile, Name: s.name, File: v.card(s, "")}, whole == s.path
	}
	for _, held := range []string{s.url, s.data} {
		if declared, data, ok := dataURI(held); ok {
			return v.held(data, declared, s.name), whole == held
		}
	}
	if s.data != "" && (s.encoding == "base64" || s.encoding == "") {
		return v.held(s.data, s.mediaType, s.name), whole == s.data || v.looksHeld(whole)
	}
	if a := fileAddress(whole); a != "" {
		return v.addressed(s, a), true
	}
	if declared, data, ok := dataURI(whole); ok {
		return v.held(data, declared, s.name), true
	}
	if webAddress(whole) {
		return v.link(whole, s.name), true
	}
	if v.looksHeld(whole) {
		return v.held(whole, s.mediaType, s.name), true
	}
	return Value{}, false
}

// media is the kind of bytes that a result is about: its content type, or text
// where that says how a text is shown.
func (s facts) media() artel.MediaKind {
	switch s.kind {
	case "json", "table", "list", "diff", "markdown", "code", "text":
		return artel.KindText
	}
	return artel.MediaKind(s.kind)
}

// addressed is a file of this server.
func (v view) addressed(s facts, address string) Value {
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

// card is what is written about a file.
func (v view) card(s facts, address string) File {
	var about []string
	if s.mediaType != "" {
		about = append(about, v.locale.TypeName(s.mediaType))
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

// link is an address of the web. Nothing is fetched from there: that would
// tell it what was read.
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

// media shows a picture, sound or film in place, and the rest as a card.
func (v view) media(m artel.Media) Value {
	f := v.file(m)
	f.Download = template.URL(app.FileURL(m.Ref)) //nolint:gosec // made of a ref
	return v.fileValue(m.Info(), f.Download, f)
}

// pictures are the types that every browser draws.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif", "image/svg+xml", "image/x-icon", "image/vnd.microsoft.icon"}

// What is larger, in pixels of width or in bytes, is shown as a smaller picture,
// except where its size is asked for. Of an animation that would be one frame.
const (
	shownWidth = 1024
	shownBytes = 256 << 10
)

// tooLarge reports whether a picture has more pixels than smaller ones are made
// of. A browser that draws it takes gigabytes for it, or gives up.
func tooLarge(width, height int) bool { return int64(width)*int64(height) > app.MaxPixels }

// fileValue shows bytes at an address by what they are.
func (v view) fileValue(info artel.MediaInfo, address template.URL, f File) Value {
	out := Value{Kind: valueFile, URL: address, Name: f.Name, File: f, Width: info.Width, Height: info.Height}
	switch {
	case info.Kind == artel.KindImage && tooLarge(info.Width, info.Height):
	case info.MediaType == "image/tiff" && strings.HasPrefix(string(address), app.FilesURL):
		out.Kind, out.URL = valueImage, address+"?width=1024" // browsers do not draw the file
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

// measured adds to a text about a file how large a picture is and how long a
// recording takes.
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

// playtime writes seconds as players do: "0:07", "1:02:03".
func playtime(seconds float64) string {
	n := int(seconds + 0.5)
	two := func(n int) string { return string(rune('0'+n/10%10)) + string(rune('0'+n%10)) }
	if n >= 3600 {
		return itoa(n/3600) + ":" + two(n/60%60) + ":" + two(n%60)
	}
	return itoa(n/60) + ":" + two(n%60)
}

// said shows the text of a result. That of a part of an artifact is shown as
// the artifact would be. beside says that something else is shown already, which
// the stated type is about.
func (v view) said(content string, s facts, beside bool) Value {
	if body, ok := slice(content); ok {
		if s.kind == string(artel.KindDocument) {
			s.kind = "markdown" // as text is taken out of documents
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
	// A type of which the page does not know: a text where it is one.
	if strings.ContainsFunc(content, func(r rune) bool { return r == '\uFFFD' || r < ' ' && !strings.ContainsRune("\t\r\n\f\x1b", r) }) {
		s.size = int64(len(content))
		return Value{Kind: valueFile, Name: s.name, File: v.card(s, "")}
	}
	return v.text(content, "", s.mediaType, s.name)
}

// slice is the text in what read_artifact tells the model.
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

// text shows a text as its content type says: json, list, table, diff, markdown
// or code; where nothing is said, a JSON document is a tree and the rest stays
// as it is.
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
