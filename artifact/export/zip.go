// SPDX-License-Identifier: Apache-2.0

package export

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/render"
	"github.com/artelhq/artel/media"
)

// The format of a ZIP.
const (
	Format        = "artel-conversation"
	FormatVersion = 1

	indexName = "conversation.json"
)

// A Conversation gives [ZIP] access to a conversation.
type Conversation struct {
	artel.Conversation
	// Messages yields all messages of all branches, oldest first.
	Messages iter.Seq2[artel.Message, error]
	// Artifacts yields all artifacts sorted by id, including deleted ones.
	Artifacts iter.Seq2[Artifact, error]
	// Variables yields the macro variables by message; may be nil.
	Variables iter.Seq2[Variables, error]
	// Open returns the bytes of a version; refs are complete and have a version.
	Open Opener
	// Readme is the description of the file for users, in Markdown.
	Readme string
}

// An Artifact is the visible versions of one artifact on all branches, oldest
// first. There is at least one.
type Artifact struct {
	ID       artel.ArtifactID
	Versions []artel.Version
}

// Variables are the macro variables after one message.
type Variables struct {
	Message artel.MessageID `json:"message"`
	Value   json.RawMessage `json:"value"` // an object
}

// ZIP writes a whole conversation.
//
// README.md describes the file to users. conversation.json is one object:
//
//	format          "artel-conversation"
//	format_version  1; a reader refuses higher ones
//	conversation    an [artel.Conversation]
//	messages        all messages of all branches, parents first: [artel.Message]
//	artifacts       by id: {"id", "versions"}; a version is an [artel.Version]
//	                with "file", the entry with its bytes, "text_file", the entry
//	                with its text in UTF-8 if the bytes have another charset, and
//	                "in_blob" if it was uploaded
//	variables       macro variables, if there are any: {"message", "value"}, all
//	                variables after that message
//
// The entries of versions are artifacts/{id}/v{number}{extension}, with the
// original bytes. files/ contains the newest versions on the active branch again,
// under readable names and with relative links between Markdown files. A reader
// needs only conversation.json and the entries that it names.
//
// Runs, events, keys of services and owners are not exported. Texts of users,
// models and tools are exported unchanged.
//
// Messages, versions and files are written one by one. Memory holds an entry for
// each message and version, and the decoding of one text in another charset than
// UTF-8. Versions of messages added during the export are left out.
//
// Errors are those of w, ctx and the conversation, and of kind Internal if the bytes
// of a version do not match its digest. After an error the output is not a ZIP.
func ZIP(ctx context.Context, w io.Writer, c Conversation) error {
	z := archive{
		counted: counter{w: w}, conversation: c.Conversation,
		folders: names{}, files: names{}, parents: map[artel.MessageID]artel.MessageID{}, places: map[artel.Ref]string{},
	}
	z.zip = zip.NewWriter(&z.counted)
	return failed("export.ZIP", string(c.ID), z.write(ctx, c))
}

// An archive is a ZIP being written.
type archive struct {
	zip          *zip.Writer
	counted      counter
	conversation artel.Conversation
	unpacked     int64 // bytes of the entries

	parents  map[artel.MessageID]artel.MessageID
	versions []kept
	folders  names                // of artifacts/
	files    names                // of files/
	places   map[artel.Ref]string // targets of refs without a conversation, relative to files/
}

// A kept is the part of a version that stays in memory.
type kept struct {
	id        artel.ArtifactID
	number    int
	message   artel.MessageID
	mediaType string
	filename  string
	charset   string
	digest    artel.Digest
	size      int64
	text      bool
	deleted   bool
	created   time.Time
	entry     string // entry of its bytes
	textEntry string // entry of its text, if another
	newest    string // entry in files/; "": none
}

func (k kept) ref(c artel.ConversationID) artel.Ref {
	return artel.Ref{Conversation: c, Artifact: k.id, Version: k.number}
}

func (z *archive) write(ctx context.Context, c Conversation) error {
	if c.Readme != "" {
		if err := z.writeText(ctx, "README.md", c.Readme, c.UpdatedAt); err != nil {
			return err
		}
	}
	if err := z.writeIndex(ctx, c); err != nil {
		return err
	}
	z.chooseNewest()
	for _, k := range z.versions {
		if err := z.writeVersion(ctx, c, k); err != nil {
			return failed("", k.ref(c.ID).String(), err)
		}
	}
	for _, k := range z.versions {
		if k.newest != "" {
			if err := z.writeNewest(ctx, c, k); err != nil {
				return failed("", k.ref(c.ID).String(), err)
			}
		}
	}
	return z.zip.Close()
}

// create begins an entry. size is the size of its bytes, -1 if unknown.
func (z *archive) create(ctx context.Context, name string, packed bool, size int64, modified time.Time) (io.Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	method := zip.Deflate
	if packed || !mayPack(z.unpacked, z.counted.n, size) {
		method = zip.Store
	}
	w, err := z.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: zipTime(modified)})
	if err != nil {
		return nil, err
	}
	return &counter{w: w, sum: &z.unpacked}, nil
}

// mayPack reports whether an entry of size bytes (-1: unknown) may be compressed
// after others of so many bytes, unpacked and packed. Readers, ReadZIP included,
// refuse a file that unpacks to too many times its size.
func mayPack(unpacked, packed, size int64) bool {
	return size < 0 || unpacked+size <= unpackedSlack/2+maxRatio*packed
}

func (z *archive) writeText(ctx context.Context, name, text string, modified time.Time) error {
	w, err := z.create(ctx, name, false, int64(len(text)), modified)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}

// An indexed is a version as conversation.json has it.
type indexed struct {
	artel.Version
	InBlob   bool   `json:"in_blob,omitempty"`
	File     string `json:"file"`
	TextFile string `json:"text_file,omitempty"`
}

// writeIndex writes conversation.json and collects data for the other entries.
func (z *archive) writeIndex(ctx context.Context, c Conversation) error {
	entry, err := z.create(ctx, indexName, false, -1, c.UpdatedAt)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(entry, 64<<10)
	j := jsonWriter{w: w, enc: json.NewEncoder(w)}
	j.enc.SetEscapeHTML(false)
	j.put(`{"format":"` + Format + `","format_version":` + strconv.Itoa(FormatVersion) + ",\n" + `"conversation":`)
	j.value(c.Conversation)
	j.put(`,"messages":[` + "\n")
	if err := z.writeMessages(ctx, &j, c.Messages); err != nil {
		return err
	}
	j.put(`],"artifacts":[` + "\n")
	first := true
	for a, err := range c.Artifacts {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if z.writeArtifact(&j, a, first) {
			first = false
		}
		if j.err != nil {
			return j.err
		}
	}
	j.put("]")
	if err := z.writeVariables(ctx, &j, c.Variables); err != nil {
		return err
	}
	j.put("}\n")
	return cmp.Or(j.err, w.Flush())
}

// writeVariables writes the variables of the written messages.
func (z *archive) writeVariables(ctx context.Context, j *jsonWriter, variables iter.Seq2[Variables, error]) error {
	if variables == nil {
		return nil
	}
	first := true
	for v, err := range variables {
		if err == nil {
			err = cmp.Or(ctx.Err(), j.err)
		}
		if err != nil {
			return err
		}
		if _, known := z.parents[v.Message]; !known {
			continue
		}
		if first {
			j.put(`,"variables":[` + "\n")
		}
		j.item(v, &first)
	}
	if !first {
		j.put("]")
	}
	return nil
}

// writeMessages writes parents before their children. That is the order of the
// messages unless a clock was set back.
func (z *archive) writeMessages(ctx context.Context, j *jsonWriter, messages iter.Seq2[artel.Message, error]) error {
	waiting := map[artel.MessageID][]artel.Message{} // by parent
	var orphans int
	first := true
	for m, err := range messages {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if _, known := z.parents[m.Parent]; m.Parent != "" && !known {
			waiting[m.Parent] = append(waiting[m.Parent], m)
			orphans++
			continue
		}
		ready := []artel.Message{m}
		for len(ready) > 0 {
			m := ready[0]
			ready = append(ready[1:], waiting[m.ID]...)
			orphans -= len(waiting[m.ID])
			delete(waiting, m.ID)
			z.parents[m.ID] = m.Parent
			j.item(m, &first)
		}
		if j.err != nil {
			return j.err
		}
	}
	if orphans > 0 {
		return artel.Errorf(artel.Internal, "", "", "%d messages whose parents are not in the conversation", orphans)
	}
	return nil
}

// writeArtifact writes the versions that belong to messages which were
// written, and reports whether there are any.
func (z *archive) writeArtifact(j *jsonWriter, a Artifact, first bool) bool {
	var list []indexed
	folder := ""
	for _, v := range a.Versions {
		if _, known := z.parents[v.Message]; v.Message != "" && !known {
			continue
		}
		if folder == "" {
			folder = "artifacts/" + z.folders.take(string(a.ID)) + "/"
		}
		name := folder + "v" + strconv.Itoa(v.Number)
		k := kept{
			id: a.ID, number: v.Number, message: v.Message, mediaType: v.MediaType, filename: v.Filename,
			charset: v.Charset, digest: v.Digest, size: v.Size, text: !v.IsBinary(), deleted: v.Update == artel.UpdateDelete,
			created: v.CreatedAt, entry: name + extensionFor(a.ID, v),
		}
		if k.text && v.InBlob && !isUTF8(v.Charset) && k.decodable() {
			k.textEntry = name + ".utf-8" + extensionFor(a.ID, v)
		}
		z.versions = append(z.versions, k)
		list = append(list, indexed{v, v.InBlob, k.entry, k.textEntry})
	}
	if len(list) == 0 {
		return false
	}
	if !first {
		j.put(",\n")
	}
	j.put(`{"id":`)
	j.value(a.ID)
	j.put(`,"versions":[`)
	start := true
	for _, v := range list {
		j.item(v, &start)
	}
	j.put("]}")
	return true
}

// decodable reports whether the text can be decoded to UTF-8. A longer text was not
// written by Artel.
func (k kept) decodable() bool {
	_, err := media.DecodeText(strings.NewReader(""), k.charset)
	return err == nil && k.size <= 4*artifact.DefaultMaxText
}

func isUTF8(charset string) bool {
	switch strings.ToLower(charset) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return true
	}
	return false
}

// chooseNewest names the files in files/: one for each artifact on the active
// branch.
func (z *archive) chooseNewest() {
	path := map[artel.MessageID]bool{"": true}
	for m := z.conversation.Leaf; m != "" && !path[m]; m = z.parents[m] {
		path[m] = true
	}
	for i := 0; i < len(z.versions); {
		newest, end := -1, i
		for ; end < len(z.versions) && z.versions[end].id == z.versions[i].id; end++ {
			if path[z.versions[end].message] {
				newest = end
			}
		}
		if newest >= 0 && !z.versions[newest].deleted {
			k := &z.versions[newest]
			name := k.filename
			if name == "" {
				name = string(k.id)
				if _, ext := splitName(name); !plainExtension(ext) {
					name += media.Extension(k.mediaType)
				}
			}
			k.newest = "files/" + z.files.take(name)
		}
		for _, k := range z.versions[i:end] {
			z.place(k)
		}
		i = end
	}
}

// place sets the target of refs to a version.
func (z *archive) place(k kept) {
	to := "../" + escapePath(k.entry)
	if k.newest != "" {
		to = escapePath(strings.TrimPrefix(k.newest, "files/"))
		z.places[artel.Ref{Artifact: k.id}] = to
	}
	z.places[artel.Ref{Artifact: k.id, Version: k.number}] = to
	if _, placed := z.places[artel.BlobRef(k.digest)]; !placed || k.newest != "" {
		z.places[artel.BlobRef(k.digest)] = to
	}
}

// writeVersion writes the bytes of a version, and its text if that differs.
func (z *archive) writeVersion(ctx context.Context, c Conversation, k kept) error {
	if err := z.copy(ctx, c, k, k.entry); err != nil || k.textEntry == "" {
		return err
	}
	text, err := z.text(ctx, c, k)
	if err != nil {
		return err
	}
	return z.writeText(ctx, k.textEntry, text, k.created)
}

// writeNewest writes a version to files/.
func (z *archive) writeNewest(ctx context.Context, c Conversation, k kept) error {
	if !k.text || !isMarkdown(k.mediaType) || k.size > 4*render.MaxMarkdown || !k.decodable() {
		return z.copy(ctx, c, k, k.newest)
	}
	text, err := z.text(ctx, c, k)
	if err != nil {
		return err
	}
	return z.writeText(ctx, k.newest, relink(Document{Text: text, Link: z.link}), k.created)
}

// link returns the link from a file in files/ to another entry.
func (z *archive) link(ref artel.Ref) string {
	if ref.Conversation != "" && ref.Conversation != z.conversation.ID {
		return ""
	}
	ref.Conversation = ""
	return z.places[ref]
}

// escapePath encodes a path for a URL.
func escapePath(p string) string { return (&url.URL{Path: "./" + p}).EscapedPath()[len("./"):] }

// copy writes an entry with the bytes of a version, and checks their size and
// digest.
func (z *archive) copy(ctx context.Context, c Conversation, k kept, name string) error {
	content, err := c.Open(ctx, k.ref(c.ID))
	if err != nil {
		return err
	}
	defer content.Close()
	w, err := z.create(ctx, name, isPacked(k.mediaType), k.size, k.created)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), contextReader{ctx, content})
	if err == nil && (n != k.size || artel.NewDigest([32]byte(sum.Sum(nil))) != k.digest) {
		err = artel.Errorf(artel.Internal, "", "", "the %d bytes that are stored are not the %d of this version", n, k.size)
	}
	return err
}

// text returns the text of a version in UTF-8.
func (z *archive) text(ctx context.Context, c Conversation, k kept) (string, error) {
	content, err := c.Open(ctx, k.ref(c.ID))
	if err != nil {
		return "", err
	}
	defer content.Close()
	return media.DecodeText(contextReader{ctx, content}, k.charset)
}

// isPacked reports whether bytes of a type are compressed already.
func isPacked(mediaType string) bool {
	switch media.KindOf(mediaType) {
	case artel.KindAudio, artel.KindVideo:
		return mediaType != "audio/wav"
	case artel.KindArchive:
		return mediaType != "application/x-tar"
	case artel.KindImage:
		return !slices.Contains([]string{"image/bmp", "image/tiff", "image/x-icon"}, mediaType)
	case artel.KindDocument:
		return mediaType == "application/pdf" || strings.Contains(mediaType, "openxmlformats") || strings.Contains(mediaType, "opendocument") || strings.HasSuffix(mediaType, "+zip")
	}
	return false
}

// A jsonWriter writes JSON piece by piece and keeps the first error.
type jsonWriter struct {
	w   *bufio.Writer
	enc *json.Encoder
	err error
}

func (j *jsonWriter) put(s string) {
	if j.err == nil {
		_, j.err = j.w.WriteString(s)
	}
}

func (j *jsonWriter) value(v any) {
	if j.err == nil {
		j.err = j.enc.Encode(v)
	}
}

// item writes an element of an array.
func (j *jsonWriter) item(v any, first *bool) {
	if !*first {
		j.put(",")
	}
	*first = false
	j.value(v)
}

// A counter counts what is written.
type counter struct {
	w   io.Writer
	n   int64
	sum *int64 // also counts; may be nil
}

// Write implements [io.Writer].
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if c.sum != nil {
		*c.sum += int64(n)
	}
	return n, err
}

// A contextReader fails when its context has ended. It is used within one call.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements [io.Reader].
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
