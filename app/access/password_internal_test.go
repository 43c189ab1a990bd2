// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// TestLoginWork: a login costs the same work, which is one hash, and a failed one has the
// same answer, whether there is an account or not, and whatever is wrong with it.
func TestLoginWork(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	a := New(Config{Store: rowstest.Open(t), Options: Options{Mode: Required}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	t.Cleanup(a.Close)
	var work []string
	argon := a.core.argon
	a.core.argon = func(password, salt []byte, time, memory uint32, threads uint8, length uint32) []byte {
		work = append(work, fmt.Sprintf("%d passes, %d KiB, %d threads, %d bytes of salt, %d of key", time, memory, threads, len(salt), length))
		return argon(password, salt, time, memory, threads, length)
	}
	const right = "a long password"
	admin := With(t.Context(), Operator())
	_, err := a.Users.Setup(admin, Setup{Name: "Ann", Email: "ann@example.org", Password: right})
	invite := func(name, email string) (artel.Owner, string) {
		u, code, bad := a.Users.Invite(admin, NewUser{Name: name, Email: email})
		err = errors.Join(err, bad)
		return u.ID, code
	}
	bob, code := invite("Bob", "bob@example.org")
	_, accepted := a.Users.Accept(t.Context(), code, right)
	yes := true
	_, updated := a.Users.Update(admin, bob, UserPatch{Disabled: &yes})
	invite("Eve", "eve@example.org")
	if err := errors.Join(err, accepted, updated); err != nil {
		t.Fatal(err)
	}

	var costs, answers []string
	for _, l := range []Login{
		{Email: "ann@example.org", Password: right},
		{Email: "ann@example.org", Password: "a wrong password"},
		{Email: "nobody@example.org", Password: right},
		{Email: "no address", Password: right},
		{Email: "", Password: ""},
		{Email: "bob@example.org", Password: right}, // disabled
		{Email: "eve@example.org", Password: right}, // has no password yet
		{Email: "eve@example.org", Password: ""},
		{Email: "ann@example.org", Password: strings.Repeat("a", MaxPassword+1)},
		{Email: "nobody@example.org", Password: strings.Repeat("a", MaxPassword+1)},
	} {
		now = now.Add(2 * time.Hour) // no earlier failure delays it
		work = nil
		_, _, err := a.Sessions.Login(t.Context(), l)
		costs = append(costs, strings.Join(work, "; "))
		if len(costs) == 1 {
			if err != nil {
				t.Errorf("the right password: %v", err)
			}
			continue
		}
		e, ok := errors.AsType[*artel.Error](err)
		if !ok {
			t.Fatalf("%s: %v", l.Email, err)
		}
		answers = append(answers, fmt.Sprint(e.Kind, e.Code, e.Subject, e.Err))
	}
	if costs = slices.Compact(costs); len(costs) != 1 || costs[0] == "" || strings.Contains(costs[0], ";") {
		t.Errorf("the work differs: %q", costs)
	}
	if answers = slices.Compact(answers); len(answers) != 1 {
		t.Errorf("the answers differ: %q", answers)
	}
}
