// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"context"
	"encoding/json"
	"io"
	"runtime"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/gemini"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/providertest"
)

// FuzzDecode: the pieces that a request comes in change nothing, and what the
// API takes is taken again after it was made neutral.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"contents":[{"parts":[{"inline_data":{"mime_type":"image/png","data":"iVBORw"}}]}]}`))
	f.Add([]byte(`{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":[1]}},"thoughtSignature":"c2ln"}]},` +
		`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"},"parts":[{"inlineData":{"mimeType":"image/png","data":"\/AA\u003d"}}]}}]}],` +
		`"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"STRING","nullable":true}}}}}]}]}`))
	f.Add([]byte(`{"system_instruction":{"parts":{"text":"x"}},"contents":{"parts":{"file_data":{"file_uri":"https://x/y"}}},"generationConfig":{"maxOutputTokens":"5"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, ok := providertest.DecodePieces(t, gemini.Decode, body)
		if !ok {
			return
		}
		req.Model = "gemini-3-pro"
		r := req.Neutral()
		if rules.Validate(req, rules.Options{}) != nil {
			return
		}
		r.Service.ID = "s"
		again, err := gemini.Encode(r, empty{})
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		rc := again.Open(t.Context())
		defer rc.Close()
		text, err := io.ReadAll(rc)
		for _, m := range req.Extraction().Payloads() {
			if m.Size > 0 {
				return // the store of this test has empty blobs alone
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := rules.ValidateJSON("gemini-3-pro", text); err != nil {
			t.Fatalf("%v\n%s\n%s", err, body, text)
		}
	})
}

// FuzzAnswers: whatever a server writes, the sequence has one end.
func FuzzAnswers(f *testing.F) {
	f.Add(stream(parts("", `{"text":"hm","thought":true,"thoughtSignature":"c2ln"}`, `{"functionCall":{"name":"f","args":{}}}`), parts("STOP")))
	f.Add(`[{"candidates":[` + parts("STOP", `{"text":"x"}`) + `]},{"error":{"code":500}}]`)
	f.Add(`{"promptFeedback":{"blockReason":"SAFETY"}}`)
	f.Fuzz(func(t *testing.T, body string) { providertest.CheckAnswer(t, dialect("m"), "", body) })
}

// FuzzParameters: whatever the schema of a tool is, the API takes the tool.
func FuzzParameters(f *testing.F) {
	f.Add(`{"type":["object","null"],"properties":{"a":{"anyOf":[{"type":"string","const":"x"},{"$ref":"#/properties/a"}]}},"required":["a"]}`)
	f.Add(`{"allOf":[{"properties":{"a":{"type":"array","prefixItems":[{"enum":[1,"x",null]}]}}}],"additionalProperties":{"type":"string"}}`)
	f.Fuzz(func(t *testing.T, schema string) {
		if json.Valid([]byte(schema)) {
			declared(t, schema)
		}
	})
}

// large is a store whose every blob has 50 MiB, and takes no memory.
type large struct{ blob.Store }

const largeSize = 50 << 20

func (large) Open(context.Context, artel.Digest) (blob.Reader, error) {
	return &zeros{left: largeSize}, nil
}

type zeros struct {
	blob.Reader
	left int64
}

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	z.left -= n
	return int(n), nil
}

func (z *zeros) Size() int64 { return largeSize }
func (*zeros) Close() error  { return nil }

// TestMemory sends and reads a request with 50 MiB, and watches what is
// allocated.
func TestMemory(t *testing.T) {
	media := artel.Media{Ref: artel.BlobRef(artel.NewDigest([32]byte{1})), MediaType: "video/mp4", Kind: artel.KindVideo, Size: largeSize}
	r := &model.Request{Service: model.Service{Model: "gemini-3-pro"}, Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{media}}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body, err := gemini.Encode(r, large{})
	if err != nil {
		t.Fatal(err)
	}
	rc := body.Open(t.Context())
	defer rc.Close()
	req, err := gemini.Decode(t.Context(), rc, provider.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if p := req.Extraction().Payloads(); len(p) != 1 || p[0].Size != largeSize {
		t.Fatalf("%+v", p)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes were allocated for a request of %d", n, body.Len())
	}
	req.Model = "gemini-3-pro"
	if err := rules.Validate(req, rules.Options{}); err != nil {
		t.Error(err)
	}
}
