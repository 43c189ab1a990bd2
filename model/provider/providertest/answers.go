// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Each returns deltas as the sequence that a provider yields.
func Each(deltas ...model.Delta) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Answer asks a server that sends body with mediaType, and returns the answer as
// [Line] writes it. tools are offered beside the kit's own.
func Answer(t *testing.T, d Dialect, mediaType, body string, tools ...model.ToolSpec) string {
	t.Helper()
	s := open(d, send(http.StatusOK, mediaType, []byte(body)))
	defer s.close()
	r := s.request(hello())
	r.Tools = append(r.Tools, tools...)
	return Line(s.provider.Generate(t.Context(), r))
}

// Line writes an answer on one line: text quoted, reasoning in parentheses and its
// state in angle brackets, calls as id:name with arguments, state and the state's
// service, then the reason and the usage, or ! and the error. The id of a call that
// the client named is written as new.
func Line(answer iter.Seq2[model.Delta, error]) string {
	var out strings.Builder
	for d, err := range answer {
		switch d := d.(type) {
		case nil:
			c, _ := errors.AsType[*model.CallError](err)
			fmt.Fprintf(&out, "!%s transient=%v %s", artel.KindOf(err), c.Transient, c.Message)
		case model.TextDelta:
			fmt.Fprintf(&out, "%q ", string(d))
		case model.ReasoningDelta:
			fmt.Fprintf(&out, "(%s) ", string(d))
		case model.ReasoningDone:
			fmt.Fprintf(&out, "<%s> ", d.Opaque)
		case model.CallDelta:
			id := string(d.ID)
			if strings.HasPrefix(id, "call_") && len(id) == 29 {
				id = "new"
			}
			fmt.Fprintf(&out, "%s:%s%s%s%s ", id, d.Name, d.Arguments, d.Opaque, d.Service)
		case model.Finish:
			fmt.Fprintf(&out, "%s %d/%d", d.Reason, d.Usage.InputTokens, d.Usage.OutputTokens)
			if u := d.Usage; u.CachedTokens+u.StoredTokens+u.ThoughtTokens > 0 {
				fmt.Fprintf(&out, " cached=%d stored=%d thought=%d", u.CachedTokens, u.StoredTokens, u.ThoughtTokens)
			}
		}
	}
	return out.String()
}

// CheckAnswer asks a server that sends body, which may be anything, and fails the
// test unless the answer is deltas and one end: a Finish or an *artel.Error. Calls
// are complete; arguments and state are JSON.
func CheckAnswer(t *testing.T, d Dialect, server model.Server, body string) {
	t.Helper()
	r := &model.Request{
		Service:  model.Service{ID: "s", Dialect: d.Name, BaseURL: "http://x", Model: "m", Server: server},
		Messages: []model.Message{hello()},
	}
	over := false
	for delta, err := range d.New(Canned(body), nil).Generate(t.Context(), r) {
		if over {
			t.Fatal("the sequence continues after its end")
		}
		switch delta := delta.(type) {
		case nil:
			over = true
			if _, ok := errors.AsType[*artel.Error](err); !ok {
				t.Fatalf("the error is %T: %v", err, err)
			}
		case model.CallDelta:
			if !json.Valid(delta.Arguments) || delta.ID == "" || delta.Name == "" {
				t.Fatalf("bad call %+v", delta)
			}
		case model.ReasoningDone:
			if delta.Opaque != nil && !json.Valid(delta.Opaque) {
				t.Fatalf("the state is %q", delta.Opaque)
			}
		case model.Finish:
			over = true
		}
	}
	if !over {
		t.Fatal("the sequence has no end")
	}
}

// Canned returns a client that receives body as the answer to every request.
func Canned(body string) *http.Client { return &http.Client{Transport: canned(body)} }

type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(c))), Request: r}, nil
}

// TB is what [testing.T] and rapid.T have in common.
type TB interface {
	Helper()
	Fatal(args ...any)
	Context() context.Context
}

// Encoded returns the body that encode, a dialect's Encode, writes for r.
func Encoded(t TB, encode func(*model.Request, blob.Store) (*provider.Body, error), r *model.Request, blobs blob.Store) string {
	t.Helper()
	body, err := encode(r, blobs)
	if err != nil {
		t.Fatal(err)
	}
	stream := body.Open(t.Context())
	defer stream.Close()
	out, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(out)) != body.Len() {
		t.Fatal(fmt.Sprintf("the body has %d bytes, and its length is %d", len(out), body.Len()))
	}
	return string(out)
}

// A decoder is the Decode of a dialect.
type decoder[R extracted] = func(context.Context, io.Reader, provider.DecodeOptions) (R, error)

type extracted interface{ Extraction() *provider.Extraction }

// DecodePieces decodes body as a whole and byte by byte, and fails the test if the
// two differ or if something else than JSON was accepted. It returns the request,
// and whether there is one.
func DecodePieces[R extracted](t *testing.T, decode decoder[R], body []byte) (R, bool) {
	t.Helper()
	req, err := decode(t.Context(), bytes.NewReader(body), provider.DecodeOptions{})
	one, errOne := decode(t.Context(), iotest.OneByteReader(bytes.NewReader(body)), provider.DecodeOptions{})
	if (err == nil) != (errOne == nil) {
		t.Fatalf("whole: %v, bytewise: %v", err, errOne)
	}
	if err != nil {
		return req, false
	}
	bad := slices.ContainsFunc(req.Extraction().Payloads(), func(m provider.Payload) bool { return m.Bad })
	if !bad && !json.Valid(body) {
		t.Fatal("what is no JSON was taken")
	}
	if string(req.Extraction().Elided()) != string(one.Extraction().Elided()) {
		t.Fatal("the pieces it comes in change what is read")
	}
	return req, true
}

// DecodeMemory decodes body, in which | stands for 64 MiB of base64, and fails the
// test if that allocates more than 512 KiB.
func DecodeMemory[R extracted](t *testing.T, decode decoder[R], body string) {
	t.Helper()
	head, tail, _ := strings.Cut(body, "|")
	in := io.MultiReader(strings.NewReader(head), io.LimitReader(Endless('A'), 64<<20), strings.NewReader(tail))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	req, err := decode(t.Context(), in, provider.DecodeOptions{})
	runtime.ReadMemStats(&after)
	if err != nil || req.Extraction().Payloads()[0].Size != 48<<20 {
		t.Fatal(err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 512<<10 {
		t.Errorf("64 MiB of base64 cost %d bytes of allocation", grown)
	}
}

// Endless is a reader of one byte, without an end.
type Endless byte

// Read implements [io.Reader].
func (e Endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}
