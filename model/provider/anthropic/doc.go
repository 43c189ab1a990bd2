// SPDX-License-Identifier: Apache-2.0

// Package anthropic speaks the Messages dialect, in both directions.
//
// As a client, begin with [New]. As a server, begin with [Decode], which reads
// a request while it lifts its media out, [Request.Validate], [Request.Neutral],
// and [Answer], which writes what a model says as a response or a stream. The
// wire types are shared by both.
//
// Pictures and PDF files stand where they belong, also in the results of tools.
// What a model thought goes back as it came, with its signature, to the service
// that signed it, and so do the blocks of tools that run at the service: they
// are opaque state of [artel.Reasoning]. What one service signed is never sent
// to another.
//
// [Validate] knows the rules of the real API; what the client writes passes it.
//
// Source: the Claude API reference, "Messages", the pages on vision, PDF
// support, extended thinking, tool use and errors, and the types of the
// official SDKs.
package anthropic
