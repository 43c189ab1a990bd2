// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

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
		"conversations/delete": nouns(func(tx *store.Tx) {
			real, events := tx.Conversations, tx.Events
			tx.Conversations = brokenConversations{Conversations: real, delete: func(id artel.ConversationID) error {
				old, err := events.Read(id, 0, 1000)
				if err == nil {
					err = real.Delete(id)
				}
				if err == nil { // what is left behind shows when the id is made again
					err = real.Create(artel.Conversation{ID: id})
				}
				if err == nil {
					_, err = events.Append(id, old...)
				}
				return err
			}}
		}),
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
			tx.Messages = brokenMessages{Messages: real, path: func(c artel.ConversationID, leaf artel.MessageID) ([]artel.Message, error) {
				ms, err := real.Path(c, leaf)
				slices.Reverse(ms)
				return ms, err
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
			real := tx.Versions
			tx.Versions = brokenVersions{Versions: real, fold: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
				v.Charset = ""
				return real.Fold(c, id, v, text)
			}}
		}),
		"versions/numbers": nouns(func(tx *store.Tx) { // numbers are the artifact's, not the conversation's
			real := tx.Versions
			tx.Versions = brokenVersions{Versions: real, add: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) (int, error) {
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
			real := tx.Versions
			tx.Versions = brokenVersions{Versions: real, fold: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
				v.Run = ""
				return real.Fold(c, id, v, text)
			}}
		}),
		"versions/fold twice": nouns(func(tx *store.Tx) { // a duplicate taken for success
			real := tx.Versions
			tx.Versions = brokenVersions{Versions: real, fold: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
				if err := real.Fold(c, id, v, text); artel.KindOf(err) != artel.Conflict {
					return err
				}
				return nil
			}}
		}),
		"versions/edit query": nouns(func(tx *store.Tx) {
			real := tx.Versions
			tx.Versions = brokenVersions{Versions: real, edits: func(c artel.ConversationID, q store.EditQuery) ([]store.Edit, error) {
				q.Run = ""
				return real.Edits(c, q)
			}}
		}),
		"versions/text":       brokenText(func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }),
		"versions/large text": brokenText(func(s string) string { return s[:min(len(s), 1<<20)] }),
		"versions/utf-8": nouns(func(tx *store.Tx) {
			real := tx.Versions
			tx.Versions = brokenVersions{Versions: real, add: func(c artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) (int, error) {
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
		"runs/lease": nouns(func(tx *store.Tx) { // whoever asks gets it
			real := tx.Runs
			tx.Runs = brokenRuns{Runs: real, renew: func(l store.Lease, _ time.Time) error { return real.Renew(l, time.Unix(1<<40, 0)) }}
		}),
		"runs/overdue": func(t *twin) {
			t.overdue = func(ctx context.Context, now time.Time) ([]store.Lease, error) {
				leases, err := t.Store.Overdue(ctx, now)
				return slices.DeleteFunc(leases, func(l store.Lease) bool { return l.Owner != me }), err
			}
		},
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
		"store/closed":            func(t *twin) { t.closing = func() error { return nil } },
	}
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
func pageByOffset(real store.Conversations) func(store.Page) ([]artel.Conversation, string, error) {
	return func(p store.Page) ([]artel.Conversation, string, error) {
		all, _, err := real.List(store.Page{Limit: 500})
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
