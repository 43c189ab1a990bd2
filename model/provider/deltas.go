// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// maxKept limits what a reader keeps of one answer until it is complete, in bytes.
const maxKept = 16 << 20

// A DeltaWriter passes on the deltas of one answer. The readers of the dialects embed
// it.
type DeltaWriter struct {
	Failures Failures
	Yield    func(model.Delta, error) bool

	HasContent bool // the answer is not empty
	Called     bool // a call was passed on
	kept       int
}

// Send passes a delta on. The error is [ErrStopped] when the caller has stopped.
func (w *DeltaWriter) Send(d model.Delta) error {
	if _, ok := d.(model.CallDelta); ok {
		w.Called = true
	}
	if !w.Yield(d, nil) {
		return ErrStopped
	}
	return nil
}

// Emit is [DeltaWriter.Send] for a delta that makes an answer not empty.
func (w *DeltaWriter) Emit(d model.Delta) error {
	w.HasContent = true
	return w.Send(d)
}

// Keep counts n bytes of what is kept, which the error names as what.
func (w *DeltaWriter) Keep(n int, what string) error {
	if w.kept += n; w.kept > maxKept {
		return w.Failures.Wrong(fmt.Sprintf("%s larger than 16 MiB", what))
	}
	return nil
}

// CheckContent returns an error for an answer that ended normally, but is empty.
func (w *DeltaWriter) CheckContent(stop model.StopReason) error {
	if !w.HasContent && (stop == model.StopEnd || stop == model.StopTools) {
		return w.Failures.Broken("the service sent an empty answer")
	}
	return nil
}

// Finish ends the answer. One that ended normally has ended for its calls if it has
// some.
func (w *DeltaWriter) Finish(stop model.StopReason, usage artel.Usage) error {
	if stop == model.StopEnd && w.Called {
		stop = model.StopTools
	}
	return w.Send(model.Finish{Reason: stop, Usage: usage})
}

// Unnamed is the error of a call without a name.
func (w *DeltaWriter) Unnamed() error {
	return w.Failures.Broken("the service sent a tool call without a name")
}
