// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/card"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline/lore"
	"github.com/artelhq/artel/pipeline/token"
)

// A BooksPage lists the world books.
type BooksPage struct {
	frame
	Books   []ShownBook
	Problem string // why an import failed; "": none did
}

// A ShownBook is a world book as the page shows it.
type ShownBook struct{ settings.Book }

func bookURL(name string) string { return "/books/b/" + url.PathEscape(name) }

// URL is the address of the book's page.
func (b ShownBook) URL() string { return bookURL(b.Name) }

// ExportURL is the address of the book as JSON.
func (b ShownBook) ExportURL() string { return "/api/v1/books/" + url.PathEscape(b.Name) }

// Users are the agents that use the book.
func (b ShownBook) Users() []Link { return Links(b.Agents) }

// A BookPage is the page of one book.
type BookPage struct {
	frame
	Book    ShownBook
	Entries []ShownEntry
	Others  []artel.AgentName // agents that do not use it
	Text    string            // that the book is tried on; "": none
	Result  *lore.Result
	Problem string
}

// A ShownEntry is an entry in the list, with its form.
type ShownEntry struct {
	lore.BookEntry
	Revision int  // of the book
	New      bool // the form makes an entry

	Action                   string // address of the form
	On                       bool
	KeyLines, SecondaryLines string // one key a line
	Place, Combines, Speaks  string // position, logic and role, never empty
	Chance                   string // probability in percent; "": certain
}

// The options of selects.
var (
	entryLogics = []string{"any", "all", "not_any", "not_all"}
	entryPlaces = []string{"before_prompt", "after_prompt", "at_depth"}
	entryRoles  = []string{"system", "user", "assistant"}
)

// Logics are the options for the secondary keys.
func (ShownEntry) Logics() []string { return entryLogics }

// Places are the options for the position.
func (ShownEntry) Places() []string { return entryPlaces }

// Roles are the options for the role.
func (ShownEntry) Roles() []string { return entryRoles }

func shownEntry(e lore.BookEntry, b settings.Book) ShownEntry {
	out := ShownEntry{
		BookEntry: e, Revision: b.Revision, Action: bookURL(b.Name), On: e.Enabled == nil || *e.Enabled,
		KeyLines: strings.Join(e.Keys, "\n"), SecondaryLines: strings.Join(e.Secondary, "\n"),
		Place: string(cmp.Or(e.Position, lore.BeforePrompt)), Combines: string(cmp.Or(e.Logic, lore.Any)), Speaks: string(cmp.Or(e.Role, artel.RoleSystem)),
	}
	if e.Probability != nil {
		out.Chance = strconv.FormatFloat(*e.Probability, 'f', -1, 64)
	}
	return out
}

// books shows the list.
func (ui *handler) books(w http.ResponseWriter, r *http.Request) {
	ui.showBooks(w, r, http.StatusOK, "")
}

func (ui *handler) showBooks(w http.ResponseWriter, r *http.Request, status int, problem string) {
	p := BooksPage{Problem: problem}
	all, err := ui.app.Books.List(r.Context())
	if err == nil {
		p.frame, err = ui.frame(r, "")
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for _, b := range all {
		p.Books = append(p.Books, ShownBook{b})
	}
	p.Title = locale(r).Say(phrase.PageBooks, nil)
	ui.show(w, r, status, "books.html", p)
}

// book shows one book; with text, what fires for it.
func (ui *handler) book(w http.ResponseWriter, r *http.Request) {
	ui.showBook(w, r, http.StatusOK, "")
}

func (ui *handler) showBook(w http.ResponseWriter, r *http.Request, status int, problem string) {
	p := BookPage{Problem: problem, Text: r.URL.Query().Get("text")}
	b, err := ui.app.Books.Find(r.Context(), r.PathValue("name"))
	if err == nil {
		p.frame, err = ui.frame(r, "")
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	p.Book, p.Title = ShownBook{b}, b.Name
	for _, e := range b.Entries {
		p.Entries = append(p.Entries, shownEntry(e, b))
	}
	empty := shownEntry(lore.BookEntry{}, b)
	empty.New = true
	p.Entries = append(p.Entries, empty)
	agents, err := ui.app.Agents.List(r.Context())
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for _, a := range agents {
		if !slices.Contains(b.Agents, a.Name) {
			p.Others = append(p.Others, a.Name)
		}
	}
	if strings.TrimSpace(p.Text) != "" {
		result, err := ui.app.Books.Try(r.Context(), settings.BookTrial{Book: b.Book, Messages: []lore.Message{{ID: "1", User: true, Text: p.Text}}}, ui.countTokens)
		if err != nil {
			status, p.Problem = ui.explain(r, err)
		}
		p.Result = &result
	}
	ui.show(w, r, status, "book.html", p)
}

func (ui *handler) countTokens(s string) int {
	n, err := ui.app.Mechanisms.CountTokens(token.O200k, s)
	if err != nil {
		return len(s) / 4
	}
	return n
}

// changeBook changes one entry, the agents that use the book, or deletes it.
func (ui *handler) changeBook(w http.ResponseWriter, r *http.Request) {
	v, err := settingsForm(w, r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ctx, name := r.Context(), r.PathValue("name")
	to := bookURL(name)
	switch v.Get("do") {
	case "use", "drop":
		err = ui.app.Books.Use(ctx, name, artel.AgentName(v.Get("agent")), v.Get("do") == "use")
	case "delete":
		err, to = ui.app.Books.Delete(ctx, name, atoi(v.Get("revision"))), "/books"
	default:
		var b settings.Book
		if b, err = ui.app.Books.Find(ctx, name); err == nil {
			var at string
			if at, err = changeEntry(&b.Book, v); err == nil {
				_, err = ui.app.Books.Save(ctx, b.Book, atoi(v.Get("revision")))
				to += "#entry-" + at
			}
		}
	}
	if err != nil {
		status, problem := ui.explain(r, err)
		ui.showBook(w, r, status, problem)
		return
	}
	redirect(w, r, to)
}

// changeEntry applies the form of an entry to a copy of the book's entries, and
// returns the entry's id.
func changeEntry(b *lore.Book, v url.Values) (string, error) {
	b.Entries = slices.Clone(b.Entries)
	id := v.Get("id")
	i := slices.IndexFunc(b.Entries, func(e lore.BookEntry) bool { return e.ID == id })
	switch {
	case v.Get("do") == "remove" && i >= 0:
		b.Entries = slices.Delete(b.Entries, i, i+1)
		return "", nil
	case v.Get("do") == "add":
		for n := len(b.Entries); ; n++ {
			if id = strconv.Itoa(n); !slices.ContainsFunc(b.Entries, func(e lore.BookEntry) bool { return e.ID == id }) {
				break
			}
		}
		i, b.Entries = len(b.Entries), append(b.Entries, lore.BookEntry{ID: id})
	case i < 0:
		return "", artel.Errorf(artel.NotFound, "webui", "entry", "there is no such entry any more")
	}
	e := &b.Entries[i]
	lines := func(field string) []string {
		var out []string
		for line := range strings.Lines(strings.ReplaceAll(v.Get(field), "\r\n", "\n")) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
		return out
	}
	e.Name, e.Keys, e.Secondary = strings.TrimSpace(v.Get("name")), lines("keys"), lines("secondary")
	e.Content = strings.TrimSpace(strings.ReplaceAll(v.Get("content"), "\r\n", "\n"))
	e.Constant, e.Logic, e.Position, e.Role = v.Get("constant") != "", lore.Logic(v.Get("logic")), lore.Position(v.Get("position")), artel.Role(v.Get("role"))
	e.Depth, e.Order = atoi(v.Get("depth")), atoi(v.Get("order"))
	e.Enabled = nil
	if v.Get("enabled") == "" {
		e.Enabled = new(bool)
	}
	e.Probability = nil
	if s := strings.TrimSpace(v.Get("probability")); s != "" {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return "", artel.Errorf(artel.Invalid, "webui", "probability", "%q is no number", artel.Shorten(s, 40))
		}
		e.Probability = &n
	}
	return id, nil
}

// A FileImport is the page with the result of an import.
type FileImport struct {
	frame
	Done    settings.ImportedFile
	Name    string // of the file
	Problem string
}

// AgentURL is the address of the agent that was made.
func (p FileImport) AgentURL() string { return agentURL(p.Done.Agent) }

// BookURL is the address of the book that was made.
func (p FileImport) BookURL() string { return bookURL(p.Done.Book) }

// importFile imports an uploaded character card, world book or preset, and shows
// what became of it.
func (ui *handler) importFile(w http.ResponseWriter, r *http.Request) {
	for part, err := range form.Parts(http.MaxBytesReader(w, r.Body, card.MaxFile+1<<20), r.Header.Get("Content-Type")) {
		if err != nil {
			ui.fail(w, r, brokenForm(r, err))
			return
		}
		if part.Name != "file" || part.Filename == "" {
			continue
		}
		raw, err := io.ReadAll(io.LimitReader(part, card.MaxFile+1))
		if err != nil {
			ui.fail(w, r, brokenForm(r, err))
			return
		}
		ui.keepFile(w, r, part.Filename, raw)
		return
	}
	ui.showBooks(w, r, http.StatusUnprocessableEntity, locale(r).Say(phrase.PageBooksNoFile, nil))
}

// keepFile imports a file that was read.
func (ui *handler) keepFile(w http.ResponseWriter, r *http.Request, name string, raw []byte) {
	p := FileImport{Name: name}
	var err error
	if p.frame, err = ui.frame(r, ""); err != nil {
		ui.fail(w, r, err)
		return
	}
	p.Title = locale(r).Say(phrase.PageBooksImported, nil)
	status := http.StatusOK
	if p.Done, err = ui.app.Characters.Import(r.Context(), raw, settings.ImportOptions{Name: name}); err != nil {
		status, p.Problem = ui.explain(r, err)
		p.Problem = artel.Visible(name) + ": " + p.Problem
	}
	ui.show(w, r, status, "imported.html", p)
}

// isCard reports whether a file for agents is one that other programs make.
func isCard(raw []byte) bool { return card.Known(raw) && !bytes.HasPrefix(raw, []byte("---")) }

// A ShownCharacter is what an agent plays, as the page shows it.
type ShownCharacter struct {
	Portrait  string // address of the picture; "": none
	Greetings []Greeting
	Texts     []Effect
	Sampling  string // "": the service's
}

// A Greeting is a first message of an agent.
type Greeting struct {
	Number int
	Text   string
}

func (ui *handler) character(r *http.Request, a settings.Agent) (out ShownCharacter, err error) {
	pictured, err := ui.app.Characters.Pictured(r.Context(), []artel.AgentName{a.Name})
	if len(pictured) > 0 {
		out.Portrait = "/api/v1/agents/" + url.PathEscape(string(a.Name)) + "/picture"
	}
	for i, g := range a.Greetings {
		out.Greetings = append(out.Greetings, Greeting{i, g})
	}
	for _, f := range []Effect{{"description", a.Character.Description}, {"personality", a.Character.Personality}, {"scenario", a.Character.Scenario}, {"examples", a.Character.Examples}} {
		if f.Value != "" {
			out.Texts = append(out.Texts, f)
		}
	}
	var sampling []string
	if t := a.Sampling.Temperature; t != nil {
		sampling = append(sampling, fmt.Sprint("temperature ", *t))
	}
	if p := a.Sampling.TopP; p != nil {
		sampling = append(sampling, fmt.Sprint("top_p ", *p))
	}
	if e := a.Sampling.Reasoning; e != "" {
		sampling = append(sampling, "reasoning "+string(e))
	}
	for _, s := range a.Sampling.Stop {
		sampling = append(sampling, fmt.Sprintf("stop %q", s))
	}
	out.Sampling = strings.Join(sampling, ", ")
	return out, err
}

// An InspectedEntry is an entry of a world book that was sent, or left out.
type InspectedEntry struct{ Book, Name, Reason, Key, By, URL string }

// entryOf takes what is known of an entry of a world book out of the details of
// a log; nil: the log is about something else.
func entryOf(details map[string]any) *InspectedEntry {
	text := func(name string) string {
		s, _ := details[name].(string)
		return s
	}
	e := &InspectedEntry{Book: text("book"), Name: text("name"), Reason: text("reason"), Key: text("key"), By: text("by")}
	if e.Book == "" || e.Reason == "" {
		return nil
	}
	e.URL = bookURL(e.Book) + "#entry-" + url.PathEscape(text("entry"))
	for _, name := range []string{"book", "name", "reason", "key", "by", "entry"} {
		delete(details, name)
	}
	return e
}
