// SPDX-License-Identifier: Apache-2.0

// Package artel defines the types that all other packages share. It has no I/O,
// no goroutines and no dependencies beyond the standard library.
//
// Begin with [Conversation], a tree of [Message] values made of [Part] values,
// and [Artifact], a named document or file with immutable [Version] values.
// These types never hold the bytes of media: a [Ref] points to them.
//
// [Event] values record what happens in a conversation, numbered by [Seq].
// Failures are [*Error] values, whose [Kind] says what the caller can do.
//
// Identifiers are distinct types with printable prefixes, so that a run cannot
// be passed as a message. JSON names are snake_case and part of the public
// contract; the zero value of every type can be marshalled.
package artel
