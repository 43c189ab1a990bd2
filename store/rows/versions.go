// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"encoding/json"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type versions struct{ *Tx }

const (
	versionNames   = "number, parent, message, run, author, update_type, title, filename, source, media, digest, in_blob, created_at, changes"
	versionColumns = "v.number, v.parent, v.message, v.run, v.author, v.update_type, v.title, v.filename, v.source, v.media, v.digest, v.in_blob, v.created_at, v.changes"

	fifteenMarks = ", ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?" // for versionNames and text
)

func (t versions) Get(c artel.ConversationID, id artel.ArtifactID, number int) (artel.Version, error) {
	return t.get("store.Versions.Get", c, id, number)
}

func (t versions) get(op string, c artel.ConversationID, id artel.ArtifactID, number int) (artel.Version, error) {
	if err := t.requireConversation(op, c); err != nil {
		return artel.Version{}, err
	}
	var r versionRow
	found, err := t.row(op, string(id), "SELECT "+versionColumns+` FROM versions v
		WHERE v.owner = ? AND v.conversation = ? AND v.artifact = ? AND v.number = ?`, []any{t.owner, c, id, number}, r.dest()...)
	if err != nil {
		return artel.Version{}, err
	}
	if !found {
		return artel.Version{}, t.absent(op, c, id, number)
	}
	v, err := r.version()
	if err != nil {
		return artel.Version{}, t.fail(op, string(id), err)
	}
	return v, nil
}

func (t versions) List(c artel.ConversationID, id artel.ArtifactID) ([]artel.Version, error) {
	const op = "store.Versions.List"
	if err := t.requireConversation(op, c); err != nil {
		return nil, err
	}
	found, err := list(t.Tx, op, string(id), "SELECT "+versionColumns+` FROM versions v
		WHERE v.owner = ? AND v.conversation = ? AND v.artifact = ? ORDER BY v.number`, []any{t.owner, c, id},
		func(rows Row, v *artel.Version) (err error) {
			var r versionRow
			if err := rows.Scan(r.dest()...); err != nil {
				return err
			}
			*v, err = r.version()
			return err
		})
	if err == nil && len(found) == 0 {
		err = t.used(op, c, id)
	}
	return found, err
}

func (t versions) Artifacts(c artel.ConversationID) ([]artel.ArtifactID, error) {
	const op = "store.Versions.Artifacts"
	if err := t.requireConversation(op, c); err != nil {
		return nil, err
	}
	return list(t.Tx, op, string(c), `SELECT a.id FROM artifacts a WHERE a.owner = ? AND a.conversation = ? AND EXISTS (
		SELECT 1 FROM versions v WHERE v.owner = a.owner AND v.conversation = a.conversation AND v.artifact = a.id) ORDER BY a.id`, []any{t.owner, c},
		func(rows Row, id *artel.ArtifactID) error { return rows.Scan(id) })
}

func (t versions) Text(c artel.ConversationID, id artel.ArtifactID, number int) (string, error) {
	const op = "store.Versions.Text"
	if err := t.requireConversation(op, c); err != nil {
		return "", err
	}
	var text *string
	var r versionRow
	found, err := t.row(op, string(id), "SELECT text, media FROM versions WHERE owner = ? AND conversation = ? AND artifact = ? AND number = ?",
		[]any{t.owner, c, id, number}, &text, &r.media)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", t.absent(op, c, id, number)
	case text != nil:
		return *text, nil
	}
	v, err := r.version()
	switch {
	case err != nil:
		return "", t.fail(op, string(id), err)
	case v.IsBinary():
		return "", artel.Errorf(artel.Unsupported, op, string(id), "version %d is binary and has no text", number)
	}
	return "", artel.Errorf(artel.NotFound, op, string(id), "the text of version %d is only in the journal", number)
}

// absent returns NotFound for the artifact if it does not exist, otherwise for
// the version.
func (t versions) absent(op string, c artel.ConversationID, id artel.ArtifactID, number int) error {
	if err := t.used(op, c, id); err != nil {
		return err
	}
	return noVersion(op, id, number)
}

// Claim updates versions and edits, so that a head is the same in both tables.
func (t versions) Claim(c artel.ConversationID, ids []artel.ArtifactID, m artel.MessageID) error {
	const op = "store.Versions.Claim"
	if err := t.usable(op, true); err != nil {
		return err
	}
	if err := checkText(op, string(m), string(m)); err != nil {
		return err
	}
	if err := t.requireConversation(op, c); err != nil {
		return err
	}
	for _, id := range ids {
		for _, table := range []string{"versions", "edits"} {
			if _, err := t.change(op, string(id), "UPDATE "+table+` SET message = ?
				WHERE owner = ? AND conversation = ? AND artifact = ? AND message = ''`, m, t.owner, c, id); err != nil {
				return err
			}
		}
		if err := artifacts(t).claimHead(op, c, id, m); err != nil {
			return err
		}
	}
	return nil
}

// Find searches the visible versions first, then edits whose content is a blob,
// so that the results of an active run can be served.
func (t versions) Find(d artel.Digest) (store.Place, error) {
	const op = "store.Versions.Find"
	for _, from := range []string{"versions v WHERE", "edits v WHERE v.in_blob = 1 AND"} {
		var p store.Place
		var r versionRow
		found, err := t.row(op, string(d), "SELECT v.conversation, v.artifact, "+versionColumns+" FROM "+from+
			" v.owner = ? AND v.digest = ?"+notDeleted("v")+" ORDER BY v.rowid LIMIT 1", []any{t.owner, d},
			append([]any{&p.Conversation, &p.Artifact}, r.dest()...)...)
		if err != nil {
			return store.Place{}, err
		}
		if !found {
			continue
		}
		if p.Version, err = r.version(); err != nil {
			return store.Place{}, t.fail(op, string(d), err)
		}
		return p, nil
	}
	return store.Place{}, artel.Errorf(artel.NotFound, op, string(d), "no version has these bytes")
}

// used returns NotFound if id was never used in c.
func (t versions) used(op string, c artel.ConversationID, id artel.ArtifactID) error {
	found, err := artifacts(t).Exists(c, id)
	if err == nil && !found {
		err = noArtifact(op, id)
	}
	return err
}

func noVersion(op string, id artel.ArtifactID, number int) error {
	return artel.Errorf(artel.NotFound, op, string(id), "no version %d", number)
}

// facts is the JSON in the column media: information about the bytes, and the
// beginning of a text.
type facts struct {
	artel.MediaInfo
	Preview string `json:"preview,omitempty"`
}

// A versionRow scans and holds the columns of versionNames.
type versionRow struct {
	v       artel.Version
	media   string
	created int64
	changes *string
}

// newVersionRow checks and encodes v.
func newVersionRow(op string, id artel.ArtifactID, v artel.Version, text *string) (*versionRow, error) {
	r := &versionRow{v: v, created: micros(v.CreatedAt)}
	if err := checkText(op, string(id), string(id), string(v.Message), string(v.Run), v.Author, string(v.Update),
		v.Title, v.Filename, string(v.Provenance), string(v.Digest), v.Preview,
		v.MediaType, v.DeclaredType, string(v.Kind), v.Charset, string(v.DetectedBy)); err != nil {
		return nil, err
	}
	for _, c := range v.Changes {
		if err := checkText(op, string(id), string(c.Layer), c.Old, c.New); err != nil {
			return nil, err
		}
	}
	if text != nil {
		if err := checkText(op, string(id), *text); err != nil {
			return nil, err
		}
	}
	var err error
	if r.media, err = encode(op, string(id), facts{v.MediaInfo, v.Preview}); err != nil {
		return nil, err
	}
	if v.Changes != nil {
		s := encodeChanges(v.Changes)
		r.changes = &s
	}
	return r, nil
}

// values returns the values for the columns of versionNames, and text.
func (r *versionRow) values(text *string) []any {
	v := &r.v
	return []any{
		v.Number, v.Parent, v.Message, v.Run, v.Author, v.Update, v.Title, v.Filename, v.Provenance,
		r.media, v.Digest, v.InBlob, r.created, r.changes, text,
	}
}

func (r *versionRow) dest() []any { return append(r.head(), &r.changes) }

// head returns scan destinations for headColumns.
func (r *versionRow) head() []any {
	v := &r.v
	return []any{
		&v.Number, &v.Parent, &v.Message, &v.Run, &v.Author, &v.Update, &v.Title, &v.Filename, &v.Provenance,
		&r.media, &v.Digest, &v.InBlob, &r.created,
	}
}

func (r *versionRow) version() (artel.Version, error) {
	r.v.CreatedAt = fromMicros(r.created)
	var f facts
	if err := json.Unmarshal([]byte(r.media), &f); err != nil {
		return artel.Version{}, err
	}
	r.v.MediaInfo, r.v.Preview = f.MediaInfo, f.Preview
	var err error
	r.v.Changes, err = r.decodeChanges()
	return r.v, err
}
