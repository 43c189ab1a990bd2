// SPDX-License-Identifier: Apache-2.0

// Package anthropic speaks the Messages dialect, in both directions.
//
// As a client, begin with [New]. As a server, begin with [Decode], which reads a
// request and decodes its media meanwhile; [Request.Neutral] converts the request,
// and [Answer] writes the answer as a response or a stream. Both use the same wire
// types. Package model/fake/rules/anthropic checks requests against the rules of
// the real API.
//
// Pictures and PDF files stay at their place in the conversation, also in the
// results of tools. Thinking blocks go back unchanged, with their signature, to the
// service that signed them, as do the blocks of tools that run at the service: both
// are opaque state of [artel.Reasoning]. State of one service is never sent to
// another.
//
// Source: the Claude API reference, "Messages", the pages on vision, PDF support,
// extended thinking, tool use and errors, and the types of the official SDKs.
package anthropic
