// SPDX-License-Identifier: Apache-2.0

// Package gemini speaks generateContent, the dialect of Google's Gemini API,
// in both directions.
//
// As a client, begin with [New]. As a server, begin with [Target], which reads
// an address, [Decode], which reads a request while it lifts its media out,
// [Request.Validate], [Request.Neutral], and [Answer], which writes what a
// model says as a response or a stream.
//
// The client is strict in what it sends. The results of a group of calls stand
// in one content, one for each call and in their order; media stand in them
// natively where the model takes that (Gemini 3 and later), else in a content
// of the user's behind it. Thought signatures go back to the service that gave
// them, on the part that they came with; where Gemini 3 wants one and another
// service made the call, the value stands there that the API documents for it.
// Schemas of tools are translated to the subset of OpenAPI that the API knows.
//
// It is lenient in what it reads: server-sent events, a JSON array or one
// response, calls without ids, finish reasons in every piece.
//
// Source: the reference of the Gemini API ("GenerateContent", "Function
// calling", "Thought signatures", "Structured output") and the types of the
// official SDKs.
package gemini
