// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/bus"
	"github.com/artelhq/artel/internal/secret"
)

// A replica is a server that shares its database with others.
type replica struct {
	name string // in logs, "": the server shares nothing
	bus  string // address
}

var replicaName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// replicaFlags adds --replica and --bus.
func replicaFlags(cmd *cobra.Command, r *replica) {
	cmd.Flags().StringVar(&r.name, "replica", os.Getenv("ARTEL_REPLICA"), "share the database with other servers, under this name in logs (as the name of the machine)")
	cmd.Flags().StringVar(&r.bus, "bus", os.Getenv("ARTEL_BUS"), "through which replicas tell each other what happens: NATS at nats://HOST:PORT")
}

// check returns an error if a server cannot be this replica: what replicas share has to be
// outside of their data directories.
func (r replica) check(c config, standby bool) error {
	switch {
	case r.name == "" && r.bus != "":
		return usageError{fmt.Errorf("--bus is for servers that share a database; give --replica NAME too")}
	case r.name == "":
		return nil
	case !replicaName.MatchString(r.name):
		return usageError{fmt.Errorf("--replica %q: want up to 63 letters, digits, dots, dashes and underscores", r.name)}
	case c.database == "":
		return usageError{fmt.Errorf("--replica: servers share a database of PostgreSQL; give its address with --database")}
	case c.blobs == "" && c.Blobs.URL == "" && c.Blobs.Dir == "":
		return usageError{fmt.Errorf("--replica: servers share the bytes of files too; give --blobs s3://BUCKET… or file:///FOLDER of a file system that all have")}
	case os.Getenv(secret.Variable) == "":
		return usageError{fmt.Errorf("--replica: servers share one key that seals stored secrets; set %s for all of them, as `openssl rand -hex 32` prints it", secret.Variable)}
	case standby:
		return usageError{fmt.Errorf("--standby waits for a server that shares nothing; replicas take over from each other without it")}
	}
	return nil
}

// openNotifier returns the notifier of this process, or one over the bus.
func (s *server) openNotifier() (event.Notifier, error) {
	at := s.config.replica.bus
	if at == "" {
		return event.NewNotifier(), nil
	}
	n, err := bus.Connect(at, s.log)
	if err != nil {
		return nil, err
	}
	// Ids of conversations are random, so that deployments may share a bus.
	b := bus.New(n, "artel", s.log)
	s.close = append(s.close, func() error { b.Close(); n.Close(); return nil })
	return b, nil
}

// shares reports whether other servers work on the runs of the database.
func (r replica) shares() bool { return r.name != "" }
