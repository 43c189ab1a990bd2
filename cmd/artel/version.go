// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// linked is the version that the linker sets for releases: -X main.linked=0.1.0.
var linked = ""

// version is the version of this program.
var version = thisBuild().Version

// A build says from what a program was made.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"` // of the sources, if git was there at the build
	Changed bool   `json:"changed,omitempty"`
	Date    string `json:"date,omitempty"` // of the commit, RFC 3339
	Go      string `json:"go"`
}

// thisBuild returns the build of this process.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(linked, info)
}

// buildOf takes the version from the linker; otherwise from the module, as go install
// PATH@VERSION and builds in a git checkout record it; otherwise it is dev.
func buildOf(linked string, info *debug.BuildInfo) build {
	b := build{Version: strings.TrimPrefix(linked, "v"), Go: info.GoVersion}
	if main := info.Main.Version; b.Version == "" && main != "(devel)" {
		b.Version = strings.TrimPrefix(main, "v")
	}
	b.Version = cmp.Or(b.Version, "dev")
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Changed = s.Value == "true"
		}
	}
	return b
}

func versionCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, and with --json also the commit, its date and the version of Go", Args: usage(cobra.NoArgs),
		Example: "  artel version\n  artel version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.print(cmd, thisBuild(), func(w printer) { w.line("artel " + version) })
		},
	}
}
