// SPDX-License-Identifier: Apache-2.0

package pdf

import "context"

// maxAttached is how many names of attached files are read.
const maxAttached = 50

// Attached returns how many files are attached to the document as a whole, such as the
// data of an electronic invoice, and the names of the first of them. Files that are
// attached to a place on a page are counted by [Page.Attached] instead.
func (d *Document) Attached(ctx context.Context) (names []string, count int, err error) {
	ctx, stop := d.within(ctx)
	defer stop()
	n, err := d.call(ctx, "FPDFDoc_GetAttachmentCount", d.handle)
	if err != nil {
		return nil, 0, err
	}
	count = max(0, int(int32(n)))
	for i := range min(count, maxAttached) {
		file, err := d.call(ctx, "FPDFDoc_GetAttachment", d.handle, uint64(i))
		if err != nil {
			return nil, 0, err
		}
		name := ""
		if file != 0 {
			if name, err = d.text(ctx, true, "FPDFAttachment_GetName", file); err != nil {
				return nil, 0, err
			}
		}
		names = append(names, name)
	}
	return names, count, nil
}
