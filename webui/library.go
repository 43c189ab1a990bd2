// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/internal/phrase"
)

// ServerContents are what the composer shows of tool servers: all servers, or what one has.
type ServerContents struct {
	Servers   []mcp.ServerOffer // nil: of one
	Server    string
	Resources []mcp.Resource
	Prompts   []mcp.Prompt
	MoreURL   string // of the next page of resources; "": none
	PromptURL string // of the next page of prompts; "": none
}

// URL is the address of what a server has.
func (ServerContents) URL(server string) string { return "/tool-servers/" + url.PathEscape(server) }

// A Prompted is a text for the composer.
type Prompted struct{ Text, Of string }

// serverOffers lists the tool servers that have something for the user.
func (ui *handler) serverOffers(w http.ResponseWriter, r *http.Request) {
	ui.fragments(w, r, http.StatusOK, part{"server contents", ServerContents{Servers: ui.app.Library.Offers(r.Context())}})
}

// serverContents lists a page of what a tool server has.
func (ui *handler) serverContents(w http.ResponseWriter, r *http.Request) {
	ctx, s := r.Context(), ServerContents{Server: r.PathValue("server")}
	what, cursor := r.URL.Query().Get("of"), r.URL.Query().Get("cursor")
	has := mcp.ServerOffer{Resources: true, Prompts: true}
	for _, o := range ui.app.Library.Offers(ctx) {
		if o.Name == s.Server {
			has = o
		}
	}
	next := ""
	var err error
	if has.Resources && what != "prompts" {
		s.Resources, next, err = ui.app.Library.Resources(ctx, s.Server, cursor)
		s.MoreURL = contentsURL(s, "resources", next)
	}
	if err == nil && has.Prompts && what != "resources" {
		s.Prompts, next, err = ui.app.Library.Prompts(ctx, s.Server, cursor)
		s.PromptURL = contentsURL(s, "prompts", next)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.fragments(w, r, http.StatusOK, part{"server contents", s})
}

func contentsURL(s ServerContents, of, cursor string) string {
	if cursor == "" {
		return ""
	}
	return s.URL(s.Server) + "?" + url.Values{"of": {of}, "cursor": {cursor}}.Encode()
}

// prompt gets the text of a prompt for the composer.
func (ui *handler) prompt(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxField)
	if err := r.ParseForm(); err != nil {
		ui.fail(w, r, artel.Errorf(artel.TooLarge, "webui", "", "the form is too long: %w", err))
		return
	}
	arguments := map[string]string{}
	for name, values := range r.PostForm {
		if a, ok := strings.CutPrefix(name, "a."); ok && values[0] != "" {
			arguments[a] = values[0]
		}
	}
	name := r.PostForm.Get("prompt")
	found, err := ui.app.Library.Prompt(r.Context(), r.PathValue("server"), name, arguments)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	var texts []string
	left := 0
	for _, c := range found {
		switch {
		case c.Bytes != nil:
			left++
		case c.Text == "":
			texts = append(texts, c.URI)
		case c.Role == "assistant":
			texts = append(texts, locale(r).Say(phrase.PageServerContentsAssistant, map[string]any{"Text": c.Text}))
		default:
			texts = append(texts, c.Text)
		}
	}
	parts := []part{{"prompted", Prompted{strings.Join(texts, "\n\n"), name}}}
	if left > 0 {
		parts = append(parts, part{"toast", Toast{ID: "toast-prompt", Text: locale(r).Say(phrase.PageServerContentsLeft, map[string]any{"Count": left}), Bad: true}})
	}
	ui.fragments(w, r, http.StatusOK, parts...)
}
