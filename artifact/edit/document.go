// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"sync"
)

// A Document is a text to be edited, possibly more than once. It caches the
// normalised form of the text. It never changes and is safe for concurrent use.
type Document struct {
	text string

	mu     sync.Mutex
	folded [2]*folded // with and without indentation
}

// NewDocument returns the document of text.
func NewDocument(text string) *Document { return &Document{text: text} }

// Text returns the text.
func (d *Document) Text() string { return d.text }

// foldCost is the number of bytes folded in the time of one step.
const foldCost = 2

// fold returns the normalised form.
func (d *Document) fold(ctx context.Context, m *meter, indent bool) (*folded, error) {
	i := 0
	if indent {
		i = 1
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.folded[i] == nil {
		if err := m.spend(ctx, int64(len(d.text)/foldCost)); err != nil {
			return nil, err
		}
		d.folded[i] = foldText(d.text, indent)
	}
	return d.folded[i], nil
}
