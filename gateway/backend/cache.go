// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Cache says whether requests of Anthropic's dialect whose client has set no cache
// marks get some, and how long what they mark is cached.
type Cache string

// The values of Cache; an empty one of a request is the key's, an empty one of a
// key that of [Options], and that by default CacheAuto.
const (
	CacheAuto    Cache = "auto" // translated requests, for five minutes
	CacheMinutes Cache = "5m"   // forwarded requests, too
	CacheHour    Cache = "1h"   // the same, for an hour
	CacheOff     Cache = "off"
)

// ParseCache reads a value of Cache; "" is no value.
func ParseCache(s string) (Cache, error) {
	switch v := Cache(s); v {
	case "", CacheAuto, CacheMinutes, CacheHour, CacheOff:
		return v, nil
	}
	return "", fmt.Errorf("%q is not one of auto, 5m, 1h and off", artel.Shorten(s, 40))
}

// Time returns how long a translated request caches.
func (c Cache) Time() model.CacheTime {
	switch c {
	case CacheHour:
		return model.CacheHour
	case CacheOff:
		return model.CacheOff
	}
	return model.CacheMinutes
}
