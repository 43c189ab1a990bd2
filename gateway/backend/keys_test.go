// SPDX-License-Identifier: Apache-2.0

package backend_test

import (
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/store"
)

// TestRequestsInAllProcesses: processes that share a database let as many requests of a key
// through in a minute as one does.
func TestRequestsInAllProcesses(t *testing.T) {
	c, _ := apptest.Config(t, nil)
	c.Access.SetupKey = "shared"
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	c.Options.Now = func() time.Time { return now }
	o := backend.Options{Keys: []backend.Key{{Name: "one", Secret: "secret", Limits: store.KeyLimits{Requests: 10}}}}
	gateways := []*backend.Backend{backend.New(apptest.Open(t, c), o), backend.New(apptest.Open(t, c), o)}
	admitted := 0
	for i := range 30 {
		_, leave, err := gateways[i%2].Admit(apptest.Context(t), "secret")
		if err == nil {
			leave()
			admitted++
		} else if artel.CodeOf(err) != backend.CodeKeyLimit {
			t.Fatal(err)
		}
	}
	if admitted != 10 {
		t.Errorf("%d requests of 10 were admitted", admitted)
	}
}
