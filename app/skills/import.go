// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// An Imported says what an import has done.
type Imported struct {
	Skill   Skill
	Version Version
	New     bool  // the version is new; otherwise the skill had this content already
	Removed []int // old versions over the limit
}

// Import stores a skill as a new version, or finds the version with the same content.
// With offer, agents are offered this version; otherwise they keep the one that they
// have, or none, until [Skills.Offer]. A name of the deployment is of kind Conflict.
func (s *Skills) Import(ctx context.Context, f *skill.Folder, offer bool) (done Imported, err error) {
	const op = "skills.Import"
	if x, taken := s.fixedSkill(f.Name); taken {
		return done, &artel.Error{Op: op, Subject: f.Name, Kind: artel.Conflict, Code: CodeReadOnly, Err: fmt.Errorf("the deployment has a skill of this name, in %s; change the name in SKILL.md", x.Dir)}
	}
	files := make([]tool.SkillFile, len(f.Files))
	digests := make([]artel.Digest, len(f.Files))
	v := Version{Skill: f.Skill, Notes: f.Notes, Files: len(files), CreatedAt: s.config.Now()}
	for i, x := range f.Files {
		b, err := x.Read()
		if err != nil {
			return done, err
		}
		staged, err := s.config.Artifacts.Uploads.Stage(ctx, bytes.NewReader(b), media.Hint{Filename: path.Base(x.Path)})
		if err != nil {
			return done, err
		}
		files[i] = tool.SkillFile{Path: x.Path, Digest: staged.Digest, MediaInfo: staged.Info}
		digests[i] = staged.Digest
		v.Bytes += x.Size
	}
	v.Digest = skill.DigestOf(f.Files, digests)
	err = s.update(ctx, func(tx store.Tx) error {
		done, err = s.add(ctx, tx, v, files, offer)
		return err
	})
	return done, err
}

func (s *Skills) add(ctx context.Context, tx store.Tx, v Version, files []tool.SkillFile, offer bool) (done Imported, err error) {
	name := v.Skill.Name
	x, err := s.find(tx, name)
	switch {
	case errors.Is(err, artel.NotFound):
		x = Skill{Name: name, Source: SourceStored}
		list, err := tx.Settings.List(heads)
		if err == nil && len(list) >= maxSkills {
			err = artel.Errorf(artel.TooLarge, "skills.Import", name, "there are %d skills, and more are not taken; delete one", len(list))
		}
		if err != nil {
			return done, err
		}
	case err != nil:
		return done, err
	}
	if i := slices.IndexFunc(x.Versions, func(o Version) bool { return o.Digest == v.Digest }); i >= 0 {
		v = x.Versions[i]
	} else {
		done.New = true
		if v.Number = 1; len(x.Versions) > 0 {
			v.Number = x.Newest().Number + 1
		}
		x.Versions = append(x.Versions, v)
		if err := s.config.Artifacts.Quota.Within(tx, func() error { return s.keep(tx, v, files) }); err != nil {
			return done, err
		}
	}
	if offer {
		x.Offered = v.Number
	}
	for len(x.Versions) > maxVersions {
		i := slices.IndexFunc(x.Versions, func(o Version) bool { return o.Number != x.Offered && o.Number != v.Number })
		if err := s.remove(tx, name, x.Versions[i].Number); err != nil {
			return done, err
		}
		done.Removed = append(done.Removed, x.Versions[i].Number)
		x.Versions = slices.Delete(x.Versions, i, i+1)
	}
	if x.Revision, err = s.put(tx, x); err != nil {
		return done, err
	}
	done.Skill, done.Version = x, v
	return done, s.record(ctx, tx, audit.SkillImported, name, fmt.Sprint("version ", v.Number))
}

// keep stores the files of a version. Their rows keep the bytes from being swept.
func (s *Skills) keep(tx store.Tx, v Version, files []tool.SkillFile) error {
	for i, f := range files {
		err := tx.Files.Create(store.File{
			ID: rowID(v.Skill.Name, v.Number, i), Holder: holder + v.Skill.Name, Digest: f.Digest, Filename: path.Base(f.Path), Purpose: "skill", Info: f.MediaInfo, CreatedAt: v.CreatedAt,
		})
		if err != nil {
			return err
		}
	}
	value, err := json.Marshal(files)
	if err != nil {
		return artel.Errorf(artel.Internal, "skills.Import", v.Skill.Name, "%w", err)
	}
	_, err = tx.Settings.Put(store.Setting{Name: manifestName(v.Skill.Name, v.Number), Value: value, UpdatedAt: v.CreatedAt})
	return err
}

func rowID(name string, version, i int) string { return fmt.Sprint(holder, name, "/", version, "/", i) }

// remove removes the files of a version.
func (s *Skills) remove(tx store.Tx, name string, version int) error {
	row, err := tx.Settings.Get(manifestName(name, version))
	if errors.Is(err, artel.NotFound) {
		return nil
	}
	var files []json.RawMessage
	if err == nil {
		err = json.Unmarshal(row.Value, &files)
	}
	if err != nil {
		return err
	}
	for i := range files {
		if err := tx.Files.Delete(rowID(name, version, i), s.config.Now()); err != nil && !errors.Is(err, artel.NotFound) {
			return err
		}
	}
	return tx.Settings.Delete(row.Name, row.Revision, s.config.Now())
}

// put stores a head in the place of its revision.
func (s *Skills) put(tx store.Tx, x Skill) (int, error) {
	value, err := json.Marshal(stored{x.Offered, x.Versions})
	if err != nil {
		return 0, artel.Errorf(artel.Internal, "skills.Skills", x.Name, "%w", err)
	}
	return tx.Settings.Put(store.Setting{Name: heads + x.Name, Value: value, Revision: x.Revision, UpdatedAt: s.config.Now()})
}

// change runs fn on a stored skill in the revision, or in any for 0.
func (s *Skills) change(ctx context.Context, name string, revision int, fn func(store.Tx, *Skill) error) (x Skill, err error) {
	err = s.update(ctx, func(tx store.Tx) error {
		if x, err = s.find(tx, name); err != nil {
			return err
		}
		if x.Source == SourceFolder {
			return &artel.Error{Op: "skills.Skills", Subject: name, Kind: artel.Denied, Code: CodeReadOnly, Err: fmt.Errorf("it is a skill of the deployment, in %s, and cannot be changed here", x.Dir)}
		}
		if revision != 0 && revision != x.Revision {
			return &artel.Error{Op: "skills.Skills", Subject: name, Kind: artel.Conflict, Code: artifact.CodeStale, Err: errors.New("it was changed since it was read; read it again")}
		}
		return fn(tx, &x)
	})
	return x, err
}

// Offer makes agents use a version of a skill from their next run on; 0: none. revision
// is that of the Skill, or 0.
func (s *Skills) Offer(ctx context.Context, name string, version, revision int) (Skill, error) {
	return s.change(ctx, name, revision, func(tx store.Tx, x *Skill) (err error) {
		if _, ok := x.Version(version); version != 0 && !ok {
			return missing(name, "there is no version %d of the skill; the newest is %d", version, x.Newest().Number)
		}
		x.Offered = version
		if x.Revision, err = s.put(tx, *x); err != nil {
			return err
		}
		return s.record(ctx, tx, audit.SkillOffered, name, fmt.Sprint("version ", version))
	})
}

// Delete removes a skill with all versions. Agents that name it continue without it.
func (s *Skills) Delete(ctx context.Context, name string, revision int) error {
	_, err := s.change(ctx, name, revision, func(tx store.Tx, x *Skill) error {
		for _, v := range x.Versions {
			if err := s.remove(tx, name, v.Number); err != nil {
				return err
			}
		}
		if err := tx.Settings.Delete(heads+name, x.Revision, s.config.Now()); err != nil {
			return err
		}
		return s.record(ctx, tx, audit.SkillDeleted, name, "")
	})
	return err
}
