// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

const artifactsAbout = "The inventory of a conversation, with the first 200 characters of each artifact, as every model call asks for it: " +
	"from a database that was just opened, and from one in use. The anchor is the same driver reading two columns of as many rows. " +
	"Opening reads the newest text of an artifact of 100 KB by its id; the anchor is the same with one version. " +
	"Storage is the size of the database file after small edits to one text, in one run and as a version each; the anchor is as many copies of the text."

func measureArtifacts(ctx context.Context, l *lab) []result {
	var results []result
	for _, n := range []int{100, 1000, 10_000} {
		rows := measureInventory(ctx, l, n)
		results = append(results, rows...)
	}
	opened := measureOpening(ctx, l)
	results = append(results, opened...)
	for _, edits := range []int{10, 100, 1000} {
		rows := measureStorage(ctx, l, edits)
		results = append(results, rows...)
	}
	return results
}

// A conversationDB is a database file with one conversation, and a message to which
// artifacts are attached.
type conversationDB struct {
	path         string
	store        *sqlite.Store
	artifacts    *artifact.Collection
	conversation artel.ConversationID
	message      artel.MessageID
}

func newConversationDB(ctx context.Context, l *lab) *conversationDB {
	dir := l.folder()
	s := &conversationDB{path: filepath.Join(dir, "artel.db")}
	s.open(ctx)
	now := time.Now()
	c := artel.Conversation{ID: artel.NewConversationID(now), Title: "Shelf", CreatedAt: now, UpdatedAt: now}
	m := artel.Message{ID: artel.NewMessageID(now), Conversation: c.ID, Role: artel.RoleUser, CreatedAt: now, Parts: artel.Parts{artel.Text{Text: "Go on."}}}
	s.conversation, s.message = c.ID, m.ID
	check(s.store.Update(ctx, artel.Local, func(tx store.Tx) error {
		return errors.Join(tx.Conversations.Create(c), tx.Messages.Create(m))
	}))
	return s
}

func (s *conversationDB) open(ctx context.Context) {
	s.store = must(sqlite.Open(ctx, s.path, sqlite.Options{Synchronous: sqlite.Normal}))
	s.artifacts = artifact.New(s.store, blob.NewMemory(), artifact.Options{})
}

// reopenFull opens the database as the server does: an update is on disk when it
// returns.
func (s *conversationDB) reopenFull(ctx context.Context) {
	shut(s.store)
	s.store = must(sqlite.Open(ctx, s.path, sqlite.Options{}))
	s.artifacts = artifact.New(s.store, blob.NewMemory(), artifact.Options{})
}

// reopen opens the same database file again.
func (s *conversationDB) reopen(ctx context.Context) *conversationDB {
	again := *s
	again.open(ctx)
	return &again
}

func (s *conversationDB) workspace(run artel.RunID) *artifact.Workspace {
	return s.artifacts.Workspace(artifact.WorkspaceConfig{Owner: artel.Local, Conversation: s.conversation, Run: run, Message: s.message, Author: "agent"})
}

// inventory lists the artifacts and fails unless there are n.
func (s *conversationDB) inventory(ctx context.Context, n int) error {
	all, err := s.artifacts.Overview(ctx, artel.Local, s.conversation, s.message, artel.PreviewChars)
	if err == nil && len(all.Others) != n {
		err = fmt.Errorf("the inventory has %d artifacts, want %d", len(all.Others), n)
	}
	return err
}

func measureInventory(ctx context.Context, l *lab, n int) []result {
	s := newConversationDB(ctx, l)
	defer shut(s.store)
	text := strings.Repeat("Some words of a report on something. ", 550)
	now := time.Now()
	check(s.store.Update(ctx, artel.Local, func(tx store.Tx) error {
		for i := range n {
			id := artel.ArtifactID(fmt.Sprintf("report_%05d", i))
			v := artel.Version{
				Message: s.message, Author: "agent", Update: artel.UpdateCreate, Title: "A report on something", Provenance: artel.SourceAgent,
				MediaInfo: artel.MediaInfo{MediaType: "text/markdown", Kind: artel.KindText, Charset: "utf-8", Confidence: 1, Size: int64(len(text))},
				Digest:    artel.NewDigest([32]byte{byte(i), byte(i >> 8)}), Preview: artel.Beginning(text, artel.PreviewChars), CreatedAt: now,
			}
			v.Number = must(tx.Journal.Append(s.conversation, id, v, nil))
			check(tx.Journal.Fold(s.conversation, id, v, &text))
		}
		return nil
	}))
	anchor, closer := plainList(ctx, l, n)
	defer shut(closer)
	cold := func() float64 {
		again := s.reopen(ctx)
		defer shut(again.store)
		return seconds(func() error { return again.inventory(ctx, n) })()
	}
	m := interleave(l.rounds(7), cold, seconds(func() error { return s.inventory(ctx, n) }), seconds(anchor))
	want := target{}
	if n == 10_000 {
		want = target{limit: 0.020}
	}
	size := count(n, "artifacts of 20 KB")
	return []result{
		{work: "inventory, just opened", size: size, unit: millis(), artel: m[0], anchor: m[2], target: want},
		{work: "inventory, in use", size: size, unit: millis(), artel: m[1], anchor: m[2], target: want},
	}
}

func measureOpening(ctx context.Context, l *lab) []result {
	text := strings.Repeat("0123456789abcde\n", 100_000/16)
	var works []sample
	sizes := []int{1, 10, 100, 1000}
	for _, versions := range sizes {
		s := newConversationDB(ctx, l)
		defer func() { _ = s.store.Close() }()
		check(s.write(ctx, "", text, versions-1))
		works = append(works, seconds(func() error {
			got, _, err := s.artifacts.Text(ctx, artel.Local, s.conversation, "doc", 0, s.message)
			if err == nil && len(got) < len(text) {
				err = fmt.Errorf("read %d bytes of %d", len(got), len(text))
			}
			return err
		}))
	}
	m := interleave(l.rounds(50), works...)
	var results []result
	for i, n := range sizes[1:] {
		r := result{work: "opening the newest text", size: count(n, "versions"), unit: millis(), artel: m[i+1], anchor: m[0]}
		if n == 1000 {
			r.target = target{ratio: 2}
		}
		results = append(results, r)
	}
	return results
}

// write creates a text and edits it edits times: in one run, or without a run
// as one version per edit.
func (s *conversationDB) write(ctx context.Context, run artel.RunID, text string, edits int) error {
	w := s.workspace(run)
	if _, err := w.Create(ctx, "doc", "", text+"<0>", ""); err != nil {
		return err
	}
	for i := range edits {
		e := edit.Edit{Old: fmt.Sprintf("<%d>", i), New: fmt.Sprintf("<%d>", i+1)}
		if _, _, err := w.Edit.Update(ctx, "doc", []edit.Edit{e}, artifact.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func measureStorage(ctx context.Context, l *lab, edits int) []result {
	text := strings.Repeat("0123456789abcde\n", 1<<20/16)
	var results []result
	for _, how := range []struct {
		name string
		run  artel.RunID
	}{{"in one run", "run_1"}, {"each a version", ""}} {
		s := newConversationDB(ctx, l)
		check(s.write(ctx, how.run, text, edits))
		shut(s.store)
		info := must(os.Stat(s.path))
		check(os.Remove(s.path))
		r := result{
			work: "storage of edits to 1 MB, " + how.name, size: count(edits, "edits"), unit: megabytes(),
			artel: float64(info.Size()), anchor: float64((edits + 1) * len(text)),
		}
		results = append(results, r)
	}
	return results
}

// plainList is the anchor of the inventory: it reads ids and equally long previews
// of equally many rows.
func plainList(ctx context.Context, l *lab, n int) (func() error, io.Closer) {
	dir := l.folder()
	db := must(sql.Open("sqlite", "file:"+filepath.Join(dir, "plain.db")+"?_pragma=journal_mode(WAL)&_txlock=immediate"))
	must(db.ExecContext(ctx, `CREATE TABLE artifacts (id TEXT PRIMARY KEY, beginning TEXT NOT NULL) STRICT;
		WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
		INSERT INTO artifacts SELECT printf('report_%05d', i), printf('%.200c', 'x') FROM n`, n))
	return func() error {
		rows := must(db.QueryContext(ctx, "SELECT id, beginning FROM artifacts ORDER BY id"))
		defer rows.Close()
		found := 0
		for ; rows.Next(); found++ {
			var id, beginning string
			check(rows.Scan(&id, &beginning))
		}
		if err := rows.Err(); err != nil || found != n {
			fail("%d rows of %d: %w", found, n, err)
		}
		return nil
	}, db
}
