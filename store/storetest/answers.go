// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

func answersRoundTrip(c *check) {
	for _, a := range []store.Answer{
		{Key: "full " + awkward, Request: artel.NewDigest([32]byte{1}), Status: 201, Body: []byte("\x00\xff body"), CreatedAt: c.at(1)},
		{Key: "empty", Body: []byte{}, CreatedAt: c.now},
		{Key: "nil", CreatedAt: c.now},
	} {
		c.update(func(tx store.Tx) error { return tx.Answers.Put(a) })
		reads(c, "Get", a, func(tx store.Tx) (store.Answer, error) { return tx.Answers.Get(a.Key) })
		c.refused("Put of a key that is there", artel.Conflict, func(tx store.Tx) error { return tx.Answers.Put(a) })
	}
	c.missing("Get of an unknown key", func(tx store.Tx) error { _, err := tx.Answers.Get("none"); return err })
}

func answersPrune(c *check) {
	for i, key := range []string{"old", "edge", "new"} {
		c.update(func(tx store.Tx) error { return tx.Answers.Put(store.Answer{Key: key, CreatedAt: c.at(i)}) })
	}
	c.update(func(tx store.Tx) error { return tx.Answers.Prune(c.at(1)) })
	c.missing("Get of what was pruned", func(tx store.Tx) error { _, err := tx.Answers.Get("old"); return err })
	c.view(func(tx store.Tx) error {
		_, err := tx.Answers.Get("edge")
		if err == nil {
			_, err = tx.Answers.Get("new")
		}
		return err
	})
}
