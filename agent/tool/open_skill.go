// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
)

//go:embed open_skill.md
var openSkillDoc string

// OpenSkill is the name of the tool that opens skills. Every agent with skills has it.
const OpenSkill = "open_skill"

// Skills are the skills that an agent can open, each in one version.
type Skills interface {
	// List returns them by name.
	List() []skill.Listed
	// Open opens a file of a skill. An error is for the model.
	Open(ctx context.Context, name, path string) (OpenedSkill, error)
}

// An OpenedSkill is a file of a skill. The caller closes it.
type OpenedSkill struct {
	skill.Listed
	Digest  artel.Digest // of all files of this version
	Path    string
	Info    artel.MediaInfo
	Content io.ReadCloser
	Files   []SkillFile // all of the skill
}

// A SkillFile describes a file of a skill.
type SkillFile struct {
	Path   string       `json:"path"`
	Digest artel.Digest `json:"digest"`
	artel.MediaInfo
}

type openSkillArgs struct {
	Name   string `json:"name,omitempty"`
	Path   string `json:"path,omitempty" jsonschema:"of a file of the skill"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Column int    `json:"column,omitempty"`
	Copy   bool   `json:"copy,omitempty" jsonschema:"make an artifact of the file"`
}

// OpenSkillTool returns the tool that opens skills of [Env.Skills], with a list of them
// in its description. The list is the same for the same skills, so that the cache of a
// model service holds.
func OpenSkillTool(skills []skill.Listed) Tool {
	short, help := SplitDoc(openSkillDoc)
	list, shortened, left := skill.List(skills, skill.Budget)
	switch {
	case left > 0:
		list += fmt.Sprintf("There are %d more skills: %s without a name lists all of them.\n", left, OpenSkill)
	case shortened:
		list += fmt.Sprintf("Some descriptions are shortened: %s without a name lists them in full.\n", OpenSkill)
	}
	t := Func(OpenSkill, "", openSkill)
	t.Doc, t.Help = short+"\n\nThe skills:\n"+strings.TrimSpace(list), help
	t.Parallel, t.ShowsContent, t.Repeat = true, true, RepeatAlways
	return t
}

func openSkill(ctx context.Context, e *Env, in openSkillArgs) (Result, error) {
	if e.Skills == nil {
		return Failed("%s: this agent has no skills", OpenSkill), nil
	}
	if in.Offset < 0 || in.Column < 0 {
		return Failed("%s: offset and column are numbers from 1", OpenSkill), nil
	}
	in.Name, in.Path = strings.TrimSpace(in.Name), strings.TrimPrefix(strings.TrimSpace(in.Path), "./")
	if in.Name == "" {
		return listSkills(e.Skills.List(), in), nil
	}
	s, err := e.Skills.Open(ctx, in.Name, in.Path)
	if err != nil {
		return failure(err)
	}
	r, err := s.result(ctx, e, in)
	if err = errors.Join(err, s.Content.Close()); err != nil {
		return failure(err)
	}
	if r.Metadata == nil {
		r.Metadata = map[string]any{}
	}
	r.Metadata["skill"], r.Metadata["skill_version"], r.Metadata["skill_digest"], r.Metadata["path"] = s.Name, s.Version, s.Digest, s.Path
	return r, nil
}

// listSkills returns a page of the skills.
func listSkills(all []skill.Listed, in openSkillArgs) Result {
	text, _, _ := skill.List(all, 1<<30)
	p := pageAt(text, max(in.Offset, 1), max(in.Column, 1), 0, maxShown)
	if p.line > 0 {
		p.body += fmt.Sprintf("[%d of %d skills are shown. To continue: %s]", p.last-p.first+1, len(all), in.next(p))
	}
	return Result{Content: p.body}
}

func (s OpenedSkill) result(ctx context.Context, e *Env, in openSkillArgs) (Result, error) {
	if in.Copy || s.Info.IsBinary() {
		return s.keep(ctx, e)
	}
	b, err := io.ReadAll(io.LimitReader(s.Content, skill.MaxFile))
	if err != nil {
		return Result{}, err
	}
	text, err := media.DecodeText(strings.NewReader(string(b)), s.Info.Charset)
	if err != nil {
		return Result{}, err
	}
	if s.Path == skill.FileName {
		text = skill.Text(text)
	}
	p := pageAt(text, max(in.Offset, 1), max(in.Column, 1), 0, maxShown)
	return Result{Content: s.render(in, text, p)}, nil
}

// render formats a page of a text, and after SKILL.md the other files.
func (s OpenedSkill) render(in openSkillArgs, text string, p page) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<skill name="%s"`, attribute(s.Name))
	if s.Version > 0 {
		fmt.Fprintf(&b, ` version="%d"`, s.Version)
	}
	fmt.Fprintf(&b, ` path="%s" total_chars="%d" total_lines="%d"`, attribute(s.Path), utf8.RuneCountInString(text), p.total)
	if p.last >= p.first {
		fmt.Fprintf(&b, ` shown_lines="%d-%d"`, p.first, p.last)
	}
	fmt.Fprintf(&b, ` has_more="%t"`, p.line > 0)
	if p.line > 0 {
		fmt.Fprintf(&b, ` hint="%s"`, attribute("To continue: "+in.next(p)))
	}
	fmt.Fprintf(&b, ">\n%s\n", strings.TrimSuffix(p.body, "\n"))
	if s.Path == skill.FileName && len(s.Files) > 1 {
		b.WriteString("<files>\n")
		for _, f := range s.Files {
			if f.Path != skill.FileName {
				fmt.Fprintf(&b, "%s (%s, %s)\n", f.Path, f.MediaType, phrase.Size(f.Size))
			}
		}
		b.WriteString("</files>\n")
	}
	b.WriteString("</skill>")
	return b.String()
}

// next returns the call for the next page.
func (in openSkillArgs) next(p page) string {
	var b strings.Builder
	b.WriteString(OpenSkill + "(")
	if in.Name != "" {
		fmt.Fprintf(&b, "name='%s', ", artel.Shorten(in.Name, skill.MaxName))
	}
	if in.Path != "" {
		fmt.Fprintf(&b, "path='%s', ", in.Path)
	}
	fmt.Fprintf(&b, "offset=%d", p.line)
	if p.column > 1 {
		fmt.Fprintf(&b, ", column=%d", p.column)
	}
	return b.String() + ")"
}

// keep makes an artifact of a file, once in a conversation. A model that sees gets a
// picture itself.
func (s OpenedSkill) keep(ctx context.Context, e *Env) (Result, error) {
	if e.Artifacts == nil || e.Workspace == nil {
		return Failed("%s of the skill %s is no text (%s), and artifacts cannot be made here", s.Path, s.Name, s.Info.MediaType), nil
	}
	staged, err := e.Artifacts.Uploads.Stage(ctx, s.Content, media.Hint{Filename: path.Base(s.Path), DeclaredType: s.Info.MediaType})
	if err != nil {
		return Result{}, err
	}
	k := NewKeeper(e)
	a, err := k.Add(ctx, staged)
	if err != nil {
		return Result{}, err
	}
	how := "read_artifact shows its text, update_artifact changes it"
	if a.Binary {
		how = "get_artifact and read_artifact show it"
	}
	r := Result{Content: fmt.Sprintf("%s of the skill %s is the artifact '%s' of this conversation now (%s, %s): %s. The file of the skill stays as it is.",
		s.Path, s.Name, a.ID, a.MediaType, phrase.Size(a.Size), how)}
	if a.Kind == artel.KindImage {
		r.Parts = artel.Parts{a.MediaPart()}
	}
	r.Metadata = withMedia(r, k.kept)
	return r, nil
}
