// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pdf

import (
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// newMemory reserves address space for an instance. The system provides pages when they
// are first used and gets all back at once, without the garbage collector.
func newMemory(_, most uint64) experimental.LinearMemory {
	b, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return &memory{}
	}
	return &memory{all: b, free: func() { _ = syscall.Munmap(b) }}
}
