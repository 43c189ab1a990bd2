// SPDX-License-Identifier: Apache-2.0

// Package webui is the page: HTML made by the server, kept live by server-sent
// events, in English and Chinese.
//
// [New] makes the handler. Every view works without script: forms post, links
// lead. The one script makes it live: it takes HTML fragments from
// /c/{conversation}/live and puts each element in the place of the one with
// the same id, or at the end of the element that its data-into names. So a
// fragment that arrives twice changes nothing, and a page that reconnects with
// Last-Event-ID is right again by itself. It also sends the form without
// leaving the page.
//
// The page brings its own style, script and icon, refers to no other host, and
// forbids inline script and style (Content-Security-Policy). What models and
// people wrote is rendered by package render. The package decides nothing: it
// calls the application and shows what comes back.
package webui

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/phrase"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static
var static embed.FS

// Options are what may be left out.
type Options struct {
	Version string       // shown at the foot; "": "dev"
	Log     *slog.Logger // nil: slog.Default
}

// New returns a handler of the page, for the root of a host.
func New(a *app.App, o Options) http.Handler {
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	ui := &face{app: a, o: o, pages: map[phrase.Locale]func() *template.Template{}}
	for _, l := range phrase.Locales() {
		ui.pages[l] = sync.OnceValue(func() *template.Template {
			return template.Must(template.New("").Funcs(funcs(l)).ParseFS(templates, "templates/*.html"))
		})
	}
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", ui.home)
	mux.HandleFunc("POST /c", ui.begin)
	mux.HandleFunc("GET /c/{cid}", ui.conversation)
	mux.HandleFunc("POST /c/{cid}", ui.send)
	mux.HandleFunc("GET /c/{cid}/live", ui.live)
	mux.HandleFunc("GET /c/{cid}/a/{id}", ui.artifact)
	mux.HandleFunc("POST /r/{rid}/cancel", ui.cancel)
	mux.Handle("GET /static/", http.StripPrefix("/static/", cached(http.FileServerFS(files))))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		ui.fail(w, r, artel.Errorf(artel.NotFound, "webui", "", "%s", locale(r).Say(phrase.PageNothingHere, nil)))
	})
	return secured(mux)
}

type face struct {
	app   *app.App
	o     Options
	pages map[phrase.Locale]func() *template.Template // parsed when they are first shown
}

// secured sets what holds for every answer of the page.
func secured(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; " +
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// cached has browsers ask before they use a static file again: the files
// change with the binary.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

func locale(r *http.Request) phrase.Locale {
	return phrase.ParseLocale(r.Header.Get("Accept-Language"))
}

// show renders a whole page, or nothing of it.
func (ui *face) show(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	var buf bytes.Buffer
	if err := ui.pages[locale(r)]().ExecuteTemplate(&buf, name, data); err != nil {
		ui.o.Log.Error("a page could not be rendered", "page", name, "err", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes())
}

// statuses is the one table from kind to the status of a page; what is not in
// it is our fault.
var statuses = map[artel.Kind]int{
	artel.Invalid:     http.StatusUnprocessableEntity,
	artel.NotFound:    http.StatusNotFound,
	artel.Conflict:    http.StatusConflict,
	artel.Denied:      http.StatusForbidden,
	artel.TooLarge:    http.StatusRequestEntityTooLarge,
	artel.Unsupported: http.StatusUnsupportedMediaType,
	artel.Unavailable: http.StatusServiceUnavailable,
	artel.Canceled:    499,
	artel.Internal:    http.StatusInternalServerError,
}

// explain returns the status and the text of an error for people.
func (ui *face) explain(r *http.Request, err error) (int, string) {
	kind := artel.KindOf(err)
	if kind == artel.Internal {
		ui.o.Log.Error("a page failed", "path", r.URL.Path, "err", err)
		return statuses[kind], locale(r).Say(phrase.PageOurFault, nil)
	}
	return statuses[kind], err.Error()
}

func (ui *face) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := ui.explain(r, err)
	f, ferr := ui.frame(r, "")
	if ferr != nil && !errors.Is(ferr, r.Context().Err()) {
		ui.o.Log.Error("a page failed", "path", r.URL.Path, "err", ferr)
	}
	f.Title = http.StatusText(status)
	ui.show(w, r, status, "error.html", struct {
		frame
		Text string
	}{f, text})
}

// A frame is what every page shows around its content.
type frame struct {
	Title         string
	Lang          string
	Version       string
	Conversations []artel.Conversation
	Current       artel.ConversationID
	Services      []app.Service
	Default       app.Service
	Problems      []app.Service // those that were meant to be called and cannot
}

// shownConversations is how many conversations the list holds.
const shownConversations = 50

func (ui *face) frame(r *http.Request, current artel.ConversationID) (frame, error) {
	f := frame{Lang: string(locale(r)), Version: ui.o.Version, Current: current, Default: ui.app.Models.Default(r.Context())}
	for _, s := range ui.app.Models.Services(r.Context()) {
		if s.Callable() {
			f.Services = append(f.Services, s)
		} else if s.Problem != "" {
			f.Problems = append(f.Problems, s)
		}
	}
	var err error
	f.Conversations, _, err = ui.app.Conversations.List(r.Context(), app.Page{Limit: shownConversations})
	return f, err
}

// Demo reports whether no model but the demo is there.
func (f frame) Demo() bool { return f.Default.Demo() }

func (ui *face) home(w http.ResponseWriter, r *http.Request) {
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = "Artel"
	ui.show(w, r, http.StatusOK, "home.html", struct {
		frame
		Draft
	}{f, Draft{Action: "/c"}})
}

func (ui *face) cancel(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseRunID(r.PathValue("rid"))
	var run artel.Run
	if err == nil {
		run, err = ui.app.Runs.Cancel(r.Context(), id)
	}
	if err != nil && !errors.Is(err, artel.Conflict) { // one that has ended by itself is stopped too
		ui.fail(w, r, err)
		return
	}
	if wantsJSON(r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, "/c/"+string(run.Conversation), http.StatusSeeOther)
}

// wantsJSON reports whether the page's script asks.
func wantsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}
