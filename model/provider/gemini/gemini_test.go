// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/gemini"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func decode(body []byte) (*gemini.Request, error) {
	return gemini.Decode(context.Background(), bytes.NewReader(body), provider.DecodeOptions{})
}

// dialect is the kit's view of the dialect package, for a model.
func dialect(name string) providertest.Dialect {
	return providertest.Dialect{
		Name: model.Gemini,
		New: func(client *http.Client, blobs blob.Store) model.Provider {
			return gemini.New(gemini.Options{Client: client, Blobs: blobs})
		},
		Stream: func(w io.Writer, deltas iter.Seq2[model.Delta, error]) error {
			return gemini.Answer{ID: "r1", Model: name}.Stream(w, nil, deltas)
		},
		Failure:  func(status int, message string) []byte { return gemini.Fail(status, "%s", message).MarshalBody() },
		Validate: func(body []byte) error { return rules.ValidateJSON(name, body) },
		Native: providertest.Native{
			Service: func(s model.Service) model.Service {
				s.Model = name
				return s
			},
			Decode: func(body []byte) (*model.Request, error) {
				r, err := decode(body)
				if err != nil {
					return nil, err
				}
				return r.Neutral(), nil
			},
			ToolTypes:    []string{"image/png", "application/pdf", "text/plain"},
			CallState:    json.RawMessage(`{"thoughtSignature":"c2lnbmVk"}`),
			ThoughtState: json.RawMessage(`{"thoughtSignature":"c2lnbmVk","thought":true}`),
		},
	}
}

func TestProvider(t *testing.T) {
	t.Parallel()
	providertest.Run(t, dialect("gemini-3-pro"))
}

// TestOlderProvider has the models that take media from the user alone.
func TestOlderProvider(t *testing.T) {
	t.Parallel()
	d := dialect("gemini-2.5-flash")
	d.Native.ToolTypes = nil
	providertest.Run(t, d)
}

// TestAnyHistory is legal for every generation.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gemini-3-pro", "gemini-2.5-flash"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dialect(name)
			if name == "gemini-2.5-flash" {
				d.Native.ToolTypes = nil
			}
			providertest.Histories(t, d)
		})
	}
}

// empty is a store in which every blob is empty.
type empty struct{ blob.Store }

func (empty) Open(context.Context, artel.Digest) (blob.Reader, error) { return nothing{}, nil }

type nothing struct{ blob.Reader }

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }
func (nothing) Size() int64              { return 0 }
func (nothing) Close() error             { return nil }

// TestCarries: what package model says that the wire carries, it does.
func TestCarries(t *testing.T) {
	t.Parallel()
	for _, mediaType := range model.Gemini.Carries() {
		m := artel.Media{Ref: artel.BlobRef(artel.NewDigest([32]byte{1})), MediaType: mediaType}
		r := &model.Request{Messages: []model.Message{{Role: artel.RoleUser, Parts: artel.Parts{m}}}}
		if _, err := gemini.Encode(r, empty{}); err != nil {
			t.Errorf("%s: %v", mediaType, err)
		}
	}
}
