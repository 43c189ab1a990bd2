// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"context"
	"errors"
)

// Find returns the first match in a text of a pattern that is written like that
// of a [Rule], with the same limits. The error says why the pattern cannot be
// used; a pattern that exceeds its time is one.
func (e *Engine) Find(ctx context.Context, pattern, text string) (match string, ok bool, err error) {
	set := e.Compile(Config{Rules: []Rule{{ID: "pattern", Find: pattern}}})
	out, err := set.Trace(ctx, Request, Text{Text: text, Depth: -1}, nil)
	switch {
	case err != nil:
		return "", false, err
	case len(out) == 0 || out[0].Problem != "":
		problem := "the pattern is empty"
		if len(out) > 0 {
			problem = out[0].Problem
		}
		return "", false, errors.New(problem)
	case len(out[0].Matches) == 0:
		return "", false, nil
	}
	at := out[0].Matches[0]
	return text[at[0]:at[1]], true, nil
}
