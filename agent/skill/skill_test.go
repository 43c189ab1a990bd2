// SPDX-License-Identifier: Apache-2.0

package skill_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/internal/phrase"
)

const brand = `---
name: brand
description: >
  Writes in the voice of the company.
  Use it for letters.
license: Apache-2.0
compatibility: needs nothing
metadata:
  author: acme
  version: 1.0
  nested: {a: b}
allowed-tools: Bash(git:*) Read
model: fast
---

# Voice

Be brief. See references/words.md.
`

func TestParse(t *testing.T) {
	t.Parallel()
	s, notes, err := skill.Parse([]byte("\uFEFF" + strings.ReplaceAll(brand, "\n", "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	want := skill.Skill{
		Name: "brand", Description: "Writes in the voice of the company. Use it for letters.", License: "Apache-2.0", Compatibility: "needs nothing",
		Metadata: map[string]string{"author": "acme", "version": "1.0"}, AllowedTools: []string{"Bash(git:*)", "Read"}, Unknown: []string{"model"},
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
	var codes []skill.Code
	for _, n := range notes {
		codes = append(codes, n.Code)
		for _, l := range phrase.Locales() {
			if text := n.In(l); !strings.Contains(text, n.Value) || strings.HasPrefix(text, "skill.note") {
				t.Errorf("%s in %s: %q", n.Code, l, text)
			}
		}
	}
	if !slices.Equal(codes, []skill.Code{skill.NoteTools, skill.NoteMetadata, skill.NoteUnknown}) {
		t.Errorf("notes %v", notes)
	}
	if text := skill.Text(brand); !strings.HasPrefix(text, "# Voice\n\nBe brief.") {
		t.Errorf("text %q", text)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	front := func(s string) string { return "---\n" + s + "\n---\ntext" }
	deep := strings.Repeat("[", 5000)
	for src, want := range map[string]string{
		"":                                     "front matter between two lines",
		"# Title":                              "front matter between two lines",
		"---\nname: a":                         "front matter between two lines",
		front(""):                              "name: is missing; description: is missing",
		front("name: a"):                       "description: is missing",
		front("description: b"):                "name: is missing",
		front("name: A b\ndescription: c"):     "other characters than a-z",
		front("name: a--b\ndescription: c"):    "other characters than a-z",
		front("name: -a\ndescription: c"):      "other characters than a-z",
		front("name: ../a\ndescription: c"):    "other characters than a-z",
		front("name: a\ndescription: [x]"):     "description: want a text",
		front("name: a\ndescription: use: it"): "front matter: ",
		front("name: a\ndescription: " + strings.Repeat("x", 1025)):                      "has 1025 characters, and at most 1024",
		front("name: " + strings.Repeat("x", 65) + "\ndescription: c"):                   "has 65 characters, and at most 64",
		front("name: a\ndescription: b\ncompatibility: " + strings.Repeat("x", 501)):     "compatibility: has 501",
		front("name: a\ndescription: b\nmetadata: x"):                                    "metadata: want keys",
		front("name: a\ndescription: b\nallowed-tools: [[a]]"):                           "allowed-tools: want names",
		front("a: &a [x,x]\nb: &b [*a,*a]\nname: c\ndescription: d"):                     "without anchors",
		front("name: !!binary a\ndescription: d"):                                        "without anchors",
		front("x: " + deep + "\nname: a\ndescription: b"):                                "front matter: ",
		front("x: " + strings.Repeat("y", 20_000)):                                       "at most 16384",
		front("name: a\nname: b\ndescription: c"):                                        "front matter: ",
		"---\nname: a\ndescription: b\xff\n---\n":                                        "is not UTF-8",
		"---\nname: a\ndescription: b\n---\n" + strings.Repeat("x", 300_000):             "move parts of it",
		front("name: a\ndescription: \"" + strings.Repeat(" ", 10) + "\"\nlicense: [a]"): "license: want a text",
	} {
		if _, _, err := skill.Parse([]byte(src)); err == nil || !strings.Contains(err.Error(), want) || artel.KindOf(err) == artel.Internal {
			t.Errorf("%.60q: %v, want %q", src, err, want)
		}
	}
}

// entry is an entry of a ZIP that a test makes.
type entry struct {
	name, text string
	mode       fs.FileMode
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(f, e.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readZIP(b []byte) (*skill.Folder, error) {
	return skill.ReadZIP(bytes.NewReader(b), int64(len(b)))
}

func contents(t testing.TB, f *skill.Folder) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, x := range f.Files {
		b, err := x.Read()
		if err != nil {
			t.Fatal(err)
		}
		out[x.Path] = string(b)
	}
	return out
}

// A folder and its ZIP, exported and read again, have the same bytes, and the ZIP of
// equal files is equal.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"SKILL.md": brand, "scripts/run.sh": "#!/bin/sh\r\nexit 0", "assets/empty": "", "assets/logo.png": "\x89PNG\r\n\x1a\n\x00", "references/词.md": "词\n",
	}
	disk := fstest.MapFS{".DS_Store": {Data: []byte("x")}, ".git/config": {Data: []byte("x")}}
	for name, text := range files {
		disk[name] = &fstest.MapFile{Data: []byte(text)}
	}
	f, err := skill.ReadFS(disk, "brand")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(files, contents(t, f)); d != "" {
		t.Error(d)
	}
	var first, second bytes.Buffer
	if err := skill.WriteZIP(&first, f.Name, f.Files); err != nil {
		t.Fatal(err)
	}
	again, err := readZIP(first.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(files, contents(t, again)); d != "" {
		t.Error(d)
	}
	if err := skill.WriteZIP(&second, again.Name, again.Files); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("the second ZIP differs: %v", err)
	}
	if !slices.ContainsFunc(f.Notes, func(n skill.Note) bool { return n.Code == skill.NoteScripts && n.Value == "1" }) {
		t.Errorf("notes %v", f.Notes)
	}
}

func TestZIPLayouts(t *testing.T) {
	t.Parallel()
	md := entry{name: "SKILL.md", text: brand}
	for name, c := range map[string]struct {
		entries []entry
		note    skill.Code // that is expected beside those of brand
	}{
		"at the top":      {[]entry{md, {name: "a.md", text: "a"}}, ""},
		"in a folder":     {[]entry{{name: "brand/"}, {name: "brand/SKILL.md", text: brand}, {name: "brand/a.md", text: "a"}}, ""},
		"another folder":  {[]entry{{name: "repo-main/x/SKILL.md", text: brand}, {name: "repo-main/x/a.md", text: "a"}}, skill.NoteFolder},
		"of a Mac":        {[]entry{md, {name: "a.md", text: "a"}, {name: "__MACOSX/._SKILL.md", text: "x"}}, skill.NoteSkipped},
		"with an example": {[]entry{md, {name: "a.md", text: "a"}, {name: "examples/one/SKILL.md", text: "---"}}, ""},
	} {
		f, err := readZIP(zipOf(t, c.entries...))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		has := slices.ContainsFunc(f.Notes, func(n skill.Note) bool { return n.Code == c.note })
		if contents(t, f)["a.md"] != "a" || c.note != "" && !has || c.note == "" && len(f.Notes) != 3 {
			t.Errorf("%s: %v, notes %v", name, slices.Collect(maps.Keys(contents(t, f))), f.Notes)
		}
	}
}

func TestZIPRefuses(t *testing.T) {
	t.Parallel()
	md := entry{name: "SKILL.md", text: brand}
	bomb := entry{name: "bomb", text: strings.Repeat("\x00", 21<<20)}
	many := []entry{md}
	for i := range 501 {
		many = append(many, entry{name: fmt.Sprint("f", i)})
	}
	for name, c := range map[string]struct {
		entries []entry
		want    string
	}{
		"no SKILL.md":       {[]entry{{name: "README.md"}}, "there is no such file"},
		"a small name":      {[]entry{{name: "skill.md", text: brand}}, "has to be named SKILL.md"},
		"two skills":        {[]entry{{name: "a/SKILL.md", text: brand}, {name: "b/SKILL.md", text: brand}}, "one at a time"},
		"a file outside":    {[]entry{{name: "a/SKILL.md", text: brand}, {name: "b.md"}}, "outside of the folder"},
		"a path upwards":    {[]entry{md, {name: "../evil"}}, "leads out"},
		"an absolute path":  {[]entry{md, {name: "/etc/passwd"}}, "leads out"},
		"a folder upwards":  {[]entry{md, {name: "../evil/", mode: fs.ModeDir}}, "leads out"},
		"a drive":           {[]entry{md, {name: `C:\evil`}}, "some systems cannot store"},
		"a backslash":       {[]entry{md, {name: `..\evil`}}, "some systems cannot store"},
		"a line in a name":  {[]entry{md, {name: "a\nb"}}, "some systems cannot store"},
		"a link":            {[]entry{md, {name: "link", text: "/etc/passwd", mode: fs.ModeSymlink}}, "is a link"},
		"two of one name":   {[]entry{md, {name: "a"}, {name: "a"}}, "another file of this name"},
		"two cases":         {[]entry{md, {name: "A.md"}, {name: "a.md"}}, "another file of this name"},
		"a file and folder": {[]entry{md, {name: "a"}, {name: "a/b"}}, "cannot be a folder too"},
		"a bomb":            {[]entry{md, bomb}, "a file of a skill has at most"},
		"many files":        {many, "a skill has at most 500"},
		"a deep path":       {[]entry{md, {name: strings.Repeat("a/", 10) + "b"}}, "more than 10 names"},
		"a long path":       {[]entry{md, {name: strings.Repeat("a", 300)}}, "at most 255"},
		"no description":    {[]entry{{name: "SKILL.md", text: "---\nname: a\n---\n"}}, "description: is missing"},
	} {
		_, err := readZIP(zipOf(t, c.entries...))
		if err == nil || !strings.Contains(err.Error(), c.want) || artel.KindOf(err) == artel.Internal {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := readZIP([]byte("no ZIP")); !errors.Is(err, artel.Invalid) {
		t.Error(err)
	}
	// An entry that unpacks to more than it says.
	lie := zipOf(t, md, entry{name: "a", text: strings.Repeat("a", 1000)})
	at := bytes.LastIndex(lie, []byte("PK\x01\x02"))
	lie[at+24], lie[at+25] = 1, 0
	f, err := readZIP(lie)
	if err == nil {
		_, err = f.Files[1].Read()
	}
	if err == nil {
		t.Error("a false size was believed")
	}
}

func TestReadFSRefusesLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, skill.FileName), []byte(brand), 0o600), os.Symlink("/etc/passwd", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	if _, err := skill.ReadFS(os.DirFS(dir), "brand"); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	if text, short, left := skill.List([]skill.Listed{{"a", "does\n  this", 0}, {"b", "does that", 3}}, 1000); text != "- a: does this\n- b (version 3): does that\n" || short || left != 0 {
		t.Errorf("%q %v %d", text, short, left)
	}
	var many []skill.Listed
	for i := range 100 {
		many = append(many, skill.Listed{Name: "skill-" + strings.Repeat("x", i%10), Description: strings.Repeat("词 word ", 100)})
	}
	for _, budget := range []int{0, 50, 500, 6000, 20_000} {
		text, short, left := skill.List(many, budget)
		if n := len([]rune(text)); n > budget || !short || strings.Count(text, "\n")+left != 100 {
			t.Errorf("budget %d: %d characters, %d left", budget, n, left)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(brand))
	f.Add([]byte("---\nname: a\ndescription: |\n  b\n---"))
	f.Add([]byte("---\n? [a]\n: - {b: &c [*c]}\n---\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, _, err := skill.Parse(src)
		if err == nil && (!skill.IsName(s.Name) || s.Description == "") || err != nil && artel.KindOf(err) == artel.Internal {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func FuzzReadZIP(f *testing.F) {
	f.Add(zipOf(f, entry{name: "SKILL.md", text: brand}, entry{name: "a/b", text: "x"}))
	f.Add(zipOf(f, entry{name: "../SKILL.md", text: brand}))
	f.Fuzz(func(t *testing.T, src []byte) {
		folder, err := readZIP(src)
		if err != nil {
			if artel.KindOf(err) == artel.Internal {
				t.Error(err)
			}
			return
		}
		for _, x := range folder.Files {
			if !fs.ValidPath(x.Path) {
				t.Errorf("path %q", x.Path)
			}
			_, _ = x.Read()
		}
	})
}
