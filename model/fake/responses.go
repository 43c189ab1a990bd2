// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	rules "github.com/artelhq/artel/model/fake/rules/responses"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/responses"
)

// responses reads and checks a request of the Responses API. It stores nothing.
func (s *Server) responses(r *http.Request, rec *Request, _ Behavior) (*call, *problem) {
	req, err := responses.Decode(r.Context(), r.Body, provider.DecodeOptions{Sink: s.sink()})
	if err != nil {
		return nil, refusedByOpenAI(err)
	}
	err = rules.Validate(req, rules.Options{})
	if err == nil {
		err = unsealed(req)
	}
	if p := s.ofOpenAI(rec, req.Extraction(), req.Model, err); p != nil {
		return nil, p
	}
	a := responses.Answer{ID: s.nextID("resp_"), Model: req.Model, Created: s.options.Now(), Request: req}
	return &call{
		request: req.Neutral(), stream: req.Stream, header: http.Header{"X-Request-Id": {"req_" + a.ID}},
		whole: func(deltas iter.Seq2[model.Delta, error]) ([]byte, error) { return a.Whole(s.thinking(req, deltas)) },
		write: func(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
			return a.Stream(w, flush, s.thinking(req, deltas))
		},
	}, nil
}

// sealed begins the encrypted content of this server; the digest of the summary
// follows. The server accepts only its own content, beside the same summary.
const sealed = "gAAAAAfake"

func seal(summary string) string {
	sum := sha256.Sum256([]byte(summary))
	return sealed + hex.EncodeToString(sum[:])
}

// unsealed refuses encrypted content that was changed or is not of this server.
func unsealed(r *responses.Request) error {
	for n, i := range r.Input.Items {
		if i.Type != "reasoning" || i.Encrypted == nil {
			continue
		}
		summary := ""
		for _, p := range i.Summary {
			summary += p.Text
		}
		if *i.Encrypted != seal(summary) {
			return responses.Bad(fmt.Sprintf("input[%d].encrypted_content", n), "invalid_encrypted_content",
				"The encrypted content %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", artel.Shorten(*i.Encrypted, 20))
		}
	}
	return nil
}

// thinking adds the requested encrypted state to the reasoning of an answer.
func (s *Server) thinking(r *responses.Request, deltas iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var summary strings.Builder
		for d, err := range deltas {
			switch said := d.(type) {
			case model.ReasoningDelta:
				summary.WriteString(string(said))
			case model.ReasoningDone:
				continue // of another dialect
			default:
				if summary.Len() > 0 && err == nil {
					if !yield(model.ReasoningDone{Opaque: s.item(r, summary.String())}, nil) {
						return
					}
					summary.Reset()
				}
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// item returns the item of reasoning with a summary; nil if its state was not
// requested.
func (s *Server) item(r *responses.Request, summary string) json.RawMessage {
	if !r.Encrypted() {
		return nil
	}
	b, err := json.Marshal(map[string]any{
		"type": "reasoning", "id": s.nextID("rs_"), "summary": []any{map[string]string{"type": "summary_text", "text": summary}},
		"encrypted_content": seal(summary),
	})
	if err != nil { // of strings
		return nil
	}
	return b
}

// unstored serves the endpoints of stored responses, of which there are none.
func (s *Server) unstored(w http.ResponseWriter, r *http.Request) {
	if p := s.authorize(r); p != nil {
		refuse(w, p)
		return
	}
	e := responses.Bad("", "", "Response with id '%s' not found.", artel.Shorten(r.PathValue("id"), 200))
	e.Status = http.StatusNotFound
	refuse(w, ofOpenAI(e))
}

// refusedByOpenAI is the response to a request that cannot be read or breaks a
// rule.
func refusedByOpenAI(err error) *problem {
	if e, ok := errors.AsType[*provider.OpenAIError](err); ok {
		return ofOpenAI(e)
	}
	return ofOpenAI(responses.Bad("", "", "The body could not be read: %v", err))
}
