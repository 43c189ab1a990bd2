// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/phrase"
)

// Prefs are what a reader chose. The language is that of the profile; the rest
// is for this browser, and travels in a cookie, so that a page comes as it is
// wanted from the first byte on.
type Prefs struct {
	Language string // a locale; "": as the browser asks
	Theme    string // "light" or "dark"; "": as the system has it
	Motion   string // "off"; "": as the system has it
}

const prefsCookie = "artel"

// spokenKey is where a request has the language of the profile.
type spokenKey struct{}

// spoken looks up in which language the profile wants the page, whoever has set it.
func (ui *face) spoken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/static/") {
			if p, err := ui.app.Profiles.Find(r.Context()); err == nil { // else the handler runs into it, too
				if l := pageLocale(p.Language); l != "" {
					r = r.WithContext(context.WithValue(r.Context(), spokenKey{}, l))
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// pageLocale is the language of the page for a language of a profile; "": the
// page has none for it.
func pageLocale(language string) phrase.Locale {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	if l := phrase.Locale(base); slices.Contains(phrase.Locales(), l) {
		return l
	}
	return ""
}

func prefsOf(r *http.Request) Prefs {
	p := cookieOf(r)
	if l, ok := r.Context().Value(spokenKey{}).(phrase.Locale); ok {
		p.Language = string(l)
	}
	return p
}

// cookieOf is what the cookie says. A language in it is of a time when it was
// chosen for a browser; it holds where the profile names none.
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

// prefsFrom takes over what is known and nothing else.
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

// settings shows what this browser prefers, the models that there are, and
// where they were looked for.
func (ui *face) settings(w http.ResponseWriter, r *http.Request) {
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageSettings, nil)
	ui.show(w, r, http.StatusOK, "settings.html", struct {
		frame
		Findings []app.Finding
		Doors    []Door
	}{f, ui.app.Models.Findings(r.Context()), doors()})
}

func (ui *face) saveSettings(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxField)
	if err := r.ParseForm(); err != nil {
		ui.fail(w, r, brokenForm(r, err))
		return
	}
	was, next := prefsOf(r), prefsFrom(r.PostForm)
	if next.Language != was.Language {
		if err := ui.speak(r, next.Language); err != nil {
			ui.fail(w, r, err)
			return
		}
	}
	if next.Language != was.Language || pageLocale(was.Language) != "" && cookieOf(r).Language == "" {
		next.Language = "" // the profile has it
	}
	keepPrefs(w, next)
	lead(w, r, "/settings")
}

// speak writes the language of the page into the profile.
func (ui *face) speak(r *http.Request, language string) error {
	p, err := ui.app.Profiles.Find(r.Context())
	if err != nil {
		return err
	}
	p.Language = language
	_, err = ui.app.Profiles.Set(r.Context(), p.Profile, p.Revision)
	return err
}

func keepPrefs(w http.ResponseWriter, p Prefs) {
	http.SetCookie(w, &http.Cookie{
		Name: prefsCookie, Value: p.values().Encode(), Path: "/", MaxAge: 365 * 24 * 3600,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// A Door is a way to connect a model: the lines that do it, ready to be copied.
type Door struct {
	Name, Icon string
	Lines      []string
	Hint       phrase.Key // where the key comes from, or what has to run
	URL        string     // of that place; "": none
}

func doors() []Door {
	return []Door{
		{"OpenAI", "key-round", []string{"OPENAI_API_KEY=sk-… artel serve"}, phrase.PageDoorKey, "https://platform.openai.com/api-keys"},
		{"Anthropic", "key-round", []string{"ANTHROPIC_API_KEY=sk-ant-… artel serve"}, phrase.PageDoorKey, "https://console.anthropic.com/settings/keys"},
		{"Google Gemini", "key-round", []string{"GEMINI_API_KEY=… artel serve"}, phrase.PageDoorKey, "https://aistudio.google.com/apikey"},
		{"OpenRouter", "key-round", []string{"OPENROUTER_API_KEY=sk-or-… artel serve"}, phrase.PageDoorKey, "https://openrouter.ai/keys"},
		{"Ollama", "server", []string{"ollama pull qwen3", "ollama serve", "artel serve"}, phrase.PageDoorLocal, "https://ollama.com/download"},
		{"OpenAI API", "plug", []string{"OPENAI_BASE_URL=http://127.0.0.1:8000/v1 OPENAI_MODEL=… artel serve"}, phrase.PageDoorOther, ""},
	}
}
