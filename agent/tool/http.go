// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/media"
)

// An Endpoint is an HTTP API that [Endpoint.Tool] turns into a tool.
//
// "{name}" in URL and Body stands for the argument of that name. In the path it
// is escaped and must be a required argument. In the query it is escaped, and a
// pair with an absent argument is left out. Scheme and host are fixed. In Body,
// a string that is just "{name}" becomes the argument with its type, or is left
// out with its member; inside a longer string it becomes text.
type Endpoint struct {
	Method  string // "": GET, or POST where there is a body
	URL     string
	Header  http.Header // of every request; may hold secrets
	Body    any         // JSON; nil: for POST, PUT and PATCH, all arguments that are not in URL
	Secrets Secrets
	Client  *http.Client // guarded against private addresses; should not follow redirects, which would get Header
	Limits  EndpointLimits
}

// EndpointLimits bound a call of an [Endpoint]. Zero fields mean the defaults.
type EndpointLimits struct {
	Time   time.Duration // until the end of the response; 0: 30 s
	Answer int64         // bytes of the response; 0: 8 MB
}

// shownFailure is how many bytes of a failed response are shown.
const shownFailure = 2000

var argumentName = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_-]*)\}`)

// Tool makes a tool that calls the endpoint. t has the other properties of the
// tool; its Call is set. The error says what is wrong with the endpoint. A
// status of 400 or more, a missing response and one that is too long become
// failed results. A response that is not text becomes an artifact.
func (p Endpoint) Tool(t Tool) (Tool, error) {
	if p.Method == "" {
		if p.Method = http.MethodGet; p.Body != nil {
			p.Method = http.MethodPost
		}
	}
	if p.Limits.Time <= 0 {
		p.Limits.Time = 30 * time.Second
	}
	if p.Limits.Answer <= 0 {
		p.Limits.Answer = 8 << 20
	}
	if err := p.check(t.Schema); err != nil {
		return t, err
	}
	t.Deferrable = true
	t.Call = func(ctx context.Context, e *Env, args json.RawMessage) (Result, error) {
		return p.call(ctx, e, t.Name, args)
	}
	_, err := check(t)
	return t, err
}

// check validates the endpoint.
func (p Endpoint) check(schema json.RawMessage) error {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return fmt.Errorf("parameters are no JSON Schema: %w", err)
	}
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	if !slices.Contains(methods, p.Method) {
		return fmt.Errorf("method is %q: want one of %s", artel.Shorten(p.Method, 20), strings.Join(methods, ", "))
	}
	head, query, _ := strings.Cut(p.URL, "?")
	u, err := url.Parse(argumentName.ReplaceAllString(head, "x"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Contains(p.URL, "#") {
		return errors.New("url: want http://host/path or https://host/path, without a name, password or fragment")
	}
	_, rest, _ := strings.Cut(head, "://")
	if host, _, _ := strings.Cut(rest, "/"); argumentName.MatchString(host) {
		return errors.New("url: the host is fixed; arguments stand in the path or the query")
	}
	for _, name := range argumentNames(head) {
		if !slices.Contains(s.Required, name) {
			return fmt.Errorf("url: {%s} stands in the path and is no required parameter", name)
		}
	}
	if p.Body != nil && (p.Method == http.MethodGet || p.Method == http.MethodHead) {
		return fmt.Errorf("body: %s has none; choose another method", p.Method)
	}
	body, err := json.Marshal(p.Body)
	if err != nil {
		return fmt.Errorf("body cannot be written as JSON: %w", err)
	}
	for where, text := range map[string]string{"url": query, "body": string(body)} {
		for _, name := range argumentNames(text) {
			if _, ok := s.Properties[name]; !ok {
				return fmt.Errorf("%s: there is no parameter for {%s}", where, artel.Shorten(name, 60))
			}
		}
	}
	return nil
}

func argumentNames(text string) (names []string) {
	for _, m := range argumentName.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

func (p Endpoint) call(ctx context.Context, e *Env, name string, raw json.RawMessage) (Result, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // keeps long ids exact
	var args map[string]any
	if err := d.Decode(&args); err != nil {
		return Failed("%s: the arguments cannot be read: %v", name, err), nil
	}
	limited, stop := context.WithTimeout(ctx, p.Limits.Time)
	defer stop()
	req, err := p.request(limited, args)
	if err != nil {
		return Failed("%s: %v", name, err), nil
	}
	resp, err := p.Client.Do(req)
	if err != nil {
		return p.failed(ctx, limited, name, err)
	}
	defer resp.Body.Close()
	body, err := fetch.ReadAll(resp.Body, p.Limits.Answer)
	if errors.Is(err, artel.TooLarge) {
		return Failed("%s: the answer has more than %d bytes; ask for less", name, p.Limits.Answer), nil
	}
	if err != nil {
		return p.failed(ctx, limited, name, err)
	}
	return p.result(ctx, e, name, resp, body)
}

// failed returns the result for a missing response. If the call itself was
// cancelled, it is an error.
func (p Endpoint) failed(ctx, limited context.Context, name string, err error) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, artel.Errorf(artel.Canceled, "tool.Call", name, "%w", ctx.Err())
	}
	if limited.Err() != nil {
		return Failed("%s: no whole answer came within %v", name, p.Limits.Time), nil
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, artel.Denied) {
		return Failed("%s: %s; the operator can allow it (allow_private)", name, p.Secrets.Hide(err.Error())), nil
	}
	return Failed("%s: no answer came: %s", name, p.Secrets.Hide(artel.Shorten(err.Error(), 500))), nil
}

// request makes the request with the arguments filled in.
func (p Endpoint) request(ctx context.Context, args map[string]any) (*http.Request, error) {
	head, query, _ := strings.Cut(p.URL, "?")
	used := append(argumentNames(head), argumentNames(query)...)
	var bad error
	address := argumentName.ReplaceAllStringFunc(head, func(place string) string {
		v := asText(args[place[1:len(place)-1]])
		if v == "" {
			bad = fmt.Errorf("%s is %q, which cannot stand in a path", place, v)
		}
		return url.PathEscape(v)
	})
	// A segment made of arguments must not be "." or "..", even if several of them make it up.
	meant := strings.Split(head, "/")
	for i, made := range strings.Split(address, "/") {
		if made != meant[i] && (made == "." || made == "..") {
			bad = fmt.Errorf("%s is %q, which cannot stand in a path", meant[i], made)
		}
	}
	var pairs []string
	for pair := range strings.SplitSeq(query, "&") {
		absent := slices.ContainsFunc(argumentNames(pair), func(n string) bool { return args[n] == nil })
		if pair == "" || absent {
			continue
		}
		pairs = append(pairs, argumentName.ReplaceAllStringFunc(pair, func(place string) string {
			return url.QueryEscape(asText(args[place[1:len(place)-1]]))
		}))
	}
	if len(pairs) > 0 {
		address += "?" + strings.Join(pairs, "&")
	}
	if bad != nil {
		return nil, bad
	}
	var body []byte
	switch p.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		v, there := fillTemplate(p.Body, args)
		if p.Body == nil {
			rest := map[string]any{}
			for k, arg := range args {
				if !slices.Contains(used, k) {
					rest[k] = arg
				}
			}
			v, there = rest, p.Method != http.MethodDelete
		}
		if there {
			var err error
			if body, err = json.Marshal(v); err != nil {
				return nil, err
			}
		}
	}
	req, err := http.NewRequestWithContext(ctx, p.Method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == nil {
		req.Body, req.ContentLength, req.GetBody = nil, 0, nil
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "artel")
	for k, v := range p.Header {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	return req, nil
}

// asText returns an argument as text.
func asText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// fillTemplate returns a JSON template with the arguments filled in; false: it
// is a single argument that is absent.
func fillTemplate(template any, args map[string]any) (any, bool) {
	switch v := template.(type) {
	case string:
		if m := argumentName.FindString(v); m != "" && m == v {
			arg, ok := args[m[1:len(m)-1]]
			return arg, ok
		}
		return argumentName.ReplaceAllStringFunc(v, func(m string) string { return asText(args[m[1:len(m)-1]]) }), true
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			if y, ok := fillTemplate(x, args); ok {
				out[k] = y
			}
		}
		return out, true
	case []any:
		out := make([]any, 0, len(v))
		for _, x := range v {
			if y, ok := fillTemplate(x, args); ok {
				out = append(out, y)
			}
		}
		return out, true
	}
	return template, true
}

// result makes the result for the model from a response.
func (p Endpoint) result(ctx context.Context, e *Env, name string, resp *http.Response, body []byte) (Result, error) {
	declared := resp.Header.Get("Content-Type")
	_, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Disposition"))
	info := media.Detect(body, media.Hint{DeclaredType: declared, Filename: params["filename"]})
	switch {
	case resp.StatusCode >= 400:
		said := "no text"
		if !info.IsBinary() {
			said = artel.Shorten(p.Secrets.Hide(strings.ToValidUTF8(string(body), "\uFFFD")), shownFailure)
		}
		return Failed("%s answered %s: %s", name, resp.Status, said), nil
	case resp.StatusCode >= 300:
		return Failed("%s answered %s, and redirects are not followed", name, resp.Status), nil
	case len(body) == 0:
		return Result{Content: fmt.Sprintf("%s answered %s without content", name, resp.Status)}, nil
	case !info.IsBinary() && utf8.Valid(body):
		return Result{Content: p.Secrets.Hide(string(body))}, nil
	case e.Artifacts == nil || e.Workspace == nil:
		return Result{Content: fmt.Sprintf("%s answered with %s, %d bytes", name, info.MediaType, len(body))}, nil
	}
	filename := params["filename"]
	if filename == "" {
		filename = path.Base(resp.Request.URL.Path)
	}
	staged, err := e.Artifacts.Uploads.Stage(ctx, bytes.NewReader(body), media.Hint{DeclaredType: declared, Filename: filename})
	if err != nil {
		return Result{}, err
	}
	a, err := NewKeeper(e).Add(ctx, staged)
	if err != nil {
		return Result{}, err
	}
	part := a.MediaPart()
	r := Result{Content: fmt.Sprintf("%s answered with %s, %d bytes, kept as %s", name, a.MediaType, a.Size, part.Ref)}
	if a.Binary {
		r.Parts = artel.Parts{part}
	}
	return r, nil
}

// Secrets are values that no result and no log may show, by the name that is
// shown instead.
type Secrets map[string]string

// Hide replaces the values in text by their names in brackets, because a server
// may repeat what it was sent. Values of less than four bytes are not replaced.
func (s Secrets) Hide(text string) string {
	for name, value := range s {
		if len(value) >= 4 {
			text = strings.ReplaceAll(text, value, "["+name+"]")
		}
	}
	return text
}
