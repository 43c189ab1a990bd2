// SPDX-License-Identifier: Apache-2.0

// Package webui is the page: HTML rendered by the server, kept live by
// server-sent events, in English and Chinese.
//
// [New] makes the handler. Every view works without script, with forms and
// links. Script adds live updates by one rule: the server answers with a
// fragment; each element of a fragment replaces the element with the same id,
// or is appended to the element named by data-into, or removes the element with
// its id if it has data-gone. htmx requests fragments (HX-Request) and morphs
// them in; /c/{conversation}/live streams them. Fragments are idempotent, so
// repeated events and reconnects with Last-Event-ID are harmless.
//
// A new view is a template, a function for its data, and a route; docs/page.md
// describes the design language.
//
// The page loads styles, scripts and icons from this server only and forbids
// inline script and style (Content-Security-Policy). Package render renders all
// text of models and users. webui makes no decisions of its own: it calls
// package app and shows the results.
package webui

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/oidc"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

//go:embed templates/*.html
var templates embed.FS

// Options are optional settings.
type Options struct {
	Version string       // shown in the footer; "dev" serves the style page at /ui/style, too; "": "dev"
	Command string       // that started the server, for shell lines to copy; "": "artel serve"
	Samples fs.FS        // sample files in its root; nil: none
	Log     *slog.Logger // nil: slog.Default
	CDN     string       // origin of media beside this server; "": none

	API func() ([]byte, error) // the OpenAPI document, asked for once; nil: no reference
	Now func() time.Time       // the clock of lists and dates; nil: time.Now
}

// New returns the handler of the page, for the root of a host.
func New(a *app.App, o Options) http.Handler { return At(Place{}, a, o) }

// A Place is where browsers reach the page, and how people come in.
type Place struct {
	Prefix string         // of all paths, such as /artel; may be empty
	OIDC   *oidc.Provider // at which people can log in; nil: none

	// Content is where files are shown, as sources of a policy after a space; "": on the
	// same host.
	Content string
}

// At is [New] for a page that browsers reach below a path. Its requests come without
// this path, and its redirects lack it; see
// [github.com/artelhq/artel/httpapi.FromProxies].
func At(p Place, a *app.App, o Options) http.Handler {
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	ui := &handler{app: a, o: o, place: p, assets: newAssets(), samples: readSamples(o), pages: map[phrase.Locale]func() *template.Template{}}
	ui.reference = sync.OnceValues(func() (Reference, error) {
		if o.API == nil {
			return Reference{}, artel.Errorf(artel.NotFound, "webui.Reference", "", "this page has no reference of the API")
		}
		document, err := o.API()
		if err != nil {
			return Reference{}, err
		}
		return parseReference(document)
	})
	for _, l := range phrase.Locales() {
		ui.pages[l] = sync.OnceValue(func() *template.Template {
			return template.Must(template.New("").Funcs(ui.funcs(l)).ParseFS(templates, "templates/*.html"))
		})
	}
	return secured(compressed(ui.withLanguage(ui.routes())), origin(o.CDN), p.Content)
}

func (ui *handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", ui.home)
	mux.HandleFunc("GET /c", ui.list)
	mux.HandleFunc("POST /c", ui.begin)
	mux.HandleFunc("POST /try", ui.try)
	mux.HandleFunc("POST /fit", ui.fit)
	mux.HandleFunc("GET /c/{cid}", ui.conversation)
	mux.HandleFunc("POST /c/{cid}", ui.send)
	mux.HandleFunc("GET /c/{cid}/live", ui.live)
	mux.HandleFunc("GET /c/{cid}/older", ui.older)
	mux.HandleFunc("GET /c/{cid}/title", ui.titleForm)
	mux.HandleFunc("POST /c/{cid}/title", ui.rename)
	mux.HandleFunc("POST /c/{cid}/delete", ui.remove)
	mux.HandleFunc("POST /c/{cid}/restore", ui.restore)
	mux.HandleFunc("GET /c/{cid}/a", ui.conversation)
	mux.HandleFunc("GET /c/{cid}/a/{id}", ui.conversation)
	mux.HandleFunc("POST /c/{cid}/a/{id}", ui.saveArtifact)
	mux.HandleFunc("POST /c/{cid}/a/{id}/title", ui.renameArtifact)
	mux.HandleFunc("POST /c/{cid}/a/{id}/delete", ui.deleteArtifact)
	mux.HandleFunc("POST /c/{cid}/a/{id}/restore", ui.restoreArtifact)
	mux.HandleFunc("POST /c/{cid}/waiting", ui.cancelQueued)
	mux.HandleFunc("POST /c/{cid}/compact", ui.compact)
	mux.HandleFunc("POST /c/{cid}/branch", ui.switchBranch)
	mux.HandleFunc("GET /c/{cid}/m/{mid}/edit", ui.editMessage)
	mux.HandleFunc("POST /c/{cid}/m/{mid}/edit", ui.askAgain)
	mux.HandleFunc("POST /c/{cid}/m/{mid}/retry", ui.askAgain)
	mux.HandleFunc("POST /c/{cid}/m/{mid}/mute", ui.mute)
	mux.HandleFunc("GET /c/{cid}/m/{mid}/covered", ui.covered)
	mux.HandleFunc("POST /c/{cid}/m/{mid}/undo", ui.changeSummary)
	mux.HandleFunc("POST /c/{cid}/m/{mid}/redo", ui.changeSummary)
	mux.HandleFunc("POST /r/{rid}/cancel", ui.cancel)
	mux.HandleFunc("POST /r/{rid}/permissions/{pid}", ui.decide)
	mux.HandleFunc("POST /r/{rid}/elicitations/{eid}", ui.elicit)
	mux.HandleFunc("GET /tool-servers", ui.serverOffers)
	mux.HandleFunc("GET /tool-servers/{server}", ui.serverContents)
	mux.HandleFunc("POST /tool-servers/{server}/prompt", ui.prompt)
	mux.HandleFunc("GET /r/{rid}/context", ui.inspect)
	mux.HandleFunc("GET /r/{rid}/context/{n}", ui.inspect)
	mux.HandleFunc("GET /import", ui.importForm)
	mux.HandleFunc("POST /import", ui.importConversation)
	mux.HandleFunc("GET /gateway", ui.gateway)
	mux.HandleFunc("GET /gateway/live", ui.gatewayLive)
	mux.HandleFunc("POST /glance", ui.preview)
	mux.HandleFunc("POST /c/{cid}/glance", ui.preview)
	mux.HandleFunc("GET /rules", ui.rules)
	mux.HandleFunc("POST /rules/change", ui.changeRules)
	mux.HandleFunc("POST /rules/try", ui.tryRules)
	mux.HandleFunc("GET /rules/edit", ui.editRule)
	mux.HandleFunc("POST /rules/edit", ui.saveRule)
	mux.HandleFunc("GET /rules/import", ui.importRules)
	mux.HandleFunc("POST /rules/import", ui.readRules)
	mux.HandleFunc("POST /rules/keep", ui.keepRules)
	mux.HandleFunc("GET /rules/export", ui.exportRules)
	mux.HandleFunc("GET /macros", ui.macros)
	mux.HandleFunc("POST /macros", ui.tryMacros)
	mux.HandleFunc("GET /agents", ui.agents)
	mux.HandleFunc("GET /agents/new", ui.newAgent)
	mux.HandleFunc("POST /agents/new", ui.saveAgent)
	mux.HandleFunc("POST /agents/check", ui.checkAgent)
	mux.HandleFunc("POST /agents/import", ui.importAgent)
	mux.HandleFunc("POST /agents/restore", ui.restoreAgent)
	mux.HandleFunc("GET /agents/a/{name}", ui.agent)
	mux.HandleFunc("GET /agents/a/{name}/edit", ui.editAgent)
	mux.HandleFunc("POST /agents/a/{name}/edit", ui.saveAgent)
	mux.HandleFunc("POST /agents/a/{name}/delete", ui.deleteAgent)
	mux.HandleFunc("POST /agents/a/{name}/try", ui.tryAgent)
	mux.HandleFunc("POST /agents/a/{name}/begin", ui.beginWith)
	mux.HandleFunc("GET /skills", ui.skills)
	mux.HandleFunc("POST /skills/import", ui.importSkill)
	mux.HandleFunc("GET /skills/s/{name}", ui.skill)
	mux.HandleFunc("POST /skills/s/{name}", ui.changeSkill)
	mux.HandleFunc("GET /books", ui.books)
	mux.HandleFunc("POST /books/import", ui.importFile)
	mux.HandleFunc("GET /books/b/{name}", ui.book)
	mux.HandleFunc("POST /books/b/{name}", ui.changeBook)
	mux.HandleFunc("GET /audit", ui.audit)
	mux.HandleFunc("GET /settings", ui.settings)
	mux.HandleFunc("POST /settings", ui.saveSettings)
	mux.HandleFunc("GET /me", ui.profile)
	mux.HandleFunc("POST /me", ui.saveProfile)
	mux.HandleFunc("GET /me/settings", ui.exportSettings)
	mux.HandleFunc("POST /me/settings", ui.importSettings)
	mux.HandleFunc("GET /pipeline", ui.pipeline)
	mux.HandleFunc("POST /pipeline", ui.changePipeline)
	mux.HandleFunc("GET /services", ui.services)
	mux.HandleFunc("POST /services", ui.saveService)
	mux.HandleFunc("GET /services/new", ui.newService)
	mux.HandleFunc("POST /services/check", ui.checkService)
	mux.HandleFunc("POST /services/check/live", ui.checkServiceLive)
	mux.HandleFunc("GET /services/{id}/edit", ui.editService)
	mux.HandleFunc("POST /services/{id}/switch", ui.switchService)
	mux.HandleFunc("POST /services/{id}/delete", ui.deleteService)
	mux.HandleFunc("GET /tools", ui.tools)
	mux.HandleFunc("GET /tools/{kind}/new", ui.newTool)
	mux.HandleFunc("POST /tools/{kind}", ui.saveTool)
	mux.HandleFunc("POST /tools/{kind}/check", ui.checkTool)
	mux.HandleFunc("POST /tools/{kind}/check/live", ui.checkToolLive)
	mux.HandleFunc("GET /tools/{kind}/{id}/edit", ui.editTool)
	mux.HandleFunc("POST /tools/{kind}/{id}/switch", ui.switchTool)
	mux.HandleFunc("POST /tools/{kind}/{id}/delete", ui.deleteTool)
	mux.HandleFunc("GET /accounts/{name}", ui.mcpAccount)
	mux.HandleFunc("POST /accounts/{name}/disconnect", ui.disconnectAccount)
	mux.HandleFunc("GET /auth/mcp/start", ui.startAccount)
	mux.HandleFunc("GET /auth/mcp/callback", ui.finishAccount)
	mux.HandleFunc("GET /auth/mcp/client.json", ui.clientDocument)
	mux.HandleFunc("POST /models/reload", ui.reload)
	mux.HandleFunc("POST /models/{id}/probe", ui.probe)
	mux.HandleFunc("POST /models/{id}/forget", ui.forget)
	mux.HandleFunc("GET /sample/{name}", ui.sample)
	mux.HandleFunc("GET /login", ui.emptyLogin)
	mux.HandleFunc("POST /login", ui.logIn)
	mux.HandleFunc("POST /logout", ui.logOut)
	if ui.place.OIDC != nil {
		mux.HandleFunc("GET /auth/oidc/start", ui.startOIDC)
		mux.HandleFunc("GET /auth/oidc/callback", ui.finishOIDC)
	}
	mux.HandleFunc("GET /setup", ui.emptyLogin)
	mux.HandleFunc("POST /setup", ui.setUp)
	mux.HandleFunc("GET /invite", ui.emptyLogin)
	mux.HandleFunc("POST /invite", ui.acceptInvitation)
	mux.HandleFunc("GET /api/v1/docs", ui.showReference)
	mux.HandleFunc("GET /account", ui.account)
	mux.HandleFunc("POST /account", ui.saveAccount)
	mux.HandleFunc("POST /account/password", ui.changePassword)
	mux.HandleFunc("POST /account/sessions", ui.endSessions)
	mux.HandleFunc("POST /account/tokens", ui.makeToken)
	mux.HandleFunc("POST /account/tokens/revoke", ui.revokeToken)
	mux.HandleFunc("GET /schedules", ui.schedules)
	mux.HandleFunc("POST /schedules", ui.makeSchedule)
	mux.HandleFunc("GET /schedules/{id}", ui.schedule)
	mux.HandleFunc("POST /schedules/{id}", ui.changeSchedule)
	mux.HandleFunc("POST /schedules/{id}/delete", ui.deleteSchedule)
	mux.HandleFunc("GET /webhooks", ui.webhooks)
	mux.HandleFunc("POST /webhooks", ui.makeWebhook)
	mux.HandleFunc("GET /webhooks/{id}", ui.webhook)
	mux.HandleFunc("POST /webhooks/{id}", ui.changeWebhook)
	mux.HandleFunc("POST /webhooks/{id}/delete", ui.deleteWebhook)
	mux.HandleFunc("GET /keys", ui.keys)
	mux.HandleFunc("POST /keys", ui.makeKey)
	mux.HandleFunc("POST /keys/{id}", ui.changeKey)
	mux.HandleFunc("POST /keys/{id}/revoke", ui.revokeKey)
	mux.HandleFunc("GET /usage", ui.usage)
	mux.HandleFunc("GET /people", ui.people)
	mux.HandleFunc("POST /people", ui.invite)
	mux.HandleFunc("POST /people/{id}", ui.changePerson)
	mux.HandleFunc("POST /people/{id}/reset", ui.inviteAgain)
	mux.HandleFunc("POST /people/{id}/delete", ui.deletePerson)
	mux.Handle("GET /static/", ui.assets)
	if ui.o.Version == "dev" {
		mux.HandleFunc("GET /ui/style", ui.style)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !wantsFragment(r) && !strings.Contains(r.Header.Get("Accept"), "text/html") {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"title":"Not Found","status":404,"code":"not_found","detail":"there is nothing at this path; the API is below /api/v1, the APIs of model providers below /v1 and /v1beta"}`)
			return
		}
		ui.fail(w, r, artel.Errorf(artel.NotFound, "webui", "", "%s", locale(r).Say(phrase.PageNothingHere, nil)))
	})
	return mux
}

type handler struct {
	place   Place
	app     *app.App
	o       Options
	assets  *assets
	samples []Sample
	pages   map[phrase.Locale]func() *template.Template // parsed on first use

	reference func() (Reference, error) // made on first use
}

// origin returns the origin of a URL for a content security policy, after a
// space.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return " " + u.Scheme + "://" + u.Host
}

// secured sets the security headers of every response. Frames show artifacts,
// which the API serves sandboxed, or the host for content. Media may also come from cdn.
func secured(next http.Handler, cdn, content string) http.Handler {
	policy := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:" + cdn + "; media-src 'self' data:" + cdn + "; " +
		"frame-src 'self'" + content + "; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-DNS-Prefetch-Control", "off") // a model can write what it read into the names of links
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// render executes one template.
func (ui *handler) render(out *bytes.Buffer, l phrase.Locale, name string, data any) error {
	n := out.Len()
	err := ui.pages[l]().ExecuteTemplate(out, name, data)
	ui.addPrefix(out, n)
	return err
}

// show renders a whole page, or only an error.
func (ui *handler) show(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	ui.fragments(w, r, status, part{name, data})
}

// A part is one element of a fragment: a template and its data.
type part struct {
	name string
	data any
}

// fragments renders parts in order, or only an error.
func (ui *handler) fragments(w http.ResponseWriter, r *http.Request, status int, parts ...part) {
	var buf bytes.Buffer
	for _, p := range parts {
		if err := ui.render(&buf, locale(r), p.name, p.data); err != nil {
			ui.o.Log.ErrorContext(r.Context(), "a page could not be rendered", "page", p.name, "err", err)
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		}
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "HX-Request, Accept-Language, Cookie")
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes())
}

// wantsFragment reports whether htmx sent the request; otherwise the answer is
// a whole page.
func wantsFragment(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

// wantsJSON reports whether the composer's script sent the request.
func wantsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

// redirect redirects the browser to another page of this site.
func redirect(w http.ResponseWriter, r *http.Request, url string) {
	if wantsFragment(r) {
		w.Header().Set("HX-Redirect", url)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, url, http.StatusSeeOther)
}

// statuses maps error kinds to HTTP statuses.
var statuses = map[artel.Kind]int{
	artel.Invalid:         http.StatusUnprocessableEntity,
	artel.NotFound:        http.StatusNotFound,
	artel.Conflict:        http.StatusConflict,
	artel.Denied:          http.StatusForbidden,
	artel.Unauthenticated: http.StatusUnauthorized,
	artel.TooLarge:        http.StatusRequestEntityTooLarge,
	artel.Unsupported:     http.StatusUnsupportedMediaType,
	artel.Unavailable:     http.StatusServiceUnavailable,
	artel.Canceled:        499,
	artel.Internal:        http.StatusInternalServerError,
}

// explanations are the phrases of errors that a click can cause. Others keep the
// text of the error, without operation and subject.
var explanations = map[string]phrase.Key{
	run.CodeRunActive:          phrase.PageRunActive,
	run.CodeRunLimit:           phrase.PageRunLimit,
	run.CodeNewerSummary:       phrase.PageSummaryNewer,
	run.CodePermissionResolved: phrase.PageDecided, run.CodeElicitationResolved: phrase.PageDecided,
	app.CodeStale:              phrase.PageStale,
	settings.CodeAgentReadOnly: phrase.PageAgentsReadOnly,
	settings.CodeAgentExists:   phrase.PageAgentsExists,
	artel.CodeArtifactNotFound: phrase.PageNoArtifact,
	access.CodeLastAdmin:       phrase.PagePeopleLast,
	access.CodeTokenLimit:      phrase.PageTokenLimit,
	access.CodeWrongPassword:   phrase.PagePasswordWrong,
	access.CodeWrongLogin:      phrase.PageLoginWrong,
	access.CodeInvitationEnded: phrase.PageAddressEnded,
	access.CodeIsSetUp:         phrase.PageAddressEnded,
	access.CodeEmailTaken:      phrase.PagePeopleTaken,
	access.CodeNeedsAdmin:      phrase.PageNeedsAdmin,
	access.CodeMayOnlyRead:     phrase.PageMayOnlyRead,
}

// explain returns the status and the user's text of an error.
func (ui *handler) explain(r *http.Request, err error) (int, string) {
	if refusal := access.Refusal(r.Context()); refusal != nil {
		err = refusal
	}
	kind := artel.KindOf(err)
	if kind == artel.Internal {
		ui.o.Log.ErrorContext(r.Context(), "a page failed", "path", r.URL.Path, "err", err)
		return statuses[kind], locale(r).Say(phrase.PageOurFault, nil)
	}
	status := statuses[kind]
	if e, ok := errors.AsType[*artifact.Full](err); ok {
		key := phrase.PageStorageFull
		if e.Needs < 0 {
			key = phrase.PageStorageFullUnknown
		}
		if e.Reserved {
			key, status = phrase.PageStorageReserved, http.StatusTooManyRequests
		}
		if e.Passing > 0 {
			return status, locale(r).Say(phrase.PageStoragePassing, map[string]any{"Used": phrase.Size(e.Used), "Limit": phrase.Size(e.Limit), "Hours": int(math.Ceil(e.Passing.Hours()))})
		}
		return status, locale(r).Say(key, map[string]any{"Used": phrase.Size(e.Used), "Limit": phrase.Size(e.Limit), "Needs": phrase.Size(e.Needs)})
	}
	if artel.CodeOf(err) == run.CodeRunLimit {
		status = http.StatusTooManyRequests
	}
	if k, ok := explanations[artel.CodeOf(err)]; ok {
		return status, locale(r).Say(k, nil)
	}
	e, ok := errors.AsType[*artel.Error](err)
	if ok && kind == artel.NotFound && e.Subject != "" && e.Subject == r.PathValue("cid") {
		return status, locale(r).Say(phrase.PageNoConversation, nil)
	}
	if ok && e.Err != nil {
		return status, sentence(e.Err.Error())
	}
	return status, sentence(err.Error())
}

// sentence begins the text of an error with a capital letter, unless its first word is a
// name, and ends it with a full stop.
func sentence(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}

// fail shows an error: as a toast for a fragment request, otherwise as a page.
func (ui *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := ui.explain(r, err)
	if wantsFragment(r) {
		ui.fragments(w, r, status, part{"toast", Toast{ID: "toast-error", Text: text, Bad: true}})
		return
	}
	whole := r.Clone(r.Context())
	whole.URL.RawQuery = "" // the unfiltered list: the filter may have caused the error
	f, ferr := ui.frame(whole, "")
	if ferr != nil && !errors.Is(ferr, r.Context().Err()) {
		ui.o.Log.ErrorContext(r.Context(), "a page failed", "path", r.URL.Path, "err", ferr)
	}
	f.Title = locale(r).Say(phrase.PageFailedTitle, nil)
	if status == http.StatusNotFound {
		f.Title = locale(r).Say(phrase.PageNotFound, nil)
	}
	ui.show(w, r, status, "error.html", struct {
		frame
		Text string
	}{f, text})
}

// A Toast is a short message above the page.
type Toast struct {
	ID   string
	Text string
	Undo string // URL of the undo form; "": no undo
	Keep string // state for the undo form
	Bad  bool
}

// A frame is the part shared by all pages.
type frame struct {
	Title   string
	Lang    string
	Prefs   Prefs
	Version string
	List    List
	Current artel.ConversationID
	Models  Models
	Toast   *Toast
	Admin   bool   // who asks may manage the deployment
	Who     string // the name of who is logged in; "": no login is needed
}

func (ui *handler) frame(r *http.Request, current artel.ConversationID) (frame, error) {
	f := frame{
		Lang: string(locale(r)), Prefs: prefsOf(r), Version: ui.o.Version, Current: current,
		Models: ui.models(r), Admin: access.Require(r.Context(), store.ScopeAdmin) == nil,
	}
	if a, ok := access.Of(r.Context()); ok && !ui.app.Access.Open() {
		f.Who = a.Name
	}
	var err error
	f.List, err = ui.conversations(r, current)
	return f, err
}

// Demo reports whether the demo is the only model.
func (f frame) Demo() bool { return f.Models.Default.Demo() }

func (ui *handler) home(w http.ResponseWriter, r *http.Request) {
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageNew, nil)
	if id, err := artel.ParseConversationID(r.URL.Query().Get("deleted")); err == nil {
		if _, err := ui.app.Conversations.Find(r.Context(), id); err != nil { // otherwise it was restored already
			f.Toast = deletedToast(locale(r), id)
		}
	}
	if id := r.URL.Query().Get("connected"); id != "" && f.Models.Default.ID == artel.ServiceID(id) {
		f.Toast = &Toast{ID: "toast-service", Text: locale(r).Say(phrase.PageServiceConnected, map[string]any{"Name": f.Models.Default.Name})}
	}
	ui.showHome(w, r, http.StatusOK, f, Draft{Action: "/c"})
}

func (ui *handler) showHome(w http.ResponseWriter, r *http.Request, status int, f frame, d Draft) {
	d.Models, d.Servers = f.Models, len(ui.app.Library.Offers(r.Context())) > 0
	var err error
	if d.Agents, err = ui.agentChoices(r, d.Agent); err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.show(w, r, status, "home.html", struct {
		frame
		Draft       Draft
		Samples     []Sample
		Connections []Connection
		Providers   []Provider
	}{f, d, ui.samples, ui.connections(), providers()})
}

func (ui *handler) cancel(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseRunID(r.PathValue("rid"))
	var run artel.Run
	if err == nil {
		run, err = ui.app.Runs.Cancel(r.Context(), id)
	}
	if err != nil && !errors.Is(err, artel.Conflict) { // a run that has already ended counts as cancelled
		ui.fail(w, r, err)
		return
	}
	if wantsFragment(r) {
		w.WriteHeader(http.StatusNoContent) // the event stream renders the result
		return
	}
	http.Redirect(w, r, conversationURL(run.Conversation), http.StatusSeeOther)
}
