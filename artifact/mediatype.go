// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// textInfo says what a text written here is: what it is declared to be, else
// what the extension of its id says, else Markdown. It is text whatever it
// looks like, so its content is not asked, and a declared type of something
// else than text is refused.
func textInfo(id artel.ArtifactID, declared string) (artel.MediaInfo, error) {
	info := media.Detect(nil, media.Hint{DeclaredType: declared, Filename: string(id)})
	if info.IsBinary() && info.DetectedBy == artel.FromDeclared {
		return info, artel.Errorf(artel.Unsupported, "", "", "%s is not a type of text; leave the type out for Markdown", info.DeclaredType)
	}
	if info.IsBinary() || info.DetectedBy == artel.FromContent {
		info = artel.MediaInfo{MediaType: "text/markdown", DeclaredType: info.DeclaredType, Kind: artel.KindText}
	}
	info.Confidence = 1
	return info, nil
}
