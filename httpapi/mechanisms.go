// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model/route"
)

// A Detected is the answer of POST /media/detect.
type Detected struct {
	MediaType    string            `json:"media_type"`
	DeclaredType string            `json:"declared_type"`
	Kind         artel.MediaKind   `json:"kind"`
	IsBinary     bool              `json:"is_binary"`
	Charset      string            `json:"charset"`
	Extension    string            `json:"extension"`
	Source       artel.MediaSource `json:"source"`
	Confidence   float64           `json:"confidence"`
	Size         int64             `json:"size"`
	Width        int               `json:"width,omitempty"`
	Height       int               `json:"height,omitempty"`
	Pages        int               `json:"pages,omitempty"`
	Duration     float64           `json:"duration,omitempty"`
}

// DetectedOf converts the description of some bytes.
func DetectedOf(m artel.MediaInfo) Detected {
	return Detected{
		MediaType: m.MediaType, DeclaredType: m.DeclaredType, Kind: m.Kind, IsBinary: m.IsBinary(), Charset: m.Charset,
		Extension: media.Extension(m.MediaType), Source: m.DetectedBy, Confidence: m.Confidence, Size: m.Size,
		Width: m.Width, Height: m.Height, Pages: m.Pages, Duration: m.Duration,
	}
}

// A NewEdit is the body of POST /edit.
type NewEdit struct {
	Content string `json:"content"`
	Edits   []struct {
		Old        string `json:"old"`
		New        string `json:"new"`
		ReplaceAll bool   `json:"replace_all,omitempty"`
	} `json:"edits" minItems:"1" maxItems:"1000"`
	Mode   string      `json:"mode,omitempty" enum:"auto,exact,normalized" default:"auto" doc:"how far from the letter a match may be; auto also accepts passages that only resemble the old text"`
	Limits *EditLimits `json:"limits,omitempty"`
	Indent bool        `json:"indent,omitempty" doc:"leave out the white space that lines begin with where they are written otherwise; new text gets the document's"`
}

// EditLimits bound approximate matches. Absent ones are as configured; see
// [edit.Limits].
type EditLimits struct {
	MaxRatio    *float64 `json:"max_ratio,omitempty" minimum:"0" maximum:"1" doc:"the part of the old text that may differ; absent: as configured, usually 0.3"`
	MinDistance *int     `json:"min_distance,omitempty" minimum:"0" doc:"edits that are allowed however small that part is; absent: as configured, usually 5"`
	MinLength   *int     `json:"min_length,omitempty" minimum:"0" doc:"shorter old texts, in code points, are not matched approximately; absent: as configured, usually 12"`
	Margin      *int     `json:"margin,omitempty" minimum:"0" doc:"by how many edits every other place has to be worse; absent: as configured, usually a tenth of the old text, and at least 2"`
}

// over returns the configured limits with the given ones; nil if l is nil.
func (l *EditLimits) over(out edit.Limits) *edit.Limits {
	if l == nil {
		return nil
	}
	if l.MaxRatio != nil {
		out.MaxRatio = *l.MaxRatio
	}
	for _, x := range []struct {
		to    *int
		given *int
	}{{&out.MinDistance, l.MinDistance}, {&out.MinLength, l.MinLength}, {&out.Margin, l.Margin}} {
		if x.given != nil {
			*x.to = *x.given
		}
	}
	return &out
}

// An Edited is the answer of POST /edit. Offsets are code points of the text
// before the edit.
type Edited struct {
	OK      bool       `json:"ok"`
	Content *string    `json:"content,omitempty"`
	Edits   []EditHit  `json:"edits,omitempty"`
	Error   *EditError `json:"error,omitempty"`
}

// An EditHit describes the match of one edit.
type EditHit struct {
	Layer      artel.Layer `json:"layer"`
	Similarity float64     `json:"similarity"`
	Matched    string      `json:"matched"`
	Start      int         `json:"start"`
	End        int         `json:"end"`
	Count      int         `json:"count"`
	Places     []EditPlace `json:"places,omitempty"`
}

// An EditPlace is a range of a text: line from 1, code points from 0.
type EditPlace struct {
	Line  int `json:"line"`
	Start int `json:"start"`
	End   int `json:"end"`
}

// An EditError says which edit was refused and why.
type EditError struct {
	Edit    int         `json:"edit"`
	Kind    string      `json:"kind"`
	Message string      `json:"message"`
	Places  []EditPlace `json:"places,omitempty"`
}

// A BodyInput takes any bytes as a stream.
type BodyInput struct {
	Filename    string `query:"filename" maxLength:"1024"`
	Declared    string `query:"declared" maxLength:"256" doc:"the declared media type"`
	ContentType string `header:"Content-Type" doc:"the declared media type where declared is absent"`
	RawRequest
}

func (in *BodyInput) upload() app.Upload {
	declared := cmp.Or(in.Declared, declaredType(in.ContentType))
	return app.Upload{Body: form.Sent(in.request.Body), Filename: in.Filename, DeclaredType: declared}
}

// declaredType returns the type that a Content-Type declares; none for the
// default of curl.
func declaredType(header string) string {
	if header == "application/x-www-form-urlencoded" {
		return ""
	}
	return header
}

// A TargetQuery names the model for which something is routed.
type TargetQuery struct {
	Service      string   `query:"service" maxLength:"256" doc:"a service id"`
	Capabilities []string `query:"capabilities" doc:"capability words instead of a service: text, vision, file, audio, video"`
	Forms        []string `query:"forms" enum:"extracted,transcribed" doc:"what may stand in the place of bytes that the model cannot take, beside a converted picture and a description: the text taken out of a document; the words of a recording or of a picture, which a configured service is asked for"`
}

// A PagesQuery chooses pages of a document.
type PagesQuery struct {
	Pages string `query:"pages" maxLength:"40" doc:"of a PDF, pages to show as pictures, such as 3 or 21-24, at most 20; as an agent asks for them with get_artifact. Without it, a PDF whose text is missing or doubtful is shown by its first pages if the model sees and does not take it"`
}

func (q TargetQuery) target() app.Target {
	t := app.Target{Service: artel.ServiceID(q.Service)}
	for _, c := range q.Capabilities {
		t.Capabilities = append(t.Capabilities, artel.Capability(c))
	}
	for _, f := range q.Forms {
		t.Forms = append(t.Forms, artel.Step(f))
	}
	return t
}

func bytesOp(op huma.Operation) huma.Operation {
	op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{
		"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	}}
	return op
}

func routeOp(op huma.Operation) huma.Operation {
	op.Responses["200"] = &huma.Response{
		Description: "contentType, routing, content, imageUrl?, file?, metadata, isBinary, step, reason, need, suggestedServices, and sent where step is converted. Pages of a PDF are in imageUrl and furtherPages, and sent has pages and pagesLeft",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject}}},
	}
	return op
}

func (f *server) mechanisms() {
	register(f, bytesOp(f.op(http.MethodPost, "/media/detect", "detect-media", "Say what bytes are", http.StatusOK)),
		func(ctx context.Context, in *BodyInput) (*body[Detected], error) {
			info, err := f.app.Mechanisms.Detect(ctx, in.upload())
			return answer(DetectedOf(info), err)
		})

	register(f, routeOp(bytesOp(f.op(http.MethodPost, "/route", "route-bytes", "Say what a model would get of some bytes", http.StatusOK))),
		func(ctx context.Context, in *struct {
			BodyInput
			TargetQuery
			PagesQuery
		},
		) (*huma.StreamResponse, error) {
			// Route closes the bytes when it returns, so the answer is written
			// inside the call. Errors before its first byte are problems.
			return &huma.StreamResponse{Body: func(hc huma.Context) {
				_, w := humago.Unwrap(hc)
				begun := false
				target := in.target()
				target.Pages = in.Pages
				err := f.app.Mechanisms.Route(ctx, in.upload(), target, func(result *route.Result) error {
					begun = true
					w.Header().Set("Content-Type", "application/json")
					return result.Encode(ctx, w)
				})
				switch {
				case err == nil:
				case begun:
					abortOn(err)
				default:
					p, ok := errors.AsType[*Problem](f.problem(ctx, err))
					if !ok {
						p = newProblem(http.StatusInternalServerError, string(artel.Internal), "internal error")
					}
					writeProblem(w, p)
				}
			}}, nil
		})

	register(f, f.op(http.MethodPost, "/edit", "edit-text", "Apply edits to a text", http.StatusOK, maxBody(textBody)),
		func(ctx context.Context, in *struct{ Body NewEdit }) (*body[Edited], error) {
			edits := make([]edit.Edit, len(in.Body.Edits))
			for i, e := range in.Body.Edits {
				edits[i] = edit.Edit{Old: e.Old, New: e.New, ReplaceAll: e.ReplaceAll}
			}
			return answer(EditedOf(f.app.Mechanisms.Edit(ctx, in.Body.Content, edits, edit.Options{
				Mode: edit.Mode(in.Body.Mode), Limits: in.Body.Limits.over(f.app.Mechanisms.Limits()), Indent: in.Body.Indent,
			})))
		})
}

// EditedOf converts the outcome of an edit; a refusal is an answer, not an
// error.
func EditedOf(r edit.Result, err error) (Edited, error) {
	if refusal, ok := errors.AsType[*edit.Refusal](err); ok {
		return Edited{Error: &EditError{
			Edit: refusal.Edit, Kind: string(refusal.Kind), Message: refusal.Message, Places: placesOf(refusal.Places),
		}}, nil
	}
	if err != nil {
		return Edited{}, err
	}
	out := Edited{OK: true, Content: &r.Text}
	for _, h := range r.Hits {
		out.Edits = append(out.Edits, EditHit{
			Layer: h.Layer, Similarity: h.Similarity, Matched: h.Matched, Start: h.Start, End: h.End, Count: h.Count, Places: placesOf(h.Places),
		})
	}
	return out, nil
}

func placesOf(ps []edit.Place) []EditPlace {
	var out []EditPlace
	for _, p := range ps {
		out = append(out, EditPlace(p))
	}
	return out
}
