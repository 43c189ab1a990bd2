// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/artelhq/artel/artifact"
)

// TestLargeTexts reads and searches texts that are too large to be edited to their end.
func TestLargeTexts(t *testing.T) {
	b := newBench(t)
	b.files = artifact.New(b.store, b.blobs, artifact.Options{MaxText: 1000})
	b.env.Artifacts = b.files
	b.env.Workspace = b.files.Workspace(artifact.WorkspaceConfig{Owner: b.env.Owner, Conversation: b.env.Conversation, Author: "lead"})
	var log strings.Builder
	for n := range 500 {
		fmt.Fprintf(&log, "line %d: ok 行\r\n", n+1)
	}
	log.WriteString("the last line fails")
	utf16le := []byte{0xFF, 0xFE}
	for _, c := range utf16.Encode([]rune(log.String())) {
		utf16le = append(utf16le, byte(c), byte(c>>8))
	}
	for name, data := range map[string][]byte{"a.log": []byte(log.String()), "b.log": utf16le} {
		a := b.upload(name, data)
		if !a.IsLargeText() {
			t.Fatalf("%s: %+v", name, a)
		}
		for _, args := range []m{{"pattern": "last line"}, {"pattern": "last line", "id": name}, {"pattern": "last line", "id": name + "@1"}} {
			got := b.ok("grep_artifacts", args).Content
			if !strings.Contains(got, name+":501:the last line fails\n") || !strings.Contains(got, `complete="true"`) {
				t.Errorf("%s, %v: %s", name, args, got)
			}
		}
		got := b.ok("read_artifact", m{"id": name, "offset": 500}).Content
		if !strings.Contains(got, "\nline 500: ok 行\r\nthe last line fails\n</artifact_slice>") || !strings.Contains(got, `total_lines="501" shown_lines="500-501"`) || strings.Contains(got, "cut") {
			t.Errorf("%s: %s", name, got)
		}
		if whole, _ := b.readAll(t, m{"id": name, "limit": 100}); whole != log.String() {
			t.Errorf("%s: the pages do not make up the text: %.100q", name, whole)
		}
		b.refused("update_artifact", m{"id": name, "old_str": "fails", "new_str": "works"}, "binary")
	}
}
