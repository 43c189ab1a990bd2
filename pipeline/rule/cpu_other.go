// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rule

import "time"

// threadTime returns the time of the clock: the standard library does not know
// that of the thread.
func threadTime() time.Duration { return wallTime() }
