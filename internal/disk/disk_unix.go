// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package disk reads how much space a file system has left.
package disk

import "golang.org/x/sys/unix"

// Free returns the number of bytes that this account may still write to the file
// system of path.
func Free(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ between systems
}
