// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

// TestManyPictures: more pictures than a service takes at their size make all
// of them smaller, whoever builds the request; what is large goes as it is
// while there are few.
func TestManyPictures(t *testing.T) {
	w := newWorld(t)
	large := w.upload("large.png", pngOf(t, drawing(400, 20, 0)))
	files := []artel.Artifact{large}
	for i := range 3 {
		files = append(files, w.upload(fmt.Sprintf("%d.png", i), pngOf(t, drawing(20, 20, byte(i)))))
	}
	s := service(0, artel.CanVision)
	s.Capabilities.Many = model.Fact[int]{Value: 3, Source: model.FromCatalog}
	s.Capabilities.MaxSideOfMany = model.Fact[int]{Value: 200, Source: model.FromCatalog}
	maker, _ := w.maker()
	for n, want := range map[int]int{3: 400, 4: 200} {
		in := w.asked(s, files[:n]...)
		in.History[0].Parts = append(in.History[0].Parts, large.MediaPart()) // again, which counts once
		in.Renditions = maker
		got := mediaIn(build(t, in))
		if len(got) < n || got[0].Width != want {
			t.Errorf("%d pictures: got %+v", n, got)
		}
		registry, err := pipeline.NewRegistry(token.NewCounter(), pipeline.BuiltIn()...)
		if err != nil {
			t.Fatal(err)
		}
		var media []artel.Media
		for _, f := range files[:n] {
			media = append(media, f.MediaPart())
		}
		settled, err := registry.PrepareMedia(t.Context(), in, media, 0)
		if err != nil || settled[0].Media == nil || settled[0].Media.Width != want {
			t.Errorf("%d pictures of a request of another client: got %+v, %v", n, settled[0], err)
		}
	}
}
