// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/artelhq/artel"

// A module holds all Go files of this module for the tests of its structure.
type module struct {
	fset  *token.FileSet
	files []goFile
}

// A goFile is one parsed file.
type goFile struct {
	path string // from the module root, with slashes
	src  string
	*ast.File
}

// folder is the package's folder; "." is the module root.
func (f goFile) folder() string { return path.Dir(f.path) }

func (f goFile) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// product reports whether f is part of the product: no test, no test kit, no script.
func (f goFile) product() bool {
	return !f.test() && !isKit(f.folder()) && !outside(f.folder())
}

// imports returns the packages of this module that f imports, as folders.
func (f goFile) imports() []string {
	var out []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		switch rest, ok := strings.CutPrefix(p, modulePath+"/"); {
		case err != nil:
		case p == modulePath:
			out = append(out, ".")
		case ok:
			out = append(out, rest)
		}
	}
	return out
}

// isKit reports whether folder holds a conformance kit, such as blob/blobtest, or
// their frame.
func isKit(folder string) bool {
	return folder == "internal/contracttest" || folder != "." && path.Base(folder) == path.Base(path.Dir(folder))+"test"
}

// outside reports whether folder stands outside of the floors.
func outside(folder string) bool {
	first, _, _ := strings.Cut(folder, "/")
	return first == "scripts" || first == "examples"
}

var loadModule = sync.OnceValues(func() (*module, error) {
	h := &module{fset: token.NewFileSet()}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(name, d)
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(h.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		h.files = append(h.files, goFile{path: filepath.ToSlash(name), src: string(src), File: f})
		return nil
	})
	return h, err
})

// skipFolder leaves out what is no source of this module.
func skipFolder(name string, d fs.DirEntry) error {
	if name == "." {
		return nil
	}
	if base := d.Name(); strings.HasPrefix(base, ".") || base == "testdata" || base == "bin" || base == "artel-data" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func readModule(t *testing.T) *module {
	t.Helper()
	h, err := loadModule()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// at formats the place of a node.
func (h *module) at(n ast.Node) string {
	p := h.fset.Position(n.Pos())
	return filepath.ToSlash(p.Filename) + ":" + strconv.Itoa(p.Line)
}
