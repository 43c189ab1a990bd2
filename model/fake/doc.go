// SPDX-License-Identifier: Apache-2.0

// Package fake holds servers that speak the dialects of model APIs, for tests
// and for people who write integrations. They are real programs: they enforce
// the rules of the real API with its own error bodies, record what they were
// asked, and misbehave on demand.
//
// Begin with [OpenAI], [Anthropic] or [Gemini], which make a [Server]: an
// [http.Handler] to serve with net/http or net/http/httptest; official SDKs
// work with it. Give it a [Responder], such as the Generate method of any
// [model.Provider], or none, and it answers with what it received.
//
// Media in a request are hashed while they come in and dropped: a request of
// any size costs about 150 KB besides its text, which is limited to 32 MiB.
package fake
