// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// PostgreSQL has no zero byte in text. It is written as the byte 1 and "0", and the byte
// 1 as itself and "1", so that equal texts stay equal and others different.

func escape(s string) string {
	if !strings.ContainsAny(s, "\x00\x01") {
		return s
	}
	return strings.NewReplacer("\x00", "\x010", "\x01", "\x011").Replace(s)
}

func unescape(s string) string {
	if strings.IndexByte(s, 1) < 0 {
		return s
	}
	return strings.NewReplacer("\x010", "\x00", "\x011", "\x01").Replace(s)
}

// arguments converts the arguments of a statement into what its columns take.
func arguments(args []any) ([]any, error) {
	out := make([]any, len(args))
	for i, arg := range args {
		if list, ok := arg.([]string); ok {
			escaped := make([]string, len(list))
			for i, s := range list {
				escaped[i] = escape(s)
			}
			out[i] = escaped
			continue
		}
		v, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case string:
			out[i] = escape(v)
		case bool:
			if out[i] = int64(0); v {
				out[i] = int64(1)
			}
		default:
			out[i] = v
		}
	}
	return out, nil
}

// A row scans the columns of the current row, as database/sql does: numbers, booleans and
// texts into variables of any such type, pointers to them for NULL, and Scanners.
type row struct{ rows pgx.Rows }

// Scan implements [rows.Row].
func (r row) Scan(dest ...any) error {
	fields, raw := r.rows.FieldDescriptions(), r.rows.RawValues()
	if len(dest) != len(raw) {
		return fmt.Errorf("%d columns for %d variables", len(raw), len(dest))
	}
	for i, to := range dest {
		if err := scan(to, fields[i], raw[i]); err != nil {
			return fmt.Errorf("column %s: %w", fields[i].Name, err)
		}
	}
	return nil
}

func scan(to any, field pgconn.FieldDescription, raw []byte) error {
	if to, ok := to.(*sql.RawBytes); ok { // valid until the next row
		*to = raw
		if field.DataTypeOID != pgtype.ByteaOID && strings.IndexByte(string(raw), 1) >= 0 {
			*to = sql.RawBytes(unescape(string(raw)))
		}
		return nil
	}
	v, err := value(field, raw)
	if err != nil {
		return err
	}
	switch to := to.(type) {
	case sql.Scanner:
		return to.Scan(v)
	case *[]byte:
		switch v := v.(type) {
		case nil:
			*to = nil
		case []byte:
			*to = v
		case string:
			*to = []byte(v)
		default:
			return fmt.Errorf("%T into bytes", v)
		}
		return nil
	}
	return assign(reflect.ValueOf(to).Elem(), v)
}

// assign stores a value in a variable.
func assign(to reflect.Value, v driver.Value) error {
	if to.Kind() == reflect.Pointer {
		if v == nil {
			to.SetZero()
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return assign(to.Elem(), v)
	}
	switch v := v.(type) {
	case string:
		if to.Kind() == reflect.String {
			to.SetString(v)
			return nil
		}
	case int64:
		switch {
		case to.CanInt():
			to.SetInt(v)
			return nil
		case to.Kind() == reflect.Bool:
			to.SetBool(v != 0)
			return nil
		}
	case float64:
		if to.CanFloat() {
			to.SetFloat(v)
			return nil
		}
	}
	return fmt.Errorf("%T into %s", v, to.Type())
}

// value decodes a column into what [rows.Conn] has: numbers of all sizes and booleans are
// int64.
func value(field pgconn.FieldDescription, raw []byte) (driver.Value, error) {
	if raw == nil {
		return nil, nil
	}
	binaryFormat := field.Format == pgx.BinaryFormatCode
	switch field.DataTypeOID {
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.UnknownOID, pgtype.NameOID:
		return unescape(string(raw)), nil
	case pgtype.ByteaOID:
		if binaryFormat {
			return append([]byte{}, raw...), nil
		}
	case pgtype.Int8OID, pgtype.Int4OID, pgtype.Int2OID, pgtype.BoolOID, pgtype.Float8OID:
		if !binaryFormat {
			break
		}
		switch {
		case field.DataTypeOID == pgtype.Float8OID && len(raw) == 8:
			return math.Float64frombits(binary.BigEndian.Uint64(raw)), nil
		case len(raw) == 8:
			return int64(binary.BigEndian.Uint64(raw)), nil
		case len(raw) == 4:
			return int64(int32(binary.BigEndian.Uint32(raw))), nil
		case len(raw) == 2:
			return int64(int16(binary.BigEndian.Uint16(raw))), nil
		case len(raw) == 1:
			return int64(raw[0]), nil
		}
	}
	return nil, fmt.Errorf("type %d in format %d is not known", field.DataTypeOID, field.Format)
}
