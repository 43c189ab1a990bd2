// SPDX-License-Identifier: Apache-2.0

// Package responses speaks the OpenAI Responses dialect, in both directions.
//
// As a client, begin with [New]. As a server, begin with [Decode], which reads a
// request and decodes its media meanwhile; [Request.Neutral] converts the request,
// and [Answer] writes the answer as a response or as the complete sequence of
// events of a stream. Package model/fake/rules/responses checks requests against
// the rules of the real API.
//
// A conversation is a list of items; a turn of the assistant is several of them:
// its reasoning, texts and calls. Pictures and files can be in the outputs of calls
// as in messages. The service stores nothing ("store": false), so the state of its
// reasoning travels in the conversation as encrypted content: an item of reasoning
// is an [artel.Reasoning] whose Opaque is the unchanged item.
//
// The API takes no audio and no video.
//
// Source: the OpenAI API reference, "Responses" and "Streaming events", and the
// types of the official SDKs.
package responses
