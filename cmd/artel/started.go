// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// startedAs returns the command line that started this process, for people to
// repeat: by the name artel if that is found in the path, with go run if the
// program was started so, otherwise by its path.
func startedAs(args []string) string {
	words := []string{program(args[0])}
	for _, a := range args[1:] {
		words = append(words, quoted(a))
	}
	return strings.Join(words, " ")
}

func program(path string) string {
	name := filepath.Base(path)
	if strings.Contains(filepath.ToSlash(path), "/go-build") { // where go run builds it
		return "go run ./cmd/" + strings.TrimSuffix(name, ".exe")
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return quoted(path)
	}
	a, errFound := os.Stat(found)
	b, errPath := os.Stat(path)
	if path == name || errFound == nil && errPath == nil && os.SameFile(a, b) {
		return quoted(name)
	}
	return quoted(path)
}

// quoted quotes a word for a shell if it needs that.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
