// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

// A List is a page of the list of conversations.
type List struct {
	Search string
	Groups []Group
	More   string // URL of the next page; "": none
}

// A Group is the conversations of one period.
type Group struct {
	Name    phrase.Key // "": continues the last group of the previous page
	Entries []Entry
}

// An Entry is one conversation of the list.
type Entry struct {
	store.Listed
	URL     string
	Current bool
	Naming  bool // its title is being edited
}

// shownConversations is the page size of the list.
const shownConversations = 40

// conversations reads the page of the list given by "search", "cursor" and
// "group", the last group of the previous page.
func (ui *handler) conversations(r *http.Request, current artel.ConversationID) (List, error) {
	q := r.URL.Query()
	l := List{Search: strings.TrimSpace(q.Get("search"))}
	found, next, err := ui.app.Conversations.List(r.Context(), store.ConversationQuery{
		Search: l.Search, Filled: true, Also: current, Page: store.Page{Cursor: q.Get("cursor"), Limit: shownConversations},
	})
	if err != nil {
		return l, err
	}
	now, last := ui.o.Now(), phrase.Key(q.Get("group"))
	for _, c := range found {
		name := groupOf(c.UpdatedAt.Local(), now)
		if len(l.Groups) == 0 || name != last {
			g := Group{Name: name}
			if name == phrase.Key(q.Get("group")) {
				g.Name = ""
			}
			l.Groups = append(l.Groups, g)
			last = name
		}
		g := &l.Groups[len(l.Groups)-1]
		g.Entries = append(g.Entries, Entry{Listed: c, URL: conversationURL(c.ID), Current: c.ID == current})
	}
	if next != "" {
		more := url.Values{"cursor": {next}, "group": {string(last)}}
		if l.Search != "" {
			more.Set("search", l.Search)
		}
		l.More = "/c?" + more.Encode()
	}
	return l, nil
}

// groupOf returns the period of t, by the calendar of this machine.
func groupOf(t, now time.Time) phrase.Key {
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch {
	case !t.Before(midnight):
		return phrase.PageToday
	case !t.Before(midnight.AddDate(0, 0, -1)):
		return phrase.PageYesterday
	case !t.Before(midnight.AddDate(0, 0, -7)):
		return phrase.PageThisWeek
	case !t.Before(midnight.AddDate(0, 0, -30)):
		return phrase.PageThisMonth
	}
	return phrase.PageEarlier
}

// list answers a search, or a further page of the list. Without script it
// renders the start page with the results.
func (ui *handler) list(w http.ResponseWriter, r *http.Request) {
	if !wantsFragment(r) {
		ui.home(w, r)
		return
	}
	l, err := ui.conversations(r, shownNow(r))
	switch {
	case err != nil:
		ui.fail(w, r, err)
	case r.URL.Query().Get("cursor") != "":
		ui.fragments(w, r, http.StatusOK, part{"more conversations", l})
	default:
		ui.fragments(w, r, http.StatusOK, part{"conversations", l})
	}
}

// shownNow is the conversation on display in the browser; "": none.
func shownNow(r *http.Request) artel.ConversationID {
	u, err := url.Parse(r.Header.Get("HX-Current-URL"))
	if err != nil {
		return ""
	}
	s, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(u.Path, peer.Of(r).Prefix), "/c/"), "/")
	id, err := artel.ParseConversationID(s)
	if err != nil {
		return ""
	}
	return id
}

// entry returns the conversation of the path as a list entry.
func (ui *handler) entry(r *http.Request) (Entry, error) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	if err != nil {
		return Entry{}, err
	}
	c, err := ui.app.Conversations.Find(r.Context(), id)
	return Entry{Listed: store.Listed{Conversation: c}, URL: conversationURL(c.ID), Current: c.ID == shownNow(r)}, err
}

// titled shows a generated title.
func (s *stream) titled(ctx context.Context, out *bytes.Buffer) error {
	c, err := s.app.Conversations.Find(ctx, s.conversation)
	if err != nil {
		return err
	}
	e := Entry{Listed: store.Listed{Conversation: c}, URL: conversationURL(c.ID), Current: true}
	if err := s.all(out, []part{{"heading", c}, {"entry", e}}, nil); err != nil {
		return err
	}
	return s.usageNow(ctx, out)
}

// titleForm shows the form for the title: in the list, or on a page.
func (ui *handler) titleForm(w http.ResponseWriter, r *http.Request) {
	e, err := ui.entry(r)
	e.Naming = r.URL.Query().Get("keep") == ""
	switch {
	case err != nil:
		ui.fail(w, r, err)
	case wantsFragment(r):
		ui.fragments(w, r, http.StatusOK, part{"entry", e})
	default:
		ui.showTitleForm(w, r, http.StatusOK, e, "")
	}
}

func (ui *handler) showTitleForm(w http.ResponseWriter, r *http.Request, status int, e Entry, problem string) {
	f, err := ui.frame(r, e.ID)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageRename, nil)
	ui.show(w, r, status, "title.html", struct {
		frame
		Entry Entry
		Error string
	}{f, e, problem})
}

func (ui *handler) rename(w http.ResponseWriter, r *http.Request) {
	e, err := ui.entry(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxField)
	c, err := ui.app.Conversations.Rename(r.Context(), e.ID, r.PostFormValue("title"))
	if err != nil && !wantsFragment(r) {
		status, text := ui.explain(r, err)
		ui.showTitleForm(w, r, status, e, text)
		return
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if !wantsFragment(r) {
		http.Redirect(w, r, e.URL, http.StatusSeeOther)
		return
	}
	e.Conversation = c
	parts := []part{{"entry", e}}
	if e.Current {
		parts = append(parts, part{"heading", c})
	}
	ui.fragments(w, r, http.StatusOK, parts...)
}

// remove deletes a conversation and offers to undo it.
func (ui *handler) remove(w http.ResponseWriter, r *http.Request) {
	e, err := ui.entry(r)
	if err == nil {
		err = ui.app.Conversations.Delete(r.Context(), e.ID)
	}
	switch {
	case err != nil:
		ui.fail(w, r, err)
	case wantsFragment(r) && !e.Current:
		ui.fragments(w, r, http.StatusOK, part{"gone", "c-" + string(e.ID)}, part{"toast", deletedToast(locale(r), e.ID)})
	default:
		redirect(w, r, "/?deleted="+string(e.ID))
	}
}

func deletedToast(l phrase.Locale, id artel.ConversationID) *Toast {
	return &Toast{ID: "toast-" + string(id), Text: l.Say(phrase.PageDeleted, nil), Undo: conversationURL(id) + "/restore"}
}

// restore restores a deleted conversation. A page that shows another
// conversation stays on it.
func (ui *handler) restore(w http.ResponseWriter, r *http.Request) {
	id, err := artel.ParseConversationID(r.PathValue("cid"))
	if err == nil {
		_, err = ui.app.Conversations.Restore(r.Context(), id)
	}
	current := shownNow(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if current == "" {
		redirect(w, r, conversationURL(id))
		return
	}
	r.URL.RawQuery = url.Values{"search": {r.PostFormValue("search")}}.Encode() // the list before the deletion
	l, err := ui.conversations(r, current)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.fragments(w, r, http.StatusOK, part{"conversations", l}, part{"gone", "toast-" + string(id)})
}

func conversationURL(id artel.ConversationID) string { return "/c/" + string(id) }
