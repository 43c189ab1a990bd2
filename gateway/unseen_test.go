// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"strconv"
	"strings"
	"testing"
)

// TestUnseenPictures: a service that takes pictures in the results of tools and bills none
// has not shown them to its model. After one such answer they follow the results, in
// forwarded and in translated requests; after a plausible bill they stay.
func TestUnseenPictures(t *testing.T) {
	png := picture(1000, 1)
	turn := turns()[2]
	block := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + encoded(png) + `"}}`
	chat := toolTurn("messages", `[{"type":"image_url","image_url":{"url":"`+dataURL(png)+`"}}]`)
	for billed, want := range map[int]bool{40: true, 1600: false, 700_000: true} {
		for name, c := range map[string][2]string{"forwarded": {turn.path, turn.write("messages", "["+block+"]", `"look"`)}, "translated": {"/v1/chat/completions", chat}} {
			b := newBench(t)
			b.upstream = says(`{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":` + strconv.Itoa(billed) + `,"output_tokens":1}}`)
			for round := range 2 {
				if status, body := b.post(c[0], c[1], "anthropic-version", "2023-06-01"); status != 200 {
					t.Fatalf("%s, %d tokens: %d %s", name, billed, status, body)
				}
				if carried := has(b.did(), "carried"); carried != (want && round > 0) {
					t.Errorf("%s, %d tokens, round %d: did %v", name, billed, round, b.did())
				}
			}
			marks := b.registry.Learned().Marks("messages")
			if (len(marks) == 1) != want || want && !strings.Contains(marks[0].Evidence, strconv.Itoa(billed)+" input tokens") {
				t.Errorf("%s, %d tokens: learned %+v", name, billed, marks)
			}
		}
	}
}
