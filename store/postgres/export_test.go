// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"log/slog"
	"time"
)

// SetPatience sets how long the outcome of a commit is asked for.
func SetPatience(s *Store, d time.Duration) { s.patience = d }

// NewBusDeaf is [NewBus] with another time until a connection that hears nothing is made again.
func NewBusDeaf(address string, log *slog.Logger, deaf time.Duration) (*Bus, error) {
	return newBus(address, log, deaf)
}

// Lanes is how many transactions of updates run at once.
const Lanes = lanes

// Waiting returns how many updates wait for a lane.
func Waiting(s *Store) int {
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	return len(s.groups.waiting)
}
