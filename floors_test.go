// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A room is one row of the table in ARCHITECTURE.md.
type room struct {
	floor   int
	name    string   // "artel", "store", "cmd/artel"
	imports []string // rooms, and wings of other rooms as "provider/openai"; "all" for everything below
}

// readRooms reads every table row whose first cell is a number.
func readRooms(text string) ([]room, error) {
	var rooms []room
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		floor, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			continue
		}
		if len(cells) != 4 {
			return nil, fmt.Errorf("want four cells: %s", strings.TrimSpace(line))
		}
		r := room{floor: floor, name: strings.Trim(strings.TrimSpace(cells[1]), "`")}
		for _, word := range strings.Fields(cells[3]) {
			if word != "–" {
				r.imports = append(r.imports, strings.Trim(word, "`"))
			}
		}
		rooms = append(rooms, r)
	}
	return rooms, nil
}

// split cuts a folder into its room and, where it is one, its wing.
func split(folder string) (room, wing string) {
	if folder == "." {
		return "artel", ""
	}
	first, rest, _ := strings.Cut(folder, "/")
	if first == "cmd" {
		return folder, ""
	}
	return first, rest
}

// checkFloors compares the table with imports, which holds for every folder
// the folders that it imports.
func checkFloors(rooms []room, imports map[string][]string) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }

	table := map[string]room{}
	for _, r := range rooms {
		if _, twice := table[r.name]; twice {
			say("%s is in the table twice", r.name)
		}
		table[r.name] = r
	}
	for _, r := range rooms {
		for _, to := range r.imports {
			other, _ := split(to)
			switch below, ok := table[other]; {
			case to == "all":
			case !ok:
				say("the table lets %s import %s, which is no room", r.name, to)
			case below.floor >= r.floor:
				say("the table lets %s (floor %d) import %s (floor %d)", r.name, r.floor, to, below.floor)
			}
		}
	}

	used := map[string]map[string]bool{} // room, arrow
	for _, folder := range slices.Sorted(maps.Keys(imports)) {
		name, wing := split(folder)
		here, ok := table[name]
		if !ok {
			say("%s is not in the table", name)
			continue
		}
		if used[name] == nil {
			used[name] = map[string]bool{}
		}
		for _, to := range imports[folder] {
			other, otherWing := split(to)
			if other == name {
				if otherWing != "" && wing != otherWing && !strings.HasPrefix(otherWing, wing+"/") {
					say("%s imports the wing %s", folder, to)
				}
				continue
			}
			arrow := other
			if otherWing != "" {
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
	for _, r := range rooms {
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
	rooms, err := readRooms(string(text))
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for _, f := range readHouse(t).files {
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
	for _, w := range checkFloors(rooms, imports) {
		t.Error(w)
	}
}

func TestCheckFloors(t *testing.T) {
	rooms, err := readRooms("| floor | room | one line | imports |\n|---:|---|---|---|\n| 1 | `artel` | words | – |\n| 2 | `store` | rows | artel |\n| 2 | `blob` | bytes | artel |\n| 3 | `app` | rules | artel store |\n| 4 | `cmd/artel` | wires | all |\n")
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
		{"new room", func(m map[string][]string) { m["extra"] = nil }, []string{"extra is not in the table"}},
		{"missing room", func(m map[string][]string) { delete(m, "blob") }, []string{"blob is in the table and not in the code"}},
		{"sibling", func(m map[string][]string) { m["blob"] = []string{".", "store"} }, []string{"blob (floor 2) imports store (floor 2)"}},
		{"upward", func(m map[string][]string) { m["store/sqlite"] = []string{"app"} }, []string{"store/sqlite (floor 2) imports app (floor 3)"}},
		{"new arrow", func(m map[string][]string) { m["app"] = append(m["app"], "blob") }, []string{"app imports blob, which its row does not list"}},
		{"unused arrow", func(m map[string][]string) { m["app"] = []string{"."} }, []string{"the table lets app import store, and it does not"}},
		{"own wing", func(m map[string][]string) { m["store"] = append(m["store"], "store/sqlite") }, []string{"store imports the wing store/sqlite"}},
		{"sibling wing", func(m map[string][]string) { m["store/memory"] = []string{"store/sqlite"} }, []string{"store/memory imports the wing store/sqlite"}},
		{"foreign wing", func(m map[string][]string) { m["app"] = append(m["app"], "store/sqlite") }, []string{"app imports store/sqlite, which its row does not list"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			imports := good()
			tt.change(imports)
			if diff := cmp.Diff(tt.want, checkFloors(rooms, imports)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	rooms[2].imports = []string{"app", "nowhere"}
	got := checkFloors(rooms, good())
	for _, want := range []string{"the table lets blob (floor 2) import app (floor 3)", "the table lets blob import nowhere, which is no room"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
}
