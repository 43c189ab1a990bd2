// SPDX-License-Identifier: Apache-2.0

// Package openai speaks the Chat Completions dialect, in both directions.
//
// As a client, begin with [New]. As a server, begin with [Decode], which reads
// a request while it lifts its media out, [Request.Validate], [Request.Neutral],
// and [Answer], which writes what a model says as a response or a stream. The
// wire types are shared by both. [Provider.Forward] sends on what a client wrote
// in the dialect itself.
//
// The client is lenient in what it reads, because OpenAI-compatible servers
// differ, and strict in what it sends: text as plain strings, media in user
// messages alone, every tool call answered. [Validate] knows the rules of the
// real API; what the client writes passes it.
//
// Source: the OpenAI API reference, "Chat Completions", and the types of the
// official SDKs. What goes where: images are image_url parts with data URLs,
// PDF files are file parts, WAV and MP3 are input_audio parts; the dialect has
// no place for other bytes.
package openai
