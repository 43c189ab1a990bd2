// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "context"

// releasePages does nothing: only on Linux do pages of the program that the start has
// used count as memory of the server until memory is scarce.
func releasePages(context.Context) {}

// unmapProgram does nothing either.
func unmapProgram() {}
