// SPDX-License-Identifier: Apache-2.0

// Package responses speaks the OpenAI Responses dialect, in both directions.
//
// As a client, begin with [New]; [Provider.Forward] sends on what a client wrote
// in the dialect itself. As a server, begin with [Decode], which reads a request
// while it lifts its media out, [Request.Validate], [Request.Neutral], and
// [Answer], which writes what a model says as a response or as the whole
// sequence of events of a stream.
//
// A conversation is a list of items, and what belongs to the assistant's turn is
// several of them: its reasoning, its texts, its calls. Pictures and files stand
// in the outputs of calls as they do in messages. Nothing is stored by the
// service ("store": false), so the state of its reasoning travels with the
// conversation as encrypted content: an item of reasoning is an
// [artel.Reasoning] whose Opaque is the item as it came.
//
// Source: the OpenAI API reference, "Responses" and "Streaming events", and the
// types of the official SDKs. The API has no place for sound and video.
package responses
