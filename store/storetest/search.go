// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// talk makes a conversation out of a title and what is said in turn.
func (c *check) talk(id artel.ConversationID, title string, said ...string) {
	c.update(func(tx store.Tx) error {
		if err := tx.Conversations.Create(artel.Conversation{ID: id, Title: title, UpdatedAt: c.now}); err != nil {
			return err
		}
		for i, text := range said {
			m := artel.Message{
				ID: artel.MessageID(fmt.Sprintf("msg_%s_%d", id, i)), Conversation: id, Role: artel.RoleUser,
				Parts: artel.Parts{artel.Text{Text: text}}, CreatedAt: c.at(i),
			}
			if i%2 == 1 {
				m.Role = artel.RoleAssistant
			}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// find searches; the ids come in their own order.
func (c *check) find(search string) (ids []artel.ConversationID) {
	c.view(func(tx store.Tx) (err error) {
		ids, err = listed(tx, search)
		return err
	})
	slices.Sort(ids)
	return ids
}

func (c *check) finds(search string, want ...artel.ConversationID) {
	c.Same(fmt.Sprintf("search for %q", search), c.find(search), want)
}

func searchWords(c *check) {
	c.talk("cnv_a", "Holiday plans", "Where is the lighthouse?", "On the northern cliff.")
	c.talk("cnv_b", "", "A house by the sea", "It has a lighthouse nearby, and a garden.")
	c.talk("cnv_c", "Lighthouses of the world")
	c.finds("lighthouse", "cnv_a", "cnv_b", "cnv_c")
	c.finds("house", "cnv_a", "cnv_b", "cnv_c") // in longer words
	c.finds("lighthouse garden", "cnv_b")
	c.finds("garden  \n lighthouse garden", "cnv_b")
	c.finds("holiday cliff", "cnv_a") // one in the title, one in a message
	c.finds("where cliff", "cnv_a")   // in two messages
	c.finds("lighthouse airport")
	c.finds("the light", "cnv_a", "cnv_b", "cnv_c")
	c.finds("gardener")
	c.finds("northern cliffs")
	c.finds(" \t", "cnv_a", "cnv_b", "cnv_c") // no word: all
	// What is renamed is found by the new title alone.
	c.update(func(tx store.Tx) error {
		return tx.Conversations.Update(artel.Conversation{ID: "cnv_c", Title: "Bridges"})
	})
	c.finds("world")
	c.finds("bridge", "cnv_c")
}

func searchScripts(c *check) {
	c.talk("cnv_a", "", "我们讨论人工智能的未来", "好")
	c.talk("cnv_b", "Größe STRASSE", "Ärger mit der Kaffeemühle", "Ещё раз: ПРИВЕТ, мир. Go!")
	c.talk("cnv_c", "智慧", "cafe\u0301 and 🧵 threads", "ΣΊΣΥΦΟΣ, istanbul")
	for search, want := range map[string][]artel.ConversationID{
		"智": {"cnv_a", "cnv_c"}, "智能": {"cnv_a"}, "人工智能": {"cnv_a"}, "能智": nil, "好": {"cnv_a"}, "未来": {"cnv_a"}, "来": {"cnv_a"},
		"STRASSE": {"cnv_b"}, "strasse": {"cnv_b"}, "größe": {"cnv_b"}, "GRÖSSE": nil, "ÄRGER": {"cnv_b"}, "привет": {"cnv_b"}, "ЕЩЁ": {"cnv_b"}, "мир.": {"cnv_b"},
		"go": {"cnv_b"}, "g": {"cnv_b"}, "G!": nil, "O!": {"cnv_b"},
		"caf\u00e9": {"cnv_c"}, "CAFE\u0301": {"cnv_c"}, "🧵": {"cnv_c"}, "σίσυφος": {"cnv_c"}, "I": {"cnv_b", "cnv_c"},
	} {
		c.finds(search, want...)
	}
}

func searchPlain(c *check) {
	c.talk("cnv_a", "", `100% of "quoted" text, under_score, a*b, NEAR(x y), c:\dir, -minus, ^caret, {braces} (round), col:umn; a'b; nul`+"\x00byte")
	c.talk("cnv_b", "", "100 of quoted text underline ab near xy minus caret column")
	for _, search := range []string{
		"100%", "%", "_", "under_score", `"quoted"`, `"`, "'", "a'b", "a*b", "*", "near(x", "(", ")", `c:\dir`, `\`, "-minus", "-", "^caret",
		"{braces}", "col:umn", ":", ";", "\x00", "nul\x00byte", `"quoted" text,`,
	} {
		c.finds(search, "cnv_a")
	}
	c.finds("text AND column") // AND is a word
	c.finds("text OR column")
	c.finds("NOT text")
	c.finds(`text" OR "column`)
	c.finds("tex*")
	c.finds("te_t")
	c.finds("\ue025") // what stands for itself stands for nothing else
}

func searchText(c *check) {
	c.talk("cnv_a", "", "needle")
	c.update(func(tx store.Tx) error {
		if err := tx.Conversations.Create(artel.Conversation{ID: "cnv_b"}); err != nil {
			return err
		}
		for i, m := range []artel.Message{
			{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{Content: "needle"}, artel.Text{Text: "needle"}}},
			{Role: artel.RoleSystem, Parts: artel.Parts{artel.Text{Text: "needle"}}},
			{Role: artel.RoleAssistant, Parts: artel.Parts{
				artel.Reasoning{Text: "needle"},
				artel.ToolCall{ID: "needle", Name: "needle", Arguments: []byte(`{"needle":"needle"}`)},
				artel.Media{Filename: "needle"},
				artel.Text{Text: "thimble"},
				artel.Text{Text: "scissors"},
			}},
			{Role: artel.RoleUser, Parts: artel.Parts{artel.ToolResult{Parts: artel.Parts{artel.Text{Text: "needle"}}}}},
			{Role: artel.RoleUser},
		} {
			m.ID, m.Conversation = artel.MessageID(fmt.Sprint("msg_", i)), "cnv_b"
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
		}
		return nil
	})
	c.finds("needle", "cnv_a")
	c.finds("thimble", "cnv_b")
	c.finds("scissors", "cnv_b")
	c.finds("thimble scissors", "cnv_b")
	c.finds("thimblescissors")
	c.finds("text") // the name of a part
	c.finds("type")
}

func searchExcerpt(c *check) {
	long := strings.Repeat("before ", 40) + "the  Needle\nhere " + strings.Repeat("after ", 40)
	c.talk("cnv_title", "needle in the title", "needle")
	c.talk("cnv_short", "", "nothing", "a needle.", "another needle")
	c.talk("cnv_long", "x", long)
	c.talk("cnv_mixed", "haystack", "with a needle")
	excerpts := func(search string) map[artel.ConversationID]string {
		out := map[artel.ConversationID]string{}
		c.view(func(tx store.Tx) error {
			items, _, err := tx.Conversations.List(store.ConversationQuery{Search: search})
			for _, v := range items {
				out[v.ID] = v.Excerpt
			}
			return err
		})
		return out
	}
	got := excerpts("needle")
	cut := got["cnv_long"]
	if n := utf8.RuneCountInString(cut); n < 100 || n > 130 || !strings.Contains(cut, "the Needle here after") ||
		!strings.Contains(cut, "before the") || !strings.HasPrefix(cut, "…") || !strings.HasSuffix(cut, "…") {
		c.Failf("the excerpt of a long message is %q, want about 120 characters around the word, on one line", cut)
	}
	delete(got, "cnv_long")
	want := map[artel.ConversationID]string{"cnv_title": "", "cnv_short": "a needle.", "cnv_mixed": "with a needle"}
	c.Same("excerpts", got, want)
	c.Same("excerpt where the title holds a part", excerpts("haystack needle"), map[artel.ConversationID]string{"cnv_mixed": "with a needle"})
	for id, text := range excerpts("") {
		c.Same("excerpt without a search of "+string(id), text, "")
	}
}

func searchPaging(c *check) {
	// Every third one matches, in the title or in a message; four share a time.
	var want []artel.ConversationID
	c.update(func(tx store.Tx) error {
		for i := range 90 {
			v := artel.Conversation{ID: artel.ConversationID(fmt.Sprintf("cnv_%02d", i)), UpdatedAt: c.at(i / 4)}
			if i%6 == 0 {
				v.Title = "needle"
			}
			if err := tx.Conversations.Create(v); err != nil {
				return err
			}
			text := "hay"
			if i%6 == 3 {
				text = "needle"
			}
			if i%3 == 0 {
				want = append(want, v.ID)
			}
			if err := tx.Messages.Create(artel.Message{
				ID: artel.MessageID("msg_" + v.ID), Conversation: v.ID, Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: text}},
			}); err != nil {
				return err
			}
		}
		return nil
	})
	var seen []artel.ConversationID
	var last *store.Listed
	cursor := ""
	for page := 0; page < 40; page++ {
		c.view(func(tx store.Tx) error {
			items, next, err := tx.Conversations.List(store.ConversationQuery{Search: "needle", Page: store.Page{Cursor: cursor, Limit: 7}})
			if next != "" && len(items) != 7 || len(items) > 7 {
				c.Failf("a page of 7 has %d, next %q", len(items), next)
			}
			for _, v := range items {
				if last != nil && v.UpdatedAt.After(last.UpdatedAt) {
					c.Failf("a search is not newest first: %v after %v", v.UpdatedAt, last.UpdatedAt)
				}
				last = &v
				seen = append(seen, v.ID)
			}
			cursor = next
			return err
		})
		if cursor == "" {
			break
		}
	}
	slices.Sort(seen)
	c.Same("finds over all pages", seen, want)
}

func searchBound(c *check) {
	c.talk("cnv_a", strings.Repeat("长", store.MaxSearch))
	c.finds(strings.Repeat("长", store.MaxSearch), "cnv_a")
	for what, search := range map[string]string{"a search that is too long": strings.Repeat("长", store.MaxSearch+1), "a search that is not UTF-8": "a\xff"} {
		c.Kind(what, c.s.View(c.Context(), me, func(tx store.Tx) error {
			_, err := listed(tx, search)
			return err
		}), artel.Invalid)
	}
}

func searchBest(c *check) {
	said := func(n int, text string) []string { return slices.Repeat([]string{text, "yes"}, n) }
	c.talk("cnv_0_old", "", "a needle")
	c.talk("cnv_1_many", "", said(4, "a needle and a common thread")...)
	c.talk("cnv_2_title", "The needle")
	c.talk("cnv_3_part", "Needlework")
	for i := range 20 { // two share a score and a time
		id := artel.ConversationID(fmt.Sprintf("cnv_x%02d", i))
		c.talk(id, "", "a common pin")
		c.update(func(tx store.Tx) error {
			v, err := tx.Conversations.Get(id)
			v.UpdatedAt = c.at(i / 2)
			return errors.Join(err, tx.Conversations.Update(v))
		})
	}
	c.talk("cnv_y_rare", "", append(said(1, "a common thread and an ibex"), said(1, "the ibex")...)...)
	c.talk("cnv_z_common", "common", "an ibex")
	best := func(search string, limit int) (ids []artel.ConversationID) {
		cursor := ""
		for range 40 {
			c.view(func(tx store.Tx) error {
				items, next, err := tx.Conversations.List(store.ConversationQuery{Search: search, Best: true, Page: store.Page{Cursor: cursor, Limit: limit}})
				if next != "" && len(items) != limit || len(items) > limit {
					c.Failf("a page of %d has %d, next %q", limit, len(items), next)
				}
				for _, v := range items {
					ids = append(ids, v.ID)
				}
				cursor = next
				return err
			})
			if cursor == "" {
				return ids
			}
		}
		c.Failf("the pages of a search do not end")
		return ids
	}
	c.Same("best for a word", best("needle", 50), []artel.ConversationID{"cnv_2_title", "cnv_3_part", "cnv_1_many", "cnv_0_old"})
	c.Same("best for two words", best("common ibex", 50), []artel.ConversationID{"cnv_z_common", "cnv_y_rare"})
	all := best("common", 50)
	c.Same("a title is first", all[0], artel.ConversationID("cnv_z_common"))
	c.Same("many messages are next", all[1], artel.ConversationID("cnv_1_many"))
	c.Same("how many are found", len(all), 23)
	for i := 3; i < len(all)-1; i++ {
		var a, b artel.Conversation
		c.view(func(tx store.Tx) (err error) {
			if a, err = tx.Conversations.Get(all[i]); err == nil {
				b, err = tx.Conversations.Get(all[i+1])
			}
			return err
		})
		if b.UpdatedAt.After(a.UpdatedAt) {
			c.Failf("what is equal is not newest first: %v before %v", a.UpdatedAt, b.UpdatedAt)
		}
	}
	for _, limit := range []int{1, 3, 7, 23} {
		c.Same(fmt.Sprintf("best in pages of %d", limit), best("common", limit), all)
	}
	c.view(func(tx store.Tx) error {
		_, next, err := tx.Conversations.List(store.ConversationQuery{Search: "common", Page: store.Page{Limit: 2}})
		if _, _, err := tx.Conversations.List(store.ConversationQuery{Search: "common", Best: true, Page: store.Page{Cursor: next}}); !errors.Is(err, artel.Invalid) {
			c.Failf("the cursor of the newest is one of the best: %v", err)
		}
		return err
	})
}
