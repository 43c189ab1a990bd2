// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// A Digest is the SHA-256 of some bytes: "sha256-" and 64 hexadecimal digits.
type Digest string

const digestPrefix = "sha256-"

// NewDigest formats a SHA-256 sum.
func NewDigest(sum [32]byte) Digest { return Digest(digestPrefix + hex.EncodeToString(sum[:])) }

// ParseDigest accepts exactly the form of [NewDigest].
func ParseDigest(s string) (Digest, error) {
	h, ok := strings.CutPrefix(s, digestPrefix)
	if ok && len(h) == 64 && strings.Trim(h, "0123456789abcdef") == "" {
		return Digest(s), nil
	}
	return "", &Error{Op: "artel.ParseDigest", Subject: Shorten(s, 80), Kind: NotFound, Err: textError("no such digest: want sha256- and 64 hexadecimal digits")}
}

// Hex returns the hexadecimal digits.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), digestPrefix) }

// A Ref refers to bytes: to an artifact (Conversation, Artifact and optionally
// Version) or to a blob (Digest). The zero Ref refers to nothing.
//
// Its text forms are "artifact:{conversation}/{id}[@{version}]", the short
// "artifact:{id}[@{version}]" inside its conversation, and
// "blob:sha256-{hex}"; in the long form "artel://" may replace "artifact:".
type Ref struct {
	Conversation ConversationID
	Artifact     ArtifactID
	Version      int // 0: the head
	Digest       Digest
}

// BlobRef returns a Ref to the bytes with digest d.
func BlobRef(d Digest) Ref { return Ref{Digest: d} }

// IsZero reports whether r points to nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// IsBlob reports whether r points to bytes by digest.
func (r Ref) IsBlob() bool { return r.Digest != "" }

// Immutable reports whether the bytes behind r can never change.
func (r Ref) Immutable() bool { return r.Digest != "" || r.Version > 0 }

// String returns the longest text form that r allows; "" for the zero Ref.
func (r Ref) String() string {
	switch {
	case r.IsZero():
		return ""
	case r.IsBlob():
		return "blob:" + string(r.Digest)
	}
	var b strings.Builder
	b.WriteString("artifact:")
	if r.Conversation != "" {
		b.WriteString(string(r.Conversation))
		b.WriteByte('/')
	}
	b.WriteString(string(r.Artifact))
	if r.Version > 0 {
		b.WriteByte('@')
		b.WriteString(strconv.Itoa(r.Version))
	}
	return b.String()
}

// ParseRef accepts every text form. Without a scheme s is taken as the short
// form, because models often omit the scheme. The error is of kind [NotFound]
// with code "artifact_not_found".
func ParseRef(s string) (Ref, error) {
	if len(s) > MaxIDLength+128 {
		return Ref{}, noRef(s, "longer than any ref")
	}
	if rest, ok := strings.CutPrefix(s, "blob:"); ok {
		d, err := ParseDigest(rest)
		if err != nil {
			return Ref{}, noRef(s, "want blob:sha256- and 64 hexadecimal digits")
		}
		return Ref{Digest: d}, nil
	}
	rest, long := strings.CutPrefix(s, "artel://")
	if !long {
		rest = strings.TrimPrefix(s, "artifact:")
	}
	var r Ref
	if conv, tail, ok := strings.Cut(rest, "/"); ok {
		c, err := ParseConversationID(conv)
		if err != nil {
			return Ref{}, noRef(s, "no such conversation")
		}
		r.Conversation, rest = c, tail
	} else if long {
		return Ref{}, noRef(s, "want artel://{conversation}/{id}")
	}
	if name, v, ok := strings.Cut(rest, "@"); ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || strconv.Itoa(n) != v {
			return Ref{}, noRef(s, "the version after @ is a number from 1")
		}
		r.Version, rest = n, name
	}
	id, err := ParseArtifactID(rest)
	if err != nil {
		return Ref{}, noRef(s, "no such artifact")
	}
	r.Artifact = id
	return r, nil
}

// MarshalText returns [Ref.String].
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses any text form; the empty text is the zero Ref.
func (r *Ref) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*r = Ref{}
		return nil
	}
	parsed, err := ParseRef(string(b))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

func noRef(s, why string) error {
	return &Error{Op: "artel.ParseRef", Subject: Shorten(s, 120), Kind: NotFound, Code: CodeArtifactNotFound, Err: textError(why)}
}
