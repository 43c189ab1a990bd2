// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/lore"
	"github.com/artelhq/artel/run/record"
)

// An InlineDraft is the whole input of a build, without a conversation.
type InlineDraft struct {
	Service    artel.ServiceID // a configured one; "": Target
	Target     *InlineService  // nil, and no Service: text only, without a window
	Agent      pipeline.Agent
	Processors []pipeline.Setting // of the agent
	Model      []pipeline.Setting // replaces the settings of the service
	User       pipeline.Profile
	Messages   []InlineMessage // the last one is the head
	Now        time.Time       // for macros, in their time zone; zero: the current time in UTC
	Seed       uint64
	Books      []lore.Book // that the settings of the processors may name
	Variables  map[string]string
	Until      string // the id of the last processor to run; "": all
}

// An InlineService is a service that need not be configured.
type InlineService struct {
	Dialect       model.Dialect // "": OpenAI
	Model         string
	Capabilities  []artel.Capability // nil: what is known of the model, else text only
	ContextWindow int                // 0: what is known of the model, else none
}

// An InlineMessage is a message with the files that belong to it.
type InlineMessage struct {
	artel.Message
	Attachments []InlineFile
}

// An InlineFile is an attachment. Without Data only its facts are known, and are
// used unchecked.
type InlineFile struct {
	Ref       artel.Ref // zero: it is named after Name
	Name      string
	MediaType string
	Data      []byte // nil: not given
	artel.MediaInfo
}

// Limits of an inline draft.
const (
	maxInlineMessages = 20_000
	maxInlineFiles    = 1000
)

// BuildDraft runs the whole pipeline on a draft. It reads and stores nothing and
// calls no service. An invalid draft is of kind Invalid. failed is an error of the
// pipeline itself, with the result so far.
func (p *Previews) BuildDraft(ctx context.Context, in InlineDraft) (r pipeline.Result, failed *record.ContextError, err error) {
	service, list, err := p.inlineService(in)
	if err != nil {
		return r, nil, err
	}
	files := &inlineFiles{pdf: p.runs.config.PDF}
	history, err := inlineHistory(in.Messages, files)
	if err != nil {
		return r, nil, err
	}
	if err := pipeline.CheckPresets(in.Agent.Presets); err != nil {
		return r, nil, err
	}
	settings := p.runs.config.Settings.Deployment()
	settings.Model, settings.Agent = list, in.Processors
	now := in.Now
	if now.IsZero() {
		now = p.runs.config.Now()
	}
	r, err = p.runs.config.Pipeline.Build(ctx, pipeline.Input{
		Owner: artel.OwnerOf(ctx), Agent: in.Agent, Service: service, History: history, Now: now, Seed: in.Seed,
		User: in.User, Variables: in.Variables, Locale: p.runs.config.localeFor(in.User), Placement: pipeline.PlaceNone,
		Books: in.Books, Sources: files, Suggest: p.runs.config.Services.Suggest, Settings: settings, Until: in.Until,
	})
	if err != nil && (ctx.Err() != nil || artel.KindOf(err) == artel.Internal) {
		return r, nil, err
	}
	return r, record.ErrorOf(err), nil
}

// inlineService returns the service of a draft, and the settings at its level.
func (p *Previews) inlineService(in InlineDraft) (s model.Service, settings []pipeline.Setting, err error) {
	switch {
	case in.Service != "":
		found, ok := p.runs.config.Services.Lookup(in.Service)
		if !ok {
			return s, nil, p.runs.config.chooser().Unknown(in.Service)
		}
		s, settings = found.OnWire(), p.runs.config.Settings.OfFile(found)
	case in.Target == nil:
		s = model.Service{Dialect: model.OpenAI, Capabilities: model.TextOnly()}
	default:
		if s, err = in.Target.service(); err != nil {
			return s, nil, err
		}
	}
	if in.Model != nil {
		settings = in.Model
	}
	return s, settings, nil
}

func (t *InlineService) service() (model.Service, error) {
	const op = "run.Previews.BuildDraft"
	d := cmp.Or(t.Dialect, model.OpenAI)
	if !slices.Contains(model.Dialects(), d) {
		return model.Service{}, artel.Errorf(artel.Invalid, op, "service.dialect", "%q is no dialect: want one of %q", artel.Shorten(string(d), 40), model.Dialects())
	}
	entry := map[string]any{"id": "inline", "dialect": string(d), "model": t.Model}
	if t.Capabilities != nil {
		words := make([]any, len(t.Capabilities))
		for i, c := range t.Capabilities {
			words[i] = string(c)
		}
		entry["capabilities"] = map[string]any{"input": words}
	}
	if t.ContextWindow > 0 {
		entry["context_window"] = t.ContextWindow
	}
	found, findings := model.ParseServices([]any{entry}, "the request", func(string) string { return "" })
	for _, f := range findings {
		for _, flaw := range f.Flaws {
			return model.Service{}, artel.Errorf(artel.Invalid, op, "service", "%s", flaw)
		}
	}
	if len(found) == 0 {
		return model.Service{}, artel.Errorf(artel.Invalid, op, "service", "it cannot be understood")
	}
	return found[0].OnWire(), nil
}

func inlineHistory(list []InlineMessage, files *inlineFiles) ([]artel.Message, error) {
	const op = "run.Previews.BuildDraft"
	if len(list) > maxInlineMessages {
		return nil, artel.Errorf(artel.TooLarge, op, "messages", "%d messages, and at most %d are taken", len(list), maxInlineMessages)
	}
	seen := map[artel.MessageID]bool{}
	out := make([]artel.Message, len(list))
	for i, m := range list {
		at := fmt.Sprintf("messages[%d]", i)
		m.ID = cmp.Or(m.ID, artel.MessageID(fmt.Sprintf("message-%d", i+1)))
		if seen[m.ID] {
			return nil, artel.Errorf(artel.Invalid, op, at+".id", "two messages have the id %q", artel.Shorten(string(m.ID), 80))
		}
		seen[m.ID] = true
		m.Parts = slices.Clip(m.Parts)
		for n, f := range m.Attachments {
			part, err := files.add(f)
			if err != nil {
				return nil, artel.Errorf(artel.KindOf(err), op, fmt.Sprintf("%s.attachments[%d]", at, n), "%w", err)
			}
			m.Parts = append(m.Parts, part)
		}
		out[i] = m.Message
	}
	return out, nil
}

// inlineFiles are the sources of a draft: its own files.
type inlineFiles struct {
	pdf  *pdf.Engine
	list []inlineFile
}

type inlineFile struct {
	ref     artel.Ref
	version artel.Version
	data    []byte
}

var errInlineName = errors.New("a file needs a ref or a name")

// add adds a file and returns its part.
func (fs *inlineFiles) add(f InlineFile) (artel.Media, error) {
	if len(fs.list) == maxInlineFiles {
		return artel.Media{}, artel.Errorf(artel.TooLarge, "run.Previews.BuildDraft", "", "more than %d files", maxInlineFiles)
	}
	if f.Ref.IsZero() {
		if f.Name == "" {
			return artel.Media{}, errInlineName
		}
		f.Ref = artel.Ref{Artifact: artifact.UploadID(f.Name)}
		for n := 2; fs.taken(f.Ref); n++ {
			f.Ref.Artifact = artel.ArtifactID(fmt.Sprintf("%d-%s", n, artifact.UploadID(f.Name)))
		}
	}
	name := cmp.Or(f.Name, string(f.Ref.Artifact))
	info := media.Detect(f.Data, media.Hint{DeclaredType: f.MediaType, Filename: name})
	if f.Data == nil {
		f.Data = []byte{}
		if info.Size = max(1, f.Size); f.MediaType != "" { // an empty file would be described
			info.MediaType = media.Canonical(f.MediaType)
			info.Kind, info.DetectedBy = media.KindOf(info.MediaType), artel.FromDeclared
		}
	} else {
		info.Size = int64(len(f.Data))
		info = media.Measure(context.Background(), info, bytes.NewReader(f.Data))
	}
	info.Width, info.Height = cmp.Or(f.Width, info.Width), cmp.Or(f.Height, info.Height)
	info.Pages, info.Duration = cmp.Or(f.Pages, info.Pages), cmp.Or(f.Duration, info.Duration)
	seed := f.Data
	if len(seed) == 0 {
		seed = []byte(f.Ref.String())
	}
	digest := artel.NewDigest(sha256.Sum256(seed))
	if f.Ref.IsBlob() {
		digest = f.Ref.Digest
	}
	number := max(1, f.Ref.Version)
	fs.list = append(fs.list, inlineFile{f.Ref, artel.Version{Number: number, Filename: name, Digest: digest, InBlob: true, MediaInfo: info}, f.Data})
	return artel.Media{
		Ref: f.Ref, MediaType: info.MediaType, Kind: info.Kind, Filename: name, Size: info.Size,
		Width: info.Width, Height: info.Height, Pages: info.Pages, Duration: info.Duration,
	}, nil
}

func (fs *inlineFiles) taken(ref artel.Ref) bool {
	return slices.ContainsFunc(fs.list, func(f inlineFile) bool { return f.ref.Artifact == ref.Artifact && !ref.IsBlob() })
}

func (fs *inlineFiles) find(ref artel.Ref) (inlineFile, error) {
	for _, f := range fs.list {
		same := f.ref.Artifact == ref.Artifact && f.ref.Conversation == ref.Conversation && (ref.Version == 0 || ref.Version == f.version.Number)
		if ref.IsBlob() && f.version.Digest == ref.Digest || !ref.IsBlob() && same {
			return f, nil
		}
	}
	return inlineFile{}, artel.Errorf(artel.NotFound, "run.Previews.BuildDraft", ref.String(), "the draft has no such file")
}

// Overview implements [pipeline.Sources]: a draft has no artifacts.
func (fs *inlineFiles) Overview(context.Context, artel.Owner, artel.ConversationID, artel.MessageID, int) (artifact.Overview, error) {
	return artifact.Overview{}, nil
}

// Open implements [pipeline.Sources].
func (fs *inlineFiles) Open(_ context.Context, _ artel.Owner, ref artel.Ref, _ artel.MessageID) (artifact.Content, error) {
	f, err := fs.find(ref)
	if err != nil {
		return artifact.Content{}, err
	}
	return artifact.Content{Reader: &inlineReader{bytes.NewReader(f.data), f.version.Size}, Version: f.version, Visible: true}, nil
}

// Derived implements [pipeline.Sources].
func (fs *inlineFiles) Derived(ctx context.Context, _ artel.Owner, ref artel.Ref, _ artel.MessageID) (artifact.Derived, error) {
	f, err := fs.find(ref)
	if err != nil {
		return artifact.Derived{}, err
	}
	x, err := extract.Text(ctx, bytes.NewReader(f.data), int64(len(f.data)), f.version.MediaInfo, extract.Options{PDF: fs.pdf})
	return artifact.Derived{Extracted: x, Version: f.version, Visible: true, Made: true}, err
}

// An inlineReader reads a file; its size is what the draft says.
type inlineReader struct {
	*bytes.Reader
	size int64
}

// Size implements [blob.Reader].
func (r *inlineReader) Size() int64 { return r.size }

// Close implements [io.Closer].
func (r *inlineReader) Close() error { return nil }
