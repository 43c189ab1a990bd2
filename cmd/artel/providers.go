// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"

	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/anthropic"
	"github.com/artelhq/artel/model/provider/cloud"
	"github.com/artelhq/artel/model/provider/gemini"
	"github.com/artelhq/artel/model/provider/openai"
	"github.com/artelhq/artel/model/provider/responses"
)

// fileDeleters are the providers that can delete uploaded files.
func fileDeleters(providers map[model.Dialect]model.Provider) map[model.Dialect]provider.FileDeleter {
	out := map[model.Dialect]provider.FileDeleter{}
	for d, p := range providers {
		if deleter, ok := p.(provider.FileDeleter); ok {
			out[d] = deleter
		}
	}
	return out
}

// networkProviders returns the network providers by dialect. With nil uploads,
// media are sent inside requests.
func networkProviders(client *http.Client, blobs blob.Store, uploads *provider.Uploads) map[model.Dialect]model.Provider {
	o := provider.Options{Client: client, Blobs: blobs, Uploads: uploads, Cloud: cloud.New(client)}
	return map[model.Dialect]model.Provider{
		model.Anthropic:       anthropic.New(o),
		model.OpenAI:          openai.New(o),
		model.OpenAIResponses: responses.New(o),
		model.Gemini:          gemini.New(o),
	}
}
