// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// A modelled conversation is what a search must be true of.
type modelled struct {
	artel.Conversation
	said    []string // by users and assistants
	deleted time.Time
}

func (m *modelled) holds(words []string) bool {
	for _, w := range words {
		if !slices.ContainsFunc(append(slices.Clone(m.said), m.Title), func(s string) bool {
			return strings.Contains(strings.ToLower(s), strings.ToLower(w))
		}) {
			return false
		}
	}
	return true
}

// TestModel holds searches, deletion, restoring and purging to a model that
// looks at every text.
func TestModel(t *testing.T) {
	alphabet := rapid.SampledFrom([]string{"a", "B", "b", "中", "文", " ", " ", "%", "\"", "é", "\x00", "-", "ba", "abba"})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(alphabet, 0, 12).Draw(t, "text"), "") })
	owners := []artel.Owner{"me", "them"}
	rapid.Check(t, func(t *rapid.T) {
		s, err := sqlite.Open(context.Background(), sqlite.Memory, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		models := map[artel.Owner]map[artel.ConversationID]*modelled{"me": {}, "them": {}}
		made := 0
		update := func(o artel.Owner, want artel.Kind, fn func(store.Tx) error) {
			if err := s.Update(context.Background(), o, fn); artel.KindOf(err) != want {
				t.Fatalf("got %v, want kind %q", err, want)
			}
		}
		pick := func(t *rapid.T) (artel.Owner, artel.ConversationID, *modelled) {
			o := rapid.SampledFrom(owners).Draw(t, "owner")
			id := artel.ConversationID(fmt.Sprint("cnv_", rapid.IntRange(0, 4).Draw(t, "conversation")))
			return o, id, models[o][id]
		}
		thereFor := func(m *modelled) artel.Kind {
			if m == nil || !m.deleted.IsZero() {
				return artel.NotFound
			}
			return ""
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				o, id, m := pick(t)
				c := artel.Conversation{ID: id, Title: text.Draw(t, "title"), CreatedAt: now, UpdatedAt: now.Add(time.Duration(made%3) * time.Second)}
				made++
				want := artel.Kind("")
				if m != nil {
					want = artel.Conflict
				} else {
					models[o][id] = &modelled{Conversation: c}
				}
				update(o, want, func(tx store.Tx) error { return tx.Conversations.Create(c) })
			},
			"title": func(t *rapid.T) {
				o, id, m := pick(t)
				c := artel.Conversation{ID: id, Title: text.Draw(t, "title"), CreatedAt: now, UpdatedAt: now}
				if want := thereFor(m); want == "" {
					m.Conversation = c
				}
				update(o, thereFor(m), func(tx store.Tx) error { return tx.Conversations.Update(c) })
			},
			"say": func(t *rapid.T) {
				o, id, m := pick(t)
				said := text.Draw(t, "said")
				role := rapid.SampledFrom([]artel.Role{artel.RoleUser, artel.RoleAssistant, artel.RoleTool}).Draw(t, "role")
				if thereFor(m) == "" && role != artel.RoleTool {
					m.said = append(m.said, said)
				}
				made++
				update(o, thereFor(m), func(tx store.Tx) error {
					return tx.Messages.Create(artel.Message{
						ID: artel.MessageID(fmt.Sprint("msg_", made)), Conversation: id, Role: role, Parts: artel.Parts{artel.Text{Text: said}},
					})
				})
			},
			"delete": func(t *rapid.T) {
				o, id, m := pick(t)
				at := now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "at")) * time.Hour)
				want := thereFor(m)
				if want == "" {
					m.deleted = at
				}
				update(o, want, func(tx store.Tx) error { return tx.Conversations.Delete(id, at) })
			},
			"restore": func(t *rapid.T) {
				o, id, m := pick(t)
				want := artel.NotFound
				if m != nil && !m.deleted.IsZero() {
					m.deleted, want = time.Time{}, ""
				}
				update(o, want, func(tx store.Tx) error { return tx.Conversations.Restore(id) })
			},
			"purge": func(t *rapid.T) {
				before := now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "before")) * time.Hour)
				want := 0
				for _, o := range owners {
					for id, m := range models[o] {
						if !m.deleted.IsZero() && m.deleted.Before(before) {
							delete(models[o], id)
							want++
						}
					}
				}
				if n, err := s.Purge(context.Background(), before); err != nil || n != want {
					t.Fatalf("got %d, %v; want %d purged", n, err, want)
				}
			},
			"search": func(t *rapid.T) {
				o := rapid.SampledFrom(owners).Draw(t, "owner")
				search := text.Draw(t, "search")
				limit := rapid.IntRange(1, 6).Draw(t, "limit")
				var want []artel.ConversationID
				var all []*modelled
				for _, m := range models[o] {
					if m.deleted.IsZero() && m.holds(strings.Fields(search)) {
						all = append(all, m)
					}
				}
				slices.SortFunc(all, func(a, b *modelled) int {
					return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(b.ID, a.ID))
				})
				for _, m := range all {
					want = append(want, m.ID)
				}
				var got []artel.ConversationID
				for cursor, more := "", true; more; more = cursor != "" {
					err := s.View(context.Background(), o, func(tx store.Tx) error {
						items, next, err := tx.Conversations.List(store.ConversationQuery{Search: search, Page: store.Page{Cursor: cursor, Limit: limit}})
						for _, v := range items {
							got = append(got, v.ID)
						}
						cursor = next
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s searching %q: got %v, want %v", o, search, got, want)
				}
			},
		})
	})
}

// FuzzSearch: a text is found by every part of its words, whatever is in it,
// and what is found is excerpted.
func FuzzSearch(f *testing.F) {
	f.Add("Das Straßenfest, 人工智能 — e\u0301tude", 4, 9)
	f.Add("a\x00b \"OR\" % _ * ( \ue025 \u0345\u0301\u0300 İı ſK", 0, 40)
	f.Add("\u0301\u0301 \u1100\u1161\u11a8 ᾳ ΐ", 1, 3)
	s := open(f, sqlite.Memory, sqlite.Options{})
	f.Fuzz(func(t *testing.T, text string, from, length int) {
		if !utf8.ValidString(text) || len(text) > 4000 {
			return
		}
		c := conversation(t, s)
		update(t, s, func(tx store.Tx) error {
			return tx.Messages.Create(artel.Message{ID: artel.NewMessageID(time.Now()), Conversation: c, Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: text}}})
		})
		find := func(search string) (items []store.Listed, err error) {
			err = s.View(t.Context(), artel.Local, func(tx store.Tx) (err error) {
				items, _, err = tx.Conversations.List(store.ConversationQuery{Search: search})
				return err
			})
			return items, err
		}
		// Any search is an answer; one made of whole words finds.
		rs := []rune(text)
		from = min(max(from, 0), len(rs))
		part := string(rs[from:min(len(rs), from+min(max(length, 0), store.MaxSearch))])
		if _, err := find(part); err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.Fields(text)[:min(5, len(strings.Fields(text)))] {
			if utf8.RuneCountInString(word) > store.MaxSearch {
				continue
			}
			items, err := find(word)
			if err != nil || len(items) != 1 {
				t.Fatalf("%q is found %d times, %v", word, len(items), err)
			}
			if n := utf8.RuneCountInString(items[0].Excerpt); n > 122 || !utf8.ValidString(items[0].Excerpt) || strings.ContainsAny(items[0].Excerpt, "\n\x00") {
				t.Fatalf("%q: excerpt %q", word, items[0].Excerpt)
			}
		}
		update(t, s, func(tx store.Tx) error { return tx.Conversations.Delete(c, time.Unix(1, 0)) })
		if n, err := s.Purge(t.Context(), time.Unix(2, 0)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	})
}

// TestOldMessagesAreFound: what was written before there were searches is
// found, and restored and purged like all else.
func TestOldMessagesAreFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := sqlite.MigrateTo(t.Context(), path, 1); err != nil {
		t.Fatal(err)
	}
	raw(t, path, `INSERT INTO conversations (owner, id, title, agent, service, leaf, created_at, updated_at)
		VALUES ('local', 'cnv_a', 'Ärger', '', '', '', 1, 1), ('local', 'cnv_b', '', '', '', '', 2, 2), ('other', 'cnv_a', '', '', '', '', 3, 3)`)
	raw(t, path, `INSERT INTO messages (owner, conversation, id, parent, role, agent, run, muted, summary, created_at, parts) VALUES
		('local', 'cnv_a', 'msg_1', '', 'user', '', '', 0, 0, 1, '[{"type":"text","text":"人工智能 and \"quotes\""}]'),
		('local', 'cnv_b', 'msg_2', '', 'assistant', '', '', 0, 0, 2, '[{"type":"reasoning","text":"hidden"},{"type":"text","text":"Needle"}]'),
		('local', 'cnv_b', 'msg_3', '', 'tool', '', '', 0, 0, 3, '[{"type":"text","text":"machine"}]'),
		('local', 'cnv_b', 'msg_4', '', 'user', '', '', 0, 0, 4, NULL),
		('other', 'cnv_a', 'msg_5', '', 'user', '', '', 0, 0, 5, '[{"type":"text","text":"needle"}]')`)
	// More than the migration reads at once.
	raw(t, path, `WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 1200)
		INSERT INTO messages (owner, conversation, id, parent, role, agent, run, muted, summary, created_at, parts)
		SELECT 'local', 'cnv_b', 'msg_m' || n, '', 'user', '', '', 0, 0, 9, '[{"type":"text","text":"number' || n || '."}]' FROM i`)
	s := open(t, path, sqlite.Options{})
	for search, want := range map[string]string{
		"智能": "cnv_a", "ÄRGER": "cnv_a", "\"quotes\"": "cnv_a", "needle": "cnv_b", "number1200.": "cnv_b", "number1.": "cnv_b",
		"hidden": "", "machine": "",
	} {
		if got := strings.Join(search1(t, s, search), " "); got != want {
			t.Errorf("%q: got %q, want %q", search, got, want)
		}
	}
	c := conversation(t, s) // gets a number of its own
	update(t, s, func(tx store.Tx) error {
		if err := tx.Conversations.Delete("cnv_b", time.Unix(1, 0)); err != nil {
			return err
		}
		return tx.Messages.Create(artel.Message{ID: "msg_new", Conversation: c, Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "needle"}}})
	})
	if n, err := s.Purge(t.Context(), time.Unix(2, 0)); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if got := search1(t, s, "needle"); len(got) != 1 || got[0] != string(c) {
		t.Errorf("got %v", got)
	}
}

func search1(tb testing.TB, s *sqlite.Store, search string) (ids []string) {
	tb.Helper()
	if err := s.View(tb.Context(), artel.Local, func(tx store.Tx) error {
		items, _, err := tx.Conversations.List(store.ConversationQuery{Search: search})
		for _, v := range items {
			ids = append(ids, string(v.ID))
		}
		return err
	}); err != nil {
		tb.Fatal(err)
	}
	return ids
}

// TestPurgeLeavesNothing looks behind the contract: no table has a row of what
// was purged, and the index of grams is whole.
func TestPurgeLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	s := open(t, path, sqlite.Options{})
	c := filled(t, s, 1000)
	keep := filled(t, s, 10)
	before := sqlite.Rows(t, s)
	update(t, s, func(tx store.Tx) error { return tx.Conversations.Delete(c, time.Unix(1, 0)) })
	// What ends in the middle cannot be restored, and is finished the next time.
	if n, err := s.Purge(&impatient{Context: t.Context(), left: 60}, time.Unix(2, 0)); n != 0 || !errors.Is(err, artel.Canceled) {
		t.Fatalf("got %d, %v; want kind canceled", n, err)
	}
	err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error { return tx.Conversations.Restore(c) })
	if !errors.Is(err, artel.NotFound) {
		t.Errorf("Restore of what is half purged: got %v, want kind not_found", err)
	}
	if n, err := s.Purge(t.Context(), time.Unix(0, 0)); n != 1 || err != nil {
		t.Fatalf("got %d, %v; want the rest of one", n, err)
	}
	after := sqlite.Rows(t, s)
	for table, n := range before {
		if want := n * 10 / 1010; table != "runs" && after[table] != want && table != "conversations" && table != "artifacts" {
			t.Errorf("%s has %d rows, had %d, want %d", table, after[table], n, want)
		}
	}
	for _, table := range []string{"runs", "conversations", "artifacts"} {
		if after[table] != 1 {
			t.Errorf("%s has %d rows, want 1", table, after[table])
		}
	}
	if got := search1(t, s, "lighthouse"); len(got) != 1 || got[0] != string(keep) {
		t.Errorf("got %v", got)
	}
}

// An impatient context ends when it has been asked often enough whether it has.
type impatient struct {
	context.Context
	left int
}

func (i *impatient) Err() error {
	if i.left--; i.left < 0 {
		return context.Canceled
	}
	return nil
}

// filled makes a conversation of n messages, edits, versions and events. Every
// fifth message is one that searches find.
func filled(tb testing.TB, s *sqlite.Store, n int) artel.ConversationID {
	tb.Helper()
	c := conversation(tb, s)
	now := time.Now()
	text := strings.Repeat("The lighthouse is on the northern cliff. ", 10)
	update(tb, s, func(tx store.Tx) error {
		var leaf artel.MessageID
		for i := range n {
			m := artel.Message{ID: artel.NewMessageID(now), Conversation: c, Parent: leaf, Role: artel.RoleTool, Parts: artel.Parts{artel.Text{Text: text}}, CreatedAt: now}
			leaf = m.ID
			if i%5 == 0 {
				m.Role = artel.RoleUser
			}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			number, err := tx.Journal.Append(c, "doc", artel.Version{CreatedAt: now}, nil)
			if err != nil {
				return err
			}
			if err := tx.Journal.Fold(c, "doc", artel.Version{Number: number, CreatedAt: now}, &text); err != nil {
				return err
			}
			if _, err := tx.Events.Append(c, artel.Event{Type: "x", Time: now}); err != nil {
				return err
			}
		}
		return tx.Runs.Create(artel.Run{ID: artel.NewRunID(now), Conversation: c, State: artel.RunDone, StartedAt: now}, store.Lease{})
	})
	return c
}
