// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/artelhq/artel"
)

// Full and read-only disks cannot be had in a test without being root, so the
// errors that they give are put in their place.
func TestDiskError(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "no space is left for blobs",
		syscall.EDQUOT: "no space is left for blobs",
		syscall.EROFS:  "the blob folder is read-only",
		syscall.EACCES: "the blob folder refuses access",
		syscall.EIO:    "the blob folder failed",
	} {
		for _, err := range []error{
			&os.PathError{Op: "write", Path: "/secret/place", Err: errno},
			&os.LinkError{Op: "rename", Old: "/secret/place", New: "/secret/other", Err: errno},
		} {
			got := diskError("blob.Put", "", err)
			if artel.KindOf(got) != artel.Unavailable || !strings.HasPrefix(got.Error(), want) || strings.Contains(got.Error(), "secret") {
				t.Errorf("%v: %v", errno, got)
			}
		}
	}
}
