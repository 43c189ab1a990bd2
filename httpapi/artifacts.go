// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/form"
)

// An ArtifactView is an artifact in its current state, with its text if it is
// one.
type ArtifactView struct {
	artel.Artifact
	Content *string `json:"content,omitempty"`
}

// An ArtifactPath names an artifact in a path.
type ArtifactPath struct {
	ConversationPath
	Artifact string `path:"id" doc:"an artifact"`
}

func (p ArtifactPath) parse() (artel.ConversationID, artel.ArtifactID, error) {
	c, err := p.id()
	if err != nil {
		return "", "", err
	}
	id, err := artel.ParseArtifactID(p.Artifact)
	if err != nil {
		return "", "", &artel.Error{
			Op: "httpapi", Subject: artel.Shorten(p.Artifact, 120), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound,
			Err: errors.New("no artifact can have this id"),
		}
	}
	return c, id, nil
}

// An AtQuery chooses a branch.
type AtQuery struct {
	At string `query:"at" doc:"a message: look at the branch that ends in it; empty: the active branch"`
}

// An ArtifactAt names an artifact on a branch.
type ArtifactAt struct {
	ArtifactPath
	AtQuery
}

func (p ArtifactAt) where() (c artel.ConversationID, id artel.ArtifactID, at artel.MessageID, err error) {
	if c, id, err = p.parse(); err == nil {
		at, err = p.message()
	}
	return c, id, at, err
}

func (q AtQuery) message() (artel.MessageID, error) {
	if q.At == "" {
		return "", nil
	}
	return artel.ParseMessageID(q.At)
}

func (f *server) artifacts() {
	f.uploads()
	f.writing()
	f.history()
	f.texts()

	register(f, f.op(http.MethodGet, "/conversations/{cid}/artifacts", "list-artifacts", "List the artifacts of a branch, with the edits of an active run", http.StatusOK),
		func(ctx context.Context, in *struct {
			ConversationPath
			AtQuery
			Deleted bool `query:"deleted" doc:"those that are deleted in the place of those that are there"`
		},
		) (*body[List[artel.Artifact]], error) {
			c, err := in.id()
			if err != nil {
				return nil, err
			}
			at, err := in.message()
			if err != nil {
				return nil, err
			}
			list := f.app.Artifacts.List
			if in.Deleted {
				list = f.app.Artifacts.Deleted
			}
			items, err := list(ctx, c, at)
			return answer(listOf(items, ""), err)
		})

	register(f, f.op(http.MethodGet, artifactPath, "read-artifact", "Read an artifact as it is now", http.StatusOK),
		func(ctx context.Context, in *ArtifactAt) (*versioned[ArtifactView], error) {
			c, id, at, err := in.where()
			if err != nil {
				return nil, err
			}
			a, text, err := f.app.Artifacts.Find(ctx, c, id, at)
			return answerVersion(a.Version, ArtifactView{a, text}, err)
		})

	register(f, fileOp(f.op(http.MethodGet, artifactPath+"/raw", "read-raw", "Read the unchanged bytes of an artifact", http.StatusOK)),
		func(ctx context.Context, in *struct {
			ArtifactAt
			Version int `query:"version" minimum:"1" doc:"a version; absent: the newest visible one"`
			LiveQuery
			FileQuery
		},
		) (*huma.StreamResponse, error) {
			c, id, at, err := in.where()
			if err != nil {
				return nil, err
			}
			open := f.app.Artifacts.Open
			if in.Live {
				open = f.app.Artifacts.OpenLive
			}
			return f.serveContent(ctx, artel.Ref{Conversation: c, Artifact: id}, in.FileQuery)(open(ctx, c, id, in.Version, at))
		})

	register(f, routeOp(f.op(http.MethodGet, artifactPath+"/route", "route-artifact", "Say what a model would get of an artifact", http.StatusOK)),
		func(ctx context.Context, in *struct {
			ArtifactAt
			TargetQuery
			PagesQuery
			Inline bool `query:"inline" doc:"carry a payload of any size; else one over 32 MB is named by its URL"`
		},
		) (*huma.StreamResponse, error) {
			c, id, at, err := in.where()
			if err != nil {
				return nil, err
			}
			target := in.target()
			target.Inline, target.Pages = in.Inline, in.Pages
			result, err := f.app.Artifacts.Route(ctx, c, id, at, target)
			if err != nil {
				return nil, err
			}
			return &huma.StreamResponse{Body: func(hc huma.Context) {
				hc.SetHeader("Content-Type", "application/json")
				abortOn(result.Encode(ctx, hc.BodyWriter()))
			}}, nil
		})
}

// abortOn aborts a response that has begun, so that the client sees a broken
// transfer instead of a short answer.
func abortOn(err error) {
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// An uploadInput takes files as a stream.
type uploadInput struct {
	ConversationPath
	OnceHeader
	ContentType string `header:"Content-Type" doc:"the declared type of the bytes, or multipart/form-data"`
	Filename    string `header:"X-Filename" maxLength:"3072" doc:"the file's name, percent-encoded UTF-8"`
	Name        string `query:"filename" maxLength:"1024" doc:"the file's name, in the place of X-Filename"`
	RawRequest
}

// fieldFile is the repeatable field of a multipart upload.
const fieldFile = "file"

func (f *server) uploads() {
	op := f.op(http.MethodPost, "/conversations/{cid}/artifacts", "upload-artifacts", "Upload one file (raw body) or several (multipart, all or none)", http.StatusCreated)
	op.Responses["201"] = &huma.Response{
		Description: "the artifact, or of a multipart upload {items: [artifacts]}",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject}}},
	}
	register(f, op, func(ctx context.Context, in *uploadInput) (*body[any], error) {
		c, err := in.id()
		if err != nil {
			return nil, err
		}
		ctx, release, err := f.reserve(ctx, in)
		if err != nil {
			return nil, err
		}
		defer release()
		staged, several, err := f.stage(ctx, c, in)
		if err != nil {
			return nil, err
		}
		items, err := once(ctx, f, in.Key, []any{"upload", c, several, staged}, func() ([]artel.Artifact, error) {
			return f.app.Artifacts.Add(ctx, c, staged)
		})
		switch {
		case err != nil:
			return nil, err
		case several:
			return &body[any]{listOf(items, "")}, nil
		}
		return &body[any]{items[0]}, nil
	})
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	f.describeBody(op, map[string]*huma.MediaType{
		"application/octet-stream": {Schema: binary},
		"multipart/form-data": {Schema: &huma.Schema{
			Type: huma.TypeObject, Required: []string{fieldFile},
			Properties: map[string]*huma.Schema{fieldFile: {Type: huma.TypeArray, Items: binary}},
		}},
	})
}

// formBytes is how much of a form at most is not stored, for each of a few files.
const formBytes = 64 << 10

// reserve admits the files of a request, before they are read.
func (f *server) reserve(ctx context.Context, in *uploadInput) (context.Context, func(), error) {
	spare := int64(0)
	if major, _, _ := mime.ParseMediaType(in.ContentType); major == "multipart/form-data" {
		spare = min(max(in.request.ContentLength, 0), formBytes)
	}
	return f.app.Storage.Reserve(ctx, in.request.ContentLength, spare)
}

// stage stores the files of a request: one, or several as a form.
func (f *server) stage(ctx context.Context, c artel.ConversationID, in *uploadInput) (staged []artifact.Staged, several bool, err error) {
	if major, _, _ := mime.ParseMediaType(in.ContentType); major == "multipart/form-data" {
		if in.Name != "" {
			return nil, true, newProblem(http.StatusUnprocessableEntity, "invalid", "filename names the file of a raw body; each file of a form has a name of its own")
		}
		staged, err = f.stageForm(ctx, c, in)
		return staged, true, err
	}
	name, err := filename(in.Filename)
	switch {
	case err != nil:
		return nil, false, err
	case name != "" && in.Name != "":
		return nil, false, newProblem(http.StatusUnprocessableEntity, "invalid", "X-Filename and the query parameter filename both name the file; send one of them")
	case name == "":
		name = strings.TrimSpace(in.Name)
	}
	one, err := f.app.Artifacts.Stage(ctx, c, app.Upload{Body: form.Sent(in.request.Body), Filename: name, DeclaredType: declaredType(in.ContentType)})
	return []artifact.Staged{one}, false, err
}

func (f *server) stageForm(ctx context.Context, c artel.ConversationID, in *uploadInput) ([]artifact.Staged, error) {
	var all []artifact.Staged
	for part, err := range form.Parts(in.request.Body, in.ContentType) {
		if err != nil {
			return nil, err
		}
		if part.Name != fieldFile {
			p := newProblem(http.StatusUnprocessableEntity, "invalid", "files come in the field "+fieldFile)
			p.Errors = []FieldError{{Pointer: "/" + artel.Shorten(part.Name, 80), Detail: "unknown field"}}
			return nil, p
		}
		staged, err := f.app.Artifacts.Stage(ctx, c, app.Upload{Body: part, Filename: part.Filename, DeclaredType: part.ContentType})
		if err != nil {
			return nil, err
		}
		all = append(all, staged)
	}
	if len(all) == 0 {
		return nil, newProblem(http.StatusUnprocessableEntity, "invalid", "the form holds no file; they come in the field "+fieldFile)
	}
	return all, nil
}

// filename decodes the X-Filename header.
func filename(header string) (string, error) {
	name, err := url.PathUnescape(header)
	if err != nil || !utf8.ValidString(name) {
		return "", newProblem(http.StatusBadRequest, "malformed", "X-Filename is not percent-encoded UTF-8")
	}
	return strings.TrimSpace(name), nil
}
