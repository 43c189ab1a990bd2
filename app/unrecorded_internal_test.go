// SPDX-License-Identifier: Apache-2.0

package app

// Unrecorded makes runs leave no records, so that a benchmark can tell what
// records cost.
func (a *App) Unrecorded() { a.Runs.unrecorded = true }
