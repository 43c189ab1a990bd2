// SPDX-License-Identifier: Apache-2.0

// Package skills keeps the skills of users and offers them to agents.
//
// Begin with [New] and [Skills.Import]. A skill has versions: every import of other
// content makes one, and agents are offered at most one of them, which the user
// chooses ([Skills.Offer]). Bytes are in the blob store, once by their digests. A
// skill in a folder of the deployment is offered to all users, is read-only, and
// hides a user's skill of the same name, as agents of files do.
//
// [Skills.For] pins the versions for a run, so that all calls of the run see the
// same files. Nothing executes the scripts of a skill.
package skills

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// Limits of the skills of a user.
const (
	maxSkills   = 200
	maxVersions = 20 // of a skill; the oldest are removed
)

// Error codes.
const (
	// CodeReadOnly is that of a change to a skill of the deployment.
	CodeReadOnly = "skill_read_only"
	// CodeNotFound is that of a skill, a version or a file that does not exist.
	CodeNotFound = "skill_not_found"
)

// Config is what skills are kept in. All of it is needed, except Folders.
type Config struct {
	Store     store.Store
	Blobs     blob.Store
	Artifacts *artifact.Collection
	Folders   []Folder // of the deployment
	SpoolDir  string   // for uploads; "": the system's
	Logger    *slog.Logger
	Now       func() time.Time
}

// A Folder is a skill of the deployment. Its files are read when they are opened.
type Folder struct {
	*skill.Folder
	Dir string // for messages
}

// A Skills are the use cases of skills. It is safe for concurrent use.
type Skills struct {
	config Config
	fixed  []fixed // by name
}

// fixed is a skill of the deployment, as it was when the process began.
type fixed struct {
	Folder
	files  []tool.SkillFile // in the order of Folder.Files
	digest artel.Digest
}

// A Source is the origin of a skill.
type Source string

// The sources.
const (
	SourceFolder Source = "folder" // of the deployment
	SourceStored Source = "stored" // imported by the user
)

// A Version is one state of a skill.
type Version struct {
	Number    int          `json:"number"` // 0: of a folder
	Digest    artel.Digest `json:"digest"` // of all files
	Skill     skill.Skill  `json:"skill"`
	Notes     []skill.Note `json:"notes,omitempty"` // what works differently here
	Files     int          `json:"files"`
	Bytes     int64        `json:"bytes"`
	CreatedAt time.Time    `json:"created_at,omitzero"`
}

// A Skill is a skill with its versions.
type Skill struct {
	Name     string
	Source   Source
	Dir      string    // of one of the deployment
	Offered  int       // version that agents can open; 0 of a stored one: none
	Versions []Version // oldest first; of a folder one
	Revision int       // of a stored one
}

// Newest returns the newest version.
func (s Skill) Newest() Version { return s.Versions[len(s.Versions)-1] }

// Current returns the offered version, or the newest.
func (s Skill) Current() Version {
	if v, ok := s.Version(s.Offered); ok {
		return v
	}
	return s.Newest()
}

// Version returns a version by its number.
func (s Skill) Version(number int) (Version, bool) {
	i := slices.IndexFunc(s.Versions, func(v Version) bool { return v.Number == number })
	if i < 0 {
		return Version{}, false
	}
	return s.Versions[i], true
}

// IsOffered reports whether agents can open the skill.
func (s Skill) IsOffered() bool { return s.Source == SourceFolder || s.Offered > 0 }

// New returns the skills in a store. An error is of a folder.
func New(c Config) (*Skills, error) {
	s := &Skills{config: c}
	for _, f := range c.Folders {
		x, err := fix(f)
		if err != nil {
			return nil, artel.Errorf(artel.Invalid, "skills.New", f.Dir, "%w", err)
		}
		if i := slices.IndexFunc(s.fixed, func(o fixed) bool { return o.Name == f.Name }); i >= 0 {
			return nil, artel.Errorf(artel.Invalid, "skills.New", f.Dir, "the skill %s is in %s too; remove one of the folders", f.Name, s.fixed[i].Dir)
		}
		s.fixed = append(s.fixed, x)
	}
	slices.SortFunc(s.fixed, func(a, b fixed) int { return cmp.Compare(a.Name, b.Name) })
	return s, nil
}

// fix reads the files of a folder once.
func fix(f Folder) (x fixed, err error) {
	x.Folder = f
	var digests []artel.Digest
	for _, file := range f.Files {
		b, err := file.Read()
		if err != nil {
			return x, err
		}
		info := media.Detect(b, media.Hint{Filename: path.Base(file.Path)})
		info.Size = file.Size
		d := artel.NewDigest(sha256.Sum256(b))
		digests = append(digests, d)
		x.files = append(x.files, tool.SkillFile{Path: file.Path, Digest: d, MediaInfo: info})
	}
	x.digest = skill.DigestOf(f.Files, digests)
	return x, nil
}

func (x fixed) skill() Skill {
	v := Version{Digest: x.digest, Skill: x.Folder.Skill, Notes: x.Notes, Files: len(x.files)}
	for _, f := range x.files {
		v.Bytes += f.Size
	}
	return Skill{Name: x.Name, Source: SourceFolder, Dir: x.Dir, Versions: []Version{v}}
}

// open returns the bytes of a file, which have to be those of the start.
func (x fixed) open(i int) (io.ReadCloser, error) {
	b, err := x.Folder.Files[i].Read()
	if err != nil || artel.NewDigest(sha256.Sum256(b)) != x.files[i].Digest {
		return nil, artel.Errorf(artel.Unavailable, "skills.Open", artel.Shorten(x.files[i].Path, 200), "the file of the skill %s was changed or removed since the server started; start it again", x.Name)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Settings have the heads of skills below one prefix and their files below the other.
const (
	heads     = "skill/"
	manifests = "skillfiles/"
	holder    = "skill/" // of rows of [store.Files]
)

// stored is a head: the setting with everything about a skill but its files.
type stored struct {
	Offered  int       `json:"offered"`
	Versions []Version `json:"versions"`
}

func manifestName(name string, version int) string {
	return fmt.Sprint(manifests, name, "/", version)
}

func (s *Skills) fixedSkill(name string) (fixed, bool) {
	i := slices.IndexFunc(s.fixed, func(x fixed) bool { return x.Name == name })
	if i < 0 {
		return fixed{}, false
	}
	return s.fixed[i], true
}

// all returns the skills of the user and of the deployment, by name. One that cannot be
// read is skipped and logged.
func (s *Skills) all(tx store.Tx) ([]Skill, error) {
	var out []Skill
	for _, x := range s.fixed {
		out = append(out, x.skill())
	}
	list, err := tx.Settings.List(heads)
	for _, row := range list {
		x, e := decode(row)
		if e != nil {
			s.config.Logger.Error("a skill is left out", "err", e)
			continue
		}
		if _, hidden := s.fixedSkill(x.Name); !hidden {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

func decode(row store.Setting) (Skill, error) {
	var v stored
	x := Skill{Name: strings.TrimPrefix(row.Name, heads), Source: SourceStored, Revision: row.Revision}
	err := json.Unmarshal(row.Value, &v)
	if err == nil && len(v.Versions) == 0 {
		err = errors.New("it has no versions")
	}
	if err != nil {
		return x, artel.Errorf(artel.Internal, "skills.Skills", x.Name, "the stored skill is damaged: %w", err)
	}
	x.Offered, x.Versions = v.Offered, v.Versions
	return x, nil
}

// find returns one skill of the user or of the deployment.
func (s *Skills) find(tx store.Tx, name string) (Skill, error) {
	if x, ok := s.fixedSkill(name); ok {
		return x.skill(), nil
	}
	row, err := tx.Settings.Get(heads + name)
	if errors.Is(err, artel.NotFound) {
		return Skill{}, missing(artel.Shorten(name, skill.MaxName), "there is no such skill")
	}
	if err != nil {
		return Skill{}, err
	}
	return decode(row)
}

func missing(subject, format string, args ...any) error {
	return &artel.Error{Op: "skills.Skills", Subject: subject, Kind: artel.NotFound, Code: CodeNotFound, Err: fmt.Errorf(format, args...)}
}

// List returns the skills by name.
func (s *Skills) List(ctx context.Context) (out []Skill, err error) {
	err = s.view(ctx, func(tx store.Tx) (err error) {
		out, err = s.all(tx)
		return err
	})
	return out, err
}

// Find returns one skill; kind NotFound if there is none of the name.
func (s *Skills) Find(ctx context.Context, name string) (out Skill, err error) {
	err = s.view(ctx, func(tx store.Tx) (err error) {
		out, err = s.find(tx, name)
		return err
	})
	return out, err
}

// Files returns the files of a version; 0: the current one.
func (s *Skills) Files(ctx context.Context, name string, number int) (v Version, files []tool.SkillFile, err error) {
	err = s.view(ctx, func(tx store.Tx) (err error) {
		v, files, err = s.filesTx(tx, name, number)
		return err
	})
	return v, files, err
}

func (s *Skills) filesTx(tx store.Tx, name string, number int) (v Version, files []tool.SkillFile, err error) {
	x, err := s.find(tx, name)
	if err != nil {
		return v, nil, err
	}
	v = x.Current()
	if number > 0 {
		var ok bool
		if v, ok = x.Version(number); !ok {
			return v, nil, missing(name, "there is no version %d of the skill; the newest is %d", number, x.Newest().Number)
		}
	}
	if x.Source == SourceFolder {
		f, _ := s.fixedSkill(name)
		return v, f.files, nil
	}
	row, err := tx.Settings.Get(manifestName(name, v.Number))
	if err == nil {
		err = json.Unmarshal(row.Value, &files)
	}
	return v, files, err
}

// Open opens a file of a version; version 0 is the current one, and path "" is SKILL.md.
func (s *Skills) Open(ctx context.Context, name string, number int, at string) (out tool.OpenedSkill, err error) {
	v, files, err := s.Files(ctx, name, number)
	if err != nil {
		return out, err
	}
	return s.open(ctx, name, v, files, cmp.Or(at, skill.FileName))
}

func (s *Skills) open(ctx context.Context, name string, v Version, files []tool.SkillFile, at string) (out tool.OpenedSkill, err error) {
	i := slices.IndexFunc(files, func(f tool.SkillFile) bool { return f.Path == at })
	if i < 0 {
		paths := make([]string, len(files))
		for i, f := range files {
			paths[i] = f.Path
		}
		return out, missing(artel.Shorten(at, 200), "the skill %s has no such file; it has: %s", name, artel.Shorten(strings.Join(paths, ", "), 4000))
	}
	out = tool.OpenedSkill{Listed: listed(name, v), Digest: v.Digest, Path: at, Info: files[i].MediaInfo, Files: files}
	if f, ok := s.fixedSkill(name); ok {
		out.Content, err = f.open(i)
	} else {
		out.Content, err = s.config.Blobs.Open(ctx, files[i].Digest)
	}
	return out, err
}

// Text returns a text file of a version.
func (s *Skills) Text(ctx context.Context, name string, number int, at string) (_ string, err error) {
	o, err := s.Open(ctx, name, number, at)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, o.Content.Close()) }()
	if o.Info.IsBinary() {
		return "", artel.Errorf(artel.Unsupported, "skills.Text", artel.Shorten(o.Path, 200), "is no text (%s)", o.Info.MediaType)
	}
	return media.DecodeText(o.Content, o.Info.Charset)
}

func listed(name string, v Version) skill.Listed {
	return skill.Listed{Name: name, Description: v.Skill.Description, Version: v.Number}
}

// Export writes a version as a ZIP; 0: the current one. The ZIP of a version is always
// the same.
func (s *Skills) Export(ctx context.Context, name string, number int, w io.Writer) error {
	v, files, err := s.Files(ctx, name, number)
	if err != nil {
		return err
	}
	out := make([]skill.File, len(files))
	for i, f := range files {
		out[i] = skill.File{Path: f.Path, Size: f.Size, Open: func() (io.ReadCloser, error) {
			x, err := s.open(ctx, name, v, files, f.Path)
			return x.Content, err
		}}
	}
	return skill.WriteZIP(w, name, out)
}

// For returns the offered skills that an agent can open; nil: it has none. Their versions
// stay the same for the caller.
func (s *Skills) For(tx store.Tx, owner artel.Owner, d agent.Definition) (tool.Skills, error) {
	if len(d.Skills) == 0 {
		return nil, nil
	}
	all, err := s.all(tx)
	if err != nil {
		return nil, err
	}
	p := &pinned{skills: s, owner: owner}
	for _, x := range all {
		if x.IsOffered() && d.Skills.Has(x.Name) {
			p.versions = append(p.versions, x.Current())
			p.list = append(p.list, listed(x.Name, x.Current()))
		}
	}
	if gone := d.Skills.Missing(p.list); len(gone) > 0 {
		s.config.Logger.Warn("an agent names skills that are not offered", "agent", d.Name, "skills", strings.Join(gone, ", "))
	}
	if len(p.list) == 0 {
		return nil, nil
	}
	return p, nil
}

// pinned are skills in their versions at one moment.
type pinned struct {
	skills   *Skills
	owner    artel.Owner
	list     []skill.Listed
	versions []Version // of list
}

// List implements [tool.Skills].
func (p *pinned) List() []skill.Listed { return p.list }

// Open implements [tool.Skills].
func (p *pinned) Open(ctx context.Context, name, at string) (tool.OpenedSkill, error) {
	i := slices.IndexFunc(p.list, func(l skill.Listed) bool { return l.Name == name })
	if i < 0 {
		names := make([]string, len(p.list))
		for i, l := range p.list {
			names[i] = l.Name
		}
		return tool.OpenedSkill{}, missing(artel.Shorten(name, skill.MaxName), "there is no such skill; there are: %s", artel.Shorten(strings.Join(names, ", "), 4000))
	}
	out, err := p.skills.Open(artel.WithOwner(ctx, p.owner), name, p.versions[i].Number, at)
	if err == nil && out.Digest != p.versions[i].Digest {
		err = errors.Join(missing(name, "this version of the skill was removed during the run"), out.Content.Close())
	}
	return out, err
}

func (s *Skills) view(ctx context.Context, fn func(store.Tx) error) error {
	return s.config.Store.View(ctx, artel.OwnerOf(ctx), fn)
}

func (s *Skills) update(ctx context.Context, fn func(store.Tx) error) error {
	return s.config.Store.Update(ctx, artel.OwnerOf(ctx), fn)
}

// record adds an act of the user.
func (s *Skills) record(ctx context.Context, tx store.Tx, action audit.Action, name, detail string) error {
	return audit.Record(ctx, tx, s.config.Now(), audit.Act{Action: action, Target: name, Detail: detail})
}
