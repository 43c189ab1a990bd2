// SPDX-License-Identifier: Apache-2.0

// Package openai speaks the Chat Completions dialect, in both directions.
//
// As a client, begin with [New]. As a server, begin with [Decode], which reads a
// request and decodes its media meanwhile; [Request.Neutral] converts the request,
// and [Answer] writes the answer as a response or a stream. Both use the same wire
// types. Package model/fake/rules/openai checks requests against the rules of the
// real API.
//
// The client accepts what the many compatible servers write. It is strict in its
// own requests: text as plain strings, media in user messages only, a result for
// every tool call.
//
// Images are image_url parts with data URLs, PDF files are file parts, WAV and MP3
// are input_audio parts; the dialect has no parts for other bytes.
//
// Source: the OpenAI API reference, "Chat Completions", and the types of the
// official SDKs.
package openai
