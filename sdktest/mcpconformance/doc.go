// SPDX-License-Identifier: Apache-2.0

// Package mcpconformance runs the conformance suite of the Model Context Protocol against
// Artel: as a server, as the proxy of another server, and as a client. What comes out is in
// docs/compatibility.md.
package mcpconformance
