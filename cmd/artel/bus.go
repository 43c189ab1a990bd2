// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/bus"
)

// busFlag adds --bus.
func busFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "bus", os.Getenv("ARTEL_BUS"), "NATS, through which servers on one database tell each other what happens: nats://HOST:PORT (default: none, for one server)")
}

// openNotifier returns the notifier of this process, or one over the bus.
func (s *server) openNotifier() (event.Notifier, error) {
	if s.config.bus == "" {
		return event.NewNotifier(), nil
	}
	n, err := bus.Connect(s.config.bus, s.log)
	if err != nil {
		return nil, err
	}
	// Ids of conversations are random, so that deployments may share a bus.
	b := bus.New(n, "artel", s.log)
	s.close = append(s.close, func() error { b.Close(); n.Close(); return nil })
	return b, nil
}
