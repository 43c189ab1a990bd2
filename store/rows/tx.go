// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A Tx is one view or update.
type Tx struct {
	*Dialect
	conn       Conn
	pipeline   Pipeline // conn, if it is one
	ctx        context.Context
	owner      artel.Owner
	write      bool
	ended      bool
	broken     error                // set when the database failed; the transaction may be lost
	lastConv   artel.ConversationID // the last one found by requireConversation
	lastNumber int64                // its number
	required   artel.ConversationID // the last one of requireLater

	importing       artel.ConversationID // the conversation this transaction imports
	importingNumber int64

	numbers *Numbers
	lineage *Lineage
}

func (t *Tx) nouns() store.Tx {
	return store.Tx{
		Conversations: conversations{t},
		Messages:      messages{t},
		Artifacts:     artifacts{t},
		Versions:      versions{t},
		Journal:       journal{t},
		Runs:          runs{t},
		Events:        events{t},
		Answers:       answers{t},
		Imports:       imports{t},
		Renditions:    renditions{t},
		Contexts:      contexts{t},
		Settings:      settings{t},
		Variables:     variables{t},
		GatewayLog:    gatewayLog{t},
		Files:         files{t},
		Notes:         notes{t},
		Audit:         audit{t},
		Storage:       storage{t},
		Hooks:         hooks{t},
	}
}

// End ends the use of the transaction; what is used of it later fails.
func (t *Tx) End() { t.ended = true }

// Broken returns the error after which the transaction cannot continue, or nil.
func (t *Tx) Broken() error { return t.broken }

// Break makes the transaction fail with err from now on, and returns it.
func (t *Tx) Break(err error) error {
	t.broken = err
	return err
}

// usable returns an error if a statement must not run.
func (t *Tx) usable(op string, write bool) error {
	switch {
	case t.ended:
		return artel.Errorf(artel.Internal, op, "", "the transaction has ended: a Tx is used inside its View or Update only")
	case write && !t.write:
		return artel.Errorf(artel.Internal, op, "", "a view cannot write: use Update")
	case t.broken != nil:
		return t.broken
	case t.ctx.Err() != nil:
		return Canceled(op, t.ctx.Err())
	}
	return nil
}

// change runs a writing statement and returns the number of rows changed.
func (t *Tx) change(op, subject, query string, args ...any) (int64, error) {
	if err := t.usable(op, true); err != nil {
		return 0, err
	}
	n, err := t.conn.Exec(query, args...)
	if err != nil {
		return 0, t.fail(op, subject, err)
	}
	return n, nil
}

// later is change for a statement whose effect is certain: its row cannot be there already.
func (t *Tx) later(op, subject, query string, args ...any) error {
	if t.pipeline == nil {
		_, err := t.change(op, subject, query, args...)
		return err
	}
	if err := t.usable(op, true); err != nil {
		return err
	}
	t.pipeline.Later(query, args...)
	return nil
}

// insert runs a statement that inserts one row and returns its n.
func (t *Tx) insert(op, subject, query string, args ...any) (int64, error) {
	if err := t.usable(op, true); err != nil {
		return 0, err
	}
	n, err := t.conn.Insert(query, args...)
	if err != nil {
		return 0, t.fail(op, subject, err)
	}
	return n, nil
}

// row scans the first row of a query; found is false if there is none.
func (t *Tx) row(op, subject, query string, args []any, dest ...any) (found bool, err error) {
	if err := t.usable(op, false); err != nil {
		return false, err
	}
	if found, err = t.conn.Row(query, args, dest...); err != nil {
		return false, t.fail(op, subject, err)
	}
	return found, nil
}

// errStop, returned by a scan function, ends tx.rows without an error.
var errStop = errors.New("stop reading rows")

// rows calls scan for each row of a query until scan returns an error.
func (t *Tx) rows(op, subject, query string, args []any, scan func(Row) error) error {
	if err := t.usable(op, false); err != nil {
		return err
	}
	if err := t.conn.Rows(query, args, scan); err != nil && !errors.Is(err, errStop) {
		return t.fail(op, subject, err)
	}
	return nil
}

// values calls scan for each row of a query, with the values of its columns as the database
// has them. It takes half the time of rows.
func (t *Tx) values(op, subject, query string, args []any, columns int, scan func([]driver.Value) error) error {
	if err := t.usable(op, false); err != nil {
		return err
	}
	if err := t.conn.Values(query, args, columns, scan); err != nil {
		return t.fail(op, subject, err)
	}
	return nil
}

// list returns a value for each row of a query, which scan fills.
func list[T any](t *Tx, op, subject, query string, args []any, scan func(Row, *T) error) ([]T, error) {
	var out []T
	err := t.rows(op, subject, query, args, func(rows Row) error {
		var v T
		err := scan(rows, &v)
		out = append(out, v)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

const selectConversation = "SELECT number FROM conversations WHERE owner = ? AND id = ? AND deleted_at IS NULL"

// requireConversation returns NotFound unless the owner has the conversation
// and it is not deleted. Every query in a conversation begins with it. The
// result is cached for the transaction.
func (t *Tx) requireConversation(op string, c artel.ConversationID) error {
	if err := t.usable(op, false); err != nil {
		return err
	}
	switch {
	case c == "":
	case c == t.importing:
		t.lastConv, t.lastNumber = c, t.importingNumber
		return nil
	case c == t.lastConv:
		return nil
	}
	if t.pipeline != nil && t.write {
		t.pipeline.BeforeLock(t.owner, c)
	}
	var number int64
	found, err := t.row(op, string(c), selectConversation+t.locked(), []any{t.owner, c}, &number)
	if err == nil && !found {
		err = noConversation(op, c)
	}
	if err == nil {
		t.lastConv, t.lastNumber = c, number
	}
	return err
}

// requireLater is requireConversation for a method of an update whose next statement is a
// query, which then has the error.
func (t *Tx) requireLater(op string, c artel.ConversationID) error {
	if t.pipeline == nil || !t.write || c == t.importing || c == t.lastConv {
		return t.requireConversation(op, c)
	}
	if err := t.usable(op, false); err != nil || c != "" && c == t.required {
		return err
	}
	t.pipeline.BeforeLock(t.owner, c)
	t.pipeline.Require(selectConversation+t.locked(), []any{t.owner, c}, noConversation(op, c))
	t.required = c
	return nil
}

// locked returns what ends a query of an update for a row that it is about to change.
func (t *Tx) locked() string {
	if t.write {
		return t.Lock
	}
	return ""
}

// lock makes the rest of an update see the newest rows of the conversation of a row,
// where updates are not serial anyway. Without such a row nothing happens.
func (t *Tx) lock(op, table, id string) error {
	if t.locked() == "" {
		return nil
	}
	var number int64
	_, err := t.row(op, id, "SELECT number FROM conversations WHERE owner = ?1 AND id = (SELECT conversation FROM "+table+" WHERE owner = ?1 AND id = ?2)"+t.locked(),
		[]any{t.owner, id}, &number)
	return err
}

// turn gets the turn of the owner, for as long as the transaction lasts: the owner gets no
// new conversation meanwhile, and those that exist are not written to by others.
func (t *Tx) turn(op string) error {
	if t.Turn == "" {
		return nil
	}
	var one int
	if _, err := t.row(op, "", t.Turn, []any{t.owner}, &one); err != nil {
		return err
	}
	_, err := list(t, op, "", "SELECT number FROM conversations WHERE owner = ? ORDER BY id"+t.Lock, []any{t.owner},
		func(rows Row, n *int64) error { return rows.Scan(n) })
	return err
}

// asBytes returns a text column as bytes.
func (t *Tx) asBytes(column string) string { return strings.ReplaceAll(t.Bytes, "%", column) }

// now returns the time of the database, by which all processes that share it go.
func (t *Tx) now(op string) (now time.Time, err error) {
	if t.Now == "" {
		return time.Now(), nil
	}
	_, err = t.row(op, "", t.Now, nil, (*timeColumn)(&now))
	return now, err
}

// notDeleted is an SQL condition for queries that do not select by conversation:
// the row's conversation must not be deleted.
func notDeleted(table string) string {
	return " AND EXISTS (SELECT 1 FROM conversations c WHERE c.owner = " + table + ".owner AND c.id = " + table + ".conversation AND c.deleted_at IS NULL)"
}

// fail converts a driver error into an error of the contract, and marks the
// transaction as broken if it cannot continue.
func (t *Tx) fail(op, subject string, err error) error {
	t.required = "" // it may be missing
	if e, ok := errors.AsType[*artel.Error](err); ok {
		return e
	}
	out := t.conn.Failure(op, subject, err)
	if artel.KindOf(out) == artel.Unavailable {
		t.broken = out
	}
	return out
}

// Canceled returns the error of a call whose context has ended.
func Canceled(op string, err error) error {
	return &artel.Error{Op: op, Kind: artel.Canceled, Err: err}
}

func noOwner(op string) error {
	return artel.Errorf(artel.Unauthenticated, op, "", "it is not known who asks")
}

func noConversation(op string, c artel.ConversationID) error {
	return artel.Errorf(artel.NotFound, op, string(c), "no such conversation")
}

// checkText returns Invalid for text that is not UTF-8, because JSON cannot
// represent it.
func checkText(op, subject string, texts ...string) error {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return artel.Errorf(artel.Invalid, op, artel.Shorten(strings.ToValidUTF8(subject, "?"), 80),
				"%q is not valid UTF-8", artel.Shorten(strings.ToValidUTF8(s, "?"), 80))
		}
	}
	return nil
}

// checkJSON returns Invalid for data that is not JSON in UTF-8; nil is valid.
func checkJSON(op, subject string, data json.RawMessage) error {
	if data != nil && (!utf8.Valid(data) || !json.Valid(data)) {
		return artel.Errorf(artel.Invalid, op, subject, "%q is not valid JSON", artel.Shorten(strings.ToValidUTF8(string(data), "?"), 80))
	}
	return nil
}

// encodePlain encodes without HTML escaping, so that the JSON that models wrote
// is returned, and sent to them again, byte for byte.
func encodePlain(op, subject string, v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", artel.Errorf(artel.Invalid, op, subject, "%w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func encode(op, subject string, v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", artel.Errorf(artel.Invalid, op, subject, "%w", err)
	}
	return string(b), nil
}

// micros and fromMicros convert between a time and its column.
func micros(t time.Time) int64      { return t.UnixMicro() }
func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// A timeColumn scans a time from its column.
type timeColumn time.Time

// Scan implements [sql.Scanner].
func (c *timeColumn) Scan(us any) error {
	n, ok := us.(int64)
	if !ok {
		return fmt.Errorf("%v is not a time in microseconds", us)
	}
	*c = timeColumn(fromMicros(n))
	return nil
}

// A jsonColumn scans JSON from its text; NULL is nil.
type jsonColumn json.RawMessage

// Scan implements [sql.Scanner].
func (c *jsonColumn) Scan(text any) error {
	switch text := text.(type) {
	case nil:
		*c = nil
	case string:
		*c = jsonColumn(text)
	default:
		return fmt.Errorf("%T is not the text of JSON", text)
	}
	return nil
}

// pageLimit returns the number of items that p asks for.
func pageLimit(op string, p store.Page) (int, error) {
	const usual, maximum = 50, 500
	switch {
	case p.Limit < 0:
		return 0, artel.Errorf(artel.Invalid, op, "limit", "is %d, want 0 to %d", p.Limit, maximum)
	case p.Limit == 0:
		return usual, nil
	}
	return min(p.Limit, maximum), nil
}

// cursor encodes the position of the last item of a page: its time, and a tie
// breaker for items of the same time. list names the kind of list, so that a
// cursor of another list is rejected.
func cursor(list string, us int64, tie string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + " " + strconv.FormatInt(us, 10) + " " + tie))
}

func parseCursor(op, list, s string) (us int64, tie string, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	fields := strings.SplitN(string(b), " ", 3)
	if err == nil && len(fields) == 3 && fields[0] == list {
		if us, err = strconv.ParseInt(fields[1], 10, 64); err == nil {
			return us, fields[2], nil
		}
	}
	return 0, "", artel.Errorf(artel.Invalid, op, "cursor", "%q is not a cursor of this list: leave it out to begin again", artel.Shorten(strings.ToValidUTF8(s, "?"), 80))
}
