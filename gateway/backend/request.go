// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// A Request is one client request: it stores the bytes of its media, finds what
// refs and file ids in it mean, and rewrites the results of tools. It is used by
// one goroutine.
type Request struct {
	b     *Backend
	owner artel.Owner
	infos map[artel.Digest]artel.MediaInfo // of the media in the request
}

// Store stores the bytes of a piece of media and returns their digest and size.
func (r *Request) Store(ctx context.Context, body io.Reader) (artel.Digest, int64, error) {
	s, err := r.b.parts.Artifacts.Stage(ctx, body, media.Hint{})
	if err != nil {
		return "", 0, err
	}
	r.infos[s.Digest] = s.Info
	return s.Digest, s.Info.Size, nil
}

// Media describes stored bytes. The declared type and filename of the request
// count only if the bytes have no signature.
func (r *Request) Media(ctx context.Context, d artel.Digest, declared, filename string) artel.Media {
	info := r.infos[d]
	if info.DetectedBy != artel.FromSignature && (declared != "" || filename != "") {
		if again, err := inspect(ctx, r.b.parts.Blobs, d, info.Size, media.Hint{DeclaredType: declared, Filename: filename}); err == nil && again.IsBinary() == info.IsBinary() {
			info = again
		}
		r.infos[d] = info
	}
	return mediaOf(d, info, filename)
}

// inspect describes stored bytes of a size; binary ones are measured.
func inspect(ctx context.Context, blobs blob.Store, d artel.Digest, size int64, h media.Hint) (artel.MediaInfo, error) {
	b, err := blobs.Open(ctx, d)
	if err != nil {
		return artel.MediaInfo{}, err
	}
	defer b.Close()
	head, err := io.ReadAll(io.LimitReader(b, run.MaxHead))
	if err != nil {
		return artel.MediaInfo{}, err
	}
	info := media.Detect(head, h)
	info.Size = size
	return media.Measure(ctx, info, b), nil
}

func mediaOf(d artel.Digest, info artel.MediaInfo, filename string) artel.Media {
	return artel.Media{
		Ref: artel.BlobRef(d), MediaType: info.MediaType, Kind: info.Kind, Filename: filename, Size: info.Size,
		Width: info.Width, Height: info.Height, Pages: info.Pages, Duration: info.Duration,
	}
}

// IsRef reports whether s looks like a ref to bytes that Artel stores. Clients
// may write one instead of an address.
func IsRef(s string) bool {
	return strings.HasPrefix(s, "artifact:") || strings.HasPrefix(s, "artel://") || strings.HasPrefix(s, "blob:sha256-")
}

// Resolve finds the bytes of the owner that a ref means. The error is of kind
// NotFound if there are none.
func (r *Request) Resolve(ctx context.Context, ref string) (artel.Media, error) {
	f, err := r.b.files.Open(artel.WithOwner(ctx, r.owner), ref)
	if err != nil {
		return artel.Media{}, err
	}
	defer f.Content.Close()
	v := f.Content.Version
	if !v.InBlob { // the text of an edited artifact; requests carry blobs
		if v.Digest, v.Size, err = r.Store(ctx, f.Content); err != nil {
			return artel.Media{}, err
		}
	}
	r.infos[v.Digest] = v.MediaInfo
	return mediaOf(v.Digest, v.MediaInfo, f.Filename), nil
}

// Fetch downloads and stores the bytes behind an address, which must be public.
// The error is of kind NotFound, Invalid or Denied if there are none.
func (r *Request) Fetch(ctx context.Context, address string) (artel.Media, error) {
	s, err := r.b.parts.Fetch(ctx, address)
	if err != nil {
		return artel.Media{}, err
	}
	r.infos[s.Digest] = s.Info
	m := r.Media(ctx, s.Digest, "", "")
	m.Filename = s.Filename
	return m, nil
}

// Upload returns the media of a file that the client with the key uploaded. The
// error is of kind NotFound for any other id, such as those of a service's own
// files.
func (r *Request) Upload(ctx context.Context, id string, key Key) (artel.Media, error) {
	f, err := r.b.Uploads.Find(ctx, id, key)
	if err != nil {
		return artel.Media{}, err
	}
	r.infos[f.Digest] = f.Info
	return mediaOf(f.Digest, f.Info, f.Filename), nil
}

// PrepareMedia decides in which form media reach a service; see
// [pipeline.Registry.PrepareMedia]. Media for which refused returns true are described;
// refused may be nil. text is the size of the request's text in bytes.
func (r *Request) PrepareMedia(ctx context.Context, s model.Service, all []artel.Media, text int64, refused func(artel.Digest) bool) ([]pipeline.PreparedMedia, error) {
	if len(all) == 0 {
		return nil, nil
	}
	pictures := 0
	for _, m := range all {
		if m.Kind == artel.KindImage {
			pictures++
		}
	}
	s = s.ForPictures(pictures)
	p := r.b.parts
	return p.Contexts.PrepareMedia(ctx, pipeline.Input{
		Owner: r.owner, Service: s, Locale: p.Locale, Sources: sources{r}, Renditions: p.Renditions, Suggest: p.Services.Suggest,
		Refused: func(d artel.Digest) bool { return refused != nil && refused(d) || p.Services.Refuses(s.ID, d) },
	}, all, text)
}

// sources reads the media of a request for the pipeline.
type sources struct{ r *Request }

// Overview implements [pipeline.Sources]: a request has no plan and no
// inventory.
func (sources) Overview(context.Context, artel.Owner, artel.ConversationID, artel.MessageID, int) (artifact.Overview, error) {
	return artifact.Overview{}, nil
}

// Open implements [pipeline.Sources].
func (s sources) Open(ctx context.Context, _ artel.Owner, ref artel.Ref, _ artel.MessageID) (artifact.Content, error) {
	info, ok := s.r.infos[ref.Digest]
	if !ok {
		return artifact.Content{}, artel.Errorf(artel.NotFound, "backend.Request", ref.String(), "the request does not hold these bytes")
	}
	b, err := s.r.b.parts.Blobs.Open(ctx, ref.Digest)
	if err != nil {
		return artifact.Content{}, err
	}
	return artifact.Content{Reader: b, Version: artel.Version{Digest: ref.Digest, MediaInfo: info, InBlob: true}, Visible: true}, nil
}

// Derived implements [pipeline.Sources].
func (s sources) Derived(ctx context.Context, _ artel.Owner, ref artel.Ref, _ artel.MessageID) (artifact.Derived, error) {
	return s.r.b.parts.Artifacts.DerivedFrom(ctx, ref.Digest, s.r.infos[ref.Digest])
}

// A Rewritten is the text of a tool's result for models.
type Rewritten struct {
	Text  string
	Media []FoundMedia // taken out of the text
	Steps []Step       // none: the text is unchanged
}

// A Step is one change to the text of a tool's result.
type Step struct {
	Did Action
	Ref artel.Ref // to what was taken out
}

// An Action names a change to a text. The log shows it.
type Action string

// The actions.
const (
	Repaired  Action = "repaired"  // a list of content parts that a client library had turned into text became parts
	Scrubbed  Action = "scrubbed"  // base64 became a ref
	Offloaded Action = "offloaded" // the whole text is stored, and its beginning and end are shown
)

// minRewrite is the length of the shortest text that can hold media.
const minRewrite = 64

// RewriteResult takes media, and text beyond the limit, out of the text of a
// tool's result. It is deterministic: requests of one conversation repeat the
// text, and services cache by prefix.
func (r *Request) RewriteResult(ctx context.Context, text string) (Rewritten, error) {
	out := Rewritten{Text: text}
	if len(text) < minRewrite {
		return out, nil
	}
	sink := func(ctx context.Context, body io.Reader, h scrub.Hint) (string, error) {
		d, _, err := r.Store(ctx, body)
		if err != nil {
			return "", err
		}
		hint := tool.HintOf(h)
		m := r.Media(ctx, d, hint.DeclaredType, hint.Filename)
		if !slices.ContainsFunc(out.Media, func(b FoundMedia) bool { return b.Media.Ref == m.Ref }) {
			out.Media = append(out.Media, FoundMedia{Media: m})
		}
		out.Steps = append(out.Steps, Step{Scrubbed, m.Ref})
		return m.Ref.String(), nil
	}
	if r.b.repair {
		if texts, blocks, ok := parseParts(text); ok {
			out.Text = texts
			for _, b := range blocks {
				m, err := r.storeBlock(ctx, b)
				if err != nil {
					return out, err
				}
				out.Media = append(out.Media, m)
				out.Steps = append(out.Steps, Step{Repaired, m.Media.Ref})
			}
		}
	}
	scrubbed, err := scrub.Media(ctx, out.Text, sink)
	if err != nil {
		return out, err
	}
	out.Text = scrubbed
	if !r.b.parts.Shown.Exceeded(out.Text) {
		return out, nil
	}
	return out, r.offload(ctx, &out)
}

// offload stores a long text and shows its beginning and end.
func (r *Request) offload(ctx context.Context, out *Rewritten) error {
	p := r.b.parts
	s, err := p.Artifacts.Stage(ctx, strings.NewReader(strings.ToValidUTF8(out.Text, "\uFFFD")), media.Hint{DeclaredType: tool.TypeOfText(out.Text)})
	if artel.KindOf(err) == artel.TooLarge && err != nil {
		return nil // too long even for an artifact; the service decides
	}
	if err != nil {
		return err
	}
	if err := r.putFile(ctx, s); err != nil {
		return err
	}
	ref := artel.BlobRef(s.Digest)
	x := p.Shown.Excerpt(out.Text, s.Info.MediaType)
	shape := x.Shape
	if shape != "" {
		shape = ": " + shape
	}
	intro := p.Locale.Say(phrase.GatewayOffloaded, map[string]any{
		"Count": x.Characters, "Lines": x.Lines, "Shape": shape, "Ref": ref.String(), "URL": app.FileURL(ref),
	})
	out.Text = x.String(intro, p.Locale)
	out.Steps = append(out.Steps, Step{Offloaded, ref})
	return nil
}

// putFile makes staged bytes readable for their owner by their ref.
func (r *Request) putFile(ctx context.Context, s artifact.Staged) error {
	p := r.b.parts
	err := p.Store.View(ctx, r.owner, func(tx store.Tx) error {
		_, err := gatewaylog.File(tx, s.Digest)
		return err
	})
	if artel.KindOf(err) != artel.NotFound || err == nil {
		return err
	}
	return p.Store.Update(ctx, r.owner, func(tx store.Tx) error { return gatewaylog.PutFile(tx, s.Digest, s.Info, p.Now()) })
}
