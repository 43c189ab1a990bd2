// SPDX-License-Identifier: Apache-2.0

package render

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io/fs"
	"mime"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
)

// packedLexers is a ZIP of chroma's descriptions of common languages, written by
// TestLexersAreChromas. The module's own package of lexers reads all of its 280
// descriptions when a program starts, which takes 10 ms and 3 MB; these are read
// when the first code is shown. Unpacked they would add 0.5 MB to the program.
//
//go:embed lexers.zip
var packedLexers []byte

// languages is the registry over them. Nothing is registered after it is made,
// and lexers compile their rules under a lock of their own.
var languages = sync.OnceValue(func() *chroma.LexerRegistry {
	r := chroma.NewLexerRegistry()
	lexers, err := zip.NewReader(bytes.NewReader(packedLexers), int64(len(packedLexers)))
	if err != nil {
		panic(err) // the tests read it
	}
	files, _ := fs.Glob(lexers, "*.xml") // the pattern is well formed
	for _, file := range files {
		if lexer, err := chroma.NewXMLLexer(lexers, file); err == nil {
			r.Register(lexer)
		}
	}
	return r
})

// maxName is the longest name of a language or file, in bytes.
const maxName = 255

// other maps common names of languages that chroma does not know.
func other(name string) string {
	switch name {
	case "jsonc", "json5", "jsonl", "ndjson", "geojson", "application/x-ndjson", "application/ld+json", "application/geo+json":
		return "json"
	case "shell-session", "sh-session", "terminal":
		return "console"
	case "node", "mjs", "cjs", "text/javascript", "application/ecmascript":
		return "javascript"
	case "mts", "cts", "application/typescript", "application/x-typescript", "text/typescript":
		return "typescript"
	case "svg", "image/svg+xml", "rss", "plist", "application/xhtml+xml":
		return "xml"
	case "golang", "text/x-go", "go.mod":
		return "go"
	case "application/toml", "text/toml":
		return "toml"
	case "application/yaml", "text/yaml", "application/x-yaml":
		return "yaml"
	case "text/markdown", "application/markdown":
		return "markdown"
	case "application/x-sh", "text/x-shellscript", "application/x-shellscript":
		return "bash"
	case "text/x-python", "text/x-script.python":
		return "python"
	case "latex", "text/x-latex":
		return "tex"
	case "application/sql", "text/sql", "sqlite", "postgres", "postgresql", "mysql":
		return "sql"
	case "text/x-diff", "text/x-patch":
		return "diff"
	}
	return name
}

// LanguageOf returns the language of a file for [Code], or "" if neither its
// name nor its media type tells. The name takes precedence.
func LanguageOf(filename, mediaType string) string {
	if i := strings.LastIndexAny(filename, `/\`); i >= 0 {
		filename = filename[i+1:]
	}
	if filename != "" && len(filename) <= maxName {
		if l := languages().Match(filename); l != nil {
			return nameOf(l)
		}
		if i := strings.LastIndexByte(filename, '.'); i >= 0 {
			if l := lexerOf(filename[i+1:]); l != nil {
				return nameOf(l)
			}
		}
	}
	if mediaType, _, err := mime.ParseMediaType(mediaType); err == nil && mediaType != "text/plain" {
		if l := languages().MatchMimeType(mediaType); l != nil {
			return nameOf(l)
		}
		if l := lexerOf(mediaType); l != nil {
			return nameOf(l)
		}
		if strings.HasSuffix(mediaType, "+xml") {
			return "xml"
		}
		if strings.HasSuffix(mediaType, "+json") {
			return "json"
		}
	}
	return ""
}

// lexerOf finds a language by name or file extension; nil if there is none, and
// for plain text.
func lexerOf(name string) chroma.Lexer {
	if name == "" || len(name) > maxName {
		return nil
	}
	return languages().Get(other(strings.ToLower(name)))
}

// nameOf is the name of a language in classes: its name in lower case if that
// is one of its aliases, otherwise the first alias.
func nameOf(l chroma.Lexer) string {
	c := l.Config()
	name := strings.ToLower(c.Name)
	if len(c.Aliases) == 0 || slices.Contains(c.Aliases, name) {
		return strings.ReplaceAll(name, " ", "-")
	}
	return c.Aliases[0]
}

// titleOf is the display name of a language.
func titleOf(l chroma.Lexer) string {
	switch name := l.Config().Name; name {
	case "markdown":
		return "Markdown"
	case "react":
		return "JSX"
	case "vue":
		return "Vue"
	case "SYSTEMD":
		return "systemd"
	default:
		return name
	}
}
