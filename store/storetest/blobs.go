// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// reserved reserves a key for an hour and returns it as the object of a digest.
func (c *check) reserved(n byte, key string) blob.Object {
	c.Must("Reserve", c.s.Blobs().Reserve(c.Context(), time.Hour, key))
	return blob.Object{Digest: numbered(n), Size: 1<<40 + int64(n), Key: key}
}

func (c *check) keep(o blob.Object) blob.Object {
	kept, err := c.s.Blobs().Keep(c.Context(), o)
	c.Must("Keep", err)
	return kept
}

// due returns all keys that are trash, sorted.
func (c *check) due() []string {
	keys, err := c.s.Blobs().Due(c.Context(), 1<<20)
	c.Must("Due", err)
	slices.Sort(keys)
	return keys
}

// drops drops a digest kept before a time, and expects it to be gone, or not.
func (c *check) drops(what string, d artel.Digest, before time.Time, rest time.Duration, want bool) {
	gone, err := c.s.Blobs().Drop(c.Context(), d, before, rest)
	c.Must(what, err)
	c.Want(gone == want, "%s: gone is %v", what, gone)
}

func (c *check) lacks(d artel.Digest) {
	_, err := c.s.Blobs().Find(c.Context(), d)
	c.Kind("Find of a digest that is not there", err, artel.NotFound)
}

// passed waits until the clock is after t.
func passed(t time.Time) {
	for !time.Now().After(t) {
		time.Sleep(time.Millisecond)
	}
}

func blobsKeep(c *check) {
	c.lacks(numbered(1))
	c.lacks("no digest")
	first := c.reserved(1, awkward)
	began := time.Now()
	kept := c.keep(first)
	c.Want(!kept.Time.Before(began) && kept.Time.Before(began.Add(time.Hour)), "Keep at %v has the time %v", began, kept.Time)
	first.Time = kept.Time
	c.Same("what is kept", kept, first)
	found, err := c.s.Blobs().Find(c.Context(), first.Digest)
	c.Must("Find", err)
	c.Same("what is found", found, first)
	passed(kept.Time)
	again := c.keep(c.reserved(1, "k2"))
	c.Want(again.Time.After(kept.Time), "kept again, the time is still %v", again.Time)
	first.Time = again.Time
	c.Same("kept again under another key", again, first)
	passed(again.Time)
	renewed := c.keep(blob.Object{Digest: first.Digest})
	c.Want(renewed.Time.After(again.Time), "renewed, the time is still %v", renewed.Time)
	first.Time = renewed.Time
	c.Same("renewed", renewed, first)
	_, err = c.s.Blobs().Keep(c.Context(), blob.Object{Digest: numbered(2)})
	c.Kind("to renew what is not there", err, artel.NotFound)
	c.lacks(numbered(2))
	_, err = c.s.Blobs().Keep(c.Context(), blob.Object{Digest: "sha256-x", Key: "k2"})
	c.Kind("to keep what is no digest", err, artel.Invalid)
}

func blobsReserved(c *check) {
	x := c.s.Blobs()
	_, err := x.Keep(c.Context(), blob.Object{Digest: numbered(1), Size: 1, Key: "nobody's"})
	c.Kind("a key that was not reserved", err, artel.Conflict)
	c.lacks(numbered(1))
	c.Must("Reserve", x.Reserve(c.Context(), 0, "late", "a", "b"))
	c.Kind("a key that is reserved", x.Reserve(c.Context(), 0, "c", "a"), artel.Conflict)
	passed(time.Now())
	_, err = x.Keep(c.Context(), blob.Object{Digest: numbered(1), Size: 1, Key: "late"})
	c.Kind("a key whose rest has ended", err, artel.Conflict)
	c.lacks(numbered(1))
	c.keep(c.reserved(2, "kept"))
	c.keep(c.reserved(2, "spare"))
	_, err = x.Keep(c.Context(), blob.Object{Digest: numbered(3), Size: 1, Key: "kept"})
	c.Kind("a key that is in use", err, artel.Conflict)
	c.Same("trash, without what is reserved for an hour", c.due(), []string{"a", "b", "late"})
	some, err := x.Due(c.Context(), 2)
	c.Must("Due", err)
	c.Same("at most two of the trash", len(some), 2)
	c.Must("Forget", x.Forget(c.Context(), "late", "b", "missing"))
	c.Same("trash after Forget", c.due(), []string{"a"})
	spare, err := x.Keep(c.Context(), blob.Object{Digest: numbered(4), Key: "spare"})
	c.Must("a key that another one made unnecessary can be used", err)
	c.Same("its key", spare.Key, "spare")
}

func blobsDrop(c *check) {
	o := c.keep(c.reserved(1, "k1"))
	other := c.keep(c.reserved(2, "k2"))
	for _, before := range []time.Time{{}, o.Time.Add(-time.Microsecond), o.Time} {
		c.drops("Drop of what was kept since", o.Digest, before, 0, false)
	}
	passed(o.Time)
	between := time.Now()
	o = c.keep(o)
	c.drops("Drop of what was renewed since", o.Digest, between, 0, false)
	c.Same("trash", c.due(), []string(nil))
	c.drops("Drop of what is old", o.Digest, o.Time.Add(time.Nanosecond), 0, true)
	c.lacks(o.Digest)
	c.drops("Drop of what is gone", o.Digest, o.Time, 0, true)
	c.drops("Drop of no digest", "x", o.Time, 0, true)
	passed(time.Now())
	c.Same("trash after Drop", c.due(), []string{"k1"})
	c.drops("Drop with a rest", other.Digest, other.Time.Add(time.Hour), time.Hour, true)
	c.Same("trash before the rest has ended", c.due(), []string{"k1"})
	_, err := c.s.Blobs().Keep(c.Context(), blob.Object{Digest: o.Digest, Key: "k1"})
	c.Kind("a key that was dropped", err, artel.Conflict)
	c.Same("the key of what is put again", c.keep(c.reserved(1, "k3")).Key, "k3")
}

func blobsList(c *check) {
	const n = 1200
	keys, want := make([]string, n), map[string]artel.Digest{}
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	c.Must("Reserve", c.s.Blobs().Reserve(c.Context(), time.Hour, keys...))
	for i, key := range keys {
		var sum [32]byte
		sum[0], sum[31] = byte(i), byte(i>>8)
		o := c.keep(blob.Object{Digest: artel.NewDigest(sum), Size: int64(i), Key: key})
		want[key] = o.Digest
	}
	got := map[string]artel.Digest{}
	c.Must("List", c.s.Blobs().List(c.Context(), func(o blob.Object) bool {
		if _, twice := got[o.Key]; twice || o.Time.IsZero() || fmt.Sprint("k", o.Size) != o.Key {
			c.Failf("listed %+v", o)
		}
		got[o.Key] = o.Digest
		if len(got)%100 == 1 {
			c.drops("Drop while listing", o.Digest, o.Time.Add(time.Hour), time.Hour, true)
		}
		return true
	}))
	c.Want(maps.Equal(got, want), "%d objects were listed, want %d", len(got), n)
	told := 0
	c.Must("List", c.s.Blobs().List(c.Context(), func(blob.Object) bool { told++; return told < 3 }))
	c.Same("told to stop after 3", told, 3)
}

// blobsRace drops old objects while they are kept again. None that was kept since is
// dropped, and each key has one place: in use, or in the trash.
func blobsRace(c *check) {
	x := c.s.Blobs()
	all := map[string]bool{}
	for i := range 40 {
		old := c.keep(c.reserved(byte(i%3), fmt.Sprint("old", i)))
		all[fmt.Sprint("old", i)] = true
		passed(old.Time)
		before := time.Now()
		var dropping, keeping sync.WaitGroup
		for range 2 {
			dropping.Go(func() {
				if _, err := x.Drop(c.Context(), old.Digest, before, 0); err != nil {
					c.Failf("Drop beside Keep: %w", err)
				}
			})
		}
		for who := range 2 {
			o := c.reserved(byte(i%3), fmt.Sprint("new", i, who))
			all[o.Key] = true
			keeping.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Microsecond) // another moment of Drop each time
				kept, err := x.Keep(c.Context(), o)
				if err != nil || kept.Time.Before(before) {
					c.Failf("Keep beside Drop: %+v, %w", kept, err)
				}
			})
		}
		keeping.Wait()
		dropping.Wait()
		_, err := x.Find(c.Context(), old.Digest)
		c.Must("what was kept is lost", err)
	}
	inUse := map[string]bool{}
	c.Must("List", x.List(c.Context(), func(o blob.Object) bool { inUse[o.Key] = true; return true }))
	for key := range all {
		trash := artel.KindOf(x.Reserve(c.Context(), time.Hour, key)) == artel.Conflict
		c.Want(trash != inUse[key], "the key %s is in use: %v, in the trash: %v", key, inUse[key], trash)
	}
}
