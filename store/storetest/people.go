// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// people and seePeople run fn on the people; its error ends the clause.
func (c *check) people(fn func(store.PeopleTx) error) {
	c.Must("update of people", c.s.People().Update(c.Context(), fn))
}

func (c *check) seePeople(fn func(store.PeopleTx) error) {
	c.Must("view of people", c.s.People().View(c.Context(), fn))
}

// peopleRefuse expects fn to fail with a kind, in an update.
func (c *check) peopleRefuse(what string, want artel.Kind, fn func(store.PeopleTx) error) {
	c.Kind(what, c.s.People().Update(c.Context(), fn), want)
}

func (c *check) user(id artel.Owner) store.User {
	return store.User{
		ID: id, Name: awkward, Email: string(id) + "@example.org", Role: store.Member, Password: "hash of " + string(id),
		CreatedAt: c.now, UpdatedAt: c.at(1),
	}
}

// withUsers makes users.
func (c *check) withUsers(ids ...artel.Owner) {
	c.people(func(tx store.PeopleTx) error {
		for _, id := range ids {
			if err := tx.Users.Create(c.user(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

func peopleUsers(c *check) {
	c.withUsers("zoe", "ann")
	zoe, ann := c.user("zoe"), c.user("ann")
	c.peopleRefuse("a second user of an id", artel.Conflict, func(tx store.PeopleTx) error { return tx.Users.Create(store.User{ID: "ann", Email: "x"}) })
	c.peopleRefuse("a second user of an address", artel.Conflict, func(tx store.PeopleTx) error { return tx.Users.Create(store.User{ID: "x", Email: ann.Email}) })
	c.peopleRefuse("an address that is taken", artel.Conflict, func(tx store.PeopleTx) error {
		u := zoe
		u.Email = ann.Email
		return tx.Users.Update(u)
	})
	missing := store.User{ID: "nobody", Email: "nobody"}
	c.peopleRefuse("Update of nobody", artel.NotFound, func(tx store.PeopleTx) error { return tx.Users.Update(missing) })
	c.peopleRefuse("Delete of nobody", artel.NotFound, func(tx store.PeopleTx) error { return tx.Users.Delete("nobody") })
	zoe.Name, zoe.Email, zoe.Role, zoe.Password, zoe.Disabled, zoe.UpdatedAt = "Zoe", "z@example.org", store.Admin, "", true, c.at(9)
	c.people(func(tx store.PeopleTx) error {
		changed := zoe
		changed.CreatedAt = c.at(99) // stays
		return tx.Users.Update(changed)
	})
	c.seePeople(func(tx store.PeopleTx) error {
		all, err := tx.Users.List()
		if err != nil {
			return err
		}
		c.Same("users in order of creation", all, []store.User{zoe, ann})
		one, err := tx.Users.Get("ann")
		if err != nil {
			return err
		}
		c.Same("Get", one, ann)
		one, err = tx.Users.ByEmail("z@example.org")
		c.Same("ByEmail", one, zoe)
		return err
	})
	for what, read := range map[string]func(store.PeopleTx) error{
		"Get of nobody":     func(tx store.PeopleTx) error { _, err := tx.Users.Get("nobody"); return err },
		"ByEmail of nobody": func(tx store.PeopleTx) error { _, err := tx.Users.ByEmail("zoe@example.org"); return err },
	} {
		c.Kind(what, c.s.People().View(c.Context(), read), artel.NotFound)
	}
}

func peopleInvitations(c *check) {
	c.withUsers("ann", "bob")
	put := func(i store.Invitation) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Invitations.Put(i) }
	}
	take := func(d artel.Digest, now time.Time) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { _, err := tx.Invitations.Take(d, now); return err }
	}
	c.people(put(store.Invitation{Hash: numbered(1), User: "ann", ExpiresAt: c.at(5)}))
	c.people(put(store.Invitation{Hash: numbered(2), User: "bob", ExpiresAt: c.at(5)}))
	c.people(put(store.Invitation{Hash: numbered(3), User: "ann", ExpiresAt: c.at(5)}))
	c.peopleRefuse("an invitation of nobody", artel.NotFound, put(store.Invitation{Hash: numbered(4), User: "nobody", ExpiresAt: c.at(5)}))
	c.peopleRefuse("a replaced invitation", artel.NotFound, take(numbered(1), c.now))
	c.peopleRefuse("an invitation that has ended", artel.NotFound, take(numbered(2), c.at(5)))
	for _, at := range []int{4, 5} {
		find := func(tx store.PeopleTx) error { _, err := tx.Invitations.Find(numbered(3), c.at(at)); return err }
		if at == 4 {
			c.people(find)
		} else {
			c.peopleRefuse("finding an invitation that has ended", artel.NotFound, find)
		}
	}
	c.people(func(tx store.PeopleTx) error {
		i, err := tx.Invitations.Take(numbered(3), c.at(4))
		c.Same("invitation", i, store.Invitation{Hash: numbered(3), User: "ann", ExpiresAt: c.at(5)})
		return err
	})
	c.peopleRefuse("an invitation that was taken", artel.NotFound, take(numbered(3), c.now))
}

func peopleIdentities(c *check) {
	c.withUsers("ann", "bob")
	const issuer = "https://id.example"
	create := func(issuer, subject string, user artel.Owner) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error {
			return tx.Identities.Create(store.Identity{Issuer: issuer, Subject: subject, User: user, CreatedAt: c.now})
		}
	}
	c.people(create(issuer, "1", "bob"))
	c.people(create("https://other.example", "1", "ann"))
	c.people(create(issuer, awkward, "ann"))
	c.peopleRefuse("an identity of nobody", artel.NotFound, create(issuer, "9", "nobody"))
	c.peopleRefuse("the account of another user", artel.Conflict, create(issuer, "1", "ann"))
	c.peopleRefuse("a second account of a provider", artel.Conflict, create(issuer, "2", "bob"))
	c.seePeople(func(tx store.PeopleTx) error {
		all, err := tx.Identities.List("ann")
		c.Same("identities", all, []store.Identity{
			{Issuer: "https://other.example", Subject: "1", User: "ann", CreatedAt: c.now}, {Issuer: issuer, Subject: awkward, User: "ann", CreatedAt: c.now},
		})
		if err != nil {
			return err
		}
		one, err := tx.Identities.Find(issuer, "1")
		c.Same("Find", one, store.Identity{Issuer: issuer, Subject: "1", User: "bob", CreatedAt: c.now})
		return err
	})
	c.Kind("Find of none", c.s.People().View(c.Context(), func(tx store.PeopleTx) error { _, err := tx.Identities.Find("https://other.example", "2"); return err }), artel.NotFound)
	c.people(func(tx store.PeopleTx) error { return tx.Users.Delete("bob") })
	c.peopleRefuse("the account of a deleted user", artel.NotFound, func(tx store.PeopleTx) error { _, err := tx.Identities.Find(issuer, "1"); return err })
}

func (c *check) login(id string, n byte, user artel.Owner) store.Session {
	return store.Session{
		ID: id, Hash: numbered(n), User: user, Client: awkward, Address: "192.0.2.7",
		CreatedAt: c.now, UsedAt: c.at(int(n)), ExpiresAt: c.at(100),
	}
}

func (c *check) createSessions(all ...store.Session) {
	c.people(func(tx store.PeopleTx) error {
		for _, s := range all {
			if err := tx.Sessions.Create(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// sessions are the ids of a user's.
func (c *check) sessions(user artel.Owner) (ids []string) {
	c.seePeople(func(tx store.PeopleTx) error {
		all, err := tx.Sessions.List(user)
		for _, s := range all {
			ids = append(ids, s.ID)
		}
		return err
	})
	return ids
}

func peopleSessions(c *check) {
	c.withUsers("ann", "bob")
	one, two, other := c.login("one", 1, "ann"), c.login("two", 2, "ann"), c.login("other", 3, "bob")
	c.createSessions(one, two, other)
	create := func(s store.Session) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Sessions.Create(s) }
	}
	c.peopleRefuse("a session of nobody", artel.NotFound, create(c.login("x", 4, "nobody")))
	c.peopleRefuse("a session with an id that exists", artel.Conflict, create(c.login("one", 4, "ann")))
	c.peopleRefuse("a session with a hash that exists", artel.Conflict, create(c.login("x", 1, "ann")))
	one.UsedAt = c.at(50)
	c.people(func(tx store.PeopleTx) error {
		return errors.Join(tx.Sessions.Touch("one", one.UsedAt), tx.Sessions.Touch("missing", c.now))
	})
	c.seePeople(func(tx store.PeopleTx) error {
		all, err := tx.Sessions.List("ann")
		if err != nil {
			return err
		}
		c.Same("sessions of ann, newest first", all, []store.Session{two, one})
		found, err := tx.Sessions.Find(numbered(3))
		c.Same("Find", found, other)
		return err
	})
	c.Kind("Find of none", c.s.People().View(c.Context(), func(tx store.PeopleTx) error { _, err := tx.Sessions.Find(numbered(9)); return err }), artel.NotFound)
}

func peopleSessionsEnd(c *check) {
	c.withUsers("ann", "bob")
	c.createSessions(c.login("one", 1, "ann"), c.login("two", 2, "ann"), c.login("three", 3, "ann"), c.login("four", 4, "ann"), c.login("other", 5, "bob"))
	end := func(user artel.Owner, id string) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Sessions.Delete(user, id) }
	}
	c.peopleRefuse("the end of another user's session", artel.NotFound, end("bob", "one"))
	c.people(end("ann", "two"))
	c.peopleRefuse("a second end", artel.NotFound, end("ann", "two"))
	c.people(func(tx store.PeopleTx) error { return tx.Sessions.Prune(c.at(99), c.at(3)) })
	c.Same("after those without use are removed", c.sessions("ann"), []string{"four", "three"})
	c.people(end("ann", ""))
	c.people(end("ann", "")) // has none any more
	c.Same("after all of a user have ended", c.sessions("ann"), []string(nil))
	c.Same("those of another user", c.sessions("bob"), []string{"other"})
	c.people(func(tx store.PeopleTx) error { return tx.Sessions.Prune(c.at(101), c.now) })
	c.Same("after the end of all", c.sessions("bob"), []string(nil))
}

func peopleTokens(c *check) {
	c.withUsers("ann", "bob")
	bare := store.Token{ID: "bare", Hash: numbered(1), User: "ann", Scopes: []store.Scope{store.ScopeRead}, CreatedAt: c.now}
	whole := store.Token{
		ID: "whole", Hash: numbered(2), User: "ann", Name: awkward, Scopes: []store.Scope{store.ScopeGateway, store.ScopeAdmin},
		CreatedAt: c.now, UsedAt: c.at(1), ExpiresAt: c.at(9),
	}
	create := func(t store.Token) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Tokens.Create(t) }
	}
	c.people(create(bare))
	c.people(create(whole))
	c.peopleRefuse("a token of nobody", artel.NotFound, create(store.Token{ID: "x", Hash: numbered(3), User: "nobody"}))
	c.peopleRefuse("a token with an id that exists", artel.Conflict, create(store.Token{ID: "bare", Hash: numbered(3), User: "bob"}))
	c.peopleRefuse("a token with a hash that exists", artel.Conflict, create(store.Token{ID: "x", Hash: numbered(1), User: "bob"}))
	bare.UsedAt = c.at(7)
	c.people(func(tx store.PeopleTx) error {
		return errors.Join(tx.Tokens.Touch("bare", bare.UsedAt), tx.Tokens.Touch("missing", c.now))
	})
	c.seePeople(func(tx store.PeopleTx) error {
		all, err := tx.Tokens.List("ann")
		if err != nil {
			return err
		}
		c.Same("tokens of ann, newest first", all, []store.Token{whole, bare})
		none, err := tx.Tokens.List("bob")
		if err != nil {
			return err
		}
		c.Same("tokens of bob", len(none), 0)
		found, err := tx.Tokens.Find(numbered(2))
		c.Same("Find", found, whole)
		return err
	})
	remove := func(user artel.Owner) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error { return tx.Tokens.Delete(user, "whole") }
	}
	c.peopleRefuse("Delete of another user's token", artel.NotFound, remove("bob"))
	c.people(remove("ann"))
	c.peopleRefuse("Delete of none", artel.NotFound, remove("ann"))
	c.Kind("Find of a deleted token", c.s.People().View(c.Context(), func(tx store.PeopleTx) error { _, err := tx.Tokens.Find(numbered(2)); return err }), artel.NotFound)
}

// peopleTokenParents: a token ends with the one that it was made with.
func peopleTokenParents(c *check) {
	c.withUsers("ann", "bob")
	create := func(id string, n byte, user artel.Owner, parent string) func(store.PeopleTx) error {
		return func(tx store.PeopleTx) error {
			return tx.Tokens.Create(store.Token{ID: id, Hash: numbered(n), User: user, Parent: parent, CreatedAt: c.now})
		}
	}
	c.people(create("root", 1, "ann", ""))
	c.people(create("child", 2, "ann", "root"))
	c.people(create("grandchild", 3, "ann", "child"))
	c.people(create("other", 4, "ann", ""))
	c.people(create("bobs", 5, "bob", ""))
	c.peopleRefuse("a token of a parent that is not there", artel.NotFound, create("x", 6, "ann", "nothing"))
	c.peopleRefuse("a token of another user's parent", artel.NotFound, create("x", 6, "bob", "root"))
	ids := func(user artel.Owner) (ids []string) {
		c.seePeople(func(tx store.PeopleTx) error {
			all, err := tx.Tokens.List(user)
			for _, t := range all {
				ids = append(ids, t.ID+" of "+t.Parent)
			}
			return err
		})
		return ids
	}
	c.Same("tokens of ann", ids("ann"), []string{"other of ", "grandchild of child", "child of root", "root of "})
	c.people(func(tx store.PeopleTx) error { return tx.Tokens.Delete("ann", "root") })
	c.Same("after the end of the root", ids("ann"), []string{"other of "})
	c.people(func(tx store.PeopleTx) error { return tx.Tokens.Delete("ann", "") })
	c.people(func(tx store.PeopleTx) error { return tx.Tokens.Delete("ann", "") }) // has none any more
	c.Same("after the end of all", ids("ann"), []string(nil))
	c.Same("those of another user", ids("bob"), []string{"bobs of "})
}

// peopleDeleted: what lets a user in goes with the user, what the user owns stays.
func peopleDeleted(c *check) {
	c.withUsers(me, "ann")
	conv := c.conversation()
	c.createSessions(c.login("one", 1, me))
	c.people(func(tx store.PeopleTx) error {
		return errors.Join(
			tx.Tokens.Create(store.Token{ID: "token", Hash: numbered(2), User: me}),
			tx.Invitations.Put(store.Invitation{Hash: numbered(3), User: me, ExpiresAt: c.at(9)}))
	})
	c.people(func(tx store.PeopleTx) error { return tx.Users.Delete(me) })
	for what, read := range map[string]func(store.PeopleTx) error{
		"session":    func(tx store.PeopleTx) error { _, err := tx.Sessions.Find(numbered(1)); return err },
		"token":      func(tx store.PeopleTx) error { _, err := tx.Tokens.Find(numbered(2)); return err },
		"invitation": func(tx store.PeopleTx) error { _, err := tx.Invitations.Take(numbered(3), c.now); return err },
	} {
		c.peopleRefuse(what+" of a deleted user", artel.NotFound, read)
	}
	c.view(func(tx store.Tx) error { _, err := tx.Conversations.Get(conv); return err })
}

// peopleTransactions: an update that fails has changed nothing.
func peopleTransactions(c *check) {
	failed := errors.New("refused")
	err := c.s.People().Update(c.Context(), func(tx store.PeopleTx) error {
		return errors.Join(tx.Users.Create(c.user("ann")), failed)
	})
	c.Want(errors.Is(err, failed), "got %v, want the error of the function", err)
	c.seePeople(func(tx store.PeopleTx) error {
		all, err := tx.Users.List()
		c.Same("users", len(all), 0)
		return err
	})
	c.Kind("a view that writes", c.s.People().View(c.Context(), func(tx store.PeopleTx) error { return tx.Users.Create(c.user("ann")) }), artel.Internal)
	c.people(func(tx store.PeopleTx) error { return tx.Audit.Add(store.AuditEntry{Time: c.now, Action: "x"}) })
	items, _, err := c.s.Audit().List(c.Context(), store.AuditQuery{})
	c.Must("List", err)
	c.Same("acts", len(items), 1)
}
