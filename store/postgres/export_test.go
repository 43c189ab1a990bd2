// SPDX-License-Identifier: Apache-2.0

package postgres

import "time"

// SetPatience sets how long the outcome of a commit is asked for.
func SetPatience(s *Store, d time.Duration) { s.patience = d }
