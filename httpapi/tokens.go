// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel/app"
)

// A CountedText is the body of POST /tokens/count.
type CountedText struct {
	Text       string `json:"text"`
	Vocabulary string `json:"vocabulary,omitempty" maxLength:"100" default:"o200k_base" doc:"one of those that GET /tokens/vocabularies lists"`
}

// A TokenCount is the answer of POST /tokens/count.
type TokenCount struct {
	Tokens int `json:"tokens"`
}

// A VocabularyView is an element of GET /tokens/vocabularies.
type VocabularyView struct {
	Name   string  `json:"name"`
	Exact  bool    `json:"exact" doc:"whether counts are those of the model's own tokenizer"`
	Error  float64 `json:"error,omitempty" doc:"of an estimate: by which part of the count it is off, on average over many kinds of text"`
	Source string  `json:"source" doc:"what it is counted by, or was measured against"`
}

// VocabularyViews converts vocabularies.
func VocabularyViews(known []app.Vocabulary) []VocabularyView {
	views := make([]VocabularyView, len(known))
	for i, v := range known {
		views[i] = VocabularyView(v)
	}
	return views
}

func (f *server) tokens() {
	register(f, f.op(http.MethodPost, "/tokens/count", "count-tokens", "Count the tokens of a text", http.StatusOK, maxBody(textBody)),
		func(_ context.Context, in *struct{ Body CountedText }) (*body[TokenCount], error) {
			n, err := f.app.Mechanisms.CountTokens(in.Body.Vocabulary, in.Body.Text)
			return answer(TokenCount{n}, err)
		})

	register(f, f.op(http.MethodGet, "/tokens/vocabularies", "list-vocabularies", "List what tokens are counted in", http.StatusOK),
		func(context.Context, *struct{}) (*body[List[VocabularyView]], error) {
			return answer(List[VocabularyView]{Items: VocabularyViews(f.app.Mechanisms.Vocabularies())}, nil)
		})
}
