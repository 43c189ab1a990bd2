// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model/rendition"
)

// parseID reads an artifact id written by a model: surrounding space and the
// scheme "artifact:" are dropped. Artifacts of other conversations, and
// versions, cannot be written to.
func parseID(e *Env, s string) (artel.ArtifactID, error) {
	s = strings.TrimSpace(s)
	ref, err := artel.ParseRef(s)
	switch {
	case err != nil:
		_, bad := artel.ParseArtifactID(strings.TrimPrefix(s, "artifact:"))
		return "", errors.Join(bad, err)
	case ref.IsBlob():
		return "", artel.Errorf(artel.Invalid, "tool.Call", ref.String(), "this names bytes; give the id of an artifact")
	case ref.Conversation != "" && ref.Conversation != e.Conversation:
		return "", artel.Errorf(artel.Invalid, "tool.Call", ref.String(), "it belongs to another conversation and can only be read from here")
	case ref.Version != 0:
		return "", artel.Errorf(artel.Invalid, "tool.Call", ref.String(), "a version never changes; give the id without @%d", ref.Version)
	}
	return ref.Artifact, nil
}

// A target is an artifact at one version, with its text if it has one.
type target struct {
	artel.Artifact
	text    string
	derived *artifact.Derived // set if the text was extracted from a document
	words   *rendition.Text   // set if the text is a transcript, a caption or read on pages
	doubt   error             // why no service read the pages of a document with doubtful text
}

// media returns the media part of f.
func (f target) media() artel.Media {
	m := f.MediaPart()
	if f.ID == "" { // a blob without an artifact
		m.Ref, m.Filename = artel.BlobRef(f.Digest), f.Filename
	}
	return m
}

// resolve finds the target of a ref written by a model: an artifact of this
// conversation as changed by the run, one of another conversation, or a blob.
func resolve(ctx context.Context, e *Env, ref artel.Ref) (target, error) {
	here := !ref.IsBlob() && (ref.Conversation == "" || ref.Conversation == e.Conversation)
	switch {
	case !here && e.Artifacts == nil:
		return target{}, errOutOfReach(ref)
	case ref.IsBlob():
		return resolveBlob(ctx, e, ref)
	case !here:
		return resolveElsewhere(ctx, e, ref)
	case ref.Version == 0:
		a, err := e.Workspace.Get(ctx, ref.Artifact)
		if err != nil || a.Binary {
			return target{Artifact: a}, err
		}
	}
	text, a, err := e.Workspace.Text(ctx, ref.Artifact, ref.Version)
	if errors.Is(err, artel.Unsupported) && e.Artifacts != nil { // binary
		ref.Conversation = e.Conversation
		return resolveElsewhere(ctx, e, ref)
	}
	return target{Artifact: a, text: text}, err
}

// errOutOfReach is the error for a ref outside of the conversation, if nothing
// else may be read.
func errOutOfReach(ref artel.Ref) error {
	return artel.Errorf(artel.Unsupported, "tool.Call", ref.String(), "only artifacts of this conversation can be read from here; give an id")
}

// resolveElsewhere reads visible versions of any conversation. Without a
// branch, the newest version is one that belongs to no message, so such refs
// name their version.
func resolveElsewhere(ctx context.Context, e *Env, ref artel.Ref) (target, error) {
	var f target
	if ref.Version == 0 {
		a, err := e.Artifacts.Get(ctx, e.Owner, ref.Conversation, ref.Artifact, "")
		if err != nil {
			return f, err
		}
		f.Artifact = a
	} else {
		v, err := e.Artifacts.Versions.Get(ctx, e.Owner, ref.Conversation, ref.Artifact, ref.Version)
		if err != nil {
			return f, err
		}
		f.Artifact = v.Artifact(ref.Conversation, ref.Artifact, v.CreatedAt)
	}
	if f.Binary {
		return f, nil
	}
	text, _, err := e.Artifacts.Text(ctx, e.Owner, ref.Conversation, ref.Artifact, f.Version, "")
	f.text = text
	return f, err
}

// resolveBlob reads bytes by their digest.
func resolveBlob(ctx context.Context, e *Env, ref artel.Ref) (f target, err error) {
	c, err := e.Artifacts.Open(ctx, e.Owner, ref, e.At)
	if err != nil {
		return target{}, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	f.Artifact = c.Version.Artifact("", "", c.Version.CreatedAt)
	if !f.Binary {
		f.text, err = media.DecodeText(c, f.Charset)
	}
	return f, err
}

// failure turns an error that the model can correct into a result. Other errors
// are returned and end the run.
func failure(err error) (Result, error) {
	if _, ok := errors.AsType[*edit.Refusal](err); ok {
		return Failed("%v", err), nil
	}
	switch artel.KindOf(err) {
	case artel.Invalid, artel.NotFound, artel.Conflict, artel.TooLarge, artel.Unsupported, artel.Denied:
		return Failed("%v", err), nil
	}
	return Result{}, err
}

// An artifactArg is the argument that names the artifact which a tool changes.
type artifactArg struct {
	ID string `json:"id"`
}

func (a artifactArg) id() string { return a.ID }

// changing makes a tool that changes one artifact. change returns the artifact
// afterwards and the sentence that the model gets.
func changing[In interface{ id() string }](name, doc string, change func(context.Context, *Env, artel.ArtifactID, In) (artel.Artifact, string, error)) Tool {
	return Func(name, doc, func(ctx context.Context, e *Env, in In) (Result, error) {
		id, err := parseID(e, in.id())
		if err != nil {
			return failure(err)
		}
		a, said, err := change(ctx, e, id, in)
		if err != nil {
			return failure(err)
		}
		return editResult(a, "", said), nil
	})
}

// editResult is the result of an edit.
func editResult(a artel.Artifact, attributes, body string) Result {
	return Result{
		Content:  fmt.Sprintf("<artifact version=\"%d\"%s><id>%s</id> %s</artifact>", a.Version, attributes, a.ID, body),
		Metadata: facts(target{Artifact: a}),
	}
}

// FilesURL is the path prefix of files in the public API.
const FilesURL = "/api/v1/files/"

// FileURL is the path of the content of ref in the public API.
func FileURL(ref artel.Ref) string { return FilesURL + url.PathEscape(ref.String()) }

// ToolResultsURL is the path prefix of blobs in the public API, followed by
// their [FileName].
const ToolResultsURL = FilesURL + "tool_results/"

// FileName returns a file name made of a digest and a media type: 64
// hexadecimal digits and an extension with its dot, or none.
func FileName(d artel.Digest, mediaType string) string { return d.Hex() + media.Extension(mediaType) }

// facts returns the metadata about the artifact of a result.
func facts(f target) map[string]any {
	part := f.media()
	m := map[string]any{
		"content_type": ContentType(f.MediaInfo), "media_type": f.MediaType, "filename": part.Filename,
		"url": FileURL(part.Ref), "ref": part.Ref.String(), "size": f.Size, "digest": f.Digest,
	}
	if f.ID != "" {
		snapshot := map[string]any{
			"id": f.ID, "version": f.Version, "title": f.Title, "media_type": f.MediaType, "size": f.Size, "digest": f.Digest,
		}
		if f.Deleted {
			snapshot["deleted"] = true
		}
		m["artifact_snapshot"] = snapshot
	}
	return m
}

// ContentType returns the class by which pages choose how to show a result; see
// the metadata of results.
func ContentType(m artel.MediaInfo) string {
	switch m.Kind {
	case artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindDocument, artel.KindArchive:
		return string(m.Kind)
	case artel.KindText:
	default:
		return "file"
	}
	switch m.MediaType {
	case "text/markdown":
		return "markdown"
	case "application/json":
		return "json"
	case "text/csv", "text/tab-separated-values":
		return "table"
	case "text/x-diff", "text/x-patch":
		return "diff"
	case "text/plain", "":
		return "text"
	}
	return "code"
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// attribute escapes s for an attribute or a title. It keeps single quotes,
// because hints hold calls to be repeated.
func attribute(s string) string { return escaper.Replace(s) }
