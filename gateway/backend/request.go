// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"crypto/sha256"
	"io"
	"mime"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run"
)

// A Request is one client request: it stores the bytes of its media, finds what
// refs and file ids in it mean, and rewrites the results of tools. It is used by
// one goroutine.
type Request struct {
	Texts  *Texts // of results and calls of tools
	Finds  Finds  // among deferred tools
	Cache  Cache
	Origin string // of this server, as the client reached it: "https://host"
	// Beginning returns what all requests of the conversation begin with; nil: not
	// known.
	Beginning func() string

	b     *Backend
	owner artel.Owner
	key   Key
	infos map[artel.Digest]artel.MediaInfo // of the media in the request
	begun [sha256.Size]byte                // hash of Beginning; zero: not computed
}

// Store stores the bytes of a piece of media and returns their digest and size.
func (r *Request) Store(ctx context.Context, body io.Reader) (artel.Digest, int64, error) {
	quota, now := r.b.parts.Artifacts.Quota, r.b.parts.Now()
	if err := quota.AdmitPassing(r.owner, now); err != nil {
		return "", 0, err
	}
	s, err := r.b.parts.Artifacts.Uploads.Stage(ctx, body, media.Hint{})
	if err != nil {
		return "", 0, err
	}
	quota.Passed(r.owner, s.Digest, s.Info.Size, now)
	r.infos[s.Digest] = s.Info
	return s.Digest, s.Info.Size, nil
}

// Media describes stored bytes. The declared type and filename of the request
// count only if the bytes have no signature. mislabeled is true if the signature
// contradicts the declared type of pictures or audio: APIs compare those types with
// the bytes, and also refuse other names of a picture's type ("image/jpg").
func (r *Request) Media(ctx context.Context, d artel.Digest, declared, filename string) (m artel.Media, mislabeled bool) {
	info := r.infos[d]
	if info.DetectedBy != artel.FromSignature && (declared != "" || filename != "") {
		if again, err := inspect(ctx, r.b.parts.Blobs, d, info.Size, media.Hint{DeclaredType: declared, Filename: filename}); err == nil && again.IsBinary() == info.IsBinary() {
			info = again
		}
		r.infos[d] = info
	}
	return mediaOf(d, info, filename), mislabels(declared, info)
}

func mislabels(declared string, info artel.MediaInfo) bool {
	declared, _, err := mime.ParseMediaType(declared)
	if err != nil || declared == info.MediaType || info.DetectedBy != artel.FromSignature {
		return false
	}
	switch kind, _, _ := strings.Cut(declared, "/"); {
	case info.Kind == artel.KindImage:
		return true
	case kind == "image", info.Kind == artel.KindAudio && kind == "audio":
		return media.Canonical(declared) != info.MediaType
	}
	return false
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
	m, _ := r.Media(ctx, s.Digest, "", "")
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
		Refused: func(d artel.Digest) bool {
			return refused != nil && refused(d) || p.Services.Learned().Refuses(s.ID, d, r.key.Holder(r.owner))
		},
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
