// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// Limits of a skill.
const (
	MaxZIP   = 64 << 20
	MaxBytes = 64 << 20 // of all files together
	MaxFile  = 20 << 20
	MaxFiles = 500
	maxPath  = 255 // bytes
	maxDepth = 10  // names in a path

	maxDirectory = 4 << 20 // of a ZIP
	maxEntries   = 5_000   // of a ZIP, with folders and files that are skipped
)

// A File is one file of a skill.
type File struct {
	Path string // with "/" between names, relative to the folder
	Size int64
	Open func() (io.ReadCloser, error)
}

// A Folder is a skill with its files. Names, number and sizes of the files are
// checked.
type Folder struct {
	Skill
	Files []File // sorted by path
	Notes []Note
}

// Read returns the bytes of a file. A file whose size differs from the stated one
// is of kind Invalid.
func (f File) Read() (_ []byte, err error) {
	r, err := f.Open()
	if err != nil {
		return nil, unreadable(f.Path, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b, err := io.ReadAll(io.LimitReader(r, f.Size+1))
	if err == nil && int64(len(b)) != f.Size {
		err = fmt.Errorf("it does not have the %d bytes that it should have", f.Size)
	}
	if err != nil {
		return nil, unreadable(f.Path, err)
	}
	return b, nil
}

func unreadable(name string, err error) error {
	return artel.Errorf(artel.Invalid, "skill.File.Read", artel.Shorten(name, 200), "cannot be read: %w", err)
}

// New checks the files of a folder, whose name is only compared; "": it is not
// known. The paths may all begin with one name, which is then that of the folder.
func New(name string, files []File) (*Folder, error) {
	f := &Folder{}
	err := f.fill(name, slices.Clone(files))
	if err != nil {
		return nil, err
	}
	return f, nil
}

const opFolder = "skill.New"

func (f *Folder) fill(name string, files []File) error {
	var skipped []string
	files = slices.DeleteFunc(files, func(x File) bool {
		junk := isJunk(x.Path)
		if junk {
			skipped = append(skipped, x.Path)
		}
		return junk
	})
	for _, x := range files {
		if err := checkPath(x.Path); err != nil {
			return err
		}
	}
	root, err := rootOf(files)
	if err != nil {
		return err
	}
	if root != "" {
		name = path.Base(root)
	}
	for i := range files {
		files[i].Path = strings.TrimPrefix(files[i].Path, root)
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	if err := checkFiles(files); err != nil {
		return err
	}
	i := slices.IndexFunc(files, func(x File) bool { return x.Path == FileName })
	if files[i].Size > maxText {
		return artel.Errorf(artel.TooLarge, opFolder, FileName, "has %d bytes, and at most %d are read; move parts of it to other files", files[i].Size, maxText)
	}
	src, err := files[i].Read()
	if err != nil {
		return err
	}
	if f.Skill, f.Notes, err = Parse(src); err != nil {
		return err
	}
	f.Files = files
	if name != "" && name != "." && name != f.Name {
		f.Notes = append(f.Notes, Note{NoteFolder, artel.Shorten(name, 100)})
	}
	if n := scripts(files); n > 0 {
		f.Notes = append(f.Notes, Note{NoteScripts, strconv.Itoa(n)})
	}
	if len(skipped) > 0 {
		slices.Sort(skipped)
		f.Notes = append(f.Notes, Note{NoteSkipped, artel.Shorten(strings.Join(skipped, ", "), 300)})
	}
	return nil
}

func scripts(files []File) (n int) {
	for _, x := range files {
		if strings.HasPrefix(x.Path, "scripts/") {
			n++
		}
	}
	return n
}

// isJunk reports whether a file was made by an operating system or a version
// control system, not by the author.
func isJunk(p string) bool {
	names := strings.Split(p, "/")
	base := names[len(names)-1]
	return names[0] == "__MACOSX" || base == ".DS_Store" || base == "Thumbs.db" || base == "desktop.ini" || slices.Contains(names, ".git")
}

// checkPath refuses names that lead out of the folder, or that some systems cannot
// store.
func checkPath(p string) error {
	wrong := func(format string, args ...any) error {
		return artel.Errorf(artel.Invalid, opFolder, artel.Shorten(artel.Visible(strings.ToValidUTF8(p, "\uFFFD")), 200), format, args...)
	}
	switch {
	case !utf8.ValidString(p):
		return wrong("the name is not UTF-8")
	case len(p) > maxPath:
		return wrong("the path has %d bytes, and at most %d are allowed", len(p), maxPath)
	case !fs.ValidPath(p) || p == ".":
		return wrong("the path leads out of the folder or is no path of a file")
	case strings.ContainsAny(p, `\:*?"<>|`) || strings.ContainsFunc(p, unicode.IsControl):
		return wrong(`the path has one of the characters \ : * ? " < > | or a control character, which some systems cannot store`)
	case strings.Count(p, "/") >= maxDepth:
		return wrong("the path has more than %d names", maxDepth)
	}
	return nil
}

// rootOf returns the path before SKILL.md, with its slash. All files have to be
// below it.
func rootOf(files []File) (string, error) {
	var roots []string
	for _, x := range files {
		if dir, base := path.Split(x.Path); base == FileName {
			roots = append(roots, dir)
		} else if strings.EqualFold(base, FileName) {
			return "", artel.Errorf(artel.Invalid, opFolder, artel.Shorten(x.Path, 200), "the file has to be named %s", FileName)
		}
	}
	if len(roots) == 0 {
		return "", artel.Errorf(artel.Invalid, opFolder, FileName, "there is no such file, so this is no skill; want it at the top of the folder, with name and description in its front matter")
	}
	// A skill may have others below it, as examples.
	root := slices.MinFunc(roots, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
	for _, other := range roots {
		if !strings.HasPrefix(other, root) {
			return "", artel.Errorf(artel.Invalid, opFolder, FileName, "there are several skills, in %s and %s; import one at a time", artel.Shorten(root, 100), artel.Shorten(other, 100))
		}
	}
	for _, x := range files {
		if !strings.HasPrefix(x.Path, root) {
			return "", artel.Errorf(artel.Invalid, opFolder, artel.Shorten(x.Path, 200), "is outside of the folder of the skill, %s", artel.Shorten(root, 100))
		}
	}
	return root, nil
}

// checkFiles refuses too many or too large files, and two of one name. Some file
// systems do not distinguish upper and lower case.
func checkFiles(files []File) error {
	if len(files) > MaxFiles {
		return artel.Errorf(artel.TooLarge, opFolder, "", "there are %d files, and a skill has at most %d", len(files), MaxFiles)
	}
	sum := int64(0)
	names := map[string]string{}
	for _, x := range files {
		if sum += x.Size; x.Size > MaxFile {
			return artel.Errorf(artel.TooLarge, opFolder, artel.Shorten(x.Path, 200), "has %d bytes, and a file of a skill has at most %d", x.Size, MaxFile)
		}
		folded := strings.ToLower(x.Path)
		if other, twice := names[folded]; twice {
			return artel.Errorf(artel.Invalid, opFolder, artel.Shorten(x.Path, 200), "there is another file of this name, %s; some systems do not distinguish upper and lower case", artel.Shorten(other, 200))
		}
		names[folded] = x.Path
	}
	if sum > MaxBytes {
		return artel.Errorf(artel.TooLarge, opFolder, "", "the files have %d bytes together, and a skill has at most %d", sum, MaxBytes)
	}
	for _, x := range files {
		for dir := path.Dir(x.Path); dir != "."; dir = path.Dir(dir) {
			if other, twice := names[strings.ToLower(dir)]; twice {
				return artel.Errorf(artel.Invalid, opFolder, artel.Shorten(x.Path, 200), "%s is a file, and cannot be a folder too", artel.Shorten(other, 200))
			}
		}
	}
	return nil
}

// ReadFS reads a folder. Links are refused, because they may lead out of it.
func ReadFS(fsys fs.FS, name string) (*Folder, error) {
	var files []File
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return artel.Errorf(artel.Unavailable, "skill.ReadFS", artel.Shorten(p, 200), "cannot be read: %w", err)
		case d.IsDir() && (isJunk(p) || strings.Count(p, "/") > maxDepth):
			if isJunk(p) {
				return fs.SkipDir
			}
			return checkPath(p + "/x")
		case d.IsDir():
			return nil
		case isJunk(p):
		case !d.Type().IsRegular():
			return notRegular("skill.ReadFS", p)
		case len(files) > MaxFiles:
			return artel.Errorf(artel.TooLarge, "skill.ReadFS", "", "there are more than %d files, the limit of a skill", MaxFiles)
		}
		info, err := d.Info()
		if err != nil {
			return artel.Errorf(artel.Unavailable, "skill.ReadFS", artel.Shorten(p, 200), "cannot be read: %w", err)
		}
		files = append(files, File{p, info.Size(), func() (io.ReadCloser, error) { return fsys.Open(p) }})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return New(name, files)
}

func notRegular(op, p string) error {
	return artel.Errorf(artel.Invalid, op, artel.Shorten(artel.Visible(p), 200), "is a link or no file; put a copy of the file in its place")
}

// ReadZIP reads a skill in a ZIP, at its top or in a folder. r must stay open while
// the files are read. The error is of kind Invalid or TooLarge, and names the entry.
func ReadZIP(r io.ReaderAt, size int64) (*Folder, error) {
	const op = "skill.ReadZIP"
	if size > MaxZIP {
		return nil, artel.Errorf(artel.TooLarge, op, "", "the ZIP has %d bytes, and at most %d are read", size, MaxZIP)
	}
	limited := &directory{r: r, left: maxDirectory}
	z, err := zip.NewReader(limited, size)
	switch {
	case limited.over || err == nil && len(z.File) > maxEntries:
		return nil, artel.Errorf(artel.TooLarge, op, "", "the ZIP has more than %d files, and a skill has at most %d", maxEntries, MaxFiles)
	case err != nil:
		return nil, artel.Errorf(artel.Invalid, op, "", "this is no ZIP, or it is damaged: %w", err)
	}
	limited.left = -1
	var files []File
	for _, x := range z.File {
		if strings.HasSuffix(x.Name, "/") && x.Mode().IsDir() {
			if err := checkPath(strings.TrimSuffix(x.Name, "/")); err != nil {
				return nil, err
			}
			continue
		}
		switch {
		case !x.Mode().IsRegular():
			return nil, notRegular(op, x.Name)
		case x.Flags&1 != 0:
			return nil, artel.Errorf(artel.Unsupported, op, artel.Shorten(artel.Visible(x.Name), 200), "is encrypted")
		case x.UncompressedSize64 > MaxBytes:
			return nil, artel.Errorf(artel.TooLarge, op, artel.Shorten(artel.Visible(x.Name), 200), "has %d bytes unpacked, and a file of a skill has at most %d", x.UncompressedSize64, MaxFile)
		}
		files = append(files, File{x.Name, int64(x.UncompressedSize64), x.Open})
	}
	return New("", files)
}

// A directory limits how much of a ZIP is read until its directory is known.
type directory struct {
	r    io.ReaderAt
	left int // -1: any number of bytes
	over bool
}

// ReadAt implements [io.ReaderAt].
func (d *directory) ReadAt(p []byte, at int64) (int, error) {
	if d.left >= 0 {
		if d.left -= len(p); d.left < 0 {
			d.left, d.over = 0, true
			return 0, errors.New("the directory is too long")
		}
	}
	return d.r.ReadAt(p, at)
}

// WriteZIP writes files below a folder. Equal files make equal bytes.
func WriteZIP(w io.Writer, folder string, files []File) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: folder + "/" + f.Path, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(0o644)
		to, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		b, err := f.Read()
		if err != nil {
			return err
		}
		if _, err := io.Copy(to, bytes.NewReader(b)); err != nil {
			return err
		}
	}
	return z.Close()
}

// DigestOf identifies the content of a skill by the digests of its files, which are
// sorted by path.
func DigestOf(files []File, digests []artel.Digest) artel.Digest {
	h := sha256.New()
	for i, f := range files {
		_, _ = fmt.Fprintf(h, "%q %s\n", f.Path, digests[i])
	}
	return artel.Digest("sha256-" + hex.EncodeToString(h.Sum(nil)))
}
