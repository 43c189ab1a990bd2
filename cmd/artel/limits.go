// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel/app/meter"
	"github.com/artelhq/artel/store"
)

// limitsConfig is the section limits of the configuration. 0 and none are no limit.
type limitsConfig struct {
	User struct {
		Tokens int64   `yaml:"tokens_per_day"`  // of requests and answers, in each UTC day
		USD    float64 `yaml:"dollars_per_day"` // in each UTC day
		Runs   int     `yaml:"runs"`            // at work at once

		Storage byteSize `yaml:"storage"` // of files and artifacts
	} `yaml:"user"` // of each user
	Key keyLimits `yaml:"key"` // of each key of the gateway without limits of its own
}

// keyLimits are the limits of a key.
type keyLimits struct {
	Requests   int          `yaml:"requests_per_minute"`
	Tokens     int64        `yaml:"tokens_per_minute"` // of requests and answers
	Concurrent int          `yaml:"concurrent"`        // requests at once
	Budget     budgetConfig `yaml:"budget"`
}

// budgetConfig is a budget.
type budgetConfig struct {
	USD    float64      `yaml:"usd"`
	Period store.Period `yaml:"period"` // day or month
}

func (k gatewayKey) limits() keyLimits {
	return keyLimits{k.RequestsPerMinute, k.TokensPerMinute, k.Concurrency, k.Budget}
}

func (k keyLimits) limits() store.KeyLimits {
	return store.KeyLimits{Requests: k.Requests, Tokens: k.Tokens, Concurrent: k.Concurrent, Budget: store.Budget{USD: k.Budget.USD, Period: k.Budget.Period}}
}

func (k keyLimits) check(where string) error {
	b := k.Budget
	switch {
	case k.Requests < 0 || k.Requests > maxPerMinute:
		return fmt.Errorf("%s.requests_per_minute is %d: want a number up to %d, or none for no limit", where, k.Requests, maxPerMinute)
	case k.Tokens < 0:
		return fmt.Errorf("%s.tokens_per_minute is %d: want a number, or none for no limit", where, k.Tokens)
	case k.Concurrent < 0:
		return fmt.Errorf("%s.concurrent is %d: want a number, or none for no limit", where, k.Concurrent)
	case b != budgetConfig{} && (!(b.USD > 0) || b.USD > maxBudget || b.Period != store.PerDay && b.Period != store.PerMonth):
		return fmt.Errorf("%s.budget: want {usd: a number above 0 and up to %d, period: day or month}", where, maxBudget)
	}
	return nil
}

// maxBudget is the largest limit of the cost, in dollars.
const maxBudget = 1_000_000

func (l limitsConfig) check() error {
	u := l.User
	switch {
	case u.Storage < 0:
		return errors.New("limits.user.storage: want a size such as 5GB, or 0 for no limit")
	case u.Tokens < 0, u.Runs < 0, !(u.USD >= 0), u.USD > maxBudget:
		return fmt.Errorf("limits.user: want numbers from 0, and dollars_per_day up to %d", maxBudget)
	}
	return l.Key.check("limits.key")
}

// A byteSize is a number of bytes, written as such or with a unit of 1,024: 5GB.
type byteSize int64

// UnmarshalText implements [encoding.TextUnmarshaler].
func (b *byteSize) UnmarshalText(text []byte) error {
	s := strings.ToUpper(strings.Join(strings.Fields(string(text)), ""))
	digits := strings.TrimRight(s, "BIKMGTP")
	power := slices.IndexFunc([]string{"", "K", "M", "G", "T", "P"}, func(unit string) bool {
		rest := s[len(digits):]
		return rest == unit || rest == unit+"B" || unit != "" && rest == unit+"IB"
	})
	n, err := strconv.ParseFloat(digits, 64)
	n *= math.Pow(1024, float64(power))
	if err != nil || power < 0 || !(n >= 0) || n > math.MaxInt64/2 {
		return fmt.Errorf("%q is not a size: want a number of bytes, or one with a unit such as 500MB, 5GB or 1.5TB", string(text))
	}
	*b = byteSize(n)
	return nil
}

// userLimits returns the limits of each user.
func (l limitsConfig) userLimits() meter.UserLimits {
	return meter.UserLimits{Tokens: l.User.Tokens, USD: l.User.USD}
}
