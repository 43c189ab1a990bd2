// SPDX-License-Identifier: Apache-2.0

package skills

import (
	"errors"
	"io"
	"os"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/skill"
)

// An Upload holds the bytes of a skill on disk until it is imported. It is for one
// goroutine.
type Upload struct {
	spool *os.File
	size  int64
	files []skill.File
}

// NewUpload makes an empty Upload, which the caller closes.
func NewUpload(s *Skills) (*Upload, error) {
	f, err := os.CreateTemp(s.config.SpoolDir, "artel-skill-*")
	if err != nil {
		return nil, artel.Errorf(artel.Unavailable, "skills.Upload", "", "no temporary file can be made: %w", err)
	}
	return &Upload{spool: f}, nil
}

// Close removes the bytes.
func (u *Upload) Close() error { return errors.Join(u.spool.Close(), os.Remove(u.spool.Name())) }

// Add reads one file of the folder, or a ZIP with all of them, up to [skill.MaxZIP] for
// all together.
func (u *Upload) Add(path string, r io.Reader) error {
	if len(u.files) > skill.MaxFiles {
		return artel.Errorf(artel.TooLarge, "skills.Upload", "", "there are more than %d files, the limit of a skill", skill.MaxFiles)
	}
	n, err := io.Copy(io.NewOffsetWriter(u.spool, u.size), io.LimitReader(r, skill.MaxZIP-u.size+1))
	if err != nil {
		if artel.KindOf(err) == artel.Internal {
			err = artel.Errorf(artel.Unavailable, "skills.Upload", "", "the upload cannot be kept: %w", err)
		}
		return err
	}
	at := u.size
	if u.size += n; u.size > skill.MaxZIP {
		return artel.Errorf(artel.TooLarge, "skills.Upload", artel.Shorten(path, 200), "there are more than %d bytes, the limit of a skill", skill.MaxZIP)
	}
	u.files = append(u.files, skill.File{Path: path, Size: n, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(u.spool, at, n)), nil
	}})
	return nil
}

// Folder returns the skill: that of the ZIP if there is one file and it is no SKILL.md,
// otherwise that of the files. It can be read until Close.
func (u *Upload) Folder() (*skill.Folder, error) {
	if len(u.files) == 1 && u.files[0].Path != skill.FileName {
		return skill.ReadZIP(u.spool, u.size)
	}
	return skill.New("", u.files)
}
