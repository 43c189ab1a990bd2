// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"net/http"
	"path"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/app/skills"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
)

// A SkillView is a skill: the version that agents are offered, or the newest.
type SkillView struct {
	Name          string            `json:"name"`
	Description   string            `json:"description" doc:"what it does and when to use it; agents choose by it"`
	Source        skills.Source     `json:"source" enum:"folder,stored" doc:"a folder of the deployment, which is read-only, or imported"`
	Dir           string            `json:"dir,omitempty" doc:"the folder of the deployment"`
	Offered       int               `json:"offered" doc:"the version that agents can open; 0 of a stored one: none, until PATCH"`
	Version       int               `json:"version" doc:"that is described here; 0 of a folder"`
	Newest        int               `json:"newest"`
	Digest        artel.Digest      `json:"digest" doc:"of all files of the version"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty" doc:"what it needs"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	AllowedTools  []string          `json:"allowed_tools,omitempty" doc:"what SKILL.md says; it gives no permission"`
	Files         int               `json:"files"`
	Bytes         int64             `json:"bytes"`
	Notes         []SkillNote       `json:"notes" nullable:"false" doc:"what works differently here, or not at all"`
	Agents        []artel.AgentName `json:"agents" nullable:"false" doc:"that can open it"`
	ReadOnly      bool              `json:"read_only"`
	CreatedAt     *time.Time        `json:"created_at,omitempty" doc:"of the version"`
}

// A SkillNote says what works differently here, or not at all.
type SkillNote struct {
	Code    skill.Code `json:"code"`
	Message string     `json:"message"`
}

// A SkillDetail is a version of a skill with its instructions and files.
type SkillDetail struct {
	SkillView
	Text     string           `json:"text" doc:"the instructions: SKILL.md without its front matter"`
	Contents []tool.SkillFile `json:"contents" nullable:"false" doc:"the files; read them at /skills/{skill}/file"`
	Versions []SkillVersion   `json:"versions" nullable:"false" doc:"oldest first"`
}

// A SkillVersion is one state of a skill.
type SkillVersion struct {
	Version   int          `json:"version"`
	Digest    artel.Digest `json:"digest"`
	Files     int          `json:"files"`
	Bytes     int64        `json:"bytes"`
	CreatedAt time.Time    `json:"created_at,omitzero"`
}

// SkillViewOf converts a version of a skill.
func SkillViewOf(x skills.Skill, v skills.Version, agents []settings.Agent) SkillView {
	s := v.Skill
	out := SkillView{
		Name: x.Name, Description: s.Description, Source: x.Source, Dir: x.Dir, Offered: x.Offered, Version: v.Number, Newest: x.Newest().Number,
		Digest: v.Digest, License: s.License, Compatibility: s.Compatibility, Metadata: s.Metadata, AllowedTools: s.AllowedTools, Files: v.Files, Bytes: v.Bytes,
		Notes:  nonNil(mapSlice(v.Notes, func(n skill.Note) SkillNote { return SkillNote{n.Code, n.In(phrase.English)} })),
		Agents: nonNil(settings.WithSkill(agents, x.Name)), ReadOnly: x.Source == skills.SourceFolder,
	}
	if !v.CreatedAt.IsZero() {
		out.CreatedAt = &v.CreatedAt
	}
	return out
}

// A SkillImported says what an import has done.
type SkillImported struct {
	SkillView
	New     bool  `json:"new" doc:"the version is new; otherwise the skill had this content already"`
	Removed []int `json:"removed,omitempty" doc:"old versions over the limit of 20"`
}

// A SkillChange is the body of PATCH /skills/{skill}.
type SkillChange struct {
	Offered int `json:"offered" minimum:"0" doc:"the version that agents can open from their next run on; 0: none"`
}

// A SkillPath names a skill.
type SkillPath struct {
	Skill string `path:"skill" maxLength:"64"`
}

// A SkillVersionQuery names a version.
type SkillVersionQuery struct {
	SkillPath
	Version int `query:"version" minimum:"0" doc:"absent: the one that agents are offered, or the newest"`
}

func (f *server) skills() {
	register(f, f.op(http.MethodGet, "/skills", "list-skills", "List your skills and those of the deployment", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[List[SkillView]], error) {
			all, err := f.app.Skills.List(ctx)
			if err != nil {
				return nil, err
			}
			agents, err := f.app.Agents.List(ctx)
			return answer(listOf(mapSlice(all, func(x skills.Skill) SkillView { return SkillViewOf(x, x.Current(), agents) }), ""), err)
		})
	register(f, f.op(http.MethodGet, "/skills/{skill}", "read-skill", "Read a version of a skill with its instructions and the list of its files", http.StatusOK),
		func(ctx context.Context, in *SkillVersionQuery) (*revised[SkillDetail], error) {
			x, d, err := f.skill(ctx, in.Skill, in.Version)
			return answerRevision(x.Revision, d, err)
		})
	register(f, f.op(http.MethodPatch, "/skills/{skill}", "offer-skill", "Choose the version of a skill that agents can open, or none", http.StatusOK),
		func(ctx context.Context, in *struct {
			SkillPath
			SettingMatch
			Body SkillChange
		},
		) (*revised[SkillView], error) {
			n, err := in.revision()
			if err != nil {
				return nil, err
			}
			x, err := f.app.Skills.Offer(ctx, in.Skill, in.Body.Offered, max(n, 0))
			if err != nil {
				return nil, err
			}
			agents, err := f.app.Agents.List(ctx)
			return answerRevision(x.Revision, SkillViewOf(x, x.Current(), agents), err)
		})
	register(f, f.op(http.MethodDelete, "/skills/{skill}", "delete-skill", "Delete a skill with all versions", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			SkillPath
			SettingMatch
		},
		) (*none, error) {
			n, err := in.revision()
			if err == nil {
				err = f.app.Skills.Delete(ctx, in.Skill, max(n, 0))
			}
			return nil, err
		})
	f.skillFiles()
	f.skillImport()
}

// skill returns a version of a skill; 0 is the current one.
func (f *server) skill(ctx context.Context, name string, number int) (x skills.Skill, d SkillDetail, err error) {
	if x, err = f.app.Skills.Find(ctx, name); err != nil {
		return x, d, err
	}
	v, files, err := f.app.Skills.Files(ctx, name, number)
	if err != nil {
		return x, d, err
	}
	text, err := f.app.Skills.Text(ctx, name, v.Number, skill.FileName)
	if err != nil {
		return x, d, err
	}
	agents, err := f.app.Agents.List(ctx)
	d = SkillDetail{SkillView: SkillViewOf(x, v, agents), Text: skill.Text(text), Contents: nonNil(files)}
	for _, o := range x.Versions {
		d.Versions = append(d.Versions, SkillVersion{o.Number, o.Digest, o.Files, o.Bytes, o.CreatedAt})
	}
	return x, d, err
}

// skillFiles registers the downloads of files and of whole skills.
func (f *server) skillFiles() {
	binary := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	one := f.op(http.MethodGet, "/skills/{skill}/file", "read-skill-file", "Read a file of a skill", http.StatusOK)
	one.Responses["200"] = &huma.Response{Description: "the bytes of the file", Content: map[string]*huma.MediaType{"*/*": binary}}
	register(f, one, func(ctx context.Context, in *struct {
		SkillVersionQuery
		Path string `query:"path" maxLength:"255" doc:"absent: SKILL.md"`
	},
	) (*huma.StreamResponse, error) {
		o, err := f.app.Skills.Open(ctx, in.Skill, in.Version, in.Path)
		if err != nil {
			return nil, err
		}
		return f.serveExport(app.Exported{Filename: path.Base(o.Path), MediaType: o.Info.MediaType, Version: o.Version, Write: func(_ context.Context, w io.Writer) error {
			defer o.Content.Close()
			_, err := io.Copy(w, o.Content)
			return err
		}}, nil)
	})
	all := f.op(http.MethodGet, "/skills/{skill}/export", "export-skill", "Download a skill as a ZIP", http.StatusOK)
	all.Description = "The ZIP of a version always has the same bytes, and its files are those that were imported."
	all.Responses["200"] = &huma.Response{Description: "a file for download", Content: map[string]*huma.MediaType{"application/zip": binary}}
	register(f, all, func(ctx context.Context, in *SkillVersionQuery) (*huma.StreamResponse, error) {
		v, _, err := f.app.Skills.Files(ctx, in.Skill, in.Version)
		return f.serveExport(app.Exported{Filename: in.Skill + ".zip", MediaType: "application/zip", Version: v.Number, Write: func(ctx context.Context, w io.Writer) error {
			return f.app.Skills.Export(ctx, in.Skill, v.Number, w)
		}}, err)
	})
}

// skillImport registers the import of a ZIP.
func (f *server) skillImport() {
	op := f.op(http.MethodPost, "/skills/import", "import-skill", "Import a skill as a new version", http.StatusCreated)
	op.Description = "The body is a ZIP with a folder that has SKILL.md. Content that the skill has had makes no new version. No script of it is ever run."
	register(f, op, func(ctx context.Context, in *struct {
		Offer bool `query:"offer" default:"true" doc:"agents can open this version from their next run on; false: they keep the one that they have, or none"`
		RawRequest
	},
	) (*body[SkillImported], error) {
		ctx, release, err := f.app.Storage.Reserve(ctx, in.request.ContentLength, max(in.request.ContentLength, 0))
		if err != nil {
			return nil, err
		}
		defer release()
		u, err := skills.NewUpload(f.app.Skills)
		if err != nil {
			return nil, err
		}
		defer u.Close()
		if err := u.Add("", form.Sent(in.request.Body)); err != nil {
			return nil, err
		}
		folder, err := u.Folder()
		if err != nil {
			return nil, err
		}
		done, err := f.app.Skills.Import(ctx, folder, in.Offer)
		if err != nil {
			return nil, err
		}
		agents, err := f.app.Agents.List(ctx)
		return answer(SkillImported{SkillViewOf(done.Skill, done.Version, agents), done.New, done.Removed}, err)
	})
	f.describeBody(op, map[string]*huma.MediaType{
		"application/zip": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	})
}
