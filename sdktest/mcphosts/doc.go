// SPDX-License-Identifier: Apache-2.0

// Package mcphosts holds "artel mcp proxy" and "artel mcp" to what hosts of MCP really pass
// to a model. Its test runs each host with a server whose results are as large as servers may
// return, lets a scripted model make the calls where the host has one, looks at what arrives
// there, and keeps what came of it in docs/compatibility.md.
package mcphosts
