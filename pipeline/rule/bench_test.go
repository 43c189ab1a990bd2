// SPDX-License-Identifier: Apache-2.0

package rule_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/rule"
)

// benchRules are ten rules as people write them. The last four have no string
// that a text has to hold, or are for the backtracking engine.
func benchRules() []rule.Rule {
	return []rule.Rule{
		{Find: `/<think>[\s\S]*?<\/think>\s*/g`},
		{Find: `/<(\w+)-note>([\s\S]*?)<\/\1-note>/g`, Replace: "$2"},
		{Find: `\[(?:OOC|ooc):[^\]]*\]`},
		{Find: `/\bcolour\b/gi`, Replace: "color"},
		{Find: `“([^”]*)”`, Replace: `"$1"`},
		{Find: `\*\*(.+?)\*\*`, Replace: "$1", Roles: []artel.Role{artel.RoleAssistant}},
		{Find: `(?<=\$)\d+(?:\.\d\d)?`, Replace: "N"},
		{Find: `[ \t]+$`},
		{Find: `\n{3,}`, Replace: `\n\n`},
		{Find: `^(\w+): `, Replace: "$1 says: ", Depth: &rule.Depth{Max: new(int)}},
	}
}

// benchTexts are messages of 400 characters.
func benchTexts(n int, words string) []rule.Text {
	texts := make([]rule.Text, n)
	for i := range texts {
		role := artel.RoleUser
		if i%2 == 0 {
			role = artel.RoleAssistant
		}
		text := []rune(fmt.Sprintf("%d ", i) + strings.Repeat(words, 400/len([]rune(words))+1))
		texts[i] = rule.Text{Text: string(text[:400]), Role: role, Depth: n - 1 - i}
	}
	return texts
}

// Ten rules over 10,000 messages: nothing is known, the same again, and one
// message more.
func BenchmarkApply(b *testing.B) {
	for name, words := range map[string]string{
		"English": "The quick brown fox jumps over the lazy dog, and nobody in the whole village says a word about it. ",
		"Chinese": "敏捷的棕色狐狸跳过了懒惰的狗，而全村没有一个人对此说一句话。",
		"matched": "He said **this** in a lovely colour, “quoted”, for $10.50.   \nAnd so on until the end of it. ",
	} {
		texts := benchTexts(10_001, words)
		apply := func(e *rule.Engine, texts []rule.Text) {
			out, err := e.Compile(rule.Config{Rules: benchRules()}).Apply(context.Background(), rule.Request, texts, nil)
			if err != nil || len(out.Problems) > 0 {
				b.Fatal(out.Problems, err)
			}
		}
		b.Run(name+"/cold", func(b *testing.B) {
			for b.Loop() {
				apply(rule.New(), texts[1:])
			}
		})
		b.Run(name+"/warm", func(b *testing.B) {
			e := rule.New()
			apply(e, texts[1:])
			for b.Loop() {
				apply(e, texts)
			}
		})
	}
}
