// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"slices"
	"testing"

	"github.com/artelhq/artel/event"
)

func TestLocalChanges(t *testing.T) {
	changes := event.NewChanges()
	changes.Announce("users", "nobody listens")
	var got []string
	hear := func(name, topic string) func() {
		return changes.OnChange(topic, func(key string) { got = append(got, name+" "+key) })
	}
	first, second := hear("first", "users"), hear("second", "users")
	hear("other", "keys")
	changes.Announce("users", "usr_1")
	first()
	first()
	changes.Announce("users", "usr_2")
	second()
	changes.Announce("users", "usr_3")
	changes.AnnounceAll()
	if want := []string{"first usr_1", "second usr_1", "second usr_2", "other "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
