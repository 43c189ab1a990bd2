// SPDX-License-Identifier: Apache-2.0

package export

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"iter"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
)

// Default limits of [ReadZIP].
const (
	DefaultEntries  = 100_000
	DefaultMessages = 1_000_000
	DefaultIndex    = 128 << 20
	DefaultUnpacked = 16 << 30
)

// What a ZIP may unpack to: at most maxRatio times its own size, and
// unpackedSlack in any case.
const (
	maxRatio      = 200
	unpackedSlack = 1 << 30
)

// ReadOptions are the limits of [ReadZIP]; zero fields have a default.
type ReadOptions struct {
	Entries  int   // files in the ZIP
	Messages int   // messages of the conversation
	Index    int64 // bytes of conversation.json, unpacked
	File     int64 // bytes of one version; default [artifact.DefaultMaxBytes]
	Unpacked int64 // bytes of all files, unpacked
}

// An Archive is a checked conversation in a ZIP: its index is valid, and every file
// that it names exists and has the right size. It is not safe for concurrent use,
// except for Open.
type Archive struct {
	// Conversation is the conversation with the ids that it had.
	Conversation artel.Conversation
	// Messages, Artifacts and Versions are how many there are.
	Messages, Artifacts, Versions int
	// Size is that of the bytes of all versions.
	Size int64

	limits  ReadOptions
	index   *zip.File
	entries map[string]*zip.File
	files   map[numbered]file
}

// A numbered names a version inside of its conversation.
type numbered struct {
	id     artel.ArtifactID
	number int
}

// A file locates the bytes of a version.
type file struct {
	entry  *zip.File
	digest artel.Digest
}

// ReadZIP reads and checks a file in the format of [ZIP]. r must stay open while the
// Archive is used. Memory holds only the directory of the ZIP and an entry for each
// message and version.
//
// The error is of kind Invalid for a file in another format, TooLarge over a limit,
// Unsupported for a newer format, and Unavailable if r fails; its text names the
// entry. Entries that lead out of the folder, duplicate names and links are
// refused.
func ReadZIP(ctx context.Context, r io.ReaderAt, size int64, o ReadOptions) (*Archive, error) {
	a := &Archive{limits: o.withDefaults(), entries: map[string]*zip.File{}, files: map[numbered]file{}}
	if err := a.open(r, size); err != nil {
		return nil, failed("export.ReadZIP", "", err)
	}
	if err := a.check(ctx); err != nil {
		return nil, failed("export.ReadZIP", indexName, err)
	}
	return a, nil
}

func (o ReadOptions) withDefaults() ReadOptions {
	if o.Entries == 0 {
		o.Entries = DefaultEntries
	}
	if o.Messages == 0 {
		o.Messages = DefaultMessages
	}
	if o.Index == 0 {
		o.Index = DefaultIndex
	}
	if o.File == 0 {
		o.File = artifact.DefaultMaxBytes
	}
	if o.Unpacked == 0 {
		o.Unpacked = DefaultUnpacked
	}
	return o
}

// perEntry is the maximum average size of a directory entry.
const perEntry = 256

// open reads the directory of the ZIP.
func (a *Archive) open(r io.ReaderAt, size int64) error {
	// A directory is in memory as a whole, whatever it says of its length.
	limited := &directoryReader{r: io.NewSectionReader(r, 0, size), left: int64(a.limits.Entries)*perEntry + 1<<20}
	z, err := zip.NewReader(limited, size)
	if err != nil {
		return zipError(err)
	}
	limited.left = -1 // from here on, reads are bounded by their callers
	if len(z.File) > a.limits.Entries {
		return artel.Errorf(artel.TooLarge, "", "", "the ZIP has %d files, and at most %d are read", len(z.File), a.limits.Entries)
	}
	most := min(a.limits.Unpacked, unpackedSlack+maxRatio*min(size, (1<<62)/maxRatio))
	var sum uint64
	for _, f := range z.File {
		if err := checkEntry(f); err != nil {
			return failed("", artel.Shorten(f.Name, 200), err)
		}
		if _, twice := a.entries[f.Name]; twice {
			return artel.Errorf(artel.Invalid, "", artel.Shorten(f.Name, 200), "the ZIP has two files of this name")
		}
		a.entries[f.Name] = f
		if sum += f.UncompressedSize64; f.UncompressedSize64 > uint64(most) || sum > uint64(most) {
			return artel.Errorf(artel.TooLarge, "", artel.Shorten(f.Name, 200), "with this file the ZIP of %d bytes unpacks to more than %d bytes", size, most)
		}
	}
	a.index = a.entries[indexName]
	switch {
	case a.index == nil:
		return artel.Errorf(artel.Invalid, "", indexName, "the ZIP has no such file: it is no conversation that Artel exported")
	case a.index.UncompressedSize64 > uint64(a.limits.Index):
		return artel.Errorf(artel.TooLarge, "", indexName, "has %d bytes, and at most %d are read", a.index.UncompressedSize64, a.limits.Index)
	}
	return nil
}

// checkEntry refuses unsafe entries.
func checkEntry(f *zip.File) error {
	name := strings.TrimSuffix(f.Name, "/")
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00") || hasDrive(name) {
		return artel.Errorf(artel.Invalid, "", "", "the name leads out of its folder or is no name of a file")
	}
	if mode := f.Mode(); !mode.IsRegular() && !mode.IsDir() {
		return artel.Errorf(artel.Invalid, "", "", "is neither a file nor a folder")
	}
	if f.Flags&1 != 0 {
		return artel.Errorf(artel.Unsupported, "", "", "is encrypted")
	}
	return nil
}

// hasDrive reports whether a name begins as a path of Windows does.
func hasDrive(name string) bool { return len(name) > 1 && name[1] == ':' }

// check reads the index once to its end.
func (a *Archive) check(ctx context.Context) error {
	x := newChecker(a)
	err := a.read(ctx, visitor{
		conversation: x.conversation,
		message:      x.message,
		artifact:     x.artifact,
		variables:    x.variable,
	})
	if err != nil {
		return err
	}
	return x.finish()
}

// EachMessage reads the messages, parents before their children.
func (a *Archive) EachMessage(ctx context.Context) iter.Seq2[artel.Message, error] {
	return func(yield func(artel.Message, error) bool) {
		err := a.read(ctx, visitor{message: func(m artel.Message) error {
			if !yield(m, nil) {
				return errEnough
			}
			return nil
		}})
		if err != nil && !errors.Is(err, errEnough) {
			yield(artel.Message{}, failed("export.Archive.EachMessage", indexName, err))
		}
	}
}

// EachArtifact reads the artifacts with their versions.
func (a *Archive) EachArtifact(ctx context.Context) iter.Seq2[Artifact, error] {
	return func(yield func(Artifact, error) bool) {
		err := a.read(ctx, visitor{artifact: func(x indexedArtifact) error {
			if !yield(x.artifact(), nil) {
				return errEnough
			}
			return nil
		}})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Artifact{}, failed("export.Archive.EachArtifact", indexName, err))
		}
	}
}

// EachVariables reads the macro variables by message.
func (a *Archive) EachVariables(ctx context.Context) iter.Seq2[Variables, error] {
	return func(yield func(Variables, error) bool) {
		err := a.read(ctx, visitor{variables: func(v Variables) error {
			if !yield(v, nil) {
				return errEnough
			}
			return nil
		}})
		if err != nil && !errors.Is(err, errEnough) {
			yield(Variables{}, failed("export.Archive.EachVariables", indexName, err))
		}
	}
}

// errEnough stops reading after the caller ended its loop.
var errEnough = errors.New("enough")

// Open returns the bytes of a version; the caller must close the reader. Reading to
// the end checks their size and digest; a mismatch is of kind Invalid.
func (a *Archive) Open(id artel.ArtifactID, number int) (io.ReadCloser, error) {
	const op = "export.Archive.Open"
	f, ok := a.files[numbered{id, number}]
	if !ok {
		return nil, &artel.Error{Op: op, Subject: string(id), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound, Err: errors.New("the ZIP has no version " + strconv.Itoa(number) + " of it")}
	}
	r, err := f.entry.Open()
	if err != nil {
		return nil, failed(op, f.entry.Name, zipError(err))
	}
	return &proving{r: r, name: f.entry.Name, left: int64(f.entry.UncompressedSize64), digest: f.digest, sum: sha256.New()}, nil
}

// A proving reader checks the size and digest of bytes.
type proving struct {
	r      io.ReadCloser
	name   string
	left   int64
	digest artel.Digest
	sum    hash.Hash
}

// Read implements [io.Reader].
func (p *proving) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	_, _ = p.sum.Write(b[:n])
	p.left -= int64(n)
	switch {
	case err == nil && p.left >= 0:
		return n, nil
	case err == io.EOF && p.left == 0:
		if artel.NewDigest([32]byte(p.sum.Sum(nil))) == p.digest {
			return n, io.EOF
		}
		err = artel.Errorf(artel.Invalid, "", "", "the bytes are not those of the digest %s", p.digest)
	case err == nil || err == io.EOF:
		err = artel.Errorf(artel.Invalid, "", "", "has not the size that it says")
	default:
		err = zipError(err)
	}
	return n, failed("export.Archive.Open", p.name, err)
}

// Close implements [io.Closer].
func (p *proving) Close() error { return p.r.Close() }

// zipError classifies an error of reading a ZIP: Invalid or Unsupported for its
// content, Unavailable for the reader.
func zipError(err error) error {
	if _, ok := errors.AsType[*artel.Error](err); ok || err == nil {
		return err
	}
	switch {
	case errors.Is(err, zip.ErrAlgorithm):
		return artel.Errorf(artel.Unsupported, "", "", "is packed in a way that cannot be read here: pack it with Deflate")
	case errors.Is(err, zip.ErrInsecurePath):
		return artel.Errorf(artel.Invalid, "", "", "a name in the ZIP leads out of its folder")
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrChecksum), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), isCorrupt(err):
		return artel.Errorf(artel.Invalid, "", "", "is no whole ZIP: %w", err)
	case artel.KindOf(err) == artel.Canceled:
		return err
	}
	return artel.Errorf(artel.Unavailable, "", "", "reading the ZIP: %w", err)
}

// A directoryReader bounds the reading of the directory.
type directoryReader struct {
	r    io.ReaderAt
	left int64 // bytes that may be read; negative: any
}

// ReadAt implements [io.ReaderAt].
func (d *directoryReader) ReadAt(p []byte, at int64) (int, error) {
	if d.left >= 0 {
		if int64(len(p)) > d.left {
			return 0, artel.Errorf(artel.TooLarge, "", "", "the list of files in the ZIP is too long")
		}
		d.left -= int64(len(p))
	}
	return d.r.ReadAt(p, at)
}
