// SPDX-License-Identifier: Apache-2.0

// Package fake implements servers that speak the dialects of model APIs, for tests
// and for developers of integrations. They enforce the rules of the real API with
// its own error bodies, record the requests, and fail on demand.
//
// Begin with [OpenAI], [Anthropic] or [Gemini], which make a [Server]: an
// [http.Handler] for net/http or net/http/httptest that works with the official
// SDKs. Its [Responder], such as the Generate method of any [model.Provider], makes
// the answers; by default it echoes the request.
//
// Media in a request are hashed while they arrive and dropped: a request of any
// size needs about 150 KB besides its text, which is limited to 32 MiB.
package fake
