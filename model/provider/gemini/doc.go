// SPDX-License-Identifier: Apache-2.0

// Package gemini speaks generateContent, the dialect of Google's Gemini API, in
// both directions.
//
// As a client, begin with [New]. As a server, begin with [Target], which parses an
// address, and [Decode], which reads a request and decodes its media meanwhile;
// [Request.Neutral] converts the request, and [Answer] writes the answer as a
// response or a stream. Package model/fake/rules/gemini checks requests against the
// rules of the real API.
//
// The client writes the results of a group of calls into one content, one for each
// call in their order. Media are in the results if the model takes them there
// (Gemini 3 and later), otherwise in a user content after it. Thought signatures go
// back to their service on their part; for calls of other services, the documented
// placeholder is sent to models that require a signature. Schemas of tools are
// translated to the subset of OpenAPI that the API knows.
//
// The client accepts server-sent events, a JSON array or one response, calls
// without ids, and finish reasons in every chunk.
//
// Source: the reference of the Gemini API ("GenerateContent", "Function calling",
// "Thought signatures", "Structured output") and the types of the official SDKs.
package gemini
