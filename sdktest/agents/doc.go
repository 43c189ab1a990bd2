// SPDX-License-Identifier: Apache-2.0

// Package agents runs coding agents from npm against the gateway: each reads,
// writes and edits files and looks at a picture with a service of every dialect
// behind it, and is interrupted while a model answers. The results are in
// docs/compatibility.md.
//
// The programs are pinned in the folder install; scripts/setup installs the light
// ones, scripts/setup clients all of them. The environment variable ARTEL_CLIENTS
// names the programs to run, or is "all"; by default it is the light ones.
package agents
