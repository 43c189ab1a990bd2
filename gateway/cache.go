// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// cacheHeader is the header with which a client says for one request whether cache
// marks are added: auto, 5m, 1h or off.
const cacheHeader = "X-Artel-Cache"

// readCache reads the header about cache marks.
func (x *exchange) readCache() error {
	c, err := backend.ParseCache(x.r.Header.Get(cacheHeader))
	if err != nil {
		return provider.InvalidRequest("The header %s is wrong: %v.", cacheHeader, err)
	}
	if c != "" {
		x.request.Cache = c
	}
	return nil
}

// cacheTime returns how long the service of a translated request caches what precedes
// its marks. One-shot requests get none: writing the cache costs more than reading the
// input, and nothing would read it.
func (x *exchange) cacheTime() model.CacheTime {
	if x.isOneShot() {
		return model.CacheOff
	}
	return x.request.Cache.Time()
}

// isOneShot reports whether a request has neither tools nor a turn of the assistant,
// so that a later request with the same beginning is unlikely.
func (x *exchange) isOneShot() bool {
	if tools := gjson.Get(x.text, "tools"); tools.Get("#").Int() > 0 {
		return false
	}
	return !slices.ContainsFunc(x.scan(x.text).Elements, func(e provider.Element) bool { return e.Role == artel.RoleAssistant || e.Result || e.Calls })
}

// withCacheMark returns a request of Anthropic's dialect with a cache mark for all of
// it, if that is configured and the client has set no mark (Messages API, "Prompt
// caching", automatic caching).
func (x *exchange) withCacheMark(text string, s *model.Service) string {
	if c := x.request.Cache; c != backend.CacheMinutes && c != backend.CacheHour {
		return text
	}
	if s.Auth.Kind == model.AuthAWS || s.Auth.Kind == model.AuthGoogle { // which refuse the mark at this place
		return text
	}
	if x.d.Dialect() != model.Anthropic || strings.Contains(text, `"cache_control"`) || x.isOneShot() {
		return text
	}
	end := strings.LastIndexByte(text, '}')
	comma := ","
	if strings.TrimSpace(text[strings.IndexByte(text, '{')+1:end]) == "" {
		comma = ""
	}
	x.logChange(Change{Did: DidCache})
	return text[:end] + comma + `"cache_control":` + cacheMark(x.request.Cache.Time()) + text[end:]
}

func cacheMark(t model.CacheTime) string {
	if t == model.CacheHour {
		return `{"type":"ephemeral","ttl":"1h"}`
	}
	return `{"type":"ephemeral"}`
}
