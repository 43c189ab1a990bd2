// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
)

// A bill is a model that plays the ledger and counts what it is paid for: the
// calls by conversation and turn.
type bill struct {
	script model.Provider

	mu    sync.Mutex
	calls map[string][]int // by conversation: of each turn
	kept  map[string]int   // answers that are in the database
	wrong []string
}

func newBill(t *testing.T) *bill {
	t.Helper()
	s, err := demo.ParseScenario([]byte(ledger()))
	if err != nil {
		t.Fatal(err)
	}
	return &bill{script: demo.New(blob.NewMemory(), demo.Options{Scenario: s}), calls: map[string][]int{}, kept: map[string]int{}}
}

func (b *bill) open(conversation string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[conversation] = make([]int, ledgerTurns+2)
}

// keep notes that so many answers are in the database of a dead server: none of
// them may be asked for again.
func (b *bill) keep(conversation string, answers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept[conversation] = answers
}

// answer implements [fake.Responder].
func (b *bill) answer(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	turn, conversation := 0, ""
	for _, m := range r.Messages {
		switch m.Role {
		case artel.RoleAssistant:
			turn++
		case artel.RoleUser:
			if found := regexp.MustCompile(`Keep the ledger of (\S+)\.`).FindStringSubmatch(artel.TextOf(m.Parts)); found != nil {
				conversation = found[1]
			}
		}
	}
	b.mu.Lock()
	if calls := b.calls[conversation]; turn < len(calls) {
		calls[turn]++
	} else {
		b.wrong = append(b.wrong, fmt.Sprintf("call %d of %q was not expected", turn+1, conversation))
	}
	if turn < b.kept[conversation] {
		b.wrong = append(b.wrong, fmt.Sprintf("call %d of %s was paid for again, though its answer was kept", turn+1, conversation))
	}
	b.mu.Unlock()
	return b.script.Generate(ctx, r)
}

// check returns how many calls a conversation was paid for.
func (b *bill) check(t *testing.T, conversation string) (sum int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.calls[conversation] {
		sum += n
	}
	for _, w := range b.wrong {
		t.Error(w)
	}
	b.wrong = nil
	return sum
}

// report is docs/reliability.md.
func (s *soak) report(seed uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Reliability

`+"`make soak`"+` writes this file. It starts a server on a real database with a model behind OpenAI's API, lets it
keep a ledger with %d edits in %d model calls, and kills it (-9) at random moments, up to
three times per run, while a client uploads files and follows the events. Then it restarts the
server.

| figure | value |
|---|---:|
| kills | %d |
| completed runs | %d |
| edits, each stored once | %d |
| paid model calls | %d |
| restart after a kill, median | %v |
| restart after a kill, maximum | %v |

Checked after every kill:

- every event received by a client is in the log unchanged, numbers have no gaps, and no
  event of a run follows its end;
- every acknowledged run resumes at its last completed step and ends as done;
- every edit of the ledger is stored once, and the text is the result of the edits;
- every acknowledged upload is stored, byte for byte;
- no model answer in the database is requested again;
- every blob is complete, no partial files exist, and SQLite's integrity check passes.

A model call interrupted by the kill is repeated, because its answer had not arrived. For an
interrupted tool call, the journal shows whether an edit was made; idempotent tools are called
again; for every other tool the model gets a result that says that the outcome is unknown. A run
resumed six times without completing a step ends as interrupted. Seed: %d.
`, ledgerTurns*ledgerEdits, ledgerTurns+2, s.kills, s.states[artel.RunDone], s.edits, s.calls, s.start(50), s.start(100), seed)
	return b.String()
}
