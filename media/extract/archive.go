// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"archive/zip"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// An archive is a ZIP file whose parts are read within a budget.
type archive struct {
	*budget
	parts map[string]*zip.File // by name, without a leading slash
	names []string             // in the order of the directory
}

func openArchive(src *source) (*archive, error) {
	// The section reader makes negative offsets of damaged entries io.EOF.
	at := &meteredAt{r: io.NewSectionReader(src.at, 0, src.size), b: src.budget, limit: maxDirectory}
	z, err := zip.NewReader(at, src.size)
	if err != nil {
		return nil, err
	}
	at.limit = 0
	src.maxExpanded = src.mostExpanded(src.size)
	a := &archive{budget: src.budget, parts: make(map[string]*zip.File, len(z.File))}
	for _, f := range z.File {
		name := strings.TrimPrefix(strings.ReplaceAll(f.Name, "\\", "/"), "/")
		if a.parts[name] != nil {
			continue // the first of a name counts, as for other readers
		}
		a.parts[name] = f
		a.names = append(a.names, name)
	}
	return a, nil
}

func (a *archive) has(name string) bool { return a.parts[name] != nil }

// open returns a part. The caller closes it.
func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.parts[name]
	if f == nil {
		return nil, fmt.Errorf("%w: it has no part %s", errDamaged, artel.Shorten(name, 100))
	}
	if f.Flags&1 != 0 {
		return nil, artel.Errorf(artel.Unsupported, op, "", "the document is encrypted; save it without a password and upload it again")
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{&expander{r: r, b: a.budget}, r}, nil
}

// xml opens a part for reading as XML.
func (a *archive) xml(name string) (*xmlReader, error) {
	r, err := a.open(name)
	if err != nil {
		return nil, err
	}
	return newXMLReader(r, r, a.budget), nil
}

// scan calls f with every start tag of a part; see [xmlReader.elements].
func (a *archive) scan(name string, f func(*xmlReader, xml.StartElement) error) error {
	x, err := a.xml(name)
	if err != nil {
		return err
	}
	defer x.close()
	return x.elements(func(e xml.StartElement) error { return f(x, e) }, nil)
}

// subtrees calls f with every element of a part that has one of the local names;
// without names, with the root. f may keep them: together they have the bounds of one.
func (a *archive) subtrees(part string, f func(*node), names ...string) error {
	return a.within(&tally{maxNodes, a.maxText}, part, f, names...)
}

// within is subtrees for several parts that are kept together.
func (a *archive) within(left *tally, part string, f func(*node), names ...string) error {
	return a.scan(part, func(x *xmlReader, e xml.StartElement) error {
		if len(names) > 0 && !slices.Contains(names, e.Name.Local) {
			return nil
		}
		n, err := x.tree(e, left)
		if err == nil {
			f(n)
		}
		return err
	})
}

// tree returns the root element of a part.
func (a *archive) tree(name string) (root *node, err error) {
	err = a.subtrees(name, func(n *node) { root = cmp.Or(root, n) })
	if root != nil && errors.Is(err, errFull) {
		err = nil // the first of it is there
	}
	if err == nil && root == nil {
		err = errors.Join(errDamaged, errors.New("a part of it is empty"))
	}
	return root, err
}

// A relation leads from a part of an Office document to another or outside.
type relation struct {
	kind     string // the last element of its type, such as "hyperlink"
	target   string // the name of a part, or a URL
	external bool
}

// maxRelations bounds the relations of one part: each picture and link is one.
const maxRelations = 100_000

// relations returns the relations of a part by id.
func (a *archive) relations(part string) (map[string]relation, error) {
	dir, base := path.Split(part)
	name := dir + "_rels/" + base + ".rels"
	if !a.has(name) {
		return nil, nil
	}
	rels := map[string]relation{}
	err := a.subtrees(name, func(n *node) {
		if n.name != "Relationships" {
			return
		}
		for _, k := range n.kids {
			r := relation{kind: path.Base(k.attr("Type")), target: k.attr("Target"), external: k.attr("TargetMode") == "External"}
			if !r.external {
				r.target = resolve(dir, r.target)
			}
			if len(rels) < maxRelations {
				rels[k.attr("Id")] = r
			}
		}
	})
	return rels, err
}

// inOrder returns relations by their ids, for a deterministic text.
func inOrder(rels map[string]relation) []relation {
	ids := slices.SortedFunc(maps.Keys(rels), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	sorted := make([]relation, len(ids))
	for i, id := range ids {
		sorted[i] = rels[id]
	}
	return sorted
}

// resolve returns the name of the part for target relative to folder dir.
func resolve(dir, target string) string {
	target, _, _ = strings.Cut(target, "#")
	if u, err := url.PathUnescape(target); err == nil {
		target = u
	}
	if strings.HasPrefix(target, "/") {
		return strings.TrimPrefix(path.Clean(target), "/")
	}
	return strings.TrimPrefix(path.Join("/", dir, target), "/")
}

// mainPart returns the main part of an Office document, or fallback.
func (a *archive) mainPart(fallback string) (string, error) {
	rels, err := a.relations("")
	if err != nil {
		return "", err
	}
	for _, r := range inOrder(rels) {
		if r.kind == "officeDocument" && a.has(r.target) {
			return r.target, nil
		}
	}
	return fallback, nil
}

// property returns a number from the properties of an Office document, or 0.
func (a *archive) property(name string) int {
	if !a.has("docProps/app.xml") {
		return 0
	}
	n := 0
	err := a.subtrees("docProps/app.xml", func(root *node) {
		if k := root.kid(name); k != nil {
			n = min(max(number(k.allText()), 0), 1<<20)
		}
	})
	if err != nil {
		return 0
	}
	return n
}
