// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/render"
)

// showTool renders artifacts for the page of this server (apps.go).
const showTool = "artel_show"

const showSchema = `{
"type":"object",
"properties":{
"id":{"type":"string"},
"conversation":{"type":"string","description":"id or title of another conversation"},
"version":{"type":"integer","minimum":0},
"view":{"enum":["content","changes"]},
"from":{"type":"integer","minimum":0,"description":"version that changes begin with; without it the one before"},
"locale":{"type":"string"}
},
"required":["id"],
"additionalProperties":false
}`

// Bounds of what the page gets at once.
const (
	maxShown      = 200_000 // bytes of text
	maxDiffLines  = 4000
	maxVersions   = 200
	shownLanguage = 40 // bytes of a locale
)

// showArgs are the arguments of [showTool].
type showArgs struct {
	ID           string `json:"id"`
	Conversation string `json:"conversation"`
	Version      int    `json:"version"`
	View         string `json:"view"`
	From         int    `json:"from"`
	Locale       string `json:"locale"`
}

// A shownVersion is an entry of the list of versions.
type shownVersion struct {
	Number int       `json:"number"`
	At     time.Time `json:"at"`
}

// A showing is an artifact as the page shows it.
type showing struct {
	Conversation artel.ConversationID `json:"conversation"`
	ID           artel.ArtifactID     `json:"id"`
	Title        string               `json:"title"`
	About        string               `json:"about"` // type and size
	View         string               `json:"view"`
	Version      int                  `json:"version"`
	Latest       int                  `json:"latest"`
	From         int                  `json:"from,omitempty"` // of changes; 0: all is new
	Versions     []shownVersion       `json:"versions"`       // newest first
	HTML         template.HTML        `json:"html"`           // safe
	Text         string               `json:"text,omitempty"` // to copy; "": it is none, or too long
	Note         string               `json:"note,omitempty"`
	URL          string               `json:"url,omitempty"` // on the page of this server
}

// show is the handler of [showTool].
func (h *Handler) show(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if !showsApps(r.ClientCapabilities()) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q; tools/list has the available tools", showTool)}
	}
	var in showArgs
	if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
		return failed(showTool + ": the arguments cannot be read: " + err.Error()), nil
	}
	s, err := h.showing(ctx, in)
	if err != nil {
		return h.refused(ctx, err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s, version %d", s.ID, s.Version)}}, StructuredContent: s}, nil
}

func (h *Handler) showing(ctx context.Context, in showArgs) (*showing, error) {
	c, err := h.conversation(ctx, in.Conversation)
	if err != nil {
		return nil, err
	}
	id, err := artel.ParseArtifactID(in.ID)
	if err != nil {
		return nil, err
	}
	l := localeOf(in.Locale)
	s := &showing{Conversation: c.ID, ID: id, View: viewContent, Versions: []shownVersion{}}
	info, text, err := h.stateOf(ctx, s, in.Version)
	if err != nil {
		return nil, err
	}
	all, err := h.app.Versions.List(ctx, c.ID, id)
	if err != nil {
		return nil, err
	}
	for _, v := range slices.Backward(all) {
		if len(s.Versions) < maxVersions {
			s.Versions = append(s.Versions, shownVersion{v.Number, v.CreatedAt})
		}
		s.Latest = max(s.Latest, v.Number)
	}
	s.About = l.TypeName(info.MediaType) + " · " + phrase.Size(info.Size)
	if origin := originOf(ctx); origin != "" {
		s.URL = origin + pathOf(artel.Ref{Conversation: c.ID, Artifact: id, Version: in.Version})
	}
	if text != nil && len(*text) <= maxShown {
		s.Text = *text
	}
	o := renderOptions(c.ID, l)
	switch {
	case text != nil && in.View == viewChanges:
		return s, h.showChanges(ctx, s, in, o, l)
	case text != nil:
		s.showText(*text, info.MediaType, o, l)
		return s, nil
	}
	return s, h.showFile(ctx, s, info, o, l)
}

// stateOf fills in what is shown: a version, or the newest state.
func (h *Handler) stateOf(ctx context.Context, s *showing, version int) (artel.MediaInfo, *string, error) {
	if version > 0 {
		v, text, err := h.app.Versions.Find(ctx, s.Conversation, s.ID, version)
		s.Title, s.Version = artel.Visible(v.Title), v.Number
		return v.MediaInfo, text, err
	}
	a, text, err := h.app.Artifacts.Find(ctx, s.Conversation, s.ID, "")
	s.Title, s.Version = artel.Visible(a.Title), a.Version
	return a.MediaInfo, text, err
}

// showChanges renders the difference to the version before, or to the one that was asked for.
func (h *Handler) showChanges(ctx context.Context, s *showing, in showArgs, o render.Options, l phrase.Locale) error {
	d, err := h.app.Versions.Diff(ctx, s.Conversation, s.ID, artifact.DiffQuery{From: in.From, To: s.Version, Limit: maxDiffLines})
	if err != nil {
		return err
	}
	s.View = viewChanges
	if d.From != nil {
		s.From = d.From.Number
	}
	if len(d.Hunks) == 0 {
		s.Note = l.Say(phrase.AppsEqual, nil)
		return nil
	}
	s.HTML = render.Diff(d.Unified(s.ID), o)
	if d.Cut {
		s.Note = l.Say(phrase.PageCompareCut, nil)
	}
	return nil
}

// showText renders a text by its type.
func (s *showing) showText(text, mediaType string, o render.Options, l phrase.Locale) {
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "")
		s.Note = l.Say(phrase.PageCut, map[string]any{"Shown": phrase.Size(int64(len(text)))})
	}
	ok := true
	switch mediaType {
	case "text/markdown":
		s.HTML = render.Markdown(text, o)
	case "application/json":
		s.HTML, ok = render.JSON([]byte(text), o)
	case "text/csv":
		s.HTML, ok = render.Table(text, 0, o)
	case "text/tab-separated-values":
		s.HTML, ok = render.Table(text, '\t', o)
	case "text/plain":
		ok = false
	default:
		s.HTML = render.Code(text, render.LanguageOf(string(s.ID), mediaType))
	}
	if !ok {
		s.HTML = `<pre class="text">` + render.Text(text) + `</pre>`
	}
}

// showFile shows a picture, or the text of a document. Of another file the page says what
// it is.
func (h *Handler) showFile(ctx context.Context, s *showing, info artel.MediaInfo, o render.Options, l phrase.Locale) error {
	unseen := func(err error) error {
		if errors.Is(err, artel.Unsupported) || errors.Is(err, artel.TooLarge) || errors.Is(err, artel.Invalid) {
			s.Note = l.Say(phrase.AppsUnseen, nil)
			return nil
		}
		return err
	}
	switch info.Kind {
	case artel.KindImage:
		image, err := h.picture(ctx, artel.Media{Ref: artel.Ref{Conversation: s.Conversation, Artifact: s.ID, Version: s.Version}, Filename: string(s.ID)})
		if err != nil {
			return unseen(err)
		}
		s.HTML = template.HTML(`<img src="data:` + template.HTMLEscapeString(image.MIMEType) + `;base64,` + base64.StdEncoding.EncodeToString(image.Data) + `" alt="` + template.HTMLEscapeString(s.Title) + `">`) //nolint:gosec // escaped
		return nil
	case artel.KindDocument:
		d, err := h.app.Artifacts.Text(ctx, s.Conversation, s.ID, s.Version, "")
		if err != nil {
			return unseen(err)
		}
		s.showText(d.Text, "text/markdown", o, l)
		if s.Note == "" {
			s.Note = l.Say(phrase.PageExtracted, nil)
		}
		return nil
	}
	s.Note = l.Say(phrase.AppsUnseen, nil)
	return nil
}

// localeOf returns the language for a locale of a host.
func localeOf(tag string) phrase.Locale {
	if len(tag) <= shownLanguage && strings.HasPrefix(strings.ToLower(tag), "zh") {
		return phrase.Chinese
	}
	return phrase.English
}

// pathOf is the path of an artifact on the page of this server.
func pathOf(r artel.Ref) string {
	path := "/c/" + string(r.Conversation) + "/a/" + url.PathEscape(string(r.Artifact))
	if r.Version > 0 {
		path += fmt.Sprintf("?v=%d", r.Version)
	}
	return path
}

// renderOptions link refs to paths, which the page opens by itself.
func renderOptions(c artel.ConversationID, l phrase.Locale) render.Options {
	return render.Options{
		ArtifactURL: func(r artel.Ref) string {
			if r.IsBlob() {
				return ""
			}
			if r.Conversation == "" {
				r.Conversation = c
			}
			return pathOf(r)
		},
		Cut: func(n int, unit render.Unit) string {
			return l.Say(phrase.Key("page.cut_"+string(unit)), map[string]any{"Count": n})
		},
	}
}
