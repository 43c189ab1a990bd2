// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
)

// Prefs are the reader's preferences. The language comes from the profile; the
// rest is per browser, in a cookie, so that the first byte of a page already
// uses it.
type Prefs struct {
	Language string // a locale; "": the browser's
	Theme    string // "light" or "dark"; "": the system's
	Motion   string // "off"; "": the system's
}

const prefsCookie = "artel"

// languageKey is the context key of the profile's language.
type languageKey struct{}

// withLanguage adds the language of the profile to the request context.
func (ui *handler) withLanguage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/static/") {
			if p, err := ui.app.Profiles.Find(r.Context()); err == nil { // on an error, the handler fails as well
				if l := pageLocale(p.Language); l != "" {
					r = r.WithContext(context.WithValue(r.Context(), languageKey{}, l))
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// pageLocale maps the language of a profile to a locale of the page; "": not
// supported.
func pageLocale(language string) phrase.Locale {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	if l := phrase.Locale(base); slices.Contains(phrase.Locales(), l) {
		return l
	}
	return ""
}

func prefsOf(r *http.Request) Prefs {
	p := cookieOf(r)
	if l, ok := r.Context().Value(languageKey{}).(phrase.Locale); ok {
		p.Language = string(l)
	}
	return p
}

// cookieOf parses the cookie. Its language, set by older versions, applies if
// the profile has none.
func cookieOf(r *http.Request) Prefs {
	c, err := r.Cookie(prefsCookie)
	if err != nil {
		return Prefs{}
	}
	v, err := url.ParseQuery(c.Value)
	if err != nil {
		return Prefs{}
	}
	return prefsFrom(v)
}

// prefsFrom parses known values only.
func prefsFrom(v url.Values) Prefs {
	one := func(name string, known ...string) string {
		if s := v.Get(name); slices.Contains(known, s) {
			return s
		}
		return ""
	}
	return Prefs{
		Language: one("language", string(phrase.English), string(phrase.Chinese)),
		Theme:    one("theme", "light", "dark"),
		Motion:   one("motion", "off"),
	}
}

func (p Prefs) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"language": p.Language, "theme": p.Theme, "motion": p.Motion} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// locale is the language of the answer to r.
func locale(r *http.Request) phrase.Locale {
	if p := prefsOf(r); p.Language != "" {
		return phrase.Locale(p.Language)
	}
	return phrase.ParseLocale(r.Header.Get("Accept-Language"))
}

// settings shows the preferences of this browser, the models, and the discovery
// report.
func (ui *handler) settings(w http.ResponseWriter, r *http.Request) {
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	findings, err := ui.app.Models.Findings(r.Context())
	if err != nil && !errors.Is(err, artel.Denied) { // only administrators see them
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageSettings, nil)
	ui.show(w, r, http.StatusOK, "settings.html", struct {
		frame
		Findings    []model.Finding
		Connections []Connection
	}{f, findings, ui.connections()})
}

func (ui *handler) saveSettings(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxField)
	if err := r.ParseForm(); err != nil {
		ui.fail(w, r, brokenForm(r, err))
		return
	}
	was, next := prefsOf(r), prefsFrom(r.PostForm)
	if next.Language != was.Language {
		if err := ui.setLanguage(r, next.Language); err != nil {
			ui.fail(w, r, err)
			return
		}
	}
	if next.Language != was.Language || pageLocale(was.Language) != "" && cookieOf(r).Language == "" {
		next.Language = "" // stored in the profile
	}
	keepPrefs(w, r, next)
	redirect(w, r, "/settings")
}

// setLanguage stores the language of the page in the profile.
func (ui *handler) setLanguage(r *http.Request, language string) error {
	p, err := ui.app.Profiles.Find(r.Context())
	if err != nil {
		return err
	}
	p.Language = language
	_, err = ui.app.Profiles.Set(r.Context(), p.Profile, p.Revision)
	return err
}

func keepPrefs(w http.ResponseWriter, r *http.Request, p Prefs) {
	http.SetCookie(w, &http.Cookie{
		Name: prefsCookie, Value: p.values().Encode(), Path: peer.Of(r).Prefix + "/", MaxAge: 365 * 24 * 3600,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// A Connection is a way to connect a model: shell lines to copy.
type Connection struct {
	Name, Icon string
	Lines      []string
	Hint       phrase.Key // where the key comes from, or which program has to run
	URL        string     // of Hint; "": none
}

// connections returns shell lines with the command that started the server.
func (ui *handler) connections() []Connection {
	serve := cmp.Or(ui.o.Command, "artel serve")
	return []Connection{
		{"OpenAI", "key-round", []string{"OPENAI_API_KEY=sk-… " + serve}, phrase.PageDoorKey, "https://platform.openai.com/api-keys"},
		{"Anthropic", "key-round", []string{"ANTHROPIC_API_KEY=sk-ant-… " + serve}, phrase.PageDoorKey, "https://console.anthropic.com/settings/keys"},
		{"Google Gemini", "key-round", []string{"GEMINI_API_KEY=… " + serve}, phrase.PageDoorKey, "https://aistudio.google.com/apikey"},
		{"OpenRouter", "key-round", []string{"OPENROUTER_API_KEY=sk-or-… " + serve}, phrase.PageDoorKey, "https://openrouter.ai/keys"},
		{"Ollama", "server", []string{"ollama pull qwen3", "ollama serve", serve}, phrase.PageDoorLocal, "https://ollama.com/download"},
		{"OpenAI API", "plug", []string{"OPENAI_BASE_URL=http://127.0.0.1:8000/v1 " + serve}, phrase.PageDoorOther, ""},
	}
}
