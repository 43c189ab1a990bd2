// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"github.com/artelhq/artel"
)

// A Locker has the locks of names, for work that must not be done twice at once, and that is
// longer than an update.
type Locker interface {
	// Lock waits until the lock of a name is free, and takes it until release is called,
	// or until the process ends: other goroutines wait, and other processes too if the
	// database can be used from several machines. Such a process may lose the lock
	// without learning it, if its connection breaks; so what the work writes last has to
	// decide by itself. The error is of kind Canceled if ctx has ended. Close waits for the release of all locks.
	Lock(ctx context.Context, name string) (release func(), err error)
}

// A Lease gives one process the right to execute a run.
type Lease struct {
	Owner        artel.Owner
	Run          artel.RunID
	Conversation artel.ConversationID
	Holder       string // names the process
	Term         int64  // grows with each holder that takes the run over
	Until        time.Time
	Worked       time.Duration // total working time of all holders, to the microsecond
}
