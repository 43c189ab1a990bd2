// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/form"
)

// A SavedArtifact is the body of PUT …/artifacts/{id} as JSON. Absent fields
// are unchanged.
type SavedArtifact struct {
	Content *string `json:"content,omitempty" doc:"the whole new text"`
	Title   *string `json:"title,omitempty" minLength:"1" maxLength:"256"`
}

// An ArtifactChange is the body of PATCH …/artifacts/{id}.
type ArtifactChange struct {
	Title string `json:"title" minLength:"1" maxLength:"256"`
}

// A Restoring is the body of POST …/artifacts/{id}/restore.
type Restoring struct {
	Version int `json:"version,omitempty" minimum:"1" doc:"absent: what a deleted artifact was before"`
}

// A Merge is a three-way merge of a late save with the current text.
type Merge struct {
	Clean     bool            `json:"clean" doc:"there is no conflict: the text can be saved on the current version"`
	Text      string          `json:"text" doc:"conflicts stand between marks: <<<<<<< yours, ||||||| the base, ======= and >>>>>>> what is there"`
	Conflicts []MergeConflict `json:"conflicts"`
}

// A MergeConflict is a range that both sides changed. Starts are lines from 1.
type MergeConflict struct {
	Start       int    `json:"start" doc:"of the first mark in the merged text"`
	Lines       int    `json:"lines"`
	BaseStart   int    `json:"base_start"`
	BaseLines   int    `json:"base_lines"`
	MineStart   int    `json:"mine_start"`
	MineLines   int    `json:"mine_lines"`
	TheirsStart int    `json:"theirs_start"`
	TheirsLines int    `json:"theirs_lines"`
	Base        string `json:"base"`
	Mine        string `json:"mine"`
	Theirs      string `json:"theirs"`
}

// staleProblem is the answer to a write for another version than the newest.
func staleProblem(err error) *Problem {
	p := newProblem(http.StatusPreconditionFailed, app.CodeStale, err.Error())
	old, ok := errors.AsType[*artifact.Stale](err)
	if !ok {
		return p
	}
	p.Current, p.Base = &old.Current, old.Base
	if m := old.Merged; m != nil {
		p.Merge = &Merge{Clean: m.Clean(), Text: m.Text, Conflicts: make([]MergeConflict, len(m.Conflicts))}
		for i, c := range m.Conflicts {
			p.Merge.Conflicts[i] = MergeConflict(c)
		}
	}
	return p
}

// A versioned answer says which version it shows in an ETag, which If-Match
// takes.
type versioned[T any] struct {
	ETag string `header:"ETag" doc:"the version, for If-Match"`
	Body T
}

func answerVersion[T any](version int, v T, err error) (*versioned[T], error) {
	if err != nil {
		return nil, err
	}
	return &versioned[T]{`"` + strconv.Itoa(version) + `"`, v}, nil
}

func answerArtifact(a artel.Artifact, err error) (*versioned[artel.Artifact], error) {
	return answerVersion(a.Version, a, err)
}

// An IfMatchHeader names the version that a write expects.
type IfMatchHeader struct {
	IfMatch string `header:"If-Match" maxLength:"100" doc:"the version that was read, in quotes; * is any. Another one than the newest is answered with 412"`
}

// version returns the number in the header; 0 for any.
func (h IfMatchHeader) version() (int, error) {
	s := strings.TrimSpace(h.IfMatch)
	if s == "" || s == "*" {
		return 0, nil
	}
	quoted, ok := strings.CutPrefix(s, `"`)
	quoted, end := strings.CutSuffix(quoted, `"`)
	n, err := strconv.Atoi(quoted)
	if !ok || !end || err != nil || n < 1 {
		return 0, newProblem(http.StatusBadRequest, "malformed", `If-Match is not a version in quotes, such as "3"`)
	}
	return n, nil
}

// A WriteInput names what is written to.
type WriteInput struct {
	ArtifactAt
	IfMatchHeader
}

func (in WriteInput) place() (app.ArtifactAt, error) {
	c, id, at, err := in.where()
	if err != nil {
		return app.ArtifactAt{}, err
	}
	n, err := in.version()
	return app.ArtifactAt{Conversation: c, ID: id, At: at, IfVersion: n}, err
}

const artifactPath = "/conversations/{cid}/artifacts/{id}"

func (f *server) writing() {
	f.saving()

	register(f, f.op(http.MethodPatch, artifactPath, "rename-artifact", "Give an artifact another title", http.StatusOK),
		func(ctx context.Context, in *struct {
			WriteInput
			Body ArtifactChange
		},
		) (*versioned[artel.Artifact], error) {
			p, err := in.place()
			if err != nil {
				return nil, err
			}
			return answerArtifact(f.app.Edits.Rename(ctx, p, in.Body.Title))
		})

	register(f, f.op(http.MethodDelete, artifactPath, "delete-artifact", "Delete an artifact; its versions stay, and restore brings it back", http.StatusNoContent),
		func(ctx context.Context, in *WriteInput) (*none, error) {
			p, err := in.place()
			if err == nil {
				_, err = f.app.Edits.Delete(ctx, p)
			}
			return nil, err
		})

	register(f, f.op(http.MethodPost, artifactPath+"/restore", "restore-version", "Make a new version that is as an older one was, or bring a deleted artifact back", http.StatusOK),
		func(ctx context.Context, in *struct {
			WriteInput
			OnceHeader
			Body *Restoring
		},
		) (*versioned[artel.Artifact], error) {
			p, err := in.place()
			if err != nil {
				return nil, err
			}
			var to Restoring
			if in.Body != nil {
				to = *in.Body
			}
			return answerArtifact(once(ctx, f, in.Key, []any{"restore", p, to}, func() (artel.Artifact, error) {
				return f.app.Edits.Restore(ctx, p, to.Version)
			}))
		})
}

// A saveInput takes the new content as a stream.
type saveInput struct {
	WriteInput
	ContentType string `header:"Content-Type" doc:"application/json, or the type of the bytes"`
	Markers     string `query:"conflict_markers" enum:"refuse,keep" default:"refuse" doc:"what to do with a text that has marks of unresolved conflicts which the newest version does not have"`
	Title       string `header:"X-Title" maxLength:"3072" doc:"beside bytes: the new title, percent-encoded UTF-8"`
	RawRequest
}

func (f *server) saving() {
	schema := f.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[SavedArtifact](), true, "SavedArtifact")
	op := f.op(http.MethodPut, artifactPath, "save-artifact", "Make the next version of an artifact from what was changed in the one that If-Match names", http.StatusOK)
	op.Description = `Other bodies than JSON are the whole new content: text, which is kept as UTF-8, or bytes. ` +
		`If another client saved first, the answer is 412 with the current artifact and, for text, a three-way merge.`
	register(f, op, func(ctx context.Context, in *saveInput) (*versioned[artel.Artifact], error) {
		p, err := in.place()
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(in.IfMatch) == "" {
			return nil, newProblem(http.StatusPreconditionRequired, "precondition_required",
				`say in If-Match which version was changed, as in If-Match: "3"; GET tells it in ETag`)
		}
		draft, err := f.draft(ctx, p, in, schema)
		if err != nil {
			return nil, err
		}
		draft.KeepMarkers = in.Markers == "keep"
		return answerArtifact(f.app.Edits.Save(ctx, p, draft))
	})
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	f.describeBody(op, map[string]*huma.MediaType{
		"application/json": {Schema: schema}, "text/*": {Schema: &huma.Schema{Type: huma.TypeString}}, "application/octet-stream": {Schema: binary},
	})
}

// draft reads the body of a save.
func (f *server) draft(ctx context.Context, p app.ArtifactAt, in *saveInput, schema *huma.Schema) (artifact.Draft, error) {
	body := form.Sent(in.request.Body)
	if major, _, _ := mime.ParseMediaType(in.ContentType); major == "application/json" {
		var s SavedArtifact
		err := f.readJSON(body, schema, &s)
		return artifact.Draft{Title: s.Title, Text: s.Content}, err
	}
	var d artifact.Draft
	if in.Title != "" {
		title, err := url.PathUnescape(in.Title)
		if err != nil || !utf8.ValidString(title) {
			return d, newProblem(http.StatusBadRequest, "malformed", "X-Title is not percent-encoded UTF-8")
		}
		d.Title = &title
	}
	staged, err := f.app.Edits.Stage(ctx, p, app.Upload{Body: body, DeclaredType: declaredType(in.ContentType)})
	d.File = &staged
	return d, err
}

// readJSON reads a body and validates it with the errors of other operations.
func (f *server) readJSON(r io.Reader, schema *huma.Schema, v any) error {
	data, err := io.ReadAll(io.LimitReader(r, textBody+1))
	if err != nil {
		return err
	}
	if len(data) > textBody {
		return newProblem(http.StatusRequestEntityTooLarge, string(artel.TooLarge), "the body is larger than "+strconv.Itoa(textBody>>20)+" MB")
	}
	var plain any
	if err := strictJSON.Unmarshal(data, &plain); err != nil {
		return newProblem(http.StatusBadRequest, "malformed", "malformed JSON: "+err.Error())
	}
	var result huma.ValidateResult
	huma.Validate(f.api.OpenAPI().Components.Schemas, schema, huma.NewPathBuffer([]byte("body"), len("body")), huma.ModeWriteToServer, plain, &result)
	if len(result.Errors) > 0 {
		p := newProblem(http.StatusUnprocessableEntity, "invalid", "")
		for _, err := range result.Errors {
			if e, ok := errors.AsType[*huma.ErrorDetail](err); ok {
				p.Errors = append(p.Errors, fieldError(e))
			}
		}
		where := FieldError{Detail: result.Errors[0].Error()}
		if len(p.Errors) > 0 {
			where = p.Errors[0]
		}
		p.Detail = "the request does not fit the schema: " + strings.TrimSpace(cmp.Or(where.Pointer, where.Parameter)+" "+where.Detail)
		return p
	}
	return strictJSON.Unmarshal(data, v)
}
