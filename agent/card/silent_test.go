// SPDX-License-Identifier: Apache-2.0

package card_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel/agent/card"
)

// TestNothingIsLostInSilence: what of a file cannot be read, or is cut, is among
// the losses.
func TestNothingIsLostInSilence(t *testing.T) {
	const head = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ann","description":"A sailor.","first_mes":"Ahoy.",`
	for name, tt := range map[string]struct{ file, field string }{
		"book":       {head + `"character_book":["no book"]}}`, "character_book"},
		"extensions": {head + `"extensions":"none"}}`, "extensions"},
		"note":       {head + `"extensions":{"depth_prompt":{"prompt":"Stay wet.","depth":2,"role":0}}}}`, "extensions.depth_prompt"},
		"greetings":  {head + `"alternate_greetings":"Hello."}}`, "alternate_greetings"},
		"assets":     {head + `"assets":"many"}}`, "assets"},
		"tags":       {head + `"tags":"sea"}}`, "tags"},
		"stop":       {`{"temp":1,"top_p":0.9,"stopping_strings":["` + strings.Repeat(`x","`, 20) + `y"]}`, "stopping_strings"},
		"reply":      {`{"temp":1,"top_p":0.9,"max_length":2048,"genamt":4096}`, "genamt"},
	} {
		c, err := card.Read([]byte(tt.file), "x.json")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.ContainsFunc(c.Losses, func(l card.Loss) bool { return l.Field == tt.field }) {
			t.Errorf("%s: losses %+v", name, c.Losses)
		}
	}
}
