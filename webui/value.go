// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"encoding/json"
	"html/template"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/phrase"
	"github.com/artelhq/artel/render"
)

// A Value is something that is shown by what it is: the result of a tool, or
// the content of an artifact. Exactly one of HTML and URL is set, or neither
// where only File can be shown.
type Value struct {
	Kind string // html, image, audio, video, pdf, frame, file
	HTML template.HTML
	URL  string // of the bytes
	Name string
	File File
}

// The kinds of values.
const (
	valueHTML  = "html"
	valueImage = "image"
	valueAudio = "audio"
	valueVideo = "video"
	valuePDF   = "pdf"
	valueFrame = "frame" // a page that may do nothing
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

// result shows what a tool returned: the media that travel with it, then its
// text by the type that the tool states, or by what it looks like.
func (v view) result(res artel.ToolResult) []Value {
	var out []Value
	for _, p := range res.Parts {
		if m, ok := p.(artel.Media); ok {
			out = append(out, v.media(m))
		}
	}
	if len(out) == 0 {
		if m, ok := v.stated(res.Metadata); ok {
			out = append(out, m)
		}
	}
	if res.Content != "" {
		kind, _ := res.Metadata["content_type"].(string)
		if res.IsError || len(out) > 0 { // the type is that of the file
			kind = "text"
		}
		out = append(out, v.text(res.Content, kind))
	}
	return out
}

// stated is the file that a result names by an address of this server.
func (v view) stated(metadata map[string]any) (Value, bool) {
	field := func(name string) string { s, _ := metadata[name].(string); return s }
	url := field("url")
	if !strings.HasPrefix(url, "/api/") {
		return Value{}, false
	}
	kind := artel.MediaKind(field("content_type"))
	name := field("filename")
	if name == "" {
		name = field("file_path")
	}
	return fileValue(kind, field("media_type"), url, File{Name: artel.Visible(name), Icon: iconOf(kind, ""), URL: url, About: v.locale.TypeName(field("media_type"))}), true
}

// media shows a picture, sound or film in place, and the rest as a card.
func (v view) media(m artel.Media) Value {
	return fileValue(m.Kind, m.MediaType, app.FileURL(m.Ref), v.file(m))
}

func fileValue(kind artel.MediaKind, mediaType, url string, f File) Value {
	out := Value{Kind: valueFile, URL: url, Name: f.Name, File: f}
	switch {
	case kind == artel.KindImage:
		out.Kind = valueImage
	case kind == artel.KindAudio:
		out.Kind = valueAudio
	case kind == artel.KindVideo:
		out.Kind = valueVideo
	case mediaType == "application/pdf":
		out.Kind, out.URL = valuePDF, url+"?preview=true"
	}
	return out
}

// text shows a text as its content type says: json, table, diff, markdown or
// code; where nothing is said, a JSON document is a tree and the rest stays as
// it is.
func (v view) text(text, contentType string) Value {
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
		return html(render.Code(text, ""))
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
