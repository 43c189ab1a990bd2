// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// Budget is how many characters the list of skills in a request has, about 1,500
// tokens.
const Budget = 6_000

// leastDescribed is the fewest characters of a description that are of use.
const leastDescribed = 60

// A Listed is a skill in a list for models.
type Listed struct {
	Name        string
	Description string
	Version     int // 0: of the deployment
}

// Title is the name with the version.
func (l Listed) Title() string {
	if l.Version == 0 {
		return l.Name
	}
	return fmt.Sprintf("%s (version %d)", l.Name, l.Version)
}

// List writes skills with their descriptions, one a line, in at most budget
// characters. If they do not fit, descriptions are shortened to one length, and if
// that is too short, the last skills are left out. Equal lists make equal texts.
func List(skills []Listed, budget int) (text string, shortened bool, left int) {
	lines := func(n, most int) string {
		var b strings.Builder
		for _, s := range skills[:n] {
			b.WriteString("- " + s.Title() + ": " + artel.Shorten(strings.Join(strings.Fields(s.Description), " "), most) + "\n")
		}
		return b.String()
	}
	if text = lines(len(skills), 2*MaxDescription); utf8.RuneCountInString(text) <= budget {
		return text, false, 0
	}
	shown := len(skills)
	for ; shown > 0; shown-- {
		names := utf8.RuneCountInString(lines(shown, 0))
		if most := (budget - names) / shown; most >= leastDescribed {
			return lines(shown, most), true, len(skills) - shown
		}
	}
	return "", true, len(skills)
}
