// SPDX-License-Identifier: Apache-2.0

// Package provider holds the wire mechanics that every dialect of model API
// shares. The dialects themselves are its wings, such as provider/openai, and
// the kit provider/providertest holds each of them to one matrix.
//
// A wing begins with [Conform], or the [MessageRules] that its dialect wants, which
// decides where media go that an API does not take where they are; writes its request as a [Body], whose blobs are
// base64-encoded while they are sent; makes the call with [Options.Call] and reads what comes
// back as an [Answer];
// and turns what goes wrong into errors with [Failures]. As a server it reads a
// request with [Extract], which takes the media out while it is read. What was
// written in the dialect already, it sends on as a [Forwarder].
//
// The package promises that memory does not grow with the size of the media,
// that a body is never silently short, and that a key never shows in an error.
// Retries and time limits are not here: they are [model.Caller]'s.
package provider
