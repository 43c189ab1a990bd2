// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// Staged is an upload whose bytes are stored and identified, but not yet part of
// an artifact. If it is never added, its blob is removed as unreferenced.
type Staged struct {
	Info     artel.MediaInfo
	Digest   artel.Digest // of the original bytes
	Filename string       // made valid UTF-8, at most [media.MaxFilename] bytes
	Title    string       // of the artifact; "": Filename

	text    *string // the decoding of a text; nil for binary content
	preview string  // the beginning of a text
}

// Stage copies r to the blob store and detects its media type. Binary content is
// never completely in memory. A text of more than [Options.MaxText] is staged as a
// document; see [artel.MediaInfo.IsLargeText]. The error is of kind
// [artel.TooLarge] for more than [Options.MaxBytes].
func (us *Uploads) Stage(ctx context.Context, r io.Reader, h media.Hint) (Staged, error) {
	h.Filename = media.ShortFilename(strings.ToValidUTF8(h.Filename, "\uFFFD"))
	s, err := us.c.stage(ctx, r, h)
	return s, failed("artifact.Stage", artel.Shorten(h.Filename, 120), err)
}

func (c *Collection) stage(ctx context.Context, r io.Reader, h media.Hint) (Staged, error) {
	sniffer := media.NewSniffer(h)
	kept, err := c.blobs.Put(ctx, io.TeeReader(Reserved(ctx, r), sniffer), c.opt.MaxBytes)
	if err != nil {
		return Staged{}, err
	}
	if one, ok := ctx.Value(reservationKey{}).(*reservation); ok {
		one.keep(kept.Digest, kept.Size)
	}
	s := Staged{Info: sniffer.Info(), Digest: kept.Digest, Filename: h.Filename}
	s.Info.Size = kept.Size
	b, err := c.blobs.Open(ctx, kept.Digest)
	if err != nil {
		return Staged{}, err
	}
	defer b.Close()
	if s.Info.IsBinary() {
		s.Info = media.Measure(ctx, s.Info, b)
		return s, ctx.Err()
	}
	// No charset needs more than four bytes for one byte of UTF-8.
	large := kept.Size > 4*int64(c.opt.MaxText) || s.Info.Charset == "utf-8" && kept.Size > int64(c.opt.MaxText)
	source := io.Reader(b)
	if large {
		source = io.LimitReader(b, 4*artel.PreviewChars)
	}
	text, err := media.DecodeText(source, s.Info.Charset)
	if err != nil {
		return Staged{}, err
	}
	s.preview = artel.Beginning(text, artel.PreviewChars)
	if large || len(text) > c.opt.MaxText {
		s.Info.Kind = artel.KindDocument
		return s, nil
	}
	s.text = &text
	return s, nil
}

func (c *Collection) textTooLarge(size int64) error {
	return artel.Errorf(artel.TooLarge, "", "", "the text has %s, and one that can be edited has at most %s; upload it as a file", megabytes(size), megabytes(int64(c.opt.MaxText)))
}

// megabytes writes a size for people: "21.3 MB".
func megabytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

// Add creates an artifact from each staged upload, all or none. The ids are made
// from the filenames and were never used in the conversation. The artifacts are
// visible on every branch until a message claims them.
func (us *Uploads) Add(ctx context.Context, owner artel.Owner, conv artel.ConversationID, staged []Staged) ([]artel.Artifact, error) {
	var added []artel.Artifact
	err := us.c.store.Update(ctx, owner, func(tx store.Tx) (err error) {
		added, err = us.AddTx(tx, conv, staged)
		return err
	})
	return added, err
}

// AddTx is Add inside the caller's transaction.
func (us *Uploads) AddTx(tx store.Tx, conv artel.ConversationID, staged []Staged) ([]artel.Artifact, error) {
	if _, err := tx.Conversations.Get(conv); err != nil {
		return nil, failed("artifact.Add", string(conv), err)
	}
	now := us.c.now()
	added := make([]artel.Artifact, 0, len(staged))
	for _, s := range staged {
		var a artel.Artifact
		err := us.c.Quota.Within(tx, func() (err error) { a, err = add(tx, conv, s, now); return err })
		if err != nil {
			return nil, failed("artifact.Add", artel.Shorten(s.Filename, 120), err)
		}
		added = append(added, a)
	}
	return added, nil
}

func add(tx store.Tx, conv artel.ConversationID, s Staged, now time.Time) (artel.Artifact, error) {
	id, err := FreeID(s.Filename, func(id artel.ArtifactID) (bool, error) { return tx.Artifacts.Exists(conv, id) })
	if err != nil {
		return artel.Artifact{}, err
	}
	v := s.Version(AuthorUser, now)
	v.Provenance = artel.SourceUserUpload
	if v.Title == "" {
		v.Title = string(id)
	}
	return insert(tx, conv, id, v, s.text)
}

// insert appends v to the journal and makes it visible at once, so that the
// journal needs no text.
func insert(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) (_ artel.Artifact, err error) {
	if v.Number, err = tx.Journal.Append(conv, id, v, nil); err == nil {
		err = tx.Journal.Fold(conv, id, v, text)
	}
	if err != nil {
		return artel.Artifact{}, err
	}
	return v.Artifact(conv, id, v.CreatedAt), nil
}

// maxUploadID is the maximum length in code points of an id made from a filename,
// without a number.
const maxUploadID = 56

// FreeID makes an id from a filename, with a number if the id is used.
func FreeID(filename string, used func(artel.ArtifactID) (bool, error)) (artel.ArtifactID, error) {
	stem, ext := uploadName(filename)
	id := artel.ArtifactID(stem + ext)
	for n := 1; ; n++ {
		taken, err := used(id)
		if err != nil || !taken {
			return id, err
		}
		id = artel.ArtifactID(fmt.Sprintf("%s_%d%s", stem, n, ext))
	}
}

// UploadID returns the id that an upload of this name gets if it is not used.
func UploadID(filename string) artel.ArtifactID {
	stem, ext := uploadName(filename)
	return artel.ArtifactID(stem + ext)
}

// uploadName converts a filename to the two parts of an id: up to the last dot,
// and the extension.
func uploadName(filename string) (stem, ext string) {
	// Lower case can undo the normal form, so normalize again.
	s := norm.NFC.String(strings.ToLower(norm.NFC.String(filename)))
	s = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) || strings.ContainsRune("_.-", r) {
			return r
		}
		return '_'
	}, s)
	if s == "" {
		s = "upload"
	}
	if r, _ := utf8.DecodeRuneInString(s); r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) {
		s = "_" + s
	}
	stem = s
	if i := strings.LastIndexByte(s, '.'); i > 0 {
		stem, ext = s[:i], s[i:]
	}
	room := maxUploadID - utf8.RuneCountInString(ext)
	if room < 1 { // too long for an extension
		return artel.Beginning(s, maxUploadID), ""
	}
	return artel.Beginning(stem, room), ext
}

// Store creates an artifact from bytes found in a tool's result or a model's
// answer. Its source is [artel.SourceToolResult]. Its id is made from the
// filename, or from the media type, like image_1.png. If the branch already has
// such an artifact with these bytes, Store returns it, so that the same text
// always leads to the same ref.
func (w *Workspace) Store(ctx context.Context, s Staged) (artel.Artifact, error) {
	a, err := w.store(ctx, s)
	return a, failed("artifact.Store", artel.Shorten(s.Filename, 80), err)
}

func (w *Workspace) store(ctx context.Context, s Staged) (artel.Artifact, error) {
	w.storing.Lock()
	defer w.storing.Unlock()
	heads, err := w.List(ctx)
	if err != nil {
		return artel.Artifact{}, err
	}
	if a, ok := findStored(heads, s); ok {
		return a, nil
	}
	v := s.Version(w.cfg.Author, w.c.now())
	v.Message, v.Run = w.cfg.Message, w.cfg.Run
	for {
		var id artel.ArtifactID
		err := w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) (err error) {
			id, err = storedID(tx, w.cfg.Conversation, s)
			return err
		})
		if err != nil {
			return artel.Artifact{}, err
		}
		a, err := w.make(ctx, id, "", v, s.document(), nil)
		if artel.CodeOf(err) != CodeArtifactExists { // another writer may have taken the id
			return a, err
		}
	}
}

// document returns the text for editing; nil for binary content.
func (s Staged) document() *edit.Document {
	if s.text == nil {
		return nil
	}
	return edit.NewDocument(*s.text)
}

// StoreTx is [Workspace.Store] for bytes found in a message, inside the
// transaction that stores the message. The artifacts are visible on every branch
// until the message claims them. It returns an artifact for each of staged, in
// order, and those of them that are new.
func (us *Uploads) StoreTx(tx store.Tx, conv artel.ConversationID, at artel.MessageID, staged []Staged) (stored, created []artel.Artifact, err error) {
	if len(staged) == 0 {
		return nil, nil, nil
	}
	heads, err := tx.Artifacts.Heads(conv, at)
	if err != nil {
		return nil, nil, failed("artifact.Store", string(conv), err)
	}
	for _, s := range staged {
		a, ok := findStored(heads, s)
		if !ok {
			if err = us.c.Quota.Within(tx, func() (err error) { a, err = us.c.storeTx(tx, conv, s); return err }); err != nil {
				return nil, nil, failed("artifact.Store", artel.Shorten(s.Filename, 80), err)
			}
			heads, created = append(heads, a), append(created, a)
		}
		stored = append(stored, a)
	}
	return stored, created, nil
}

func (c *Collection) storeTx(tx store.Tx, conv artel.ConversationID, s Staged) (artel.Artifact, error) {
	id, err := storedID(tx, conv, s)
	if err != nil {
		return artel.Artifact{}, err
	}
	v := s.Version(AuthorUser, c.now())
	if !isVisible(v.Title) {
		v.Title = string(id)
	}
	return insert(tx, conv, id, v, s.text)
}

func findStored(heads []artel.Artifact, s Staged) (artel.Artifact, bool) {
	for _, a := range heads {
		if a.Digest == s.Digest && a.Source == artel.SourceToolResult && !a.Deleted && a.MediaType == s.Info.MediaType {
			return a, true
		}
	}
	return artel.Artifact{}, false
}

// Text returns the decoded text; nil for binary content.
func (s Staged) Text() *string { return s.text }

// Version returns the first version of an artifact made from s, with source
// [artel.SourceToolResult] and without a number, run and message.
func (s Staged) Version(author string, now time.Time) artel.Version {
	v := artel.Version{
		Author: author, Update: artel.UpdateCreate, Provenance: artel.SourceToolResult,
		Title: artel.Beginning(artel.Visible(cmp.Or(s.Title, s.Filename)), maxTitle), Filename: s.Filename,
		MediaInfo: s.Info, Digest: s.Digest, InBlob: true, Preview: s.preview, CreatedAt: now,
	}
	return v
}

// storedID returns an unused id made from the filename, or from the media type.
func storedID(tx store.Tx, conv artel.ConversationID, s Staged) (artel.ArtifactID, error) {
	used := func(id artel.ArtifactID) (bool, error) { return tx.Artifacts.Exists(conv, id) }
	if s.Filename != "" {
		return FreeID(s.Filename, used)
	}
	stem := string(s.Info.Kind)
	switch s.Info.Kind {
	case artel.KindText:
		stem = "result"
	case artel.KindOther, "":
		stem = "file"
	}
	ext := media.Extension(s.Info.MediaType)
	taken := func(n int) (bool, error) { return used(artel.ArtifactID(fmt.Sprintf("%s_%d%s", stem, n, ext))) }
	// Numbers are used from 1 on, so the first free one is found by doubling
	// and bisection.
	low, high := 0, 1 // low is always taken
	for {
		is, err := taken(high)
		if err != nil {
			return "", err
		}
		if !is {
			break
		}
		low, high = high, 2*high
	}
	for high-low > 1 {
		mid := (low + high) / 2
		is, err := taken(mid)
		if err != nil {
			return "", err
		}
		if is {
			low = mid
		} else {
			high = mid
		}
	}
	return artel.ArtifactID(fmt.Sprintf("%s_%d%s", stem, high, ext)), nil
}

// A Restorable is the content of a version, read to be restored.
type Restorable struct {
	id      artel.ArtifactID
	version artel.Version
	text    *string // nil: binary
}

// ReadTx reads the content of version number for [Uploads.RestoreTx], in a view. It is
// of kind NotFound if there is no such version, or if it is a deletion.
func (us *Uploads) ReadTx(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, number int) (Restorable, error) {
	const op = "artifact.Restore"
	old, err := version(tx, conv, id, number)
	if err != nil {
		return Restorable{}, failed(op, string(id), err)
	}
	if old.Update == artel.UpdateDelete {
		return Restorable{}, artel.Errorf(artel.NotFound, op, string(id), "version %d is its deletion", number)
	}
	r := Restorable{id: id, version: old.Version}
	if !old.IsBinary() {
		s, err := textAt(tx, conv, id, number)
		if err != nil {
			return Restorable{}, failed(op, string(id), err)
		}
		r.text = &s
	}
	return r, nil
}

// RestoreTx makes a new version of what [Uploads.ReadTx] has read in the same
// conversation, inside the caller's transaction. The new version has no message, so
// that a message on any branch can claim it.
func (us *Uploads) RestoreTx(tx store.Tx, conv artel.ConversationID, r Restorable) (artel.Artifact, error) {
	v := r.version
	v.Parent, v.Message, v.Run, v.Changes = v.Number, "", "", nil
	v.Author, v.Update, v.CreatedAt = AuthorUser, artel.UpdateRestore, us.c.now()
	var a artel.Artifact
	err := us.c.Quota.Within(tx, func() (err error) { a, err = insert(tx, conv, r.id, v, r.text); return err })
	return a, failed("artifact.Restore", string(r.id), err)
}
