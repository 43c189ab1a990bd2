// SPDX-License-Identifier: Apache-2.0

package extract

import "strings"

// An rtfField is a field, such as a link or a field of a form.
type rtfField struct {
	code strings.Builder

	kind     int      // of a field of a form; 0: none
	result   int      // the number of the chosen item, or whether a box is checked
	standard int      // of a field without a result
	items    []string // that can be chosen
}

// The kinds of fields of forms, and their result if none was chosen (RTF 1.9.1, "Form
// Fields").
const (
	rtfCheckBox = 1
	rtfDropDown = 2
	rtfNoResult = 25
	maxItems    = 100
)

// chosen is the text that a field of a form shows. ok is false for other fields.
func (f *rtfField) chosen() (text string, ok bool) {
	n := f.result
	if n == rtfNoResult {
		n = f.standard
	}
	switch {
	case f.kind == rtfDropDown && n >= 0 && n < len(f.items):
		return f.items[n], true
	case f.kind == rtfCheckBox && n == 1:
		return "☒", true
	case f.kind == rtfCheckBox:
		return "☐", true
	}
	return "", false
}

// formField reads a word about a field of a form.
func (r *rtf) formField(word string, value int) {
	f := r.state.field
	if f == nil {
		return
	}
	switch word {
	case "fftype":
		f.kind = value
	case "ffres":
		f.result = value
	case "ffdefres":
		f.standard = value
	case "ffl":
		if len(f.items) < maxItems {
			f.items = append(f.items, "")
			r.state.skip, r.state.item = false, true
		}
	}
}
