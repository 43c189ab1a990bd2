// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"

	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
)

// spoken are the dialects with a provider.
func spoken() []model.Dialect {
	return []model.Dialect{model.OpenAI, model.OpenAIResponses, model.Anthropic, model.Gemini, model.Demo}
}

// droppers are the providers that can delete uploaded files.
func droppers(providers map[model.Dialect]model.Provider) map[model.Dialect]provider.FileDeleter {
	out := map[model.Dialect]provider.FileDeleter{}
	for d, p := range providers {
		if dropper, ok := p.(provider.FileDeleter); ok {
			out[d] = dropper
		}
	}
	return out
}

// wings returns the network providers by dialect. With a nil held, media are
// sent inside requests.
func wings(client *http.Client, blobs blob.Store, held *provider.Uploads) map[model.Dialect]model.Provider {
	return map[model.Dialect]model.Provider{
		model.Anthropic:       anthropic.New(anthropic.Options{Client: client, Blobs: blobs, Uploads: held}),
		model.OpenAI:          openai.New(openai.Options{Client: client, Blobs: blobs, Uploads: held}),
		model.OpenAIResponses: responses.New(responses.Options{Client: client, Blobs: blobs, Uploads: held}),
		model.Gemini:          gemini.New(gemini.Options{Client: client, Blobs: blobs, Uploads: held}),
	}
}
