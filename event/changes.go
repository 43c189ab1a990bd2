// SPDX-License-Identifier: Apache-2.0

package event

import (
	"slices"
	"sync"
)

// Changes tells the processes of a deployment that what they have read has changed since, such as
// settings, keys and users, so that they may keep it in memory. It stores nothing and is safe for
// concurrent use. [NewChanges] makes the one for a single process; event/bus has one for several.
type Changes interface {
	// Announce says that the thing of a topic that has a key has changed, after it was
	// committed. It calls the functions of this process before it returns, and does not wait for other
	// processes. Neither topic nor key is secret.
	Announce(topic, key string)

	// OnChange calls changed after each change in a topic, until the returned function is called. The key
	// "" says that everything of the topic may have changed: messages between processes may
	// have been lost. While they do not get through, that comes every second. Calls may be concurrent, late, and repeated;
	// changed must not block.
	OnChange(topic string, changed func(key string)) (cancel func())
}

// LocalChanges is [Changes] for a single process.
type LocalChanges struct {
	mu     sync.Mutex
	topics map[string][]*func(key string)
}

var _ Changes = (*LocalChanges)(nil)

// NewChanges returns one without listeners.
func NewChanges() *LocalChanges { return &LocalChanges{topics: map[string][]*func(key string){}} }

// Announce implements [Changes].
func (l *LocalChanges) Announce(topic, key string) {
	l.mu.Lock()
	all := l.topics[topic]
	l.mu.Unlock()
	for _, changed := range all {
		(*changed)(key)
	}
}

// AnnounceAll says that everything may have changed.
func (l *LocalChanges) AnnounceAll() {
	l.mu.Lock()
	var all []*func(key string)
	for _, changed := range l.topics {
		all = append(all, changed...)
	}
	l.mu.Unlock()
	for _, changed := range all {
		(*changed)("")
	}
}

// OnChange implements [Changes].
func (l *LocalChanges) OnChange(topic string, changed func(key string)) (cancel func()) {
	entry := &changed
	l.mu.Lock()
	defer l.mu.Unlock()
	l.topics[topic] = append(slices.Clone(l.topics[topic]), entry)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		left := slices.DeleteFunc(slices.Clone(l.topics[topic]), func(one *func(string)) bool { return one == entry })
		if l.topics[topic] = left; len(left) == 0 {
			delete(l.topics, topic)
		}
	}
}
