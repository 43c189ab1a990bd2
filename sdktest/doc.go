// SPDX-License-Identifier: Apache-2.0

// Package sdktest holds the gateway to what the official SDKs really do. Its
// test starts the program with stand-ins of every dialect behind it, lets each
// SDK do each thing with each of them, and keeps what came of it in
// docs/compatibility.md.
//
// It is a module of its own, so that no SDK is a dependency of Artel. The SDKs
// for Node.js are in the folder js, with their lock file; scripts/setup installs
// them.
package sdktest
