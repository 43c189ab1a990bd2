// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"io"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// sound reports whether what a row says of its bytes can be.
func validInfo(m artel.MediaInfo) bool {
	switch m.Kind {
	case artel.KindText, artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindDocument, artel.KindArchive, artel.KindOther:
		major, minor, ok := strings.Cut(m.MediaType, "/")
		return ok && major != "" && minor != ""
	}
	return false
}

// mended returns what is known of the bytes of a version: m, or where the row
// that says so is damaged, what they themselves say. Text that was kept as
// bytes stays bytes: nobody has its decoding.
func (c *Collection) repairInfo(ctx context.Context, m artel.MediaInfo, d artel.Digest, filename string) artel.MediaInfo {
	if validInfo(m) || d == "" {
		return m
	}
	r, err := c.blobs.Open(ctx, d)
	if err != nil {
		return m // whoever wants the bytes is told
	}
	defer r.Close()
	head := make([]byte, 64<<10)
	n, _ := io.ReadFull(r, head) // what cannot be read is told by whoever wants the bytes
	info := media.Detect(head[:n], media.Hint{Filename: filename})
	if !info.IsBinary() {
		info = artel.MediaInfo{Kind: artel.KindOther, MediaType: "application/octet-stream"}
	}
	info.Size = r.Size()
	return media.Measure(ctx, info, r)
}
