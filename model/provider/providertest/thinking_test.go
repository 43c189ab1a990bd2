// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// thinking is a dialect of the kit's own, as far as the clause about the state
// of reasoning goes: messages and answers in their neutral JSON.
func thinking(wrap func(model.Provider) model.Provider) Dialect {
	return Dialect{
		Name: "thinking",
		New: func(client *http.Client, _ blob.Store) model.Provider {
			return wrap(twin(func(ctx context.Context, r *model.Request) sequence {
				return func(yield func(model.Delta, error) bool) {
					if err := think(ctx, client, r, yield); err != nil {
						yield(nil, &artel.Error{Op: "think", Kind: artel.Unavailable, Err: err})
					}
				}
			}))
		},
		Stream: func(w io.Writer, deltas sequence) error {
			var parts artel.Parts
			for d := range deltas {
				switch d := d.(type) {
				case model.TextDelta:
					parts = append(parts, artel.Text{Text: string(d)})
				case model.ReasoningDelta:
					parts = append(parts, artel.Reasoning{Text: string(d)})
				case model.ReasoningDone:
					parts = append(parts, artel.Reasoning{Opaque: d.Opaque})
				}
			}
			_, err := w.Write(marshal(parts))
			return err
		},
		Validate: func([]byte) error { return nil },
		Native: Native{
			Decode: func(body []byte) (*model.Request, error) {
				r := &model.Request{}
				return r, json.Unmarshal(body, &r.Messages)
			},
			ThoughtState: json.RawMessage(`{"signature":"x"}`),
		},
	}
}

func think(ctx context.Context, client *http.Client, r *model.Request, yield func(model.Delta, error) bool) error {
	body := provider.NewBody(nil)
	messages := provider.MessageRules{Own: r.Service.ID}.Conform(r.Messages, r.Service.Capabilities)
	_, _ = body.Write(marshal(messages))
	req, err := body.Request(ctx, http.MethodPost, r.Service.BaseURL)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	r.OnActivity()
	var parts artel.Parts
	if err := json.Unmarshal(data, &parts); err != nil {
		return errors.New("no answer")
	}
	for _, p := range parts {
		var d model.Delta
		switch p := p.(type) {
		case artel.Text:
			d = model.TextDelta(p.Text)
		case artel.Reasoning:
			d = model.ReasoningDelta(p.Text)
			if p.Opaque != nil {
				d = model.ReasoningDone{Opaque: p.Opaque}
			}
		}
		if !yield(d, nil) {
			return nil
		}
	}
	yield(model.Finish{Reason: model.StopEnd}, nil)
	return nil
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
