// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// twins names, for each clause, a store that must fail it.
func twins() map[string]func(*twin) {
	return map[string]func(*twin){
		"conversations/round trip": nouns(func(tx *store.Tx) {
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, get: func(id artel.ConversationID) (artel.Conversation, error) {
				c, err := real.Get(id)
				c.CreatedAt = c.CreatedAt.Truncate(time.Millisecond)
				return c, err
			}}
		}),
		"conversations/update": nouns(func(tx *store.Tx) {
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, update: func(c artel.Conversation) error {
				c.Leaf = ""
				return real.Update(c)
			}}
		}),
		"conversations/paging": nouns(func(tx *store.Tx) {
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, list: pageByOffset(real)}
		}),
		"conversations/filled": nouns(func(tx *store.Tx) { // the conversation on display is filtered, too
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, list: func(q store.ConversationQuery) ([]store.Listed, string, error) {
				q.Also = ""
				return real.List(q)
			}}
		}),
		"conversations/delete hides": rememberedMessages(),
		"conversations/deleted ids": nouns(func(tx *store.Tx) { // a duplicate taken for success
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, create: func(c artel.Conversation) error {
				if err := real.Create(c); artel.KindOf(err) != artel.Conflict {
					return err
				}
				return nil
			}}
		}),
		"conversations/restore": nouns(func(tx *store.Tx) { // to restore counts as activity
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, restore: func(id artel.ConversationID) error {
				if err := real.Restore(id); err != nil {
					return err
				}
				c, err := real.Get(id)
				if err != nil {
					return err
				}
				c.UpdatedAt = c.UpdatedAt.Add(time.Second)
				return real.Update(c)
			}}
		}),
		"conversations/restore refuses": nouns(func(tx *store.Tx) { // what is there needs no restoring
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, restore: func(id artel.ConversationID) error {
				if _, err := real.Get(id); err == nil {
					return nil
				}
				return real.Restore(id)
			}}
		}),
		"search/words": brokenSearch(func(s string) string { // any of the words
			first, _, _ := strings.Cut(strings.TrimSpace(s), " ")
			return first
		}),
		"search/scripts": brokenSearch(func(s string) string { // too short to be indexed
			if utf8.RuneCountInString(s) < 3 {
				return "nothing at all"
			}
			return s
		}),
		"search/plain text": brokenSearch(func(s string) string { return strings.ReplaceAll(s, "%", "") }),
		"search/text alone": nouns(func(tx *store.Tx) { // looks through all that is stored of a message
			real, messages := tx.Conversations, tx.Messages
			tx.Conversations = brokenConversations{Conversations: real, list: func(q store.ConversationQuery) ([]store.Listed, string, error) {
				all, _, err := real.List(store.ConversationQuery{})
				if err != nil {
					return nil, "", err
				}
				return slices.DeleteFunc(all, func(v store.Listed) bool {
					ms, _, _ := messages.List(v.ID, store.Page{})
					raw, _ := json.Marshal(ms)
					return !strings.Contains(string(raw), q.Search)
				}), "", nil
			}}
		}),
		"search/excerpt": nouns(func(tx *store.Tx) { // the first of the message, wherever the word is
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, list: func(q store.ConversationQuery) ([]store.Listed, string, error) {
				items, next, err := real.List(q)
				for i, v := range items {
					items[i].Excerpt = v.Excerpt[:min(10, len(v.Excerpt))]
				}
				return items, next, err
			}}
		}),
		"search/paging": nouns(func(tx *store.Tx) { // looks for the words in each page of all
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, list: func(q store.ConversationQuery) ([]store.Listed, string, error) {
				found, _, err := real.List(store.ConversationQuery{Search: q.Search})
				if err != nil {
					return nil, "", err
				}
				page, next, err := real.List(store.ConversationQuery{Page: q.Page})
				return slices.DeleteFunc(page, func(v store.Listed) bool {
					return !slices.ContainsFunc(found, func(f store.Listed) bool { return f.ID == v.ID })
				}), next, err
			}}
		}),
		"search/best": nouns(func(tx *store.Tx) { // newest first, whatever is asked for
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, list: func(q store.ConversationQuery) ([]store.Listed, string, error) {
				q.Best = false
				return real.List(q)
			}}
		}),
		"search/bound": brokenSearch(func(s string) string { return string([]rune(s)[:min(utf8.RuneCountInString(s), store.MaxSearch)]) }),
		"messages/round trip": nouns(func(tx *store.Tx) {
			real := tx.Messages
			tx.Messages = brokenMessages{Messages: real, get: func(id artel.MessageID) (artel.Message, error) {
				m, err := real.Get(id)
				if m.Parts == nil {
					m.Parts = artel.Parts{}
				}
				return m, err
			}}
		}),
		"messages/parent": nouns(func(tx *store.Tx) {
			real := tx.Messages
			tx.Messages = brokenMessages{Messages: real, create: func(m artel.Message) error {
				if err := real.Create(m); artel.KindOf(err) != artel.Invalid {
					return err
				}
				m.Parent = ""
				return real.Create(m)
			}}
		}),
		"messages/path": nouns(func(tx *store.Tx) {
			real := tx.Messages
			tx.Messages = brokenMessages{Messages: real, path: func(c artel.ConversationID, leaf artel.MessageID, limit int) ([]artel.Message, error) {
				ms, err := real.Path(c, leaf, limit)
				slices.Reverse(ms)
				return ms, err
			}}
		}),
		"messages/end of a path": nouns(func(tx *store.Tx) { // the first ones
			real := tx.Messages
			tx.Messages = brokenMessages{Messages: real, path: func(c artel.ConversationID, leaf artel.MessageID, limit int) ([]artel.Message, error) {
				ms, err := real.Path(c, leaf, min(limit, 0))
				return ms[:min(limit, len(ms))], err
			}}
		}),
		"messages/paging": nouns(func(tx *store.Tx) {
			real := tx.Messages
			tx.Messages = brokenMessages{Messages: real, list: func(c artel.ConversationID, p store.Page) ([]artel.Message, string, error) {
				ms, next, err := real.List(c, p)
				slices.SortFunc(ms, func(a, b artel.Message) int { return strings.Compare(string(a.ID), string(b.ID)) })
				return ms, next, err
			}}
		}),
		"messages/nested": nouns(func(tx *store.Tx) { // by the clocks of who wrote them
			real := tx.Messages
			tx.Messages = brokenMessages{Messages: real, nested: func(c artel.ConversationID, run artel.RunID) ([]artel.Message, error) {
				ms, err := real.Nested(c, run)
				slices.SortFunc(ms, func(a, b artel.Message) int { return a.CreatedAt.Compare(b.CreatedAt) })
				return ms, err
			}}
		}),
		"messages/children": nouns(func(tx *store.Tx) { tx.Messages = backward{tx.Messages} }),
		"messages/muted": nouns(func(tx *store.Tx) {
			real := tx.Messages
			tx.Messages = brokenMessages{Messages: real, muted: func(id artel.MessageID, _ bool) error { return real.SetMuted(id, true) }}
		}),
		"artifacts/head by branch": nouns(func(tx *store.Tx) { // every version, whatever its message
			real, versions := tx.Artifacts, tx.Versions
			newest := func(c artel.ConversationID, a artel.Artifact) artel.Artifact {
				if list, err := versions.List(c, a.ID); err == nil && len(list) > 0 {
					a.Version = list[len(list)-1].Number
				}
				return a
			}
			tx.Artifacts = brokenArtifacts{
				Artifacts: real,
				heads: func(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
					heads, err := real.Heads(c, at)
					for i, a := range heads {
						heads[i] = newest(c, a)
					}
					return heads, err
				},
				head: func(c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
					a, err := real.Head(c, id, at)
					return newest(c, a), err
				},
			}
		}),
		"artifacts/unfolded edits": nouns(func(tx *store.Tx) {
			real := tx.Artifacts
			tx.Artifacts = brokenArtifacts{
				Artifacts: real, head: func(c artel.ConversationID, id artel.ArtifactID, at artel.MessageID) (artel.Artifact, error) {
					a, err := real.Head(c, id, at)
					a.Live = false
					return a, err
				},
			}
		}),
		"artifacts/tombstone": nouns(func(tx *store.Tx) {
			real := tx.Artifacts
			tx.Artifacts = brokenArtifacts{Artifacts: real, heads: func(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
				heads, err := real.Heads(c, at)
				return slices.DeleteFunc(heads, func(a artel.Artifact) bool { return a.Deleted }), err
			}}
		}),
		"artifacts/exists": nouns(func(tx *store.Tx) {
			real := tx.Artifacts
			tx.Artifacts = brokenArtifacts{Artifacts: real, exists: func(c artel.ConversationID, id artel.ArtifactID) (bool, error) {
				_, err := real.Head(c, id, "")
				return err == nil, nil
			}}
		}),
		"versions/round trip": nouns(func(tx *store.Tx) {
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, fold: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
				v.Charset = ""
				return real.Fold(c, id, v, text)
			}}
		}),
		"versions/numbers": nouns(func(tx *store.Tx) { // numbers are the artifact's, not the conversation's
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, add: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) (int, error) {
				all, err := real.Edits(c, store.EditQuery{})
				if err != nil {
					return 0, err
				}
				if _, err := real.Append(c, id, v, text); err != nil {
					return 0, err
				}
				return len(all) + 1, nil
			}}
		}),
		"versions/fold marks": nouns(func(tx *store.Tx) {
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, fold: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
				v.Run = ""
				return real.Fold(c, id, v, text)
			}}
		}),
		"versions/fold twice": nouns(func(tx *store.Tx) { // a duplicate taken for success
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, fold: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
				if err := real.Fold(c, id, v, text); artel.KindOf(err) != artel.Conflict {
					return err
				}
				return nil
			}}
		}),
		"versions/edit query": nouns(func(tx *store.Tx) {
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, edits: func(c artel.ConversationID, q store.EditQuery) ([]store.Edit, error) {
				q.Run = ""
				return real.Edits(c, q)
			}}
		}),
		"versions/text":       brokenText(func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }),
		"versions/large text": brokenText(func(s string) string { return s[:min(len(s), 1<<20)] }),
		"versions/utf-8": nouns(func(tx *store.Tx) {
			real := tx.Journal
			tx.Journal = brokenJournal{Journal: real, add: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) (int, error) {
				if text != nil {
					s := strings.ToValidUTF8(*text, "\ufffd")
					text = &s
				}
				return real.Append(c, id, v, text)
			}}
		}),
		"versions/claim": nouns(func(tx *store.Tx) { // takes only the first
			real := tx.Versions
			tx.Versions = brokenVersions{Versions: real, claim: func(c artel.ConversationID, ids []artel.ArtifactID, m artel.MessageID) error {
				return real.Claim(c, ids[:1], m)
			}}
		}),
		"versions/find": nouns(func(tx *store.Tx) {
			real := tx.Versions
			tx.Versions = brokenVersions{Versions: real, find: func(d artel.Digest) (store.Place, error) {
				p, err := real.Find(d)
				p.Artifact = ""
				return p, err
			}}
		}),
		"runs/round trip": nouns(func(tx *store.Tx) {
			real := tx.Runs
			tx.Runs = brokenRuns{Runs: real, update: func(r artel.Run) error {
				r.Usage.CachedTokens = 0
				return real.Update(r)
			}}
		}),
		"runs/one at a time": nouns(func(tx *store.Tx) {
			real := tx.Runs
			tx.Runs = brokenRuns{Runs: real, create: func(r artel.Run, l store.Lease) error {
				err := real.Create(r, l)
				if artel.CodeOf(err) == "run_active" {
					return artel.Errorf(artel.Conflict, "store", "", "without its code")
				}
				return err
			}}
		}),
		"runs/usage": nouns(func(tx *store.Tx) {
			real := tx.Runs
			tx.Runs = brokenRuns{Runs: real, usage: func(c artel.ConversationID) (artel.Usage, error) {
				u, err := real.Usage(c)
				u.Cost = artel.Cost{}
				return u, err
			}}
		}),
		"runs/lease": nouns(func(tx *store.Tx) { // whoever asks gets it
			real := tx.Runs
			tx.Runs = brokenRuns{Runs: real, renew: func(l store.Lease, _ time.Time) error { return real.Renew(l, time.Unix(1<<40, 0)) }}
		}),
		"runs/terms": nouns(func(tx *store.Tx) { // goes by the holder and the time alone
			real := tx.Runs
			tx.Runs = brokenRuns{Runs: real, renew: func(l store.Lease, now time.Time) error {
				l.Term = 1
				return real.Renew(l, now)
			}}
		}),
		"runs/overdue": func(t *twin) {
			t.overdue = func(ctx context.Context, now time.Time) ([]store.Lease, error) {
				leases, err := t.Store.Overdue(ctx, now)
				return slices.DeleteFunc(leases, func(l store.Lease) bool { return l.Owner != me }), err
			}
		},
		"runs/clock": func(t *twin) { // it goes back
			now := time.Now()
			t.clock = func(context.Context) (time.Time, error) {
				now = now.Add(-time.Second)
				return now, nil
			}
		},
		"runs/worked": nouns(func(tx *store.Tx) { // as if each holder began anew
			real := tx.Runs
			tx.Runs = brokenRuns{Runs: real, renew: func(l store.Lease, now time.Time) error {
				l.Worked = 0
				return real.Renew(l, now)
			}}
		}),
		"events/round trip": nouns(func(tx *store.Tx) {
			real := tx.Events
			tx.Events = brokenEvents{Events: real, add: func(c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
				for i, e := range events {
					if e.Data != nil && !json.Valid(e.Data) {
						events[i].Data = nil
					}
				}
				return real.Append(c, events...)
			}}
		}),
		"events/numbers": brokenNumbers(),
		"events/read": nouns(func(tx *store.Tx) {
			real := tx.Events
			tx.Events = brokenEvents{Events: real, read: func(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error) {
				return real.Read(c, max(0, after-1), limit)
			}}
		}),
		"events/read long ones": nouns(func(tx *store.Tx) { // all of them
			real := tx.Events
			tx.Events = brokenEvents{Events: real, read: func(c artel.ConversationID, after artel.Seq, limit int) (all []artel.Event, err error) {
				for len(all) < limit {
					some, err := real.Read(c, after, limit-len(all))
					if err != nil || len(some) == 0 {
						return all, err
					}
					all, after = append(all, some...), some[len(some)-1].Seq
				}
				return all, nil
			}}
		}),
		"events/contexts": nouns(func(tx *store.Tx) { // the oldest in the place of the newest
			real := tx.Events
			tx.Events = brokenEvents{Events: real, contexts: func(c artel.ConversationID, upTo artel.Seq, limit int) ([]artel.Event, error) {
				list, err := real.Contexts(c, upTo, 100)
				return list[:min(limit, len(list))], err
			}}
		}),
		"events/milestones": nouns(func(tx *store.Tx) { // the oldest in the place of the newest
			real := tx.Events
			tx.Events = brokenEvents{Events: real, milestones: func(c artel.ConversationID, limit int) ([]artel.Event, error) {
				list, err := real.Milestones(c, 100)
				return list[:min(limit, len(list))], err
			}}
		}),
		"answers/round trip": nouns(func(tx *store.Tx) {
			real := tx.Answers
			tx.Answers = brokenAnswers{Answers: real, get: func(key string) (store.Answer, error) {
				a, err := real.Get(key)
				if len(a.Body) == 0 {
					a.Body = nil
				}
				return a, err
			}}
		}),
		"answers/prune": nouns(func(tx *store.Tx) {
			real := tx.Answers
			tx.Answers = brokenAnswers{Answers: real, prune: func(before time.Time) error { return real.Prune(before.Add(time.Microsecond)) }}
		}),
		"store/foreign is missing": func(t *twin) { // one owner for all
			t.view = func(ctx context.Context, _ artel.Owner, fn func(store.Tx) error) error {
				return t.Store.View(ctx, me, fn)
			}
			t.update = func(ctx context.Context, _ artel.Owner, fn func(store.Tx) error) error {
				return t.Store.Update(ctx, me, fn)
			}
		},
		"store/error undoes": func(t *twin) {
			t.update = func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
				var inner error
				err := t.Store.Update(ctx, owner, func(tx store.Tx) error { inner = fn(tx); return nil })
				if err == nil {
					err = inner
				}
				return err
			}
		},
		"store/panic undoes": func(t *twin) {
			t.update = func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
				return t.Store.Update(ctx, owner, func(tx store.Tx) error {
					defer func() { _ = recover() }()
					return fn(tx)
				})
			}
		},
		"store/cancel undoes": func(t *twin) {
			t.update = func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
				return t.Store.Update(context.WithoutCancel(ctx), owner, fn)
			}
		},
		"store/cancel in line": func(t *twin) { // waits for the turn, whatever the context says
			var mu sync.Mutex
			t.update = func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
				mu.Lock()
				defer mu.Unlock()
				return t.Store.Update(ctx, owner, fn)
			}
		},
		"store/cancel a view": func(t *twin) {
			t.view = func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
				return t.Store.View(context.WithoutCancel(ctx), owner, fn)
			}
		},
		"store/no shared memory":   brokenMemory(),
		"store/updates are serial": staleReads,
		"store/view is consistent": func(t *twin) { // each read sees a state of its own
			t.view = func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
				n := 0
				return fn(store.Tx{Conversations: brokenConversations{get: func(id artel.ConversationID) (c artel.Conversation, err error) {
					if n++; n > 1 { // somebody else comes between
						err = t.Store.Update(ctx, owner, func(tx store.Tx) error {
							return tx.Conversations.Update(artel.Conversation{ID: id, Title: "between"})
						})
					}
					if err == nil {
						err = t.Store.View(ctx, owner, func(tx store.Tx) error { c, err = tx.Conversations.Get(id); return err })
					}
					return c, err
				}}})
			}
		},
		"store/view cannot write": func(t *twin) { t.view = t.Store.Update },
		"store/purge by time": func(t *twin) {
			t.purge = func(ctx context.Context, before time.Time) (int, error) {
				return t.Store.Purge(ctx, before.Add(time.Microsecond))
			}
		},
		"store/purge for good": func(t *twin) { // all stays hidden
			t.purge = func(context.Context, time.Time) (int, error) { return 1, nil }
		},
		"store/closed": func(t *twin) { t.closing = func() error { return nil } },
	}
}

// brokenSearch looks for something else.
func brokenSearch(change func(string) string) func(*twin) {
	return nouns(func(tx *store.Tx) {
		real := tx.Conversations
		tx.Conversations = brokenConversations{Conversations: real, list: func(q store.ConversationQuery) ([]store.Listed, string, error) {
			q.Search = change(q.Search)
			return real.List(q)
		}}
	})
}

// rememberedMessages keeps what was read once, also of what is deleted then.
func rememberedMessages() func(*twin) {
	var mu sync.Mutex
	kept := map[artel.MessageID]artel.Message{}
	return nouns(func(tx *store.Tx) {
		real := tx.Messages
		tx.Messages = brokenMessages{Messages: real, get: func(id artel.MessageID) (artel.Message, error) {
			mu.Lock()
			defer mu.Unlock()
			if m, ok := kept[id]; ok {
				return m, nil
			}
			m, err := real.Get(id)
			if err == nil {
				kept[id] = m
			}
			return m, err
		}}
	})
}

func brokenText(change func(string) string) func(*twin) {
	return nouns(func(tx *store.Tx) {
		real := tx.Versions
		tx.Versions = brokenVersions{Versions: real, text: func(c artel.ConversationID, id artel.ArtifactID, n int) (string, error) {
			s, err := real.Text(c, id, n)
			return change(s), err
		}}
	})
}

// brokenNumbers counts what was undone too.
func brokenNumbers() func(*twin) {
	var mu sync.Mutex
	last := map[artel.ConversationID]artel.Seq{}
	return nouns(func(tx *store.Tx) {
		real := tx.Events
		tx.Events = brokenEvents{Events: real, add: func(c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
			mu.Lock()
			defer mu.Unlock()
			if _, err := real.Append(c, events...); err != nil {
				return 0, err
			}
			last[c] += artel.Seq(len(events))
			return last[c], nil
		}}
	})
}

// brokenMemory keeps the bodies of answers as they were handed in.
func brokenMemory() func(*twin) {
	var mu sync.Mutex
	kept := map[string]store.Answer{}
	return nouns(func(tx *store.Tx) {
		real := tx.Answers
		tx.Answers = brokenAnswers{Answers: real, get: func(key string) (store.Answer, error) {
			mu.Lock()
			defer mu.Unlock()
			if a, ok := kept[key]; ok {
				return a, nil
			}
			a, err := real.Get(key)
			kept[key] = a
			return a, err
		}}
	})
}

// pageByOffset takes the cursor for a count of items, which inserts move.
func pageByOffset(real store.Conversations) func(store.ConversationQuery) ([]store.Listed, string, error) {
	return func(p store.ConversationQuery) ([]store.Listed, string, error) {
		all, _, err := real.List(store.ConversationQuery{Page: store.Page{Limit: 500}})
		if err != nil {
			return nil, "", err
		}
		limit := p.Limit
		if limit == 0 {
			limit = 50
		}
		from := len(p.Cursor)
		to := min(len(all), from+limit)
		next := ""
		if to < len(all) {
			next = strings.Repeat("x", to)
		}
		return all[min(from, to):to], next, nil
	}
}

// staleReads lets three updates in a row see what the first of them saw.
func staleReads(t *twin) {
	var mu sync.Mutex
	n := 0
	var seen artel.Conversation
	t.update = func(ctx context.Context, owner artel.Owner, fn func(store.Tx) error) error {
		return t.Store.Update(ctx, owner, func(tx store.Tx) error {
			real := tx.Conversations
			tx.Conversations = brokenConversations{Conversations: real, get: func(id artel.ConversationID) (artel.Conversation, error) {
				mu.Lock()
				defer mu.Unlock()
				if n++; n%3 != 1 {
					return seen, nil
				}
				var err error
				seen, err = real.Get(id)
				return seen, err
			}}
			return fn(tx)
		})
	}
}
