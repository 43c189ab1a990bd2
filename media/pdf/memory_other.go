// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package pdf

import "github.com/tetratelabs/wazero/experimental"

func newMemory(_, _ uint64) experimental.LinearMemory { return &memory{} }
