// SPDX-License-Identifier: Apache-2.0

// Package pdf reads and renders PDFs with pdfium in a sandbox.
//
// Begin with [New] and [Engine.Open]. A [Document] tells its pages, the characters,
// links, form fields and pictures of each ([Document.Page]), and draws a page
// ([Document.Render]). What the characters mean (lines, paragraphs, tables) is left to
// package media/extract.
//
// The invariant: whatever the bytes are, they only reach pdfium compiled to WebAssembly.
// Each document has an instance of its own, without files, network, clock or
// environment, with bounded memory, stopped when its context ends. The engine starts at
// the first document, compiles pdfium once into a folder, and ends when it is idle.
package pdf

import (
	"cmp"
	"context"
	"io"
	"sync"
	"time"

	"github.com/artelhq/artel"
)

// The defaults of [Options].
const (
	DefaultMaxMemory = 256 << 20 // bytes
	DefaultMaxTime   = 2 * time.Minute
	DefaultMaxOpen   = 3
	DefaultIdle      = time.Minute
)

// Options bound an engine. Zero means the default of each.
type Options struct {
	CacheDir  string        // for compiled code, trusted like the program; "": artel/pdfium in the user's cache folder
	MaxMemory int64         // bytes of each document's instance
	MaxTime   time.Duration // from opening to closing a document
	MaxOpen   int           // documents open at once; others wait
	Idle      time.Duration // without open documents, after which memory is returned
}

// An Engine opens documents. It uses no resources until the first one. Its methods may
// be called concurrently.
type Engine struct {
	opt   Options
	slots chan struct{}
	work  sync.WaitGroup

	mu     sync.Mutex
	boot   *boot // nil: not started
	open   int
	timer  *time.Timer
	closed bool
}

// A boot is a start of the sandbox in progress or completed. Until done is closed, only
// the goroutine that starts it uses the other fields.
type boot struct {
	done chan struct{}
	box  *sandbox
	err  error
}

// New returns an engine that is not started yet. Close it.
func New(o Options) *Engine {
	o.MaxMemory = cmp.Or(max(o.MaxMemory, 0), DefaultMaxMemory)
	o.MaxTime = cmp.Or(max(o.MaxTime, 0), DefaultMaxTime)
	o.MaxOpen = cmp.Or(max(o.MaxOpen, 0), DefaultMaxOpen)
	o.Idle = cmp.Or(max(o.Idle, 0), DefaultIdle)
	return &Engine{opt: o, slots: make(chan struct{}, o.MaxOpen)}
}

// Open opens the size bytes at r as a PDF. The reader is used until the document is
// closed.
//
// Errors are [*artel.Error]: Unsupported for encrypted documents, Invalid for damaged
// ones, TooLarge beyond the limits, Canceled if ctx ended.
func (e *Engine) Open(ctx context.Context, r io.ReaderAt, size int64) (*Document, error) {
	select {
	case e.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, stopped(ctx)
	}
	box, err := e.acquire(ctx)
	if err != nil {
		<-e.slots
		return nil, err
	}
	d, err := box.open(ctx, r, size, e.opt)
	if err != nil {
		e.release()
		return nil, err
	}
	d.release = e.release
	return d, nil
}

// acquire returns the running sandbox, starting it if necessary.
func (e *Engine) acquire(ctx context.Context) (*sandbox, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, artel.Errorf(artel.Unavailable, op, "", "the PDF reader is closed")
	}
	e.open++
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	b := e.boot
	if b == nil {
		b = &boot{done: make(chan struct{})}
		e.boot = b
		e.work.Go(func() {
			b.box, b.err = startSandbox(e.opt)
			close(b.done)
		})
	}
	e.mu.Unlock()
	select {
	case <-b.done:
	case <-ctx.Done():
		e.unuse()
		return nil, stopped(ctx)
	}
	if b.err != nil {
		e.mu.Lock()
		if e.boot == b { // the next document tries again
			e.boot = nil
		}
		e.mu.Unlock()
		e.unuse()
		return nil, artel.Errorf(artel.Unavailable, op, "", "the PDF reader cannot be started: %w", b.err)
	}
	return b.box, nil
}

func (e *Engine) release() {
	e.unuse()
	<-e.slots
}

// unuse counts down the open documents and plans the end of the sandbox after the last.
func (e *Engine) unuse() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open--
	if e.open > 0 || e.closed {
		return
	}
	e.timer = time.AfterFunc(e.opt.Idle, e.idle)
}

// idle ends the sandbox if no document was opened since.
func (e *Engine) idle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == 0 {
		e.stop()
	}
}

// stop ends the sandbox. The caller holds mu, and no document is open.
func (e *Engine) stop() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	b := e.boot
	if b == nil {
		return
	}
	select {
	case <-b.done:
	default: // its callers have left while it was starting; Close waits for it
		return
	}
	e.boot = nil
	if b.box != nil {
		b.box.close()
	}
}

// Running reports whether the engine holds compiled code in memory.
func (e *Engine) Running() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.boot != nil
}

// Close ends the engine. Documents must be closed before.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.work.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop()
	return nil
}
