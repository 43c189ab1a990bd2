// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/export"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// Imports are the use cases of importing conversations.
type Imports struct {
	core     *core
	spoolDir string
	maxZIP   int64 // bytes of a ZIP
	maxBytes int64 // of one version
	maxText  int64 // bytes of the text of one version, in UTF-8
}

// zipOfVersions is the size limit of an imported ZIP in multiples of the largest
// version.
const zipOfVersions = 20

// newImports takes its limits from those of artifacts.
func newImports(k *core, spoolDir string, o artifact.Options) *Imports {
	maxBytes := cmp.Or(o.MaxBytes, artifact.DefaultMaxBytes)
	maxZIP := int64(math.MaxInt64 - 1) // one more byte is read than accepted
	if maxBytes < maxZIP/zipOfVersions {
		maxZIP = zipOfVersions * maxBytes
	}
	return &Imports{
		core: k, spoolDir: spoolDir, maxZIP: maxZIP,
		maxBytes: maxBytes, maxText: int64(cmp.Or(o.MaxText, artifact.DefaultMaxText)),
	}
}

// A StagedImport is a received and validated ZIP. The caller closes it.
type StagedImport struct {
	Digest artel.Digest // of the ZIP

	file    *os.File
	archive *export.Archive
}

// Close deletes the ZIP from the disk.
func (s *StagedImport) Close() error {
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

// Imported is the result of an import.
type Imported struct {
	Conversation artel.Conversation `json:"conversation"`
	Messages     int                `json:"messages"`
	Artifacts    int                `json:"artifacts"`
	Versions     int                `json:"versions"`
	NoAgent      artel.AgentName    `json:"no_agent,omitempty"`       // missing here; replaced by the default
	NoService    artel.ServiceID    `json:"no_service,omitempty"`     // likewise
	SystemAsUser int                `json:"system_as_user,omitempty"` // messages with the role system, which are the user's now: a file does not instruct models
	Summaries    int                `json:"summaries,omitempty"`      // replace earlier messages in requests
}

// Stage stores a streamed ZIP and validates it. An invalid export is of kind
// Invalid, TooLarge or Unsupported, and the error names the entry and the
// problem.
func (is *Imports) Stage(ctx context.Context, body io.Reader) (_ *StagedImport, err error) {
	const op = "app.Imports.Stage"
	f, err := os.CreateTemp(is.spoolDir, "artel-spool-*")
	if err != nil {
		return nil, artel.Errorf(artel.Unavailable, op, "", "no room for the request body: %w", err)
	}
	s := &StagedImport{file: f}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(body, is.maxZIP+1))
	if err != nil {
		return nil, spoolError(err)
	}
	if n > is.maxZIP {
		return nil, artel.Errorf(artel.TooLarge, op, "body", "more than the limit of %s, which is %d times that of one upload", phrase.Size(is.maxZIP), zipOfVersions)
	}
	s.Digest = artel.NewDigest([32]byte(sum.Sum(nil)))
	s.archive, err = export.ReadZIP(ctx, f, n, export.ReadOptions{File: is.maxBytes})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Import creates a new conversation from a ZIP, with new ids for itself and its
// messages; artifacts and versions keep their ids and numbers. References in
// messages to the old conversation are rewritten; texts of artifacts are
// unchanged. It belongs to no run. The conversation becomes visible as a whole
// at the end; the remains of a failed import are never visible, and [App.Purge]
// deletes them.
func (is *Imports) Import(ctx context.Context, s *StagedImport) (Imported, error) {
	now := is.core.now()
	old := s.archive.Conversation
	in := &importing{
		imports: is, archive: s.archive, batch: batch{core: is.core, id: artel.NewConversationID(now)},
		messages: map[artel.MessageID]artel.MessageID{"": ""}, kept: map[artel.Digest]artel.Artifact{},
	}
	in.led = strings.NewReplacer(string(old.ID), string(in.batch.id))
	c := artel.Conversation{
		ID: in.batch.id, Title: tidy(scrub.Line(in.led.Replace(old.Title))), Agent: old.Agent, Service: old.Service, CreatedAt: old.CreatedAt, UpdatedAt: now,
	}
	out := Imported{Messages: s.archive.Messages, Artifacts: s.archive.Artifacts, Versions: s.archive.Versions}
	err := is.core.view(ctx, func(tx store.Tx) error {
		_, err := is.core.settings.Reader.Agent(tx, c.Agent)
		if errors.Is(err, artel.Invalid) {
			c.Agent, out.NoAgent, err = "", c.Agent, nil
		}
		return err
	})
	if err != nil {
		return Imported{}, err
	}
	if _, err := is.core.chooser().Callable(c.Service); err != nil {
		c.Service, out.NoService = "", c.Service
	}
	c.Leaf = in.message(old.Leaf)
	if err := is.core.update(ctx, func(tx store.Tx) error { return tx.Imports.Begin(c, now) }); err != nil {
		return Imported{}, err
	}
	if err := in.everything(ctx); err != nil {
		in.abandon(ctx)
		return Imported{}, err
	}
	err = is.core.update(ctx, func(tx store.Tx) error { return tx.Imports.Finish(c.ID) })
	if err != nil {
		return Imported{}, err
	}
	out.Conversation, out.SystemAsUser, out.Summaries = c, in.systemAsUser, in.summaries
	return out, nil
}

// abandon lets the next [App.Purge] remove what a failed import has stored, which
// counts as stored until then.
func (in *importing) abandon(ctx context.Context) {
	k := in.imports.core
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer stop()
	err := k.update(ctx, func(tx store.Tx) error { return tx.Imports.Continue(in.batch.id, k.now().Add(-keptDeleted)) })
	if err != nil {
		k.logger.WarnContext(ctx, "the remains of a failed import are removed an hour later", "conversation", in.batch.id, "err", err)
	}
}

// abandonTime is how long marking the remains of a failed import may take.
const abandonTime = 10 * time.Second

// importing is the state of one import.
type importing struct {
	imports  *Imports
	archive  *export.Archive
	led      *strings.Replacer // rewrites references to the old conversation
	batch    batch
	messages map[artel.MessageID]artel.MessageID // new ids by old ones
	kept     map[artel.Digest]artel.Artifact     // made of media encoded in messages

	systemAsUser, summaries int
}

// message returns the new id of a message.
func (in *importing) message(old artel.MessageID) artel.MessageID {
	id, ok := in.messages[old]
	if !ok {
		id = artel.NewMessageID(in.imports.core.now())
		in.messages[old] = id
	}
	return id
}

func (in *importing) everything(ctx context.Context) error {
	for m, err := range in.archive.EachMessage(ctx) {
		if err != nil {
			return err
		}
		m.ID, m.Parent, m.Conversation, m.Run = in.message(m.ID), in.message(m.Parent), in.batch.id, ""
		m.Covers = in.message(m.Covers)
		if m.Role == artel.RoleSystem {
			m.Role, in.systemAsUser = artel.RoleUser, in.systemAsUser+1
		}
		if m.Summary {
			in.summaries++
		}
		m.Agent = artel.AgentName(tidy(scrub.Line(string(m.Agent))))
		size := 0
		if m.Parts, size, err = relead(m.Parts, in.led); err != nil {
			return err
		}
		if m.Parts, err = in.withoutMedia(ctx, m); err != nil {
			return err
		}
		if err := in.batch.add(ctx, size, func(tx store.Tx) error { return tx.Messages.Create(m) }); err != nil {
			return err
		}
	}
	for a, err := range in.archive.EachArtifact(ctx) {
		if err != nil {
			return err
		}
		known := map[int]bool{}
		for _, v := range a.Versions {
			if !known[v.Parent] { // an edit between versions, which is not exported
				v.Parent = 0
			}
			known[v.Number] = true
			v.Message, v.Run = in.message(v.Message), ""
			v.Title, v.Author = tidy(scrub.Line(v.Title)), tidy(scrub.Line(v.Author))
			text, err := in.content(ctx, a.ID, &v)
			if err != nil {
				return err
			}
			size := 0
			if text != nil {
				size = len(*text)
				v.Preview = artel.Beginning(*text, artel.PreviewChars)
			}
			err = in.batch.add(ctx, size, func(tx store.Tx) error { return tx.Imports.Version(in.batch.id, a.ID, v, text) })
			if err != nil {
				return err
			}
		}
	}
	for v, err := range in.archive.EachVariables(ctx) {
		if err != nil {
			return err
		}
		if err := in.variables(ctx, v); err != nil {
			return err
		}
	}
	return in.batch.flush(ctx)
}

// variables stores the variables of a message unchanged.
func (in *importing) variables(ctx context.Context, v export.Variables) error {
	var of macro.Variables
	raw := v.Value
	err := json.Unmarshal(raw, &of)
	if err == nil {
		raw, err = json.Marshal(of) // other keys are dropped
	}
	if err != nil {
		return artel.Errorf(artel.Invalid, "app.Imports.Import", string(v.Message), "its variables cannot be read: %w", err)
	}
	if len(raw) > run.MaxVariables {
		return artel.Errorf(artel.TooLarge, "app.Imports.Import", string(v.Message), "its variables have %d bytes, and at most %d are possible", len(raw), run.MaxVariables)
	}
	m := in.message(v.Message)
	return in.batch.add(ctx, len(raw), func(tx store.Tx) error { return tx.Variables.Put(in.batch.id, m, raw) })
}

// withoutMedia returns the parts of a message without media encoded in their
// text. Each medium becomes an artifact of the message.
func (in *importing) withoutMedia(ctx context.Context, m artel.Message) (artel.Parts, error) {
	b, err := m.Parts.MarshalJSON()
	if err != nil {
		return nil, err
	}
	f := run.NewStagedMedia(in.imports.core.artifacts)
	text, err := scrub.Text(ctx, string(b), f.Keep)
	if err != nil || text == string(b) {
		return m.Parts, err
	}
	kept := make([]artel.Artifact, len(f.Staged()))
	for i, s := range f.Staged() {
		a, ok := in.kept[s.Digest]
		if !ok {
			// Artifacts follow the messages; these ids do not collide with theirs.
			id := artel.ArtifactID(string(s.Info.Kind) + "_" + s.Digest.Hex()[:16] + media.Extension(s.Info.MediaType))
			v := s.Version(artifact.AuthorUser, m.CreatedAt)
			v.Number, v.Message, v.Title = 1, m.ID, cmp.Or(v.Title, string(id))
			err := in.batch.add(ctx, int(s.Info.Size), func(tx store.Tx) error { return tx.Imports.Version(in.batch.id, id, v, s.Text()) })
			if err != nil {
				return nil, err
			}
			a = v.Artifact(in.batch.id, id, v.CreatedAt)
			in.kept[s.Digest] = a
		}
		kept[i] = a
	}
	var parts artel.Parts
	err = parts.UnmarshalJSON([]byte(f.Replacer(kept).Replace(text)))
	return parts, err
}

// content stores the bytes of a version, detects their type anew, and returns
// the text if they are text.
func (in *importing) content(ctx context.Context, id artel.ArtifactID, v *artel.Version) (*string, error) {
	r, err := in.archive.Open(id, v.Number)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if !v.InBlob && !v.IsBinary() {
		return in.written(r, id, v)
	}
	staged, err := in.imports.core.artifacts.Uploads.Stage(ctx, r, media.Hint{DeclaredType: v.DeclaredType, Filename: v.Filename})
	if err != nil {
		return nil, err
	}
	v.MediaInfo, v.Filename, v.InBlob = staged.Info, staged.Filename, true
	if v.IsBinary() {
		return nil, nil
	}
	again, err := in.archive.Open(id, v.Number)
	if err != nil {
		return nil, err
	}
	defer again.Close()
	text, err := media.DecodeText(again, v.Charset)
	return &text, err
}

// written stores a text that was created here or in the exporting system.
func (in *importing) written(r io.Reader, id artel.ArtifactID, v *artel.Version) (*string, error) {
	if v.Size > in.imports.maxText {
		return nil, artel.Errorf(artel.TooLarge, "app.Imports.Import", string(id), "version %d is a text of %d bytes, and at most %d are possible", v.Number, v.Size, in.imports.maxText)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		return nil, artel.Errorf(artel.Invalid, "app.Imports.Import", string(id), "version %d is said to be a text in UTF-8, and is not", v.Number)
	}
	if t, _, err := mime.ParseMediaType(v.MediaType); err != nil || t != v.MediaType || media.KindOf(t) != artel.KindText {
		v.MediaType = "text/plain"
	}
	v.MediaInfo = artel.MediaInfo{
		MediaType: v.MediaType, DeclaredType: tidy(v.DeclaredType), Kind: artel.KindText, Charset: "utf-8",
		DetectedBy: artel.MediaSource(tidy(string(v.DetectedBy))), Confidence: v.Confidence, Size: int64(len(b)),
	}
	v.Filename = media.ShortFilename(strings.ToValidUTF8(v.Filename, "\uFFFD"))
	text := string(b)
	return &text, nil
}

// relead rewrites references to the old conversation in every part, and returns
// the size of the parts in bytes.
func relead(parts artel.Parts, led *strings.Replacer) (out artel.Parts, size int, err error) {
	b, err := parts.MarshalJSON()
	if err != nil {
		return nil, 0, err
	}
	return out, len(b), out.UnmarshalJSON([]byte(led.Replace(string(b))))
}

// tidy reduces an imported title or name to one line.
func tidy(s string) string {
	s = strings.TrimSpace(artel.Visible(strings.Map(func(r rune) rune {
		if breaksLine(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))))
	if utf8.RuneCountInString(s) > maxTitle {
		s = string([]rune(s)[:maxTitle])
	}
	return s
}

// A batch collects the writes of one transaction: enough to be worth a commit,
// and few enough not to block other writers for long.
type batch struct {
	*core
	id   artel.ConversationID
	work []func(store.Tx) error
	size int
}

const (
	batchRows  = 200
	batchBytes = 4 << 20
)

func (b *batch) add(ctx context.Context, size int, fn func(store.Tx) error) error {
	b.work = append(b.work, fn)
	if b.size += size; len(b.work) < batchRows && b.size < batchBytes {
		return nil
	}
	return b.flush(ctx)
}

func (b *batch) flush(ctx context.Context) error {
	err := b.update(ctx, func(tx store.Tx) error {
		if err := tx.Imports.Continue(b.id, b.now()); err != nil {
			return err
		}
		return b.artifacts.Quota.Within(tx, func() error {
			for _, fn := range b.work {
				if err := fn(tx); err != nil {
					return err
				}
			}
			return nil
		})
	})
	b.work, b.size = nil, 0
	return err
}
