// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

// A PeoplePage shows administrators the users.
type PeoplePage struct {
	frame
	Users   []Person
	Roles   []RoleChoice
	Open    bool // there are no users yet
	Name    string
	Email   string // of a new user, in a form that was refused
	Role    store.Role
	Link    *Shown // of the user who was just invited; nil: none
	Problem string
	Of      artel.Owner // the user of the problem; "": a new one
}

// A Person is one user.
type Person struct {
	store.User
	Said    phrase.Key // the role
	Invited bool       // has not set a password
	Self    bool
	URL     string
	Stored  app.StorageUse
}

// A RoleChoice is a role that a user may have.
type RoleChoice struct {
	Role store.Role
	Said phrase.Key
}

func personURL(id artel.Owner) string { return "/people/" + url.PathEscape(string(id)) }

// people shows the users.
func (ui *handler) people(w http.ResponseWriter, r *http.Request) {
	ui.showPeople(w, r, http.StatusOK, PeoplePage{})
}

func (ui *handler) showPeople(w http.ResponseWriter, r *http.Request, status int, p PeoplePage) {
	users, err := ui.app.Access.Users.List(r.Context())
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if p.frame, err = ui.frame(r, ""); err != nil {
		ui.fail(w, r, err)
		return
	}
	p.Title, p.Open, p.Role = locale(r).Say(phrase.PagePeople, nil), len(users) == 0, cmp.Or(p.Role, store.Member)
	if r.URL.Query().Has("saved") {
		p.Toast = &Toast{ID: "toast-saved", Text: locale(r).Say(phrase.PageSaved, nil)}
	}
	for _, role := range []store.Role{store.Admin, store.Member, store.Viewer} {
		p.Roles = append(p.Roles, RoleChoice{role, rolesSaid[role]})
	}
	stored, err := ui.app.Storage.Everyone(r.Context())
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	a, _ := access.Of(r.Context())
	for _, u := range users {
		p.Users = append(p.Users, Person{u, rolesSaid[u.Role], u.Password == "", u.ID == a.Owner, personURL(u.ID), ui.app.Storage.Of(stored, u.ID)})
	}
	ui.show(w, r, status, "people.html", p)
}

// refusePeople shows the users with what was wrong with a form of one of them.
func (ui *handler) refusePeople(w http.ResponseWriter, r *http.Request, p PeoplePage, err error) {
	var status int
	status, p.Problem = ui.explain(r, err)
	ui.showPeople(w, r, status, p)
}

// invited shows the address at which a user sets a password.
func (ui *handler) invited(w http.ResponseWriter, r *http.Request, email, code string) {
	link := peer.Of(r).URL() + "/invite?" + url.Values{"code": {code}}.Encode()
	ui.showPeople(w, r, http.StatusOK, PeoplePage{Link: &Shown{email, link}})
}

// invite makes a user.
func (ui *handler) invite(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	n := access.NewUser{Name: strings.TrimSpace(r.PostFormValue("name")), Email: r.PostFormValue("email"), Role: store.Role(r.PostFormValue("role"))}
	u, code, err := ui.app.Access.Users.Invite(r.Context(), n)
	if err != nil {
		ui.refusePeople(w, r, PeoplePage{Name: n.Name, Email: n.Email, Role: n.Role}, err)
		return
	}
	ui.invited(w, r, u.Email, code)
}

// changePerson changes a user: name, address and role, or whether the user may log in.
func (ui *handler) changePerson(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	id := artel.Owner(r.PathValue("id"))
	var p access.UserPatch
	switch do := r.PostFormValue("do"); do {
	case "enable", "disable":
		disabled := do == "disable"
		p.Disabled = &disabled
	default:
		name, email, role := strings.TrimSpace(r.PostFormValue("name")), r.PostFormValue("email"), store.Role(r.PostFormValue("role"))
		p.Name, p.Email, p.Role = &name, &email, &role
	}
	if _, err := ui.app.Access.Users.Update(r.Context(), id, p); err != nil {
		ui.refusePeople(w, r, PeoplePage{Of: id}, err)
		return
	}
	http.Redirect(w, r, "/people?saved", http.StatusSeeOther)
}

// inviteAgain makes a new address at which a user sets a password.
func (ui *handler) inviteAgain(w http.ResponseWriter, r *http.Request) {
	id := artel.Owner(r.PathValue("id"))
	code, err := ui.app.Access.Users.InviteAgain(r.Context(), id)
	if err != nil {
		ui.refusePeople(w, r, PeoplePage{Of: id}, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	ui.invited(w, r, r.PostFormValue("email"), code)
}

// deletePerson deletes a user.
func (ui *handler) deletePerson(w http.ResponseWriter, r *http.Request) {
	id := artel.Owner(r.PathValue("id"))
	if err := ui.app.Access.Users.Delete(r.Context(), id); err != nil && !errors.Is(err, artel.NotFound) {
		ui.refusePeople(w, r, PeoplePage{Of: id}, err)
		return
	}
	http.Redirect(w, r, "/people?saved", http.StatusSeeOther)
}
