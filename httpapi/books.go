// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/card"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline/lore"
	"github.com/artelhq/artel/pipeline/token"
)

// A BookSummary is a world book in a list.
type BookSummary struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Entries     int               `json:"entries"`
	Agents      []artel.AgentName `json:"agents" nullable:"false" doc:"that use it"`
	UpdatedAt   time.Time         `json:"updated_at"`
}

// BookSummaryOf converts a book.
func BookSummaryOf(b settings.Book) BookSummary {
	return BookSummary{b.Name, b.Description, len(b.Entries), nonNil(b.Agents), b.UpdatedAt}
}

// A BookTrial is the body of POST /books/try.
type BookTrial struct {
	Name     string        `json:"name,omitempty" maxLength:"200" doc:"of a stored book; absent: book"`
	Book     *lore.Book    `json:"book,omitempty"`
	Messages []BookMessage `json:"messages" minItems:"1" maxItems:"1000" doc:"oldest first; the last one is answered"`
	Budget   int           `json:"budget,omitempty" minimum:"0" doc:"tokens of all entries; 0: no limit"`
	User     string        `json:"user,omitempty" maxLength:"200"`
	Char     string        `json:"char,omitempty" maxLength:"200"`
}

// A BookMessage is a message of a trial.
type BookMessage struct {
	Role string `json:"role,omitempty" enum:"user,assistant" doc:"absent: user"`
	Text string `json:"text"`
}

// A BookResult says which entries of a book fire, and which do not.
type BookResult struct {
	Fired    []BookFinding `json:"fired" nullable:"false" doc:"in the order in which they are sent at one position"`
	Left     []BookFinding `json:"left" nullable:"false" doc:"entries whose keys were found and that are not sent"`
	Problems []BookProblem `json:"problems" nullable:"false"`
}

// A BookFinding says why an entry fires, or does not.
type BookFinding struct {
	Entry        string `json:"entry"`
	Name         string `json:"name"`
	Reason       string `json:"reason" doc:"key, recursion, constant or sticky; of those that are left out, budget, probability, group, cooldown, delay or secondary_keys"`
	Key          string `json:"key,omitempty" doc:"that was found"`
	Match        string `json:"match,omitempty" doc:"of a pattern"`
	MessagesBack *int   `json:"messages_back,omitempty" doc:"the message with the key: 0 is the newest"`
	By           string `json:"by,omitempty" doc:"the entry in whose text the key is, or that won the group"`
	Tokens       int    `json:"tokens"`
	Position     string `json:"position,omitempty" enum:"before_prompt,after_prompt,at_depth"`
	Depth        int    `json:"depth,omitempty"`
	Text         string `json:"text,omitempty"`
}

// A BookProblem is a key that cannot be used.
type BookProblem struct {
	Entry   string `json:"entry"`
	Key     string `json:"key"`
	Message string `json:"message"`
}

func findingOf(f lore.Finding) BookFinding {
	out := BookFinding{Entry: f.Entry, Name: f.Name, Reason: string(f.Reason), Key: f.Key, Match: f.Match, By: f.By, Tokens: f.Tokens}
	if f.Message != "" {
		out.MessagesBack = &f.Back
	}
	return out
}

// BookResultOf converts a result.
func BookResultOf(r lore.Result) BookResult {
	out := BookResult{
		Fired: mapSlice(r.Fired, func(f lore.Fired) BookFinding {
			x := findingOf(f.Finding)
			x.Text, x.Position, x.Depth = f.Rule.Content, string(f.Rule.Position), f.Rule.Depth
			if x.Position == "" {
				x.Position = string(lore.BeforePrompt)
			}
			return x
		}),
		Left:     mapSlice(r.Left, findingOf),
		Problems: mapSlice(r.Problems, func(p lore.Problem) BookProblem { return BookProblem{p.Entry, p.Key, p.Message} }),
	}
	out.Fired, out.Left, out.Problems = nonNil(out.Fired), nonNil(out.Left), nonNil(out.Problems)
	return out
}

// An ImportedFile says what a file of another program has become.
type ImportedFile struct {
	Kind    card.Kind       `json:"kind" enum:"character,book,preset,rules"`
	Format  string          `json:"format"`
	Agent   artel.AgentName `json:"agent,omitempty" doc:"that was made or changed"`
	Book    string          `json:"book,omitempty" doc:"the world book that was made"`
	Picture bool            `json:"picture,omitempty" doc:"the agent has the picture of the file"`
	Rules   *RegexImported  `json:"rules,omitempty" doc:"of regex scripts, which are not stored"`
	Losses  []FileLoss      `json:"losses" nullable:"false" doc:"what works differently here, or not at all"`
}

// A FileLoss is a feature that works differently here, or not at all.
type FileLoss struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// ImportedFileOf converts what an import has done.
func ImportedFileOf(i settings.ImportedFile) ImportedFile {
	out := ImportedFile{
		Kind: i.Kind, Format: i.Format, Agent: i.Agent, Book: i.Book, Picture: i.Picture,
		Losses: nonNil(mapSlice(i.Losses, func(l card.Loss) FileLoss { return FileLoss(l) })),
	}
	if i.Rules != nil {
		rules := RegexImportedOf(*i.Rules, nil)
		out.Rules = &rules
	}
	return out
}

// A BookPath names a world book.
type BookPath struct {
	Book string `path:"book" maxLength:"800"`
}

func answerBook(b settings.Book, err error) (*revised[lore.Book], error) {
	return answerRevision(b.Revision, b.Book, err)
}

func (f *server) books() {
	register(f, f.op(http.MethodGet, "/books", "list-books", "List your world books", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[List[BookSummary]], error) {
			all, err := f.app.Books.List(ctx)
			return answer(listOf(mapSlice(all, BookSummaryOf), ""), err)
		})
	register(f, f.op(http.MethodGet, "/books/{book}", "read-book", "Read a world book", http.StatusOK),
		func(ctx context.Context, in *BookPath) (*revised[lore.Book], error) {
			return answerBook(f.app.Books.Find(ctx, in.Book))
		})
	register(f, f.op(http.MethodPut, "/books/{book}", "save-book", "Make or replace a world book", http.StatusOK, maxBody(textBody)),
		func(ctx context.Context, in *struct {
			BookPath
			SettingMatch
			Body lore.Book
		},
		) (*revised[lore.Book], error) {
			n, err := in.revision()
			if err == nil && in.Body.Name != in.Book {
				err = artel.Errorf(artel.Invalid, "httpapi.Books", "name", "the body says %q and the path another name; a book keeps its name", artel.Shorten(in.Body.Name, 80))
			}
			if err != nil {
				return nil, err
			}
			return answerBook(f.app.Books.Save(ctx, in.Body, n))
		})
	register(f, f.op(http.MethodDelete, "/books/{book}", "delete-book", "Delete a world book", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			BookPath
			SettingMatch
		},
		) (*none, error) {
			n, err := in.revision()
			if err == nil {
				err = f.app.Books.Delete(ctx, in.Book, n)
			}
			return nil, err
		})
	for method, on := range map[string]bool{http.MethodPut: true, http.MethodDelete: false} {
		id, summary := "use-book", "Let an agent use a world book"
		if !on {
			id, summary = "drop-book", "Let an agent use a world book no longer"
		}
		register(f, f.op(method, "/books/{book}/agents/{name}", id, summary, http.StatusNoContent),
			func(ctx context.Context, in *struct {
				BookPath
				AgentPath
			},
			) (*none, error) {
				return nil, f.app.Books.Use(ctx, in.Book, artel.AgentName(in.Name), on)
			})
	}
	register(f, f.op(http.MethodPost, "/books/try", "try-book", "Say which entries of a world book fire for a conversation, and why", http.StatusOK, maxBody(textBody)),
		func(ctx context.Context, in *struct{ Body BookTrial }) (*body[BookResult], error) {
			r, err := f.tryBook(ctx, in.Body)
			return answer(BookResultOf(r), err)
		})
	f.importedFiles()
}

func (f *server) tryBook(ctx context.Context, b BookTrial) (lore.Result, error) {
	t := settings.BookTrial{Budget: b.Budget, User: b.User, Char: b.Char}
	switch {
	case b.Book != nil:
		t.Book = *b.Book
	case b.Name != "":
		found, err := f.app.Books.Find(ctx, b.Name)
		if err != nil {
			return lore.Result{}, err
		}
		t.Book = found.Book
	default:
		return lore.Result{}, artel.Errorf(artel.Invalid, "httpapi.Books", "book", "want the name of a book, or a book")
	}
	for i, m := range b.Messages {
		t.Messages = append(t.Messages, lore.Message{ID: fmt.Sprint("m", i), User: m.Role != "assistant", Text: m.Text})
	}
	return f.app.Books.Try(ctx, t, func(s string) int {
		n, err := f.app.Mechanisms.CountTokens(token.O200k, s)
		if err != nil {
			return len(s) / 4
		}
		return n
	})
}

// importedFiles registers the import of files of other programs, and the
// pictures of agents.
func (f *server) importedFiles() {
	op := f.op(http.MethodPost, "/import", "import-file", "Import a character card, a world book or a preset of another program", http.StatusOK)
	op.Description = "The body is the file: a character card (PNG, JSON or CHARX), a world book (JSON), or a preset or regex scripts of SillyTavern (JSON). What it is is found out by its content."
	register(f, op, func(ctx context.Context, in *importedFile) (*body[ImportedFile], error) {
		raw, err := io.ReadAll(io.LimitReader(form.Sent(in.request.Body), card.MaxFile+1))
		if err != nil {
			return nil, err
		}
		if len(raw) > card.MaxFile {
			return nil, artel.Errorf(artel.TooLarge, "httpapi.Import", "body", "more than the limit of %s", phrase.Size(card.MaxFile))
		}
		done, err := f.app.Characters.Import(ctx, raw, settings.ImportOptions{Name: in.Name, Into: artel.AgentName(in.Into), Replace: in.Replace})
		return answer(ImportedFileOf(done), err)
	})
	f.describeBody(op, map[string]*huma.MediaType{
		"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		"application/json":         {Schema: &huma.Schema{}},
		"image/png":                {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	})
	register(f, f.op(http.MethodGet, "/agents/{name}/picture", "read-agent-picture", "Read the picture of an agent", http.StatusOK),
		func(ctx context.Context, in *AgentPath) (*struct {
			Type  string `header:"Content-Type"`
			Cache string `header:"Cache-Control"`
			Body  []byte
		}, error,
		) {
			p, err := f.app.Characters.Picture(ctx, artel.AgentName(in.Name))
			if err != nil {
				return nil, err
			}
			return &struct {
				Type  string `header:"Content-Type"`
				Cache string `header:"Cache-Control"`
				Body  []byte
			}{p.MediaType, "private, max-age=60", p.Data}, nil
		})
}

// An importedFile takes a file as a stream.
type importedFile struct {
	Name    string `query:"name" maxLength:"256" doc:"of the file; a book or preset without a name has it"`
	Into    string `query:"into" maxLength:"256" doc:"the agent that a preset changes; absent: a new one is made"`
	Replace bool   `query:"replace" doc:"replace your agent and book of the same names; absent: the new ones get other names"`
	RawRequest
}
