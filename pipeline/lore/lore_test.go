// SPDX-License-Identifier: Apache-2.0

package lore_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/lore"
)

var update = flag.Bool("update", false, "write the expected books anew")

// book reads entries in the package's own format.
func book(t testing.TB, entries string) lore.Book {
	t.Helper()
	b := lore.Book{Name: "B"}
	dec := json.NewDecoder(strings.NewReader(entries))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b.Entries); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	return b
}

// said makes messages of alternating authors, the last of the user.
func said(texts ...string) []lore.Message {
	out := make([]lore.Message, len(texts))
	for i, s := range texts {
		out[i] = lore.Message{ID: fmt.Sprint("m", i), User: (len(texts)-1-i)%2 == 0, Text: s}
	}
	return out
}

func activate(t testing.TB, in lore.Input) lore.Result {
	t.Helper()
	if in.Find == nil {
		in.Find = func(_ context.Context, pattern, text string) (string, bool, error) {
			end := strings.LastIndexByte(pattern, '/')
			re, err := regexp.Compile("(?" + "i:" + pattern[1:end] + ")")
			if err != nil {
				return "", false, err
			}
			m := re.FindString(text)
			return m, m != "", nil
		}
	}
	if in.Count == nil {
		in.Count = func(s string) int { return len(s) }
	}
	r, err := lore.Activate(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fired(r lore.Result) string {
	var ids []string
	for _, f := range r.Fired {
		ids = append(ids, f.Entry+":"+string(f.Reason))
	}
	return strings.Join(ids, " ")
}

func left(r lore.Result) string {
	var ids []string
	for _, f := range r.Left {
		ids = append(ids, f.Entry+":"+string(f.Reason))
	}
	return strings.Join(ids, " ")
}

var plain = lore.Defaults{ScanDepth: 2, Recursive: true, WholeWords: true}

func TestActivate(t *testing.T) {
	for name, c := range map[string]struct {
		entries  string
		messages []string
		fired    string
		left     string
	}{
		"a key":               {`[{"id":"a","keys":["king"],"content":"x"}]`, []string{"Long live the King!"}, "a:key", ""},
		"whole words":         {`[{"id":"a","keys":["king"],"content":"x"}]`, []string{"not to my liking"}, "", ""},
		"part of a word":      {`[{"id":"a","keys":["king"],"content":"x","whole_words":false}]`, []string{"not to my liking"}, "a:key", ""},
		"Chinese has no gaps": {`[{"id":"a","keys":["龙"],"content":"x"}]`, []string{"一条龙来了"}, "a:key", ""},
		"several words":       {`[{"id":"a","keys":["black cat"],"content":"x"}]`, []string{"two black cats"}, "a:key", ""},
		"case":                {`[{"id":"a","keys":["Rose"],"content":"x","case_sensitive":true},{"id":"b","keys":["Rose"],"content":"x"}]`, []string{"a rose"}, "b:key", ""},
		"a pattern":           {`[{"id":"a","keys":["/b[au]ll?/i"],"content":"x"}]`, []string{"a BULL"}, "a:key", ""},
		"constant":            {`[{"id":"a","constant":true,"content":"x"}]`, []string{"hi"}, "a:constant", ""},
		"disabled and empty":  {`[{"id":"a","constant":true,"content":"x","enabled":false},{"id":"b","constant":true,"content":" "}]`, []string{"hi"}, "", ""},
		"scan depth":          {`[{"id":"a","keys":["old"],"content":"x"},{"id":"b","keys":["old"],"content":"x","scan_depth":3},{"id":"c","keys":["old"],"content":"x","scan_depth":0}]`, []string{"old", "b", "c"}, "b:key", ""},
		"and any":             {`[{"id":"a","keys":["k"],"secondary_keys":["x","y"],"content":"t"}]`, []string{"k y"}, "a:key", ""},
		"and any fails":       {`[{"id":"a","keys":["k"],"secondary_keys":["x","y"],"content":"t"}]`, []string{"k"}, "", "a:secondary_keys"},
		"and all":             {`[{"id":"a","keys":["k"],"secondary_keys":["x","y"],"logic":"all","content":"t"},{"id":"b","keys":["k"],"secondary_keys":["x","z"],"logic":"all","content":"t"}]`, []string{"k y", "x"}, "a:key", "b:secondary_keys"},
		"not any":             {`[{"id":"a","keys":["k"],"secondary_keys":["x"],"logic":"not_any","content":"t"},{"id":"b","keys":["k"],"secondary_keys":["z"],"logic":"not_any","content":"t"}]`, []string{"k x"}, "b:key", "a:secondary_keys"},
		"not all":             {`[{"id":"a","keys":["k"],"secondary_keys":["x","z"],"logic":"not_all","content":"t"},{"id":"b","keys":["k"],"secondary_keys":["x","y"],"logic":"not_all","content":"t"}]`, []string{"k x y"}, "a:key", "b:secondary_keys"},
		"order":               {`[{"id":"a","constant":true,"order":9,"content":"x"},{"id":"b","constant":true,"order":-1,"content":"x"},{"id":"c","constant":true,"order":9,"content":"x"}]`, []string{"hi"}, "b:constant a:constant c:constant", ""},
		"recursion":           {`[{"id":"a","keys":["Bessie"],"content":"Bessie knows Rufus."},{"id":"b","keys":["Rufus"],"content":"A dog of Tom."},{"id":"c","keys":["Tom"],"content":"x"}]`, []string{"Bessie"}, "a:key b:recursion c:recursion", ""},
		"recursion excluded":  {`[{"id":"a","keys":["Bessie"],"content":"Rufus"},{"id":"b","keys":["Rufus"],"content":"x","exclude_recursion":true}]`, []string{"Bessie"}, "a:key", ""},
		"recursion prevented": {`[{"id":"a","keys":["Bessie"],"content":"Rufus","prevent_recursion":true},{"id":"b","keys":["Rufus"],"content":"x"}]`, []string{"Bessie"}, "a:key", ""},
		"recursion awaited":   {`[{"id":"a","keys":["k"],"content":"deep"},{"id":"b","keys":["k"],"content":"deeper","delay_until_recursion":1},{"id":"c","keys":["deeper"],"content":"x","delay_until_recursion":2}]`, []string{"k"}, "a:key b:key c:recursion", ""},
		"nothing to await":    {`[{"id":"b","keys":["k"],"content":"deeper","delay_until_recursion":1}]`, []string{"k"}, "", ""},
		"no chance":           {`[{"id":"a","keys":["k"],"content":"x","probability":0},{"id":"b","keys":["k"],"content":"x","probability":100}]`, []string{"k"}, "b:key", "a:probability"},
		"delay":               {`[{"id":"a","keys":["k"],"content":"x","delay":2},{"id":"b","keys":["k"],"content":"x","delay":3}]`, []string{"k", "k"}, "a:key", "b:delay"},
		"one of a group":      {`[{"id":"a","keys":["k"],"content":"x","groups":["g"],"group_override":true,"order":1},{"id":"b","keys":["k"],"content":"x","groups":["g"],"group_override":true,"order":2},{"id":"c","keys":["k"],"content":"x","groups":["g","h"]}]`, []string{"k"}, "b:key", "a:group c:group"},
		"a group is taken":    {`[{"id":"a","keys":["k"],"content":"deep","groups":["g"]},{"id":"b","keys":["deep"],"content":"x","groups":["g"]}]`, []string{"k"}, "a:key", "b:group"},
		"macros in keys":      {`[{"id":"a","keys":["{{user}}"],"content":"x"}]`, []string{"ann said"}, "a:key", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := book(t, c.entries)
			r := activate(t, lore.Input{
				Books: []lore.Book{b}, Messages: said(c.messages...), Defaults: plain,
				Expand: func(s string) string { return strings.ReplaceAll(s, "{{user}}", "Ann") },
			})
			if fired(r) != c.fired || left(r) != c.left {
				t.Errorf("fired %q, left %q; want %q, %q", fired(r), left(r), c.fired, c.left)
			}
		})
	}
}

// The finding says which key was found where.
func TestFindings(t *testing.T) {
	b := book(t, `[{"id":"a","name":"Cow","keys":["zzz","/bes+ie/"],"content":"Rufus"},{"id":"b","keys":["rufus"],"content":"x"},{"id":"c","keys":["/(/"],"content":"x"}]`)
	r := activate(t, lore.Input{Books: []lore.Book{b}, Messages: said("Bessie", "hm", "yes"), Defaults: lore.Defaults{ScanDepth: 5, Recursive: true}})
	want := []lore.Finding{
		{Book: "B", Entry: "a", Name: "Cow", Reason: lore.ByKey, Key: "/bes+ie/", Match: "Bessie", Message: "m0", Back: 2, Tokens: 5},
		{Book: "B", Entry: "b", Name: "rufus", Reason: lore.ByEntry, Key: "rufus", By: "Cow", Tokens: 1},
	}
	var got []lore.Finding
	for _, f := range r.Fired {
		got = append(got, f.Finding)
	}
	if diff := cmp.Diff(fmt.Sprintf("%+v", want), strings.NewReplacer(" book:0 index:0", " book:0 index:0", " book:0 index:1", " book:0 index:0").Replace(fmt.Sprintf("%+v", got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(r.Problems) != 1 || r.Problems[0].Key != "/(/" {
		t.Errorf("problems: %+v", r.Problems)
	}
}

// Constants and high orders are paid first; after the first that does not fit
// none follows, except for those that ignore the budget.
func TestBudget(t *testing.T) {
	b := book(t, `[{"id":"a","keys":["k"],"order":1,"content":"1"},{"id":"b","keys":["k"],"order":2,"content":"4444"},{"id":"c","constant":true,"content":"333"},{"id":"d","keys":["k"],"order":9,"content":"22"},{"id":"e","keys":["k"],"content":"55555","ignore_budget":true}]`)
	r := activate(t, lore.Input{Books: []lore.Book{b}, Messages: said("k"), Defaults: plain, Budget: 6})
	if fired(r) != "c:constant e:key d:key" || left(r) != "a:budget b:budget" || r.Left[0].Budget != 6 {
		t.Errorf("fired %q, left %q", fired(r), left(r))
	}
	b.TokenBudget = 4
	other := book(t, `[{"id":"z","keys":["k"],"content":"1234567"}]`)
	other.Name = "C"
	r = activate(t, lore.Input{Books: []lore.Book{b, other}, Messages: said("k"), Defaults: plain})
	if fired(r) != "c:constant e:key z:key" || left(r) != "a:budget b:budget d:budget" {
		t.Errorf("of one book: fired %q, left %q", fired(r), left(r))
	}
	low, high := 1, 2
	b = book(t, `[{"id":"a","keys":["k"],"order":9,"content":"333"},{"id":"b","keys":["k"],"content":"333"}]`)
	b.Entries[0].Priority, b.Entries[1].Priority = &low, &high
	if r = activate(t, lore.Input{Books: []lore.Book{b}, Messages: said("k"), Defaults: plain, Budget: 4}); fired(r) != "b:key" {
		t.Errorf("by priority: %q", fired(r))
	}
}

// Chance is drawn from the message and the entry: the same for the same, and
// about as often as it says.
func TestChance(t *testing.T) {
	b := book(t, `[{"id":"a","keys":["k"],"content":"x","probability":30},{"id":"b","keys":["k"],"content":"x","groups":["g"],"group_weight":300},{"id":"c","keys":["k"],"content":"x","groups":["g"]}]`)
	counts := map[string]int{}
	for i := range 1000 {
		in := lore.Input{Books: []lore.Book{b}, Messages: said("hi", fmt.Sprint("k ", i)), Defaults: plain}
		r := activate(t, in)
		if again := activate(t, in); fired(again) != fired(r) {
			t.Fatal("the same message gives", fired(r), fired(again))
		}
		in.Messages[1].ID = "msg_preview"
		if again := activate(t, in); fired(again) != fired(r) {
			t.Fatal("a preview gives", fired(again))
		}
		for _, f := range r.Fired {
			counts[f.Entry]++
		}
	}
	if n := counts["a"]; n < 240 || n > 360 {
		t.Errorf("30 %% are %d of 1000", n)
	}
	if n := counts["b"]; n < 690 || n > 810 || counts["b"]+counts["c"] != 1000 {
		t.Errorf("three of four are %d and %d of 1000", n, counts["c"])
	}
}

// The example of SillyTavern's documentation, in messages of the user.
func TestTimedEffects(t *testing.T) {
	b := book(t, `[{"id":"a","keys":["k"],"content":"x","sticky":3,"cooldown":2,"delay":2,"scan_depth":1}]`)
	var messages []lore.Message
	var got []string
	for i := range 9 {
		messages = append(messages, lore.Message{ID: fmt.Sprint(i), User: true, Text: "k"})
		r := activate(t, lore.Input{Books: []lore.Book{b}, Messages: messages, Defaults: plain})
		got = append(got, fired(r)+left(r))
	}
	want := []string{"a:delay", "a:key", "a:sticky", "a:sticky", "a:sticky", "a:cooldown", "a:cooldown", "a:key", "a:sticky"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// It stays without its key.
	messages = []lore.Message{{ID: "0", User: true, Text: "hi"}, {ID: "1", User: true, Text: "k"}, {ID: "2", Text: "no"}, {ID: "3", User: true, Text: "no"}}
	if r := activate(t, lore.Input{Books: []lore.Book{b}, Messages: messages, Defaults: plain}); fired(r) != "a:sticky" {
		t.Errorf("got %q", fired(r))
	}
}

func TestImport(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.Contains(f.Name(), ".want.") || f.IsDir() {
			continue
		}
		raw, err := os.ReadFile("testdata/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		b, losses, err := lore.Import(raw, "From a file")
		if err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		got, err := json.MarshalIndent(map[string]any{"book": b, "losses": losses}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := "testdata/" + strings.Replace(f.Name(), ".json", ".want.json", 1)
		if *update {
			if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name(), diff)
		}
		own, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		again, lost, err := lore.Import(own, "")
		if err != nil || len(lost) > 0 || !cmp.Equal(fmt.Sprint(jsonOf(t, again)), fmt.Sprint(jsonOf(t, b))) {
			t.Errorf("%s: as a book of ours: %v, %v", f.Name(), lost, err)
		}
	}
	for _, raw := range []string{"", "x", "[]", "{}", `{"entries":5}`, `{"entries":[1]}`, `{"entries":[{"a":1}]}`, `{"spec":"lorebook_v3","data":[]}`} {
		if _, _, err := lore.Import([]byte(raw), "n"); !errors.Is(err, artel.Invalid) {
			t.Errorf("%q: %v", raw, err)
		}
	}
	many := `{"entries":[` + strings.TrimSuffix(strings.Repeat(`{"keys":["a"],"content":"b"},`, lore.MaxEntries+1), ",") + `]}`
	if _, _, err := lore.Import([]byte(many), "n"); !errors.Is(err, artel.TooLarge) {
		t.Errorf("many entries: %v", err)
	}
}

func jsonOf(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCheck(t *testing.T) {
	entry := func(change func(*lore.BookEntry)) lore.Book {
		e := lore.BookEntry{ID: "a", Content: "x"}
		change(&e)
		return lore.Book{Name: "n", Entries: []lore.BookEntry{e}}
	}
	much, minus := 101.0, -1
	for name, b := range map[string]lore.Book{
		"no name": {}, "a path": {Name: "a/b"}, "a long name": {Name: strings.Repeat("n", 201)},
		"scan depth": {Name: "n", ScanDepth: &minus}, "no id": entry(func(e *lore.BookEntry) { e.ID = "" }),
		"twice":       {Name: "n", Entries: []lore.BookEntry{{ID: "a"}, {ID: "a"}}},
		"logic":       entry(func(e *lore.BookEntry) { e.Logic = "xor" }),
		"position":    entry(func(e *lore.BookEntry) { e.Position = "up" }),
		"role":        entry(func(e *lore.BookEntry) { e.Role = artel.RoleTool }),
		"probability": entry(func(e *lore.BookEntry) { e.Probability = &much }),
		"depth":       entry(func(e *lore.BookEntry) { e.Depth = -1 }),
		"content":     entry(func(e *lore.BookEntry) { e.Content = strings.Repeat("x", lore.MaxContent+1) }),
		"keys":        entry(func(e *lore.BookEntry) { e.Keys = slices.Repeat([]string{"a"}, lore.MaxKeys+1) }),
	} {
		if err := b.Check(); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzImport(f *testing.F) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if raw, err := os.ReadFile("testdata/" + file.Name()); err == nil {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, _, err := lore.Import(raw, "name")
		if err != nil {
			return
		}
		if err := b.Check(); err != nil {
			t.Fatalf("an imported book is refused: %v", err)
		}
		if len(b.Entries) < 50 {
			activate(t, lore.Input{Books: []lore.Book{b}, Messages: said("a", "b c", "king"), Defaults: plain, Budget: 100})
		}
	})
}

// TestSearchIsBounded: a book made to be sought for hours ends after seconds, and says so.
func TestSearchIsBounded(t *testing.T) {
	book := lore.Book{Name: "b"}
	for i := range 200 {
		e := lore.BookEntry{ID: fmt.Sprint(i), Content: "c", Cooldown: 1, Secondary: []string{"z"}, Logic: lore.NotAny}
		for k := range lore.MaxKeys {
			e.Keys = append(e.Keys, fmt.Sprint("z", k))
		}
		book.Entries = append(book.Entries, e)
	}
	book.Entries = append(book.Entries, lore.BookEntry{ID: "always", Content: "c", Constant: true})
	messages := []lore.Message{{ID: "1", Text: strings.Repeat("words ", 20_000_000)}}
	got, err := lore.Activate(t.Context(), lore.Input{Books: []lore.Book{book}, Messages: messages, Defaults: lore.Defaults{ScanDepth: 1}})
	if err != nil || len(got.Fired) != 1 || got.Fired[0].Entry != "always" || len(got.Problems) != 1 {
		t.Errorf("got %d fired, %+v, %v", len(got.Fired), got.Problems, err)
	}
}
