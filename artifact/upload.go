// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// Staged is an upload whose bytes are kept and known, and which belongs to
// nothing yet. One that is never added goes with the blobs that nothing
// refers to.
type Staged struct {
	Info     artel.MediaInfo
	Digest   artel.Digest // of the bytes as they came
	Filename string       // as given, in valid UTF-8

	text *string // the decoding of a text; nil for binary content
}

// Stage reads r to its end into the blob store and finds out what it is. Binary
// content is never in memory as a whole. The error is of kind
// [artel.TooLarge] over [Options.MaxBytes], and for a text over
// [Options.MaxText].
func (c *Collection) Stage(ctx context.Context, r io.Reader, h media.Hint) (Staged, error) {
	h.Filename = strings.ToValidUTF8(h.Filename, "\uFFFD")
	s, err := c.stage(ctx, r, h)
	return s, failed("artifact.Stage", artel.Shorten(h.Filename, 120), err)
}

func (c *Collection) stage(ctx context.Context, r io.Reader, h media.Hint) (Staged, error) {
	sniffer := media.NewSniffer(h)
	kept, err := c.blobs.Put(ctx, io.TeeReader(r, sniffer), c.opt.MaxBytes)
	if err != nil {
		return Staged{}, err
	}
	s := Staged{Info: sniffer.Info(), Digest: kept.Digest, Filename: h.Filename}
	s.Info.Size = kept.Size
	// No charset takes more than four bytes for what UTF-8 says in one.
	if !s.Info.IsBinary() && kept.Size > 4*int64(c.opt.MaxText) {
		return Staged{}, c.textTooLarge(kept.Size)
	}
	b, err := c.blobs.Open(ctx, kept.Digest)
	if err != nil {
		return Staged{}, err
	}
	defer b.Close()
	if s.Info.IsBinary() {
		s.Info = media.Measure(ctx, s.Info, b)
		return s, ctx.Err()
	}
	text, err := media.DecodeText(b, s.Info.Charset)
	if err != nil {
		return Staged{}, err
	}
	if len(text) > c.opt.MaxText {
		return Staged{}, c.textTooLarge(int64(len(text)))
	}
	s.text = &text
	return s, nil
}

func (c *Collection) textTooLarge(size int64) error {
	return artel.Errorf(artel.TooLarge, "", "", "a text of %d bytes, and at most %d are possible", size, c.opt.MaxText)
}

// Add makes an artifact of each staged upload, all or none, under ids from
// their filenames that were never used in the conversation. They are visible
// on every branch until a message claims them.
func (c *Collection) Add(ctx context.Context, owner artel.Owner, conv artel.ConversationID, staged []Staged) ([]artel.Artifact, error) {
	var added []artel.Artifact
	err := c.store.Update(ctx, owner, func(tx store.Tx) (err error) {
		added, err = c.AddTx(tx, conv, staged)
		return err
	})
	return added, err
}

// AddTx is Add in somebody's transaction.
func (c *Collection) AddTx(tx store.Tx, conv artel.ConversationID, staged []Staged) ([]artel.Artifact, error) {
	if _, err := tx.Conversations.Get(conv); err != nil {
		return nil, failed("artifact.Add", string(conv), err)
	}
	now := c.now()
	added := make([]artel.Artifact, 0, len(staged))
	for _, s := range staged {
		a, err := add(tx, conv, s, now)
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
	v := artel.Version{
		Author: AuthorUser, Update: artel.UpdateCreate, Provenance: artel.SourceUserUpload,
		Title: artel.Beginning(artel.Visible(s.Filename), maxTitle), Filename: s.Filename,
		MediaInfo: s.Info, Digest: s.Digest, InBlob: true, CreatedAt: now,
	}
	if v.Title == "" {
		v.Title = string(id)
	}
	if s.text != nil {
		v.Preview = artel.Beginning(*s.text, artel.PreviewChars)
	}
	// The journal needs no text of its own: the version is visible at once.
	if v.Number, err = tx.Journal.Append(conv, id, v, nil); err != nil {
		return artel.Artifact{}, err
	}
	if err := tx.Journal.Fold(conv, id, v, s.text); err != nil {
		return artel.Artifact{}, err
	}
	return v.Artifact(conv, id, now), nil
}

// maxUploadID is the longest id made from a filename before it is numbered,
// in code points.
const maxUploadID = 56

// FreeID makes an id from a filename and numbers it until it is not used.
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

// UploadID returns the id that an upload of this name gets where no other
// artifact has it.
func UploadID(filename string) artel.ArtifactID {
	stem, ext := uploadName(filename)
	return artel.ArtifactID(stem + ext)
}

// uploadName turns a filename into the two halves of an id: what comes before
// the last dot, and the rest.
func uploadName(filename string) (stem, ext string) {
	// Lower case can undo the normal form, so that comes last.
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
	if room < 1 { // no extension anyone knows
		return artel.Beginning(s, maxUploadID), ""
	}
	return artel.Beginning(stem, room), ext
}
