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
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxLines   = 600
	maxMethods = 6 // of an interface
	maxOptions = 7

	maxExported = 10 // methods of a type
)

// tooLarge lists the types that may have more than maxExported exported
// methods, with the reason.
var tooLarge = map[string]string{
	"httpapi.Client":    "a method for each operation of the API",
	"webui.AgentEditor": "values for one template",
	"webuitest.Tab":     "what a user does in a browser",
}

// mutable lists package variables that may stand although [constant] does not
// see that they never change, with the reason.
var mutable = map[string]string{
	"cmd/artel.linked":          "set by the linker in releases",
	"cmd/artel.version":         "read once from the build",
	"media/extract.memory":      "the share of the process's memory for documents, as one limit over all callers",
	"media.textByExtension":     "a table turned around once, read only",
	"media.binaryByExtension":   "a table turned around once, read only",
	"store/sqlite.headsQuery":   "a string put together from constants",
	"store/sqlite.oneHeadQuery": "a string put together from constants",
}

// foreign lists names that another module's interface asks for.
var foreign = map[string]string{
	"GetStatus": "huma.StatusError",
}

// TestNoInit refuses what runs or changes behind the back of a caller:
// functions named init and package variables that can change.
func TestNoInit(t *testing.T) {
	h := readModule(t)
	written := map[string]map[string]bool{} // by folder
	for _, f := range h.files {
		if f.test() {
			continue
		}
		if written[f.folder()] == nil {
			written[f.folder()] = map[string]bool{}
		}
		collectWrites(f.File, written[f.folder()])
	}
	for _, f := range h.files {
		if f.test() {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					t.Errorf("%s: init()", h.at(d))
				}
			case *ast.GenDecl:
				if d.Tok != token.VAR {
					continue
				}
				for _, s := range d.Specs {
					spec := s.(*ast.ValueSpec)
					for i, name := range spec.Names {
						if mutable[f.folder()+"."+name.Name] != "" || name.Name == "_" || embedded(d, spec) {
							continue
						}
						if why := constant(spec, i, written[f.folder()][name.Name]); why != "" {
							t.Errorf("%s: package variable %s %s", h.at(name), name.Name, why)
						}
					}
				}
			}
		}
	}
}

// makers are functions whose results never change.
var makers = []string{
	"sync.OnceValue", "sync.OnceValues", "sync.OnceFunc", "regexp.MustCompile", "errors.New", "strings.NewReplacer",
	"template.Must", "language.MustParse", "language.NewMatcher", "reflect.TypeFor", "reflect.TypeOf", "netip.MustParsePrefix", "netip.MustParseAddr",
	"base32.NewEncoding", "base64.NewEncoding", "crc32.MakeTable",
}

// constant returns why the i-th variable of spec may change, or "".
func constant(spec *ast.ValueSpec, i int, written bool) string {
	if written {
		return "is written to"
	}
	if i >= len(spec.Values) {
		return "has no value"
	}
	switch v := spec.Values[i].(type) {
	case *ast.CompositeLit:
		if spec.Names[i].IsExported() {
			return "is exported, so that others can write to it"
		}
		return ""
	case *ast.CallExpr:
		fun := v.Fun
		if x, ok := fun.(*ast.IndexExpr); ok {
			fun = x.X
		}
		for {
			// regexp.MustCompile("x").MatchString, NewEncoding("x").WithPadding(y)
			sel, ok := fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			if slices.Contains(makers, text(sel)) {
				return ""
			}
			call, ok := sel.X.(*ast.CallExpr)
			if !ok {
				break
			}
			fun = call.Fun
		}
		if _, conversion := fun.(*ast.ArrayType); conversion {
			return ""
		}
		return "comes from " + text(fun) + ", which is not known to give what never changes"
	case *ast.FuncLit:
		return "is a function that can be replaced"
	case *ast.BasicLit:
		return "could be a constant"
	}
	return "is not known to never change"
}

// embedded reports whether the variable holds files that the compiler put in.
func embedded(d *ast.GenDecl, spec *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{d.Doc, spec.Doc} {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// collectWrites adds the names that f assigns to, changes elements of, or takes
// the address of. Names of local variables are among them, so a package
// variable must not share its name with one that is written to.
func collectWrites(f *ast.File, names map[string]bool) {
	mark := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
				continue
			case *ast.SelectorExpr:
				e = x.X
				continue
			case *ast.Ident:
				names[x.Name] = true
			}
			return
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					mark(e)
				}
			}
		case *ast.IncDecStmt:
			mark(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				mark(n.X)
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
				mark(n.Args[0])
			}
		}
		return true
	})
}

func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return text(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		return text(e.Fun) + "()"
	}
	return "an expression"
}

// TestDocs wants a comment on every package and every exported name.
func TestDocs(t *testing.T) {
	h := readModule(t)
	packages := map[string]bool{}
	for _, f := range h.files {
		if f.test() {
			continue
		}
		first := "Package " + f.Name.Name + " "
		if f.Name.Name == "main" {
			first = "Command " + path.Base(f.folder()) + " "
		}
		packages[f.folder()] = packages[f.folder()] || f.Doc != nil && strings.HasPrefix(f.Doc.Text(), first)
	}
	for folder, ok := range packages {
		if !ok {
			t.Errorf("%s: no comment that begins with Package or Command and its name", folder)
		}
	}
	for _, f := range h.files {
		if f.test() || f.Name.Name == "main" || ast.IsGenerated(f.File) {
			continue
		}
		for _, d := range f.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no comment", h.at(name), name.Name)
			}
		}
	}
}

// undocumented returns the exported names of d that no comment speaks of.
func undocumented(d ast.Decl) []*ast.Ident {
	var out []*ast.Ident
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
			out = append(out, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
					out = append(out, s.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
						out = append(out, name)
					}
				}
			}
		}
	}
	return out
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return ""
}

// TestSizes keeps files, interfaces, options and the method sets of types small.
func TestSizes(t *testing.T) {
	h := readModule(t)
	exported := map[string]int{} // by type
	check := func(where, what string, got, limit int) {
		if got > limit {
			t.Errorf("%s: %s has %d, the limit is %d", where, what, got, limit)
		}
	}
	for _, f := range h.files {
		if f.test() {
			continue
		}
		if !ast.IsGenerated(f.File) {
			check(f.path, f.path+" (lines)", strings.Count(f.src, "\n"), maxLines)
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			name := f.Name.Name + "." + spec.Name.Name
			switch typ := spec.Type.(type) {
			case *ast.InterfaceType:
				check(h.at(spec), name+" (methods)", typ.Methods.NumFields(), maxMethods)
			case *ast.StructType:
				if strings.HasSuffix(spec.Name.Name, "Options") {
					check(h.at(spec), name+" (fields)", typ.Fields.NumFields(), maxOptions)
				}
			}
			return true
		})
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil && d.Name.IsExported() && ast.IsExported(receiver(d.Recv.List[0].Type)) {
				exported[f.Name.Name+"."+receiver(d.Recv.List[0].Type)]++
			}
		}
	}
	for name, n := range exported {
		if n > maxExported && tooLarge[name] == "" {
			t.Errorf("%s has %d exported methods, the limit is %d", name, n, maxExported)
		}
	}
	for name := range tooLarge {
		if exported[name] <= maxExported {
			t.Errorf("%s has %d exported methods: delete it from tooLarge", name, exported[name])
		}
	}
}

// Names that say nothing about what is inside.
var (
	emptyFolder = regexp.MustCompile(`(?i)^(utils?|commons?|helpers?|managers?|types|misc|shared|lib|impl)$`)
	emptyName   = regexp.MustCompile(`(Manager|Helper|Utils?|Impl)$|^Get[A-Z]`)
	unfinished  = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	skips       = regexp.MustCompile(`\b[tbf]\.Skip(Now|f)?\(|\btesting\.Short\(`)
)

const licence = "// SPDX-License-Identifier: Apache-2.0\n\n"

// TestWords refuses names that say nothing, marks of unfinished work, tests
// that can be skipped, and files without the line that names the licence.
func TestWords(t *testing.T) {
	h := readModule(t)
	for _, f := range h.files {
		if !strings.HasPrefix(f.src, licence) && !ast.IsGenerated(f.File) {
			t.Errorf("%s does not begin with %q", f.path, licence)
		}
		if skips.MatchString(f.src) {
			t.Errorf("%s: a test that can be skipped", f.path)
		}
		for word := range strings.SplitSeq(strings.TrimSuffix(f.path, ".go"), "/") {
			if emptyFolder.MatchString(strings.TrimSuffix(word, "_test")) {
				t.Errorf("%s: %q says nothing", f.path, word)
			}
		}
		if f.test() {
			continue
		}
		for _, d := range f.Decls {
			for _, name := range declared(d) {
				if name.IsExported() && emptyName.MatchString(name.Name) && foreign[name.Name] == "" {
					t.Errorf("%s: a better name than %s", h.at(name), name.Name)
				}
			}
		}
	}
	for _, name := range textFiles(t) {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(src), "\n") {
			if word := unfinished.FindString(line); word != "" {
				t.Errorf("%s:%d: %s", name, i+1, word)
			}
		}
	}
}

func declared(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{d.Name}
	case *ast.GenDecl:
		var out []*ast.Ident
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				out = append(out, s.Name)
			case *ast.ValueSpec:
				out = append(out, s.Names...)
			}
		}
		return out
	}
	return nil
}

// textFiles lists what people write here, vendored files left out.
func textFiles(t *testing.T) []string {
	t.Helper()
	kinds := []string{".go", ".md", ".sql", ".html", ".css", ".js", ".sh", ".yaml", ".yml"}
	var out []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "vendored":
			return fs.SkipDir
		case d.IsDir():
			return skipFolder(name, d)
		case slices.Contains(kinds, filepath.Ext(name)) && !strings.Contains(name, ".min."):
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStyleRules holds the rules of this file to examples of what they refuse.
func TestStyleRules(t *testing.T) {
	for src, want := range map[string]string{
		`var x = map[string]int{"a": 1}`:                    "",
		`var x = map[string]int{}; func f() { x["a"] = 1 }`: "is written to",
		`var x = []int{1}; func f() { x = append(x, 2) }`:   "is written to",
		`var x = struct{ n int }{}; func f() { x.n++ }`:     "is written to",
		`var x = [2]int{}; func f() *int { return &x[0] }`:  "is written to",
		`var x = map[string]int{}; func f() { clear(x) }`:   "is written to",
		`var x int`:                       "has no value",
		`var X = []int{1}`:                "is exported, so that others can write to it",
		`var x = regexp.MustCompile("a")`: "",
		`var x = base32.NewEncoding("a").WithPadding(0)`:  "",
		`var x = sync.OnceValue(func() int { return 1 })`: "",
		`var x = time.Now()`:                              "comes from time.Now, which is not known to give what never changes",
		`var x = time.Now`:                                "is not known to never change",
		`var x = func() {}`:                               "is a function that can be replaced",
		`var x = 1`:                                       "could be a constant",
		`var x = []byte("a")`:                             "",
		`func f() { x := 1; x++; _ = x }; var y = map[string]bool{}`: "",
	} {
		if got := firstVariable(t, src); got != want {
			t.Errorf("%s: got %q, want %q", src, got, want)
		}
	}
	for src, want := range map[string]int{
		"func F() {}": 1, "// F does.\nfunc F() {}": 0, "func (t t) F() {}": 0, "func (t *T[A]) F() {}": 1, "type T int": 1,
		"// These are.\ntype (\n\tT int\n)": 1, "// These are.\nconst (\n\tA = 1\n\tB = 2\n)": 0, "const A = 1 // one": 0, "var A = 1": 1, "func f() {}": 0,
	} {
		f := parse(t, src)
		var got int
		for _, d := range f.Decls {
			got += len(undocumented(d))
		}
		if got != want {
			t.Errorf("%q: %d names without a comment, want %d", src, got, want)
		}
	}
	for _, name := range []string{"SessionManager", "GetUser", "StringUtil", "StoreImpl"} {
		if !emptyName.MatchString(name) {
			t.Errorf("%s is not refused", name)
		}
	}
	for _, name := range []string{"Get", "Getter", "Management", "Implement"} {
		if emptyName.MatchString(name) {
			t.Errorf("%s is refused", name)
		}
	}
}

func firstVariable(t *testing.T, src string) string {
	t.Helper()
	f := parse(t, src)
	names := map[string]bool{}
	collectWrites(f, names)
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			spec := g.Specs[0].(*ast.ValueSpec)
			return constant(spec, 0, names[spec.Names[0].Name])
		}
	}
	t.Fatalf("no variable in %s", src)
	return ""
}

func parse(t *testing.T, src string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
