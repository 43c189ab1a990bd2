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
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
)

// A ProfilePage shows the user's profile and the export of all settings.
type ProfilePage struct {
	frame
	Profile settings.Profile
	Other   bool // the language is not one of the page's
	Problem string
	Field   string // field of the problem; "": none
	Report  *Report
}

// A Report lists the changes of a settings file, planned or made.
type Report struct {
	Changes []ReportedChange
	Done    bool
	File    string // file to import, or to restore; "": nothing to do
	Tag     string
}

// A ReportedChange is one change in words.
type ReportedChange struct {
	settings.SettingsChange
	What    string
	Was, Is string
}

// profile shows the user's profile.
func (ui *handler) profile(w http.ResponseWriter, r *http.Request) {
	p, err := ui.app.Profiles.Find(r.Context())
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.showProfile(w, r, http.StatusOK, ProfilePage{Profile: p})
}

func (ui *handler) showProfile(w http.ResponseWriter, r *http.Request, status int, p ProfilePage) {
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

// saveProfile saves the profile without its rules. A changed language applies
// to the page at once.
func (ui *handler) saveProfile(w http.ResponseWriter, r *http.Request) {
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
		next.Revision = settings.AnyRevision
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
		prefs.Language = "" // an earlier choice would override it
		keepPrefs(w, r, prefs)
	}
	http.Redirect(w, r, "/me?saved", http.StatusSeeOther)
}

// subjectOf is the field that an application error is about.
func subjectOf(err error) string {
	if e, ok := errors.AsType[*artel.Error](err); ok {
		return e.Subject
	}
	return ""
}

// exportSettings sends all settings as a file.
func (ui *handler) exportSettings(w http.ResponseWriter, r *http.Request) {
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

// importSettings shows the changes of a file and, if requested, makes them. The
// previous settings are kept in the page for undo.
func (ui *handler) importSettings(w http.ResponseWriter, r *http.Request) {
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

func (ui *handler) importedSettings(w http.ResponseWriter, r *http.Request, fields url.Values) error {
	ctx := r.Context()
	f, err := settings.ParseSettingsFile([]byte(fields.Get("file")))
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

// settingsForm reads the fields of a multipart form as texts, including a file.
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

// reported describes changes in the reader's language.
func reported(changes []settings.SettingsChange, l phrase.Locale) []ReportedChange {
	out := make([]ReportedChange, len(changes))
	for i, c := range changes {
		args := map[string]any{"Name": artel.Visible(c.Name), "Processor": c.Processor}
		key := phrase.Key("page.report_in_" + string(c.Area))
		if c.Area == settings.AreaProfile {
			key = phrase.Key("page.profile_" + c.Name)
		} else if c.Area != settings.AreaOrder && c.Processor == "" {
			key += "_list"
		}
		out[i] = ReportedChange{c, l.Say(key, args), shownValue(c.Was), shownValue(c.Is)}
	}
	return out
}

// shownValue formats a JSON string as text, and other JSON shortened.
func shownValue(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return artel.Shorten(s, 300)
	}
	return artel.Shorten(indented(v), 2000)
}
