// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
)

func Example() {
	content, err := os.ReadFile("../../testdata/files/photo.jpg")
	if err != nil {
		panic(err)
	}
	if err := explain(context.Background(), os.Stdout, "photo.jpg", content); err != nil {
		panic(err)
	}
	// Output:
	// photo.jpg is image/jpeg
	//
	// a model that sees gets image_url (native), 2224 bytes of JSON:
	// artifact content (photo.jpg)
	//
	// a model that reads text gets text (described), 414 bytes of JSON:
	// [cannot read] photo.jpg (artifact:unknown)
	// type: JPEG image
	// size: 1.4 KB
	// This model cannot read this kind of file. Ask an agent that can.
}
