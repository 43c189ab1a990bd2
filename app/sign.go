// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
)

// The codes of an invalid signature, of kind [artel.Denied].
const (
	CodeSignatureInvalid = "signature_invalid"
	CodeSignatureExpired = "signature_expired"
)

// The limits of the validity of a signature.
const (
	MinSigned = time.Second
	MaxSigned = 7 * 24 * time.Hour
)

// publicGrid is the granularity of expiry times for a CDN: within one step a URL
// stays the same, so caches keyed by URL hit.
const publicGrid = time.Hour

// A Signed is a URL that gives access to one file until a time, without further
// authentication.
type Signed struct {
	Ref     artel.Ref // always pinned
	URL     string    // a path of this server, or an address of the CDN
	Expires time.Time
}

// mediaGrid is the granularity of expiry times for model services. A media URL
// stays the same for a day, so the prompt caches of services hit, and is valid
// for one to two days.
const mediaGrid = 24 * time.Hour

// MediaAddress returns a function that makes URLs from which model services
// fetch media: below base ([FileOptions.PublicBase]), signed by key. A URL gives
// access to these bytes alone and ends early only when they are deleted for
// good. Without a base it returns nil. A nil now means [time.Now].
func MediaAddress(key []byte, base string, now func() time.Time) func(artel.Media) string {
	if base == "" {
		return nil
	}
	if now == nil {
		now = time.Now
	}
	s, base := newSigner(key), strings.TrimRight(base, "/")
	return func(m artel.Media) string {
		expires := now().Truncate(mediaGrid).Add(2 * mediaGrid)
		return base + "/" + tool.FileName(m.Ref.Digest, m.MediaType) + "?sig=" + s.sign(noOwner, artel.BlobRef(m.Ref.Digest), expires)
	}
}

// noOwner is the owner in signatures of bytes for model services: they are often
// derived pictures, which have no owner.
const noOwner artel.Owner = ""

// Sign makes a URL for exactly the bytes that ref points to now, valid for d. It
// grants only reading these bytes and pictures derived from them. It ends early
// when they are deleted for good or the key is replaced.
func (fs *Files) Sign(ctx context.Context, ref string, d time.Duration) (Signed, error) {
	const op = "app.Files.Sign"
	if d < MinSigned || d > MaxSigned {
		return Signed{}, artel.Errorf(artel.Invalid, op, "expires_in", "want %d to %d seconds", int(MinSigned.Seconds()), int(MaxSigned.Seconds()))
	}
	file, err := fs.Open(ctx, ref)
	if err != nil {
		return Signed{}, err
	}
	defer file.Content.Close()
	pinned, err := artel.ParseRef(ref)
	if err != nil {
		return Signed{}, err
	}
	if !pinned.IsBlob() {
		pinned.Version = file.Content.Version.Number
	}
	// Whole seconds, never more than requested.
	s := Signed{Ref: pinned, Expires: fs.core.now().Add(d).Truncate(time.Second)}
	if fs.publicBase != "" {
		s.URL = fs.public(artel.OwnerOf(ctx), file, s.Expires)
		return s, nil
	}
	s.URL = tool.FileURL(pinned) + "?sig=" + fs.signer.sign(artel.OwnerOf(ctx), pinned, s.Expires)
	return s, nil
}

// SignedPath returns the path of this server at which a pinned ref is read without
// further rights for d. The caller has opened it.
func (fs *Files) SignedPath(ctx context.Context, pinned artel.Ref, d time.Duration) (string, error) {
	if d < MinSigned || d > MaxSigned || !pinned.IsBlob() && pinned.Version == 0 {
		return "", artel.Errorf(artel.Invalid, "app.Files.SignedPath", pinned.String(), "want a pinned ref, and %d to %d seconds", int(MinSigned.Seconds()), int(MaxSigned.Seconds()))
	}
	return tool.FileURL(pinned) + "?sig=" + fs.signer.sign(artel.OwnerOf(ctx), pinned, fs.core.now().Add(d).Truncate(time.Second)), nil
}

// PresignedAddress is [MediaAddress] for a store that makes presigned URLs, which
// services read without this server.
func PresignedAddress(s blob.Store, log *slog.Logger, now func() time.Time) func(artel.Media) string {
	if now == nil {
		now = time.Now
	}
	return func(m artel.Media) string {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		from := now().Truncate(mediaGrid)
		u, err := blob.Presign(ctx, s, m.Ref.Digest, m.MediaType, from, from.Add(2*mediaGrid))
		if err != nil {
			log.Warn("there is no presigned URL of media; they are sent as bytes", "digest", m.Ref.Digest, "err", err)
		}
		return u
	}
}

// Elsewhere returns the URL of an immutable file on the CDN or in the bucket of
// blobs, or "" if this server serves it. The signature is valid for one to two
// hours and is the same for all requests within an hour.
func (fs *Files) Elsewhere(ctx context.Context, file File) string {
	if !file.Immutable || file.Signed > 0 {
		return ""
	}
	from := fs.core.now().Truncate(publicGrid)
	until := from.Add(2 * publicGrid)
	switch {
	case fs.publicBase != "":
		return fs.public(artel.OwnerOf(ctx), file, until)
	case fs.presign && isPlainMedia(file.Info.MediaType):
		// Text of a version is in the database, and has no URL.
		u, err := blob.Presign(ctx, fs.core.blobs, file.Digest, file.Info.MediaType, from, until)
		if err != nil && artel.KindOf(err) != artel.NotFound {
			fs.core.logger.WarnContext(ctx, "there is no presigned URL of a file; this server sends it", "digest", file.Digest, "err", err)
		}
		return u
	}
	return ""
}

// isPlainMedia reports whether a browser shows a media type without running anything
// in it: the bucket does not send the headers that forbid it.
func isPlainMedia(mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, "/")
	return mediaType == "application/pdf" || kind == "audio" || kind == "video" || kind == "image" && !strings.Contains(mediaType, "svg")
}

// public returns the URL of a file on the CDN.
func (fs *Files) public(o artel.Owner, file File, expires time.Time) string {
	return fs.publicBase + "/" + tool.FileName(file.Digest, file.Info.MediaType) + "?sig=" + fs.signer.sign(o, artel.BlobRef(file.Digest), expires)
}

// OpenSigned is Open with a signature of ref, which names the owner; the owner
// of the context does not matter. A signature that is invalid, for another ref,
// or expired is of kind Denied, and so is one of a user who was disabled or deleted.
func (fs *Files) OpenSigned(ctx context.Context, ref, sig string) (File, error) {
	r, err := artel.ParseRef(ref)
	if err != nil {
		return File{}, err
	}
	now := fs.core.now()
	owner, expires, err := fs.signer.verify(r, sig, now)
	if err != nil {
		return File{}, err
	}
	open := func() (File, error) { return fs.Open(artel.WithOwner(ctx, owner), r.String()) }
	if owner == noOwner {
		open = func() (File, error) { return fs.sent(ctx, r) }
	} else if err := fs.core.access.MayLogIn(ctx, owner); err != nil {
		return File{}, err
	}
	file, err := open()
	file.Signed = expires.Sub(now)
	return file, err
}

// sent opens bytes whose URL was sent to a model service.
func (fs *Files) sent(ctx context.Context, r artel.Ref) (File, error) {
	b, err := fs.core.blobs.Open(ctx, r.Digest)
	if err != nil {
		return File{}, err
	}
	head := make([]byte, min(b.Size(), 64<<10))
	if _, err := b.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		_ = b.Close() // the read error matters more
		return File{}, artel.Errorf(artel.Unavailable, "app.Files.OpenSigned", r.String(), "%w", err)
	}
	info := media.Detect(head, media.Hint{})
	info.Size = b.Size()
	return fileOf(ctx, artifact.Content{Reader: b, Version: artel.Version{Digest: r.Digest, MediaInfo: info, InBlob: true}, Visible: true}, r.Digest.Hex()[:16], true), nil
}

// OpenNamedSigned is OpenSigned for a name below [tool.ToolResultsURL].
func (fs *Files) OpenNamedSigned(ctx context.Context, name, sig string) (File, error) {
	d, err := namedDigest(name)
	if err != nil {
		return File{}, err
	}
	return fs.OpenSigned(ctx, artel.BlobRef(d).String(), sig)
}

// A signer makes and checks signatures. A signature has three fields separated
// by dots: the expiry time (seconds since 1970, decimal), the owner, and the
// HMAC-SHA256 of both and the ref; the last two in unpadded base64url. The owner
// of bytes for model services is empty.
type signer struct{ key []byte }

// newSigner uses the given key, or a random one.
func newSigner(key []byte) signer {
	if len(key) == 0 {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
	}
	return signer{key}
}

func (s signer) sign(o artel.Owner, ref artel.Ref, expires time.Time) string {
	enc := base64.RawURLEncoding.EncodeToString
	seconds := strconv.FormatInt(expires.Unix(), 10)
	return seconds + "." + enc([]byte(o)) + "." + enc(s.mac(o, ref, seconds))
}

// mac prefixes each field with its length, so that different lists of fields are
// different bytes.
func (s signer) mac(o artel.Owner, ref artel.Ref, seconds string) []byte {
	h := hmac.New(sha256.New, s.key)
	what := "artel file"
	if o == noOwner {
		what = "artel media"
	}
	for _, field := range []string{what, string(o), ref.String(), seconds} {
		fmt.Fprintf(h, "%d:%s", len(field), field)
	}
	return h.Sum(nil)
}

// verify returns the owner and the expiry time of a valid signature.
func (s signer) verify(ref artel.Ref, sig string, now time.Time) (artel.Owner, time.Time, error) {
	refused := func(code, why string) (artel.Owner, time.Time, error) {
		return "", time.Time{}, &artel.Error{
			Op: "app.Files.OpenSigned", Subject: "sig", Kind: artel.Denied, Code: code,
			Err: artel.Errorf(artel.Denied, "", "", "%s; ask for another with POST …/sign", why),
		}
	}
	seconds, rest, _ := strings.Cut(sig, ".")
	owner, mac, _ := strings.Cut(rest, ".")
	name, err := base64.RawURLEncoding.Strict().DecodeString(owner)
	given, err2 := base64.RawURLEncoding.Strict().DecodeString(mac)
	unix, err3 := strconv.ParseInt(seconds, 10, 64)
	if err != nil || err2 != nil || err3 != nil || !hmac.Equal(given, s.mac(artel.Owner(name), ref, seconds)) {
		return refused(CodeSignatureInvalid, "this signature does not open this file")
	}
	expires := time.Unix(unix, 0).UTC()
	if !now.Before(expires) {
		return refused(CodeSignatureExpired, "this signature ended at "+expires.Format(time.RFC3339))
	}
	return artel.Owner(name), expires, nil
}
