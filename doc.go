// SPDX-License-Identifier: Apache-2.0

// Package artel holds the words of Artel: the nouns that every other package
// speaks in. It has no I/O, no goroutines and no dependencies beyond the
// standard library.
//
// Begin with [Conversation], a tree of [Message] values made of [Part] values,
// and [Artifact], a named document or file with immutable [Version] values.
// Bytes never travel inside these types: a [Ref] points to them.
//
// What happens is told by [Event] values, numbered per conversation by [Seq].
// What fails is told by [*Error], whose [Kind] says what the caller can do.
//
// Identifiers are types with printable prefixes, so that a run cannot be
// passed where a message is meant. JSON names are snake_case and part of the
// public contract; the zero value of every type marshals without surprise.
package artel
