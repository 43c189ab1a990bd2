// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/bus"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/store/postgres"
)

// A replica is a server that shares its database with others.
type replica struct {
	name string // in logs, "": the server shares nothing
	at   string // where other replicas reach it; "": the address on which it listens
	bus  string // address, or overDatabase; "": overDatabase if the server shares its database
}

// overDatabase is the bus by LISTEN and NOTIFY.
const overDatabase = "postgres"

var replicaName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// replicaFlags adds --replica and --bus.
func replicaFlags(cmd *cobra.Command, r *replica) {
	cmd.Flags().StringVar(&r.name, "replica", os.Getenv("ARTEL_REPLICA"), "share the database with other servers, under this name in logs; hostname is the name of the machine")
	cmd.Flags().StringVar(&r.at, "advertise", os.Getenv("ARTEL_ADVERTISE"), "where other replicas reach this one, as http://10.0.0.5:7420 (default: the address on which it listens)")
	cmd.Flags().StringVar(&r.bus, "bus", os.Getenv("ARTEL_BUS"), "through which replicas tell each other what happens: nats://HOST:PORT for NATS, or postgres for their database (default)")
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
	case r.at != "" && !plainAddress(r.at):
		return usageError{fmt.Errorf("--advertise %q: want http://HOST:PORT or https://HOST:PORT", r.at)}
	case standby:
		return usageError{fmt.Errorf("--standby waits for a server that shares nothing; replicas take over from each other without it")}
	}
	return nil
}

// openNotifier returns the notifier of this process, or one over the bus.
func (s *server) openNotifier() (event.Notifier, error) {
	var transport interface {
		bus.Transport
		Close()
	}
	var err error
	switch at := s.config.replica.bus; {
	case !s.config.replica.shares():
		return event.NewNotifier(), nil
	case at == "" || at == overDatabase:
		transport, err = postgres.NewBus(s.config.database, s.log)
	default:
		transport, err = bus.Connect(at, s.log)
	}
	if err != nil {
		return nil, err
	}
	// Ids of conversations are random, so that deployments may share a bus.
	b := bus.New(transport, "artel", s.log)
	s.close = append(s.close, func() error { b.Close(); transport.Close(); return nil })
	return b, nil
}

// plainAddress reports whether text is the address of a server without a path.
func plainAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.String() == u.Scheme+"://"+u.Host
}

// address returns where other replicas reach this one, which listens at an address.
func (r replica) address(scheme string, at net.Addr) string {
	if r.at != "" {
		return r.at
	}
	return scheme + reachable(at)
}

// ofPeers passes requests of sessions on to the replica that has them.
func (s *server) ofPeers(name string, next http.Handler) http.Handler {
	if s.peers == nil {
		return next
	}
	return s.peers.of(name, next)
}

// shares reports whether other servers work on the runs of the database.
func (r replica) shares() bool { return r.name != "" }
