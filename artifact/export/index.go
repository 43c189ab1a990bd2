// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/artelhq/artel"
)

// maxWork bounds what decoding an index costs: parts nest, and each level is
// read again by the one around it. It is the sum over the messages of their
// bytes times the levels of their brackets, for each byte that an index may
// have.
const maxWork = 16

// An indexedArtifact is an artifact as conversation.json has it.
type indexedArtifact struct {
	ID       artel.ArtifactID `json:"id"`
	Versions []indexed        `json:"versions"`
}

// artifact returns x without what belongs to the ZIP.
func (x indexedArtifact) artifact() Artifact {
	a := Artifact{ID: x.ID, Versions: make([]artel.Version, len(x.Versions))}
	for i, v := range x.Versions {
		a.Versions[i] = v.Version
		a.Versions[i].InBlob = v.InBlob
	}
	return a
}

// A visitor holds callbacks for the parts of an index; nil ones are skipped.
type visitor struct {
	conversation func(artel.Conversation) error
	message      func(artel.Message) error
	artifact     func(indexedArtifact) error
	variables    func(Variables) error
}

// An indexReader reads conversation.json piece by piece.
type indexReader struct {
	src  *valueReader
	dec  *json.Decoder
	work int64 // work left for messages
}

// The largest values of an index, in bytes. The text of a message is at most 20 MB
// and may be escaped.
const (
	maxField     = 1 << 20 // the conversation, a key, a text in an unknown field
	maxMessage   = 64 << 20
	maxVersions  = 32 << 20 // of an artifact
	maxVariables = 4 << 20
	maxNesting   = 1000 // of unknown fields
)

// A valueReader bounds what the decoder reads for one value, which it keeps in
// memory as a whole.
type valueReader struct {
	r    io.Reader
	left int
}

// Read implements [io.Reader].
func (r *valueReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, artel.Errorf(artel.TooLarge, "", "", "has a value that is too long; an export of Artel has none")
	}
	n, err := r.r.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// allow lets the decoder read a value of n bytes, and as much ahead.
func (r *valueReader) allow(n int) { r.left = 2*n + 1<<16 }

// read walks through the index.
func (a *Archive) read(ctx context.Context, v visitor) error {
	f, err := a.index.Open()
	if err != nil {
		return zipError(err)
	}
	defer f.Close()
	src := &valueReader{r: contextReader{ctx, f}, left: maxField}
	x := &indexReader{src: src, dec: json.NewDecoder(src), work: maxWork * a.limits.Index}
	return x.read(v)
}

func (x *indexReader) read(v visitor) error {
	if err := x.expect(json.Delim('{')); err != nil {
		return err
	}
	seen := map[string]bool{}
	for x.dec.More() {
		t, err := x.token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if seen[key] {
			return artel.Errorf(artel.Invalid, "", "", "%q is there twice", artel.Shorten(key, 40))
		}
		if len(seen) > 100 {
			return artel.Errorf(artel.Invalid, "", "", "has too many fields")
		}
		seen[key] = true
		if err := x.field(key, v); err != nil {
			return err
		}
	}
	if err := x.expect(json.Delim('}')); err != nil {
		return err
	}
	for _, key := range []string{"format", "format_version", "conversation", "messages", "artifacts"} {
		if !seen[key] {
			return artel.Errorf(artel.Invalid, "", "", "%q is missing", key)
		}
	}
	x.src.allow(maxField)
	if _, err := x.dec.Token(); err != io.EOF {
		return artel.Errorf(artel.Invalid, "", "", "goes on after its end")
	}
	return nil
}

func (x *indexReader) field(key string, v visitor) error {
	switch key {
	case "format":
		var s string
		if err := x.decode(&s, maxField); err != nil {
			return err
		}
		if s != Format {
			return artel.Errorf(artel.Invalid, "", "", "the format is %q and not %q", artel.Shorten(s, 40), Format)
		}
	case "format_version":
		var n int
		if err := x.decode(&n, maxField); err != nil {
			return err
		}
		if n < 1 || n > FormatVersion {
			return artel.Errorf(artel.Unsupported, "", "", "the format has version %d, and this program reads up to %d: update it", n, FormatVersion)
		}
	case "conversation":
		var c artel.Conversation
		if err := x.decode(&c, maxField); err != nil || v.conversation == nil {
			return err
		}
		return v.conversation(c)
	case "messages":
		return x.list(maxMessage, v.message != nil, func(raw json.RawMessage, i int) error {
			if x.work -= int64(len(raw)) * depthOf(raw); x.work < 0 {
				return artel.Errorf(artel.TooLarge, "", "", "message %d: too many brackets in each other", i)
			}
			var m artel.Message
			if err := json.Unmarshal(raw, &m); err != nil {
				return artel.Errorf(artel.Invalid, "", "", "message %d: %w", i, err)
			}
			return v.message(m)
		})
	case "artifacts":
		return x.list(maxVersions, v.artifact != nil, func(raw json.RawMessage, i int) error {
			var a indexedArtifact
			if err := json.Unmarshal(raw, &a); err != nil {
				return artel.Errorf(artel.Invalid, "", "", "artifact %d: %w", i, err)
			}
			return v.artifact(a)
		})
	case "variables":
		return x.list(maxVariables, v.variables != nil, func(raw json.RawMessage, i int) error {
			var s Variables
			if err := json.Unmarshal(raw, &s); err != nil {
				return artel.Errorf(artel.Invalid, "", "", "variables %d: %w", i, err)
			}
			return v.variables(s)
		})
	default: // of a later writer of the same format
		return x.skip()
	}
	return nil
}

// skip reads a value without keeping more than a token of it.
func (x *indexReader) skip() error {
	for depth := 0; ; {
		t, err := x.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxNesting {
				return artel.Errorf(artel.Invalid, "", "", "nests more than %d brackets", maxNesting)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// list reads an array of values of at most most bytes, and calls item for them
// where they are wanted.
func (x *indexReader) list(most int, wanted bool, item func(json.RawMessage, int) error) error {
	if err := x.expect(json.Delim('[')); err != nil {
		return err
	}
	for i := 1; x.dec.More(); i++ {
		var raw json.RawMessage
		if err := x.decode(&raw, most); err != nil {
			return err
		}
		if !wanted {
			continue
		}
		if err := item(raw, i); err != nil {
			return err
		}
	}
	return x.expect(json.Delim(']'))
}

// decode reads one value of at most most bytes.
func (x *indexReader) decode(v any, most int) error {
	x.src.allow(most)
	return jsonError(x.dec.Decode(v))
}

// token reads one token of at most maxField bytes.
func (x *indexReader) token() (json.Token, error) {
	x.src.allow(maxField)
	t, err := x.dec.Token()
	return t, jsonError(err)
}

func (x *indexReader) expect(want json.Delim) error {
	t, err := x.token()
	if err != nil {
		return err
	}
	if t != want {
		return artel.Errorf(artel.Invalid, "", "", "has %v where %v should be", artel.Shorten(tokenText(t), 40), want)
	}
	return nil
}

func tokenText(t json.Token) string {
	b, err := json.Marshal(t)
	if d, ok := t.(json.Delim); ok || err != nil {
		return d.String()
	}
	return string(b)
}

// jsonError classifies an error of reading the index: Invalid for its content; an
// error of the reader keeps its kind.
func jsonError(err error) error {
	if err == nil {
		return nil
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, typed := errors.AsType[*json.UnmarshalTypeError](err)
	if syntax || typed || err == io.EOF || err == io.ErrUnexpectedEOF {
		return artel.Errorf(artel.Invalid, "", "", "is not the JSON of a conversation: %w", err)
	}
	if kind := artel.KindOf(err); kind != artel.Internal {
		return err
	}
	if isCorrupt(err) {
		return zipError(err)
	}
	// What is left is what the types of the vocabulary refuse, such as a ref.
	return artel.Errorf(artel.Invalid, "", "", "%w", err)
}

func isCorrupt(err error) bool {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	return corrupt
}

// depthOf returns the nesting depth of brackets in JSON.
func depthOf(raw []byte) int64 {
	var depth, deepest int64
	for len(raw) > 0 {
		i := bytes.IndexAny(raw, `"[]{}`)
		if i < 0 {
			break
		}
		switch raw[i] {
		case '"':
			raw = raw[i+1:]
			for {
				j := bytes.IndexAny(raw, `"\`)
				if j < 0 {
					return max(deepest, 1)
				}
				if raw[j] == '"' {
					i = j
					break
				}
				raw = raw[min(j+2, len(raw)):]
			}
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		default:
			depth--
		}
		raw = raw[i+1:]
	}
	return max(deepest, 1)
}

// A checker holds an index to itself and to the entries of its ZIP.
type checker struct {
	a        *Archive
	messages map[artel.MessageID]bool
	owners   map[artel.MessageID]string // messages that versions belong to, with one of these
	ids      map[artel.ArtifactID]bool
	used     map[string]bool // entries

	variables map[artel.MessageID]bool // messages that have some
}

func newChecker(a *Archive) *checker {
	return &checker{
		a: a, messages: map[artel.MessageID]bool{}, owners: map[artel.MessageID]string{},
		ids: map[artel.ArtifactID]bool{}, used: map[string]bool{}, variables: map[artel.MessageID]bool{},
	}
}

func (x *checker) conversation(c artel.Conversation) error {
	if _, err := artel.ParseConversationID(string(c.ID)); err != nil {
		return artel.Errorf(artel.Invalid, "", "", "the conversation has no id of the right form")
	}
	x.a.Conversation = c
	return nil
}

func (x *checker) message(m artel.Message) error {
	_, err := artel.ParseMessageID(string(m.ID))
	id := artel.Shorten(string(m.ID), 40)
	switch {
	case err != nil:
		return artel.Errorf(artel.Invalid, "", "", "message %d has no id of the right form", x.a.Messages+1)
	case x.messages[m.ID]:
		return artel.Errorf(artel.Invalid, "", "", "message %s is there twice", id)
	case m.Parent != "" && !x.messages[m.Parent]:
		return artel.Errorf(artel.Invalid, "", "", "the parent of message %s does not come before it", id)
	case m.Covers != "" && (!m.Summary || !x.messages[m.Covers]):
		return artel.Errorf(artel.Invalid, "", "", "message %s covers one that does not come before it, or is no summary", id)
	case !slices.Contains([]artel.Role{artel.RoleSystem, artel.RoleUser, artel.RoleAssistant, artel.RoleTool}, m.Role):
		return artel.Errorf(artel.Invalid, "", "", "message %s has the role %q, which there is not", id, artel.Shorten(string(m.Role), 40))
	case x.a.Messages == x.a.limits.Messages:
		return artel.Errorf(artel.TooLarge, "", "", "has more than %d messages", x.a.limits.Messages)
	}
	x.messages[m.ID] = true
	x.a.Messages++
	return nil
}

func (x *checker) artifact(a indexedArtifact) error {
	_, err := artel.ParseArtifactID(string(a.ID))
	switch {
	case err != nil:
		return artel.Errorf(artel.Invalid, "", "", "artifact %d has no id of the right form", x.a.Artifacts+1)
	case x.ids[a.ID]:
		return artel.Errorf(artel.Invalid, "", "", "artifact %s is there twice", a.ID)
	case len(a.Versions) == 0:
		return artel.Errorf(artel.Invalid, "", "", "artifact %s has no version", a.ID)
	}
	x.ids[a.ID] = true
	x.a.Artifacts++
	last := 0
	for _, v := range a.Versions {
		where := string(a.ID) + " version " + strconv.Itoa(v.Number)
		if v.Number <= last {
			return artel.Errorf(artel.Invalid, "", "", "%s does not come after the one before it", where)
		}
		last = v.Number
		if err := x.version(a.ID, v, where); err != nil {
			return err
		}
	}
	return nil
}

func (x *checker) version(id artel.ArtifactID, v indexed, where string) error {
	_, err := artel.ParseDigest(string(v.Digest))
	entry := x.a.entries[v.File]
	name := artel.Shorten(v.File, 200)
	switch {
	case err != nil:
		return artel.Errorf(artel.Invalid, "", "", "%s has no digest of the right form", where)
	case v.Parent < 0 || v.Parent >= v.Number:
		return artel.Errorf(artel.Invalid, "", "", "%s has the parent %d, which cannot be", where, v.Parent)
	case !slices.Contains(updateTypes[:], v.Update):
		return artel.Errorf(artel.Invalid, "", "", "%s has the update type %q, which there is not", where, artel.Shorten(string(v.Update), 40))
	case !slices.Contains(sources[:], v.Provenance):
		return artel.Errorf(artel.Invalid, "", "", "%s has the source %q, which there is not", where, artel.Shorten(string(v.Provenance), 40))
	case !slices.Contains(mediaKinds[:], v.Kind):
		return artel.Errorf(artel.Invalid, "", "", "%s has the kind %q, which there is not", where, artel.Shorten(string(v.Kind), 40))
	case entry == nil || entry.Mode().IsDir():
		return artel.Errorf(artel.Invalid, "", name, "the file of %s is not in the ZIP", where)
	case x.used[v.File]:
		return artel.Errorf(artel.Invalid, "", name, "is the file of two versions")
	case v.Size < 0 || entry.UncompressedSize64 != uint64(v.Size):
		return artel.Errorf(artel.Invalid, "", name, "has %d bytes, and %s has %d", entry.UncompressedSize64, where, v.Size)
	case v.Size > x.a.limits.File:
		return artel.Errorf(artel.TooLarge, "", name, "has %d bytes, and at most %d are read", v.Size, x.a.limits.File)
	}
	x.used[v.File] = true
	if v.Message != "" {
		x.owners[v.Message] = where
	}
	x.a.files[numbered{id, v.Number}] = file{entry, v.Digest}
	x.a.Versions++
	x.a.Size += v.Size
	return nil
}

func (x *checker) variable(v Variables) error {
	if x.variables[v.Message] {
		return artel.Errorf(artel.Invalid, "", "", "message %s has variables twice", artel.Shorten(string(v.Message), 40))
	}
	if len(v.Value) == 0 || v.Value[0] != '{' {
		return artel.Errorf(artel.Invalid, "", "", "the variables of message %s are no object", artel.Shorten(string(v.Message), 40))
	}
	x.variables[v.Message] = true
	return nil
}

// finish checks what may stand before what it names.
func (x *checker) finish() error {
	if leaf := x.a.Conversation.Leaf; leaf != "" && !x.messages[leaf] {
		return artel.Errorf(artel.Invalid, "", "", "the newest message of the conversation is not in it")
	}
	for m := range x.variables {
		if !x.messages[m] {
			return artel.Errorf(artel.Invalid, "", "", "the message %s, which has variables, is not in it", artel.Shorten(string(m), 40))
		}
	}
	for m, where := range x.owners {
		if !x.messages[m] {
			return artel.Errorf(artel.Invalid, "", "", "the message of %s is not in it", where)
		}
	}
	return nil
}

// The words that the vocabulary has for what versions are.
var (
	updateTypes = [...]artel.UpdateType{
		artel.UpdateCreate, artel.UpdateRestore, artel.UpdateRewrite, artel.UpdateFuzzy, artel.UpdateExact,
		artel.UpdateRename, artel.UpdateDelete,
	}
	sources    = [...]artel.Source{artel.SourceAgent, artel.SourceUserUpload, artel.SourceUser, artel.SourceToolResult, artel.SourceSummary}
	mediaKinds = [...]artel.MediaKind{
		artel.KindText, artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindDocument, artel.KindArchive, artel.KindOther,
	}
)
