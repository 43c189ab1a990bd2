// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A packageRow is one row of the table of packages in ARCHITECTURE.md.
type packageRow struct {
	floor   int
	name    string   // "artel", "media/extract", "cmd/artel"
	imports []string // packages, and implementations as "model/provider/openai"; "all" for everything below
}

// A district is one row of the table of districts in ARCHITECTURE.md.
type district struct {
	name    string
	imports []string
}

// maxFolders is how many folders the module root has at most, so that one look
// at it shows the architecture.
const maxFolders = 22

// readPackages reads every table row whose first cell is a number.
func readPackages(text string) ([]packageRow, error) {
	var packages []packageRow
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		floor, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			continue
		}
		if len(cells) != 4 {
			return nil, fmt.Errorf("want four cells: %s", strings.TrimSpace(line))
		}
		r := packageRow{floor: floor, name: strings.Trim(strings.TrimSpace(cells[1]), "`")}
		for _, word := range strings.Fields(cells[3]) {
			if word != "–" {
				r.imports = append(r.imports, strings.Trim(word, "`"))
			}
		}
		packages = append(packages, r)
	}
	return packages, nil
}

// readDistricts reads the table whose first column is headed "district".
func readDistricts(text string) ([]district, error) {
	_, text, ok := strings.Cut(text, "\n| district |")
	if !ok {
		return nil, errors.New("there is no table of districts")
	}
	var districts []district
	for i, line := range strings.Split(text, "\n") {
		if i < 2 {
			continue // the rest of the heading
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			return nil, fmt.Errorf("want three cells: %s", line)
		}
		d := district{name: strings.Trim(strings.TrimSpace(cells[0]), "`")}
		for _, word := range strings.Fields(cells[2]) {
			if word != "–" {
				d.imports = append(d.imports, word)
			}
		}
		districts = append(districts, d)
	}
	return districts, nil
}

// checkDistricts compares the table with imports, which holds for every folder
// the folders that it imports.
func checkDistricts(districts []district, imports map[string][]string) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }

	used := map[string]map[string]bool{}
	for folder, list := range imports {
		from := districtOf(folder)
		if used[from] == nil {
			used[from] = map[string]bool{}
		}
		for _, to := range list {
			if to := districtOf(to); to != from {
				used[from][to] = true
			}
		}
	}
	var above []string
	for _, d := range districts {
		for _, to := range d.imports {
			switch {
			case to == "all":
			case !slices.Contains(above, to):
				say("the table lets the district %s import %s, which is not in a row above it", d.name, to)
			case !used[d.name][to]:
				say("the table lets the district %s import %s, and it does not", d.name, to)
			}
		}
		for _, to := range slices.Sorted(maps.Keys(used[d.name])) {
			if !slices.Contains(d.imports, to) && !slices.Contains(d.imports, "all") {
				say("the district %s imports %s, which its row does not list", d.name, to)
			}
		}
		if used[d.name] == nil {
			say("the district %s is in the table and not in the code", d.name)
		}
		above = append(above, d.name)
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !slices.Contains(above, name) {
			say("the district %s is not in the table", name)
		}
	}
	return wrong
}

// districtOf returns the first folder of a path; the module root is "artel".
func districtOf(folder string) string {
	if folder == "." {
		return "artel"
	}
	first, _, _ := strings.Cut(folder, "/")
	return first
}

// split cuts a folder into the longest package of the table that it is in and,
// if it is an implementation, the rest.
func split(folder string, table map[string]packageRow) (name, implementation string) {
	if folder == "." {
		return "artel", ""
	}
	for name := folder; name != "."; name = path.Dir(name) {
		if _, ok := table[name]; ok {
			return name, strings.TrimPrefix(strings.TrimPrefix(folder, name), "/")
		}
	}
	return folder, ""
}

// checkFloors compares the table with imports, which holds for every folder
// the folders that it imports.
func checkFloors(packages []packageRow, imports map[string][]string) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }

	table := map[string]packageRow{}
	for _, r := range packages {
		if _, twice := table[r.name]; twice {
			say("%s is in the table twice", r.name)
		}
		table[r.name] = r
	}
	for _, r := range packages {
		for _, to := range r.imports {
			other, _ := split(to, table)
			switch below, ok := table[other]; {
			case to == "all":
			case !ok:
				say("the table lets %s import %s, which is no package", r.name, to)
			case below.floor >= r.floor:
				say("the table lets %s (floor %d) import %s (floor %d)", r.name, r.floor, to, below.floor)
			}
		}
	}

	used := map[string]map[string]bool{} // by package: the packages it imports
	for _, folder := range slices.Sorted(maps.Keys(imports)) {
		name, impl := split(folder, table)
		here, ok := table[name]
		if !ok {
			say("%s is not in the table", name)
			continue
		}
		if used[name] == nil {
			used[name] = map[string]bool{}
		}
		for _, to := range imports[folder] {
			other, otherImpl := split(to, table)
			if other == name {
				if otherImpl != "" && impl != otherImpl && !strings.HasPrefix(otherImpl, impl+"/") {
					say("%s imports the implementation %s", folder, to)
				}
				continue
			}
			arrow := other
			if otherImpl != "" {
				arrow = to
			}
			used[name][arrow] = true
			switch below, ok := table[other]; {
			case !ok: // said at its own folder
			case below.floor >= here.floor:
				say("%s (floor %d) imports %s (floor %d)", folder, here.floor, to, below.floor)
			case slices.Contains(here.imports, "all"):
			case !slices.Contains(here.imports, arrow):
				say("%s imports %s, which its row does not list", folder, arrow)
			}
		}
	}
	for _, r := range packages {
		if used[r.name] == nil {
			say("%s is in the table and not in the code", r.name)
			continue
		}
		for _, to := range r.imports {
			if to != "all" && !used[r.name][to] {
				say("the table lets %s import %s, and it does not", r.name, to)
			}
		}
	}
	return wrong
}

// TestFloors holds the imports of the module to the table and the table to the
// imports.
func TestFloors(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := readPackages(string(text))
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for _, f := range readModule(t).files {
		if f.product() {
			imports[f.folder()] = append(imports[f.folder()], f.imports()...)
		}
	}
	for folder, list := range imports {
		slices.Sort(list)
		imports[folder] = slices.Compact(list)
		for _, to := range list {
			if isKit(to) || outside(to) {
				t.Errorf("%s imports %s, which is for tests", folder, to)
			}
		}
	}
	for _, w := range checkFloors(packages, imports) {
		t.Error(w)
	}
	districts, err := readDistricts(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range checkDistricts(districts, imports) {
		t.Error(w)
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	folders := slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == "bin" || e.Name() == "artel-data"
	})
	if len(folders) > maxFolders {
		t.Errorf("%d folders at the root, the limit is %d", len(folders), maxFolders)
	}
}

func TestCheckDistricts(t *testing.T) {
	districts, err := readDistricts("text\n| district | about | imports |\n|---|---|---|\n| `artel` | words | – |\n| `store` | rows | artel |\n| `app` | rules | artel store |\n| `cmd` | wires | all |\n\nmore\n")
	if err != nil {
		t.Fatal(err)
	}
	good := func() map[string][]string {
		return map[string][]string{".": nil, "store": {"."}, "store/sqlite": {".", "store"}, "app": {".", "store"}, "cmd/artel": {"app", "store/sqlite"}}
	}
	tests := []struct {
		name   string
		change func(m map[string][]string)
		want   []string
	}{
		{"good", func(map[string][]string) {}, nil},
		{"new district", func(m map[string][]string) { m["extra/word"] = []string{"."} }, []string{"the district extra is not in the table"}},
		{"upward", func(m map[string][]string) { m["store/sqlite"] = []string{".", "app"} }, []string{"the district store imports app, which its row does not list"}},
		{"unused", func(m map[string][]string) { m["app"] = []string{"."} }, []string{"the table lets the district app import store, and it does not"}},
		{"missing", func(m map[string][]string) { delete(m, "cmd/artel") }, []string{"the district cmd is in the table and not in the code"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			imports := good()
			tt.change(imports)
			if diff := cmp.Diff(tt.want, checkDistricts(districts, imports)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	circle := []district{{name: "artel"}, {name: "store", imports: []string{"artel", "app"}}, {name: "app", imports: []string{"artel", "store"}}, {name: "cmd", imports: []string{"all"}}}
	if got := checkDistricts(circle, good()); !slices.Contains(got, "the table lets the district store import app, which is not in a row above it") {
		t.Errorf("a circle is allowed: %q", got)
	}
}

func TestCheckFloors(t *testing.T) {
	packages, err := readPackages("| floor | package | one line | imports |\n|---:|---|---|---|\n| 1 | `artel` | words | – |\n| 2 | `store` | rows | artel |\n| 2 | `blob` | bytes | artel |\n| 3 | `app` | rules | artel store |\n| 4 | `cmd/artel` | wires | all |\n")
	if err != nil {
		t.Fatal(err)
	}
	good := func() map[string][]string {
		return map[string][]string{
			".": nil, "store": {"."}, "store/sqlite": {".", "store"}, "blob": {"."}, "app": {".", "store"}, "cmd/artel": {"app", "store/sqlite"},
		}
	}
	tests := []struct {
		name   string
		change func(m map[string][]string)
		want   []string
	}{
		{"good", func(map[string][]string) {}, nil},
		{"new package", func(m map[string][]string) { m["extra"] = nil }, []string{"extra is not in the table"}},
		{"missing package", func(m map[string][]string) { delete(m, "blob") }, []string{"blob is in the table and not in the code"}},
		{"sibling", func(m map[string][]string) { m["blob"] = []string{".", "store"} }, []string{"blob (floor 2) imports store (floor 2)"}},
		{"upward", func(m map[string][]string) { m["store/sqlite"] = []string{"app"} }, []string{"store/sqlite (floor 2) imports app (floor 3)"}},
		{"new arrow", func(m map[string][]string) { m["app"] = append(m["app"], "blob") }, []string{"app imports blob, which its row does not list"}},
		{"unused arrow", func(m map[string][]string) { m["app"] = []string{"."} }, []string{"the table lets app import store, and it does not"}},
		{"own implementation", func(m map[string][]string) { m["store"] = append(m["store"], "store/sqlite") }, []string{"store imports the implementation store/sqlite"}},
		{"sibling implementation", func(m map[string][]string) { m["store/memory"] = []string{"store/sqlite"} }, []string{"store/memory imports the implementation store/sqlite"}},
		{"foreign implementation", func(m map[string][]string) { m["app"] = append(m["app"], "store/sqlite") }, []string{"app imports store/sqlite, which its row does not list"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			imports := good()
			tt.change(imports)
			if diff := cmp.Diff(tt.want, checkFloors(packages, imports)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	packages[2].imports = []string{"app", "nowhere"}
	got := checkFloors(packages, good())
	for _, want := range []string{"the table lets blob (floor 2) import app (floor 3)", "the table lets blob import nowhere, which is no package"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}
