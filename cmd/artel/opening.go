// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/pkg/browser"
	"golang.org/x/term"

	"github.com/artelhq/artel/model"
)

// started is what a server says of itself when it begins to listen.
type started struct {
	url      string
	setup    string          // the page on which the first administrator is made; "": none is needed
	services []model.Service // that it found
}

// tell prints the address of the server, the models it found, and what to do next. program
// is the name by which this program was started. It writes once, since a reader may close
// its end after the line that it waits for.
func (s started) tell(out io.Writer, program string) {
	w := &strings.Builder{}
	if s.setup != "" {
		fmt.Fprintln(w, "artel: set up at "+s.setup)
	}
	fmt.Fprintln(w, "artel: listening on "+s.url)
	var found, missing []string
	for _, m := range s.services {
		switch {
		case m.Demo():
		case !m.Callable():
			missing = append(missing, string(m.ID))
		case m.Model != "" && m.Model != string(m.ID):
			found = append(found, fmt.Sprintf("%s (%s)", m.ID, m.Model))
		default:
			found = append(found, string(m.ID))
		}
	}
	models := "none found, so the built-in demo answers"
	if len(found) > 0 {
		models = listed(found, 4)
	}
	if len(missing) > 0 {
		models += "; cannot be called: " + listed(missing, 4)
	}
	fmt.Fprintln(w, "artel: models: "+models)
	switch {
	case len(missing) > 0:
		fmt.Fprintf(w, "artel: next: see why at %s/settings, or run: %s doctor --services\n", s.url, program)
	case len(found) == 0:
		fmt.Fprintf(w, "artel: next: connect a model at %s/settings, or run: %s services add --help\n", s.url, program)
	default:
		fmt.Fprintf(w, "artel: next: point an SDK or agent at %s/gateway, or run: %s chat --help\n", s.url, program)
	}
	_, _ = io.WriteString(out, w.String())
}

// listed joins at most n names, and says how many others there are.
func listed(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// page is the address to show to the person who started the server.
func (s started) page() string {
	if s.setup != "" {
		return s.setup
	}
	return s.url + "/"
}

// canOpen reports whether a person sits before a browser on this machine: the output is a
// terminal, there is a display, and the terminal is not one of another machine.
func canOpen(terminal bool, goos string, env func(string) string) bool {
	if !terminal || env("CI") != "" || env("SSH_CONNECTION") != "" || env("SSH_TTY") != "" {
		return false
	}
	return goos == "darwin" || goos == "windows" || env("DISPLAY") != "" || env("WAYLAND_DISPLAY") != ""
}

// open shows the page in the browser of this machine if canOpen. It does not wait, since some
// browsers end only when they are closed.
func (s started) open(failed func(error)) {
	if !canOpen(term.IsTerminal(int(os.Stdout.Fd())), runtime.GOOS, os.Getenv) {
		return
	}
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	go func() {
		if err := browser.OpenURL(s.page()); err != nil {
			failed(err)
		}
	}()
}
