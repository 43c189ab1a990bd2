// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"syscall"
	"time"
)

// threadTime returns the time of the processor that the thread has had.
func threadTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &u) != nil {
		return wallTime()
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
