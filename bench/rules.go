// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"regexp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/rule"
)

const rulesAbout = "Ten find-and-replace rules over messages of 400 characters of prose. One of them, for spaces at the ends of lines, finds some in every message, the others nothing. Cold is the first time; " +
	"warm is the next time, after one new message. The anchor is Go's package regexp with the eight patterns that it takes, on the same messages. " +
	"No budget of their own: they are a part of the context build's."

// someRules are typical rules; the second and third cannot run in a linear engine and
// have no row in plain.
func someRules() (rules []rule.Rule, plain []*regexp.Regexp) {
	rules = []rule.Rule{
		{Find: `/<think>[\s\S]*?<\/think>\s*/g`},
		{Find: `/<(\w+)-note>([\s\S]*?)<\/\1-note>/g`, Replace: "$2"},
		{Find: `(?<=\$)\d+(?:\.\d\d)?`, Replace: "N"},
		{Find: `\[(?:OOC|ooc):[^\]]*\]`},
		{Find: `/\bcolour\b/gi`, Replace: "color"},
		{Find: `“([^”]*)”`, Replace: `"$1"`},
		{Find: `\*\*(.+?)\*\*`, Replace: "$1"},
		{Find: `[ \t]+$`},
		{Find: `\n{3,}`, Replace: `\n\n`},
		{Find: `^(\w+): `, Replace: "$1 says: "},
	}
	for _, p := range []string{
		`(?s)<think>.*?</think>\s*`, `\[(?:OOC|ooc):[^\]]*\]`, `(?i)\bcolour\b`, `“([^”]*)”`, `\*\*(.+?)\*\*`, `(?m)[ \t]+$`, `\n{3,}`, `(?m)^(\w+): `,
	} {
		plain = append(plain, regexp.MustCompile(p))
	}
	return rules, plain
}

func measureRules(ctx context.Context, l *lab) []result {
	rules, plain := someRules()
	var cold, warm []result
	for _, n := range []int{1000, 10_000} {
		var texts []rule.Text
		for i, m := range messages(n + 1) {
			texts = append(texts, rule.Text{Text: m.Parts[0].(artel.Text).Text, Role: m.Role, Depth: n - i})
		}
		var engine *rule.Engine
		apply := func(texts []rule.Text) sample {
			return seconds(func() error {
				_, err := engine.Compile(rule.Config{Rules: rules}).Apply(ctx, rule.Request, texts, nil)
				return err
			})
		}
		m := interleave(l.rounds(3),
			func() float64 {
				engine = rule.New()
				return apply(texts[:n])()
			},
			apply(texts),
			seconds(func() error {
				for _, t := range texts {
					for _, re := range plain {
						_ = re.ReplaceAllString(t.Text, "$1")
					}
				}
				return nil
			}))
		size := count(n, "messages")
		cold = append(cold, result{work: "cold", size: size, unit: millis(), artel: m[0], anchor: m[2]})
		warm = append(warm, result{work: "after one new message", size: size, unit: millis(), artel: m[1], anchor: m[2]})
	}
	return append(cold, warm...)
}
