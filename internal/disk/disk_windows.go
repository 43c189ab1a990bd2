// SPDX-License-Identifier: Apache-2.0

// Package disk reads how much space a file system has left.
package disk

import "golang.org/x/sys/windows"

// Free returns the number of bytes that this account may still write to the file
// system of path.
func Free(path string) (int64, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(free), nil
}
