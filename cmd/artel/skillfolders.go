// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/app/skills"
)

// skillFolders returns the skills of the configured folders. Their files are read again when
// they are opened.
func (c config) skillFolders() (all []skills.Folder, err error) {
	for _, dir := range c.Skills {
		found, err := readSkills(c.relative(dir))
		if err != nil {
			return nil, artel.Errorf(artel.Invalid, "config", c.path, "skills: %s: %w", dir, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// readSkills reads a folder with SKILL.md, or those below one.
func readSkills(dir string) (all []skills.Folder, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	one := func(name, path string, fsys fs.FS) error {
		f, err := skill.ReadFS(fsys, name)
		if err == nil {
			all = append(all, skills.Folder{Folder: f, Dir: path})
		}
		return err
	}
	if _, err := fs.Stat(root.FS(), skill.FileName); err == nil {
		return all, one(filepath.Base(dir), dir, root.FS())
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if e.Type()&fs.ModeSymlink != 0 {
			return nil, artel.Errorf(artel.Invalid, "skills", e.Name(), "is a link, which is not followed; name its target in skills")
		}
		sub, err := fs.Sub(root.FS(), e.Name())
		if err != nil {
			return nil, err
		}
		if _, err := fs.Stat(sub, skill.FileName); err != nil {
			continue
		}
		if err := one(e.Name(), filepath.Join(dir, e.Name()), sub); err != nil {
			return nil, artel.Errorf(artel.KindOf(err), "skills", e.Name(), "%w", err)
		}
	}
	if len(all) == 0 {
		return nil, artel.Errorf(artel.Invalid, "skills", "", "there is no %s in it or in a folder of it", skill.FileName)
	}
	return all, nil
}
