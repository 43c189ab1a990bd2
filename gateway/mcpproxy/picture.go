// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/picture"
)

// What pictures are shown as: the form that the common models take without scaling it down
// themselves.
const (
	longestSide  = 1568     // pixels
	pictureBytes = 1 << 20  // of one picture
	mostPictures = 20       // in one result
	decodeMemory = 16 << 20 // of a picture that is made smaller
)

// What larger pictures may have that are shown unchanged, as all common models take them.
const (
	largestSide  = 7680 // pixels
	largestBytes = 3 << 20
)

// A shownPicture is a picture in a result.
type shownPicture struct {
	mediaType string
	data      *spool
}

// picture adds a picture to the result, unless it was shown before. s has its bytes, and
// stays the caller's. say is what the text about it adds.
func (c *collector) picture(ctx context.Context, f File, s *spool) (say string, err error) {
	did := didUnshown
	defer func() {
		if say != "" {
			recordOf(ctx).did(did, "", f)
		}
	}()
	if c.shown >= mostPictures {
		return fmt.Sprintf("; not shown: a result shows at most %d pictures; %s shows it", mostPictures, c.p.named().read), nil
	}
	if !c.again && !c.p.firstTime(f.Digest) {
		did = didRepeat
		return "; the same picture was shown before; " + c.p.named().read + " shows it again", nil
	}
	info, err := picture.Look(ctx, s, s.size)
	if err != nil {
		return "; not shown: " + reason(err), ctx.Err()
	}
	switch info.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		side := max(info.Width, info.Height)
		fits := side <= longestSide && s.size <= pictureBytes && info.Orientation <= 1
		if fits || info.Memory > decodeMemory && side <= largestSide && s.size <= largestBytes {
			data := &spool{}
			if _, err := io.Copy(data, s.reader(s.all())); err != nil {
				return "", errors.Join(err, data.Close())
			}
			c.show(&shownPicture{info.MediaType, data})
			return "", nil
		}
	}
	if info.Memory > decodeMemory {
		return fmt.Sprintf("; not shown: %d×%d pixels are too many to be made smaller", info.Width, info.Height), nil
	}
	made, err := picture.Convert(ctx, s, s.size, picture.Form{Side: longestSide, Bytes: pictureBytes})
	if err != nil {
		return "; not shown: " + reason(err), ctx.Err()
	}
	c.show(&shownPicture{made.MediaType, spoolOf(made.Data)})
	did = didConvert
	return fmt.Sprintf("; shown as %d×%d", made.Width, made.Height), nil
}

func (c *collector) show(p *shownPicture) {
	c.shown++
	c.pieces = append(c.pieces, piece{picture: p})
}

func reason(err error) string {
	if e, ok := errors.AsType[*artel.Error](err); ok && e.Err != nil {
		return cut(e.Err.Error(), 200)
	}
	return cut(err.Error(), 200)
}

// firstTime reports whether a picture is shown for the first time in this session.
func (p *Proxy) firstTime(d artel.Digest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forget {
		return true
	}
	if p.pictures[d] {
		return false
	}
	if len(p.pictures) >= maxKnown {
		clear(p.pictures)
	}
	p.pictures[d] = true
	return true
}
