// SPDX-License-Identifier: Apache-2.0

package token

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestWide is internal: from outside nobody can tell what a piece was merged
// from. It holds merging from characters to merging from bytes, of runs of
// characters and of tokens, those among them that are parts of characters.
func TestWide(t *testing.T) {
	for name, load := range map[string]func() (*table, error){O200k: o200k, Cl100k: cl100k} {
		v, err := load()
		if err != nil {
			t.Fatal(err)
		}
		var wides []slot // tokens with more than ASCII
		for _, s := range v.slots {
			if s.where != 0 && s.head&0x8080808080808080 != 0 {
				wides = append(wides, s)
			}
		}
		token := rapid.Custom(func(t *rapid.T) string {
			s := wides[rapid.IntRange(0, len(wides)-1).Draw(t, "slot")]
			return v.text[s.where>>8:][:s.where&0xFF]
		})
		han := rapid.Custom(func(t *rapid.T) string { return string(rune(rapid.IntRange(0x4E00, 0x9FA5).Draw(t, "character"))) })
		other := rapid.Custom(func(t *rapid.T) string { return string(rune(rapid.IntRange(0x800, 0xFFFD).Draw(t, "character"))) })
		common := rapid.SampledFrom(strings.Split("的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里，。、", ""))
		pieces := rapid.SliceOfN(rapid.OneOf(token, common, common, han, other, rapid.SampledFrom([]string{"a", " ", "x1", "é"})), 1, 40)
		m := new(merger)
		tried, apart := 0, 0
		rapid.Check(t, func(t *rapid.T) {
			s := validUTF8(strings.Join(pieces.Draw(t, "pieces"), ""))
			if len(s) > scanLimit {
				end := scanLimit
				for !utf8.RuneStart(s[end]) {
					end--
				}
				s = s[:end]
			}
			tried++
			n, ok := m.mergeCharacters(v, s)
			if !ok {
				return
			}
			apart++
			if want, _ := m.scan(v, s); n != want {
				t.Fatalf("%s: %q is %d tokens from its characters, %d from its bytes", name, s, n, want)
			}
		})
		text := strings.Repeat("工件系统保存智能体一切内容并把每个版本交给合适的模型", 2)
		if n, ok := m.mergeCharacters(v, text); !ok || n == 0 {
			t.Errorf("%s: common characters are merged from bytes: %d tokens, %v", name, n, ok)
		}
		if apart == 0 || apart == tried {
			t.Errorf("%s: %d of %d pieces were merged from characters", name, apart, tried)
		}
	}
}

// TestSeams: what was noted is found, in whatever stands around it, and little else is.
func TestSeams(t *testing.T) {
	v, err := o200k()
	if err != nil {
		t.Fatal(err)
	}
	const partial = "\xb8运" // a token of o200k_base
	if v.rank(partial, 0, len(partial)) == none {
		t.Fatalf("%q is no token any more: want another one", partial)
	}
	s := "搸运动" // the first ends in b8
	if s[2] != partial[0] {
		t.Fatalf("%q has no such seam", s)
	}
	if !v.boundaries.has(s, 3) || v.boundaries.has(s, 6) {
		t.Errorf("%q: noted %v, and %v of the other boundary", s, v.boundaries.has(s, 3), v.boundaries.has(s, 6))
	}
	noted := 0
	for _, word := range v.boundaries.far {
		for ; word != 0; word &= word - 1 {
			noted++
		}
	}
	if noted < 100 || noted > 5000 {
		t.Errorf("%d of %d boundaries are noted", noted, 1<<boundaryBits)
	}
}
