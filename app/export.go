// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/export"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// An Exported is a file that is generated while it is written.
type Exported struct {
	Filename  string // valid on every operating system
	MediaType string // with a charset if it has one
	Version   int    // of the exported artifact; 0: a conversation
	// Write writes the file for the owner in the context. After an error the output
	// is unusable.
	Write func(context.Context, io.Writer) error
}

// The export formats of a text.
const (
	FormatDOCX     = "docx"
	FormatHTML     = "html"
	FormatMarkdown = "md"
)

// An ExportQuery selects an artifact version and an export format.
type ExportQuery struct {
	Format  string          // one of the formats
	Version int             // 0: the newest of the branch
	At      artel.MessageID // "": the active branch
	Live    bool            // include unfolded edits of the journal
}

const mediaDOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

// Export makes a document from a text artifact, with the pictures it shows as
// they are on the branch. Markdown keeps its refs, and any other text keeps its
// type in that format. Binary content is of kind Unsupported, an unknown format
// of kind Invalid.
func (as *Artifacts) Export(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, q ExportQuery) (Exported, error) {
	const op = "app.Artifacts.Export"
	if !slices.Contains([]string{FormatDOCX, FormatHTML, FormatMarkdown}, q.Format) {
		return Exported{}, artel.Errorf(artel.Invalid, op, artel.Shorten(q.Format, 40), "there is no such format; artifacts are exported as %s, %s or %s", FormatDOCX, FormatHTML, FormatMarkdown)
	}
	at, err := as.core.branch(ctx, c, q.At)
	if err != nil {
		return Exported{}, err
	}
	open := as.Open
	if q.Live {
		open = as.OpenLive
	}
	file, err := open(ctx, c, id, q.Version, at)
	if err != nil {
		return Exported{}, err
	}
	defer file.Content.Close()
	v := file.Content.Version
	if v.IsBinary() {
		return Exported{}, artel.Errorf(artel.Unsupported, op, string(id), "it is %s, and only texts are exported; download its bytes as they are, or export the whole conversation as a ZIP", v.MediaType)
	}
	text, err := as.core.artifacts.Versions.Text(ctx, artel.OwnerOf(ctx), c, id, v.Number)
	if err != nil {
		return Exported{}, err
	}
	d := export.Document{
		Title: v.Title, Text: text, MediaType: v.MediaType, Filename: file.Filename, Time: v.CreatedAt, Open: as.core.pictures(c, at),
	}
	if v.Author != artifact.AuthorUser {
		d.Author = v.Author
	}
	out := Exported{Version: v.Number}
	stem := stemOf(file.Filename, v.MediaType)
	switch q.Format {
	case FormatDOCX:
		out.Filename, out.MediaType = export.FileName(stem, ".docx"), mediaDOCX
		out.Write = func(ctx context.Context, w io.Writer) error { return export.DOCX(ctx, w, d) }
	case FormatHTML:
		out.Filename, out.MediaType = export.FileName(stem, ".html"), "text/html; charset=utf-8"
		out.Write = func(ctx context.Context, w io.Writer) error { return export.HTML(ctx, w, d) }
	default:
		out.Filename, out.MediaType = export.FileName(stem, ".md"), "text/markdown; charset=utf-8"
		if v.MediaType != "text/markdown" {
			out.Filename, out.MediaType = export.FileName(file.Filename, ""), v.MediaType+"; charset=utf-8"
		}
		out.Write = func(_ context.Context, w io.Writer) error { return export.Markdown(w, d) }
	}
	as.core.recordAct(ctx, audit.Act{Action: audit.ArtifactExported, Target: string(c) + "/" + string(id), Detail: q.Format})
	return out, nil
}

// stemOf is a name without the extension of a text file.
func stemOf(name, mediaType string) string {
	ext := path.Ext(name)
	if ext != name && slices.Contains([]string{media.Extension(mediaType), ".md", ".markdown", ".txt"}, strings.ToLower(ext)) {
		return strings.TrimSuffix(name, ext)
	}
	return name
}

// pictures opens the pictures shown by the texts of a branch.
func (k *core) pictures(c artel.ConversationID, at artel.MessageID) export.Opener {
	return func(ctx context.Context, ref artel.Ref) (content artifact.Content, err error) {
		leaf := at
		switch {
		case ref.IsBlob():
		case ref.Conversation == "":
			ref.Conversation = c
		case ref.Conversation != c:
			if leaf, err = k.branch(ctx, ref.Conversation, ""); err != nil {
				return content, err
			}
		}
		return k.artifacts.Open(ctx, artel.OwnerOf(ctx), ref, leaf)
	}
}

// Export makes a ZIP of a whole conversation, in the format of package export:
// all messages and visible versions of all branches. language is the preferred
// language as a tag or an Accept-Language header; "" is the deployment's.
func (cs *Conversations) Export(ctx context.Context, id artel.ConversationID, language string) (Exported, error) {
	c, err := cs.Find(ctx, id)
	if err != nil {
		return Exported{}, err
	}
	locale := cs.core.locale
	if language != "" {
		locale = phrase.ParseLocale(language)
	}
	name := c.Title
	if name == "" {
		name = string(c.ID)
	}
	cs.core.recordAct(ctx, audit.Act{Action: audit.ConversationExported, Target: string(id)})
	return Exported{
		Filename: export.FileName(name, ".zip"), MediaType: "application/zip",
		Write: func(ctx context.Context, w io.Writer) error {
			return export.ZIP(ctx, w, export.Conversation{
				Conversation: c, Messages: cs.allMessages(ctx, id), Artifacts: cs.core.allArtifacts(ctx, id), Open: cs.core.pictures(id, ""), Variables: cs.core.allVariables(ctx, id),
				Readme: locale.Say(phrase.ExportReadme, map[string]any{"Title": name}),
			})
		},
	}, nil
}

// allMessages reads the messages page by page, so a long conversation is never
// in memory as a whole.
func (cs *Conversations) allMessages(ctx context.Context, id artel.ConversationID) iter.Seq2[artel.Message, error] {
	return func(yield func(artel.Message, error) bool) {
		for p := (store.Page{Limit: 500}); ; {
			list, next, err := (&Messages{cs.core}).List(ctx, id, p)
			if err != nil {
				yield(artel.Message{}, err)
				return
			}
			for _, m := range list {
				if !yield(m, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			p.Cursor = next
		}
	}
}

func (k *core) allVariables(ctx context.Context, c artel.ConversationID) iter.Seq2[export.Variables, error] {
	return func(yield func(export.Variables, error) bool) {
		var messages []artel.MessageID
		err := k.view(ctx, func(tx store.Tx) (err error) {
			messages, err = tx.Variables.Messages(c)
			return err
		})
		if err != nil {
			yield(export.Variables{}, err)
			return
		}
		for _, m := range messages {
			v := export.Variables{Message: m}
			err := k.view(ctx, func(tx store.Tx) (err error) {
				v.Value, err = tx.Variables.On(c, []artel.MessageID{m})
				return err
			})
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

func (k *core) allArtifacts(ctx context.Context, c artel.ConversationID) iter.Seq2[export.Artifact, error] {
	return func(yield func(export.Artifact, error) bool) {
		var ids []artel.ArtifactID
		err := k.view(ctx, func(tx store.Tx) (err error) {
			ids, err = tx.Versions.Artifacts(c)
			return err
		})
		if err != nil {
			yield(export.Artifact{}, err)
			return
		}
		for _, id := range ids {
			versions, err := k.artifacts.Versions.List(ctx, artel.OwnerOf(ctx), c, id)
			if !yield(export.Artifact{ID: id, Versions: versions}, err) || err != nil {
				return
			}
		}
	}
}
