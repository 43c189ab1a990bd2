// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/picture"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/model/route"
)

//go:embed get_artifact.md
var getDoc string

type getArgs struct {
	Ref   string   `json:"ref" jsonschema:"id, id@version or blob:…"`
	Forms []string `json:"forms,omitempty"`
	Pages string   `json:"pages,omitempty" jsonschema:"of a PDF, as pictures, or of a scan as text: 3 or 21-24"`
}

func getArtifact() Tool {
	t := Func("get_artifact", getDoc, func(ctx context.Context, e *Env, in getArgs) (Result, error) {
		target := e.Target
		for _, s := range in.Forms {
			if step := artel.Step(s); step != artel.StepExtracted && step != artel.StepTranscribed {
				return Failed("get_artifact: there is no form %q; there are extracted and transcribed", artel.Shorten(s, 40)), nil
			}
			target.Forms = target.Forms.With(artel.Step(s))
		}
		f, err := find(ctx, e, strings.TrimSpace(in.Ref))
		if err != nil {
			return lookupFailure(ctx, e, in.Ref, err)
		}
		if in.Pages != "" {
			return getPages(ctx, e, f, in.Pages)
		}
		m := f.media()
		var pages []rendition.Rendition
		r := route.New(route.Source{
			ID: string(f.ID), Filename: m.Filename, Info: f.MediaInfo, CreatedAt: f.CreatedAt, ReadAs: f.readAs(e, in.Ref),
			Text: func() (string, error) { return f.text, nil },
			Makers: route.Makers{
				Extract: func() (extract.Extracted, error) {
					d, err := extractText(ctx, e, f)
					if err == nil {
						f.derived = &d
					}
					return d.Extracted, err
				},
				Transcribe: func(pages int) (string, error) { err := f.transcribe(ctx, e, pages); return f.text, err },
				Pages: func(first, last int, form picture.Form) (_ []route.Converted, err error) {
					if e.Renditions == nil || e.Renditions.Pages() == nil {
						return nil, nil
					}
					pages, err = e.Renditions.Pages().Pictures(ctx, e.Owner, f.source(), first, last, form)
					return make([]route.Converted, len(pages)), err
				},
			},
		}, target, e.Locale)
		if err := ctx.Err(); err != nil {
			return Result{}, artel.Errorf(artel.Canceled, "tool.Call", "get_artifact", "%w", context.Cause(ctx))
		}
		res := Result{Content: r.ToolContent(), Metadata: readFacts(f)}
		switch {
		case !f.Binary, r.Route.Step == artel.StepExtracted, r.Route.Step == artel.StepTranscribed:
			res.Content = f.firstPage(e, res.Content)
		case r.Route.Step == artel.StepConverted && pages != nil:
			res = f.pages(1, pages)
		case r.Native():
			res.Parts = artel.Parts{m} // the pipeline converts it if the route says so, and the provider packages label media that they move elsewhere
		}
		res.Metadata["step"], res.Metadata["reason"] = r.Route.Step, r.Route.Reason
		return res, nil
	})
	t.Parallel, t.ShowsContent = true, true
	return readsRef(t, func(in getArgs) string { return in.Ref })
}

// readAs returns the id for read_artifact: the artifact's id if that is enough.
func (f target) readAs(e *Env, asked string) string {
	if f.ID != "" && f.Conversation == e.Conversation && !strings.Contains(asked, "@") {
		return string(f.ID)
	}
	return f.media().Ref.String()
}

func find(ctx context.Context, e *Env, s string) (target, error) {
	ref, err := artel.ParseRef(s)
	if err != nil {
		return target{}, err
	}
	return resolve(ctx, e, ref)
}

// lookupFailure returns the result for a missing artifact, or for bytes that
// are missing or damaged.
func lookupFailure(ctx context.Context, e *Env, ref string, err error) (Result, error) {
	switch {
	case artel.CodeOf(err) == artel.CodeArtifactNotFound:
		return notFoundResult(e, ref)
	case ctx.Err() == nil && (errors.Is(err, artel.NotFound) || artel.KindOf(err) == artel.Internal):
		return Failed("%s", route.Unreadable(artel.Media{Filename: artel.Shorten(ref, 200)}, e.Locale)), nil
	}
	return failure(err)
}

// notFoundResult returns the result for a missing artifact, in the same form as
// a content route.
func notFoundResult(e *Env, ref string) (Result, error) {
	content, err := json.Marshal(struct {
		Error   string `json:"error"`
		Ref     string `json:"ref"`
		Message string `json:"message"`
	}{artel.CodeArtifactNotFound, artel.Shorten(ref, 200), e.Locale.Say(phrase.ToolNotFound, nil)})
	if err != nil {
		return Result{}, artel.Errorf(artel.Internal, "tool.Call", "get_artifact", "%w", err)
	}
	return Result{
		Content: string(content), IsError: true,
		Metadata: map[string]any{"content_type": "error", "code": artel.CodeArtifactNotFound},
	}, nil
}

// firstPage returns a text, or its beginning with the call that reads the rest.
func (f target) firstPage(e *Env, text string) string {
	p := pageAt(text, 1, 1, 0, e.Shown.page())
	if p.line == 0 {
		return text
	}
	if e.Shown.page() < maxShown {
		return f.excerpt(e, text)
	}
	in := f.pinned(e)
	sep := "\n"
	if strings.HasSuffix(p.body, "\n") {
		sep = ""
	}
	return fmt.Sprintf("%s%s[%d of %d characters are shown. To continue: %s]", p.body, sep,
		utf8.RuneCountInString(p.body), utf8.RuneCountInString(text), in.next(p))
}

// pinned returns the call that reads this version of f.
func (f target) pinned(e *Env) readArgs {
	if f.ID != "" && f.Conversation == e.Conversation {
		return readArgs{ID: string(f.ID), Version: f.Version}
	}
	return readArgs{ID: f.media().Ref.String()}
}

// excerpt returns the shape, the beginning and the end of a text, and the calls that read
// and search it.
func (f target) excerpt(e *Env, text string) string {
	x := e.Shown.Excerpt(text, f.MediaType)
	shape := x.Shape
	if shape != "" {
		shape = ": " + shape
	}
	in := f.pinned(e)
	intro := e.Locale.Say(phrase.ToolExcerpt, map[string]any{
		"Count": x.Characters, "Lines": x.Lines, "Shape": shape, "Ref": f.media().Ref.String(),
		"Next": in.next(x.end()), "Grep": fmt.Sprintf("grep_artifacts(pattern='…', id='%s')", in.ID),
	})
	return x.String(intro, e.Locale)
}
