// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/artelhq/artel"
)

func ExampleParseRef() {
	r, err := artel.ParseRef("artifact:report.md@3")
	fmt.Println(r.Artifact, r.Version, r.Immutable(), err)
	_, err = artel.ParseRef("artifact:../secrets")
	fmt.Println(errors.Is(err, artel.NotFound), artel.CodeOf(err))
	// Output:
	// report.md 3 true <nil>
	// true artifact_not_found
}

func ExampleParts() {
	parts := artel.Parts{
		artel.Text{Text: "What is on this picture?"},
		artel.Media{Ref: artel.Ref{Artifact: "photo.png", Version: 1}, MediaType: "image/png", Kind: artel.KindImage, Size: 20480},
	}
	out, _ := json.MarshalIndent(parts, "", "  ")
	fmt.Println(string(out))
	// Output:
	// [
	//   {
	//     "type": "text",
	//     "text": "What is on this picture?"
	//   },
	//   {
	//     "type": "media",
	//     "ref": "artifact:photo.png@1",
	//     "media_type": "image/png",
	//     "kind": "image",
	//     "size": 20480
	//   }
	// ]
}

func ExampleErrorf() {
	err := artel.Errorf(artel.TooLarge, "artifact.Stage", "film.mov", "%d MB are over the limit of 200 MB", 512)
	fmt.Println(err)
	fmt.Println(artel.KindOf(err))
	// Output:
	// film.mov: 512 MB are over the limit of 200 MB
	// too_large
}
