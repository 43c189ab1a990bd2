// SPDX-License-Identifier: Apache-2.0

// Package provider holds what the clients of all model APIs share. The dialects are
// its subpackages, such as provider/openai; the kit provider/providertest checks
// each of them against the same clauses.
//
// A dialect describes itself to [NewClient] as a [Dialect]. It arranges the
// messages with [MessageRules], writes the request with an [Encoder] into a [Body],
// whose blobs are base64-encoded while they are sent, reads the response as an
// [Answer], and reports errors with [Failures]. As a server it reads a request with
// [Extract], which decodes the media while the request arrives. Requests that
// clients wrote in the dialect itself go through [Forwarder]; an [Editor] finds and
// edits what has to change in their JSON.
//
// Memory does not grow with the size of media, a body is never silently short, and
// a key never appears in an error. [model.Caller] adds retries and time limits.
package provider
