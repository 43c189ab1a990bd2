// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
)

// TestPack sets every field, so that one that is added and not packed fails.
func TestPack(t *testing.T) {
	var n headRow
	fields := 0
	fill(t, reflect.ValueOf(&n.Artifact).Elem(), &fields)
	n.message, n.mixed = "msg_1", true
	n.Kind = artel.KindText
	for _, a := range []headRow{n, {}} {
		a.CreatedAt, a.UpdatedAt = time.UnixMicro(1_700_000_000_123_456).UTC(), time.UnixMicro(-5).UTC()
		a.Conversation, a.Binary, a.Live = "cnv_a", a.IsBinary(), false
		a.Ref = artel.Ref{Conversation: "cnv_a", Artifact: a.ID}
		packed := encodeHead(a)
		got, err := decodeHead("cnv_a", packed)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(a, got, cmp.AllowUnexported(headRow{}, visibility{})); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		for i := range packed {
			if _, err := decodeHead("cnv_a", packed[:i]); err == nil {
				t.Errorf("%q is taken", packed[:i])
			}
		}
		if _, err := decodeHead("cnv_a", packed+","); err == nil {
			t.Error("what follows is taken")
		}
	}
}

// fill gives every field a value of its own.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	case reflect.String:
		v.SetString("1:字,\x00" + string(rune('a'+*n)))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(1 / float64(*n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("a field of kind %s", v.Kind())
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(encodeHead(headRow{visibility: visibility{message: "msg_1"}}))
	f.Add("99999999999999999999:x")
	f.Add("-1:")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := decodeHead("cnv_a", s)
		if err != nil {
			return
		}
		again, err := decodeHead("cnv_a", encodeHead(n))
		if err != nil || !cmp.Equal(n, again, cmp.AllowUnexported(headRow{}, visibility{}), cmp.Comparer(func(a, b float64) bool { return a == b || a != a && b != b })) {
			t.Fatalf("%q is %v, and then %v, %v", s, n, again, err)
		}
	})
}
