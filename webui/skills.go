// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/app/skills"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/render"
)

// A SkillsPage lists the skills.
type SkillsPage struct {
	frame
	Skills  []ShownSkill
	Problem string // why an import failed; "": none did
}

// A ShownSkill is a skill as the page shows it.
type ShownSkill struct {
	skills.Skill
	Version skills.Version // that is shown
	agents  []artel.AgentName
}

func skillURL(name string) string { return "/skills/s/" + url.PathEscape(name) }

// URL is the address of the skill's page.
func (s ShownSkill) URL() string { return skillURL(s.Name) }

// VersionURL is the address of a version on the skill's page.
func (s ShownSkill) VersionURL(number int) string { return s.URL() + "?version=" + itoa(number) }

// ExportURL is the address of the shown version as a ZIP.
func (s ShownSkill) ExportURL() string {
	return "/api/v1/skills/" + url.PathEscape(s.Name) + "/export?version=" + itoa(s.Version.Number)
}

// Users are the agents that can open the skill.
func (s ShownSkill) Users() []Link { return Links(s.agents) }

// Fixed reports whether the skill is of the deployment.
func (s ShownSkill) Fixed() bool { return s.Source == skills.SourceFolder }

// Size is that of all files.
func (s ShownSkill) Size() string { return phrase.Size(s.Version.Bytes) }

// A SkillPage is the page of one version of a skill.
type SkillPage struct {
	frame
	Skill   ShownSkill
	Files   []ShownSkillFile
	Path    string        // of the shown file
	Text    template.HTML // of a text; exactly as agents read it
	Cut     bool          // only the beginning of the text is shown
	Picture string        // address of a picture
	Notes   []string
	Problem string
}

// A ShownSkillFile is a file in the list.
type ShownSkillFile struct {
	tool.SkillFile
	URL, Download string
	Shown         bool
	Size          string
}

// Offered reports whether agents get the shown version.
func (p SkillPage) Offered() bool {
	return p.Skill.Fixed() || p.Skill.Offered == p.Skill.Version.Number
}

// Facts are the license, what the skill needs, and its metadata.
func (p SkillPage) Facts() []Effect {
	s := p.Skill.Version.Skill
	out := []Effect{{"license", s.License}, {"compatibility", s.Compatibility}}
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		out = append(out, Effect{key, s.Metadata[key]})
	}
	return out
}

func (ui *handler) skills(w http.ResponseWriter, r *http.Request) {
	ui.showSkills(w, r, http.StatusOK, "")
}

func (ui *handler) showSkills(w http.ResponseWriter, r *http.Request, status int, problem string) {
	p := SkillsPage{Problem: problem}
	all, err := ui.app.Skills.List(r.Context())
	var agents []settings.Agent
	if err == nil {
		agents, err = ui.app.Agents.List(r.Context())
	}
	if err == nil {
		p.frame, err = ui.frame(r, "")
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for _, x := range all {
		p.Skills = append(p.Skills, ShownSkill{x, x.Current(), settings.WithSkill(agents, x.Name)})
	}
	p.Title = locale(r).Say(phrase.PageSkills, nil)
	ui.show(w, r, status, "skills.html", p)
}

func (ui *handler) skill(w http.ResponseWriter, r *http.Request) {
	ui.showSkill(w, r, http.StatusOK, "")
}

// shownOfSkill is how many characters of a text the page shows.
const shownOfSkill = 256 << 10

func (ui *handler) showSkill(w http.ResponseWriter, r *http.Request, status int, problem string) {
	p := SkillPage{Problem: problem, Path: cmp.Or(r.URL.Query().Get("path"), skill.FileName)}
	err := ui.fillSkill(r.Context(), &p, r.PathValue("name"), atoi(r.FormValue("version")), locale(r))
	if err == nil {
		p.frame, err = ui.frame(r, "")
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	p.Title = p.Skill.Name
	ui.show(w, r, status, "skill.html", p)
}

func (ui *handler) fillSkill(ctx context.Context, p *SkillPage, name string, number int, l phrase.Locale) (err error) {
	x, err := ui.app.Skills.Find(ctx, name)
	if err != nil {
		return err
	}
	v, files, err := ui.app.Skills.Files(ctx, name, number)
	if err != nil {
		return err
	}
	agents, err := ui.app.Agents.List(ctx)
	if err != nil {
		return err
	}
	p.Skill = ShownSkill{x, v, settings.WithSkill(agents, name)}
	for _, n := range v.Notes {
		p.Notes = append(p.Notes, n.In(l))
	}
	for _, f := range files {
		q := url.Values{"path": {f.Path}, "version": {itoa(v.Number)}}.Encode()
		p.Files = append(p.Files, ShownSkillFile{
			SkillFile: f, URL: skillURL(name) + "?" + q + "#file", Download: "/api/v1/skills/" + url.PathEscape(name) + "/file?" + q, Shown: f.Path == p.Path, Size: phrase.Size(f.Size),
		})
	}
	o, err := ui.app.Skills.Open(ctx, name, v.Number, p.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Content.Close()) }()
	switch {
	case o.Info.Kind == artel.KindImage && o.Info.MediaType != "image/svg+xml":
		p.Picture = "/api/v1/skills/" + url.PathEscape(name) + "/file?" + url.Values{"path": {p.Path}, "version": {itoa(v.Number)}}.Encode()
	case !o.Info.IsBinary():
		text, err := ui.app.Skills.Text(ctx, name, v.Number, p.Path)
		if err != nil {
			return err
		}
		shown := artel.Beginning(text, shownOfSkill)
		p.Text, p.Cut = render.Code(shown, strings.TrimPrefix(path.Ext(p.Path), ".")), len(shown) < len(text)
	}
	return nil
}

// changeSkill chooses the version for agents, or deletes the skill.
func (ui *handler) changeSkill(w http.ResponseWriter, r *http.Request) {
	v, err := settingsForm(w, r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ctx, name, revision := r.Context(), r.PathValue("name"), atoi(v.Get("revision"))
	to := skillURL(name)
	switch v.Get("do") {
	case "offer":
		_, err = ui.app.Skills.Offer(ctx, name, max(atoi(v.Get("version")), 1), revision)
	case "withdraw":
		_, err = ui.app.Skills.Offer(ctx, name, 0, revision)
	case "delete":
		err, to = ui.app.Skills.Delete(ctx, name, revision), "/skills"
	default:
		err = artel.Errorf(artel.Invalid, "webui", "do", "%q is unknown", artel.Shorten(v.Get("do"), 40))
	}
	if err != nil {
		status, problem := ui.explain(r, err)
		ui.showSkill(w, r, status, problem)
		return
	}
	redirect(w, r, to)
}

// importSkill keeps an uploaded ZIP or folder, and shows it before agents get it.
func (ui *handler) importSkill(w http.ResponseWriter, r *http.Request) {
	done, err := ui.importedSkill(w, r)
	if err != nil {
		status, problem := ui.explain(r, err)
		if e, ok := errors.AsType[*artel.Error](err); ok && e.Subject != "" && artel.KindOf(err) == artel.Invalid { // the file
			problem = artel.Visible(e.Subject) + ": " + problem
		}
		if wantsJSON(r) {
			writeJSON(w, status, map[string]string{"error": problem})
			return
		}
		ui.showSkills(w, r, status, problem)
		return
	}
	to := skillURL(done.Skill.Name) + "?version=" + itoa(done.Version.Number)
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, map[string]string{"url": ui.place.Prefix + to})
		return
	}
	redirect(w, r, to)
}

func (ui *handler) importedSkill(w http.ResponseWriter, r *http.Request) (done skills.Imported, err error) {
	ctx, release, err := ui.app.Storage.Reserve(r.Context(), r.ContentLength, max(r.ContentLength, 0))
	if err != nil {
		return done, err
	}
	defer release()
	u, err := skills.NewUpload(ui.app.Skills)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	files := 0
	for part, err := range form.Parts(http.MaxBytesReader(w, r.Body, skill.MaxZIP+1<<20), r.Header.Get("Content-Type")) {
		if artel.CodeOf(err) == form.CodeMalformed {
			return done, brokenForm(r, err)
		}
		if err != nil {
			return done, err
		}
		if part.Name != "file" || part.Filename == "" {
			continue
		}
		files++
		if err := u.Add(part.Path, part); err != nil {
			return done, err
		}
	}
	if files == 0 {
		return done, artel.Errorf(artel.Invalid, "webui", "file", "%s", locale(r).Say(phrase.PageSkillsNoFile, nil))
	}
	folder, err := u.Folder()
	if err != nil {
		return done, err
	}
	return ui.app.Skills.Import(ctx, folder, false)
}
