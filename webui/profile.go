// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
)

// A ProfilePage is what somebody says about themselves, and their settings as
// one file.
type ProfilePage struct {
	frame
	Profile app.Profile
	Other   bool // the language is none of those of the page
	Problem string
	Field   string // that the problem is about; "": none
	Report  *Report
}

// A Report says what an import of a file changes, or has changed.
type Report struct {
	Changes []ReportedChange
	Done    bool
	File    string // to be imported, or to go back to; "": nothing is to be done
	Tag     string
}

// A ReportedChange is one change, in words.
type ReportedChange struct {
	app.SettingsChange
	What    string
	Was, Is string
}

// profile shows what somebody says about themselves.
func (ui *face) profile(w http.ResponseWriter, r *http.Request) {
	p, err := ui.app.Profiles.Find(r.Context())
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.showProfile(w, r, http.StatusOK, ProfilePage{Profile: p})
}

func (ui *face) showProfile(w http.ResponseWriter, r *http.Request, status int, p ProfilePage) {
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageProfile, nil)
	if r.URL.Query().Has("saved") {
		f.Toast = &Toast{ID: "toast-saved", Text: locale(r).Say(phrase.PageSaved, nil)}
	}
	p.frame = f
	p.Other = p.Profile.Language != "" && !slices.Contains(phrase.Locales(), phrase.Locale(p.Profile.Language))
	ui.show(w, r, status, "profile.html", p)
}

// saveProfile keeps what somebody says about themselves. The rules stay as they
// are. A language that is another one than before is that of the page at once.
func (ui *face) saveProfile(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxField)
	if err := r.ParseForm(); err != nil {
		ui.fail(w, r, brokenForm(r, err))
		return
	}
	now, err := ui.app.Profiles.Find(r.Context())
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	before, next := now.Language, now
	next.Name, next.Language = strings.TrimSpace(r.PostForm.Get("name")), strings.TrimSpace(r.PostForm.Get("language"))
	next.Persona = strings.ReplaceAll(r.PostForm.Get("persona"), "\r\n", "\n")
	if next.Revision, err = strconv.Atoi(r.PostForm.Get("revision")); err != nil {
		next.Revision = app.AnyRevision
	}
	if _, err = ui.app.Profiles.Set(r.Context(), next.Profile, next.Revision); err != nil {
		status, text := ui.explain(r, err)
		p := ProfilePage{Profile: next, Problem: text, Field: subjectOf(err)}
		if artel.CodeOf(err) == app.CodeStale {
			p = ProfilePage{Profile: now, Problem: locale(r).Say(phrase.PageSettingsStale, nil)}
		}
		ui.showProfile(w, r, status, p)
		return
	}
	if next.Language != before {
		prefs := cookieOf(r)
		prefs.Language = "" // a choice of before would hide it
		keepPrefs(w, prefs)
	}
	http.Redirect(w, r, "/me?saved", http.StatusSeeOther)
}

// subjectOf is the field that an error of the application is about.
func subjectOf(err error) string {
	if e, ok := errors.AsType[*artel.Error](err); ok {
		return e.Subject
	}
	return ""
}

// exportSettings sends all that somebody has set as a file.
func (ui *face) exportSettings(w http.ResponseWriter, r *http.Request) {
	f, err := ui.app.Profiles.Export(r.Context())
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="artel-settings.json"`)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(indented(encoded(f)) + "\n"))
}

// importSettings says what a file would change and, where that is asked for,
// does it. What was there before is offered to go back to.
func (ui *face) importSettings(w http.ResponseWriter, r *http.Request) {
	fields, err := settingsForm(w, r)
	if err == nil {
		err = ui.importedSettings(w, r, fields)
	}
	if err != nil {
		status, text := ui.explain(r, err)
		if artel.CodeOf(err) == app.CodeStale {
			text = locale(r).Say(phrase.PageSettingsStale, nil)
		}
		p, found := ui.app.Profiles.Find(r.Context())
		if found != nil {
			ui.fail(w, r, found)
			return
		}
		ui.showProfile(w, r, status, ProfilePage{Profile: p, Problem: text, Field: "file"})
	}
}

func (ui *face) importedSettings(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	ctx := r.Context()
	f, err := app.ParseSettingsFile([]byte(fields.Get("file")))
	if err != nil {
		return err
	}
	found, err := ui.app.Profiles.Compare(ctx, f)
	if err != nil {
		return err
	}
	out := Report{Changes: reported(found.Changes, locale(r)), File: string(encoded(f)), Tag: found.Tag}
	if fields.Get("tag") != "" {
		before, err := ui.app.Profiles.Export(ctx)
		if err != nil {
			return err
		}
		after, err := ui.app.Profiles.Import(ctx, f, fields.Get("tag"))
		if err != nil {
			return err
		}
		out.Done, out.File, out.Tag = true, string(encoded(before)), after.Tag()
	}
	p, err := ui.app.Profiles.Find(ctx)
	if err != nil {
		return err
	}
	ui.showProfile(w, r, http.StatusOK, ProfilePage{Profile: p, Report: &out})
	return nil
}

// settingsForm reads the fields of a form, a file among them, as texts.
func settingsForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, 16*maxField)
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		if err := r.ParseForm(); err != nil {
			return nil, brokenForm(r, err)
		}
		return r.PostForm, nil
	}
	out := url.Values{}
	for part, err := range form.Parts(r.Body, r.Header.Get("Content-Type")) {
		if err != nil {
			return nil, brokenForm(r, err)
		}
		var b bytes.Buffer
		if _, err := b.ReadFrom(part); err != nil {
			return nil, brokenForm(r, err)
		}
		out.Set(part.Name, b.String())
	}
	return out, nil
}

// reported says changes in the reader's words.
func reported(changes []app.SettingsChange, l phrase.Locale) []ReportedChange {
	out := make([]ReportedChange, len(changes))
	for i, c := range changes {
		args := map[string]any{"Name": artel.Visible(c.Name), "Processor": c.Processor}
		key := phrase.Key("page.report_in_" + string(c.Area))
		if c.Area == app.AreaProfile {
			key = phrase.Key("page.profile_" + c.Name)
		} else if c.Area != app.AreaOrder && c.Processor == "" {
			key += "_list"
		}
		out[i] = ReportedChange{c, l.Say(key, args), shownValue(c.Was), shownValue(c.Is)}
	}
	return out
}

// shownValue is a text as it is, and anything else as JSON, cut where it is long.
func shownValue(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return artel.Shorten(s, 300)
	}
	return artel.Shorten(indented(v), 2000)
}
