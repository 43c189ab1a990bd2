// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Check returns an [*APIError] in the API's words if the request has no message, or a
// role, a block or a source that [Request.Neutral] cannot convert; nil: everything has a neutral
// form, or is among its Dropped.
func (r *Request) Check() error {
	if err := checkBlocks("system", r.System.Blocks, strings.Fields("text")); err != nil {
		return err
	}
	for i, m := range r.Messages {
		if !slices.Contains([]string{"user", "assistant", "system"}, m.Role) {
			return Bad(fmt.Sprintf("messages.%d.role", i), "Input should be 'user', 'assistant' or 'system'")
		}
		if err := checkBlocks(fmt.Sprintf("messages.%d.content", i), m.Content.Blocks, blocksOfMessages()); err != nil {
			return err
		}
	}
	if len(r.Messages) == 0 {
		return Bad("messages", "at least one message is required")
	}
	return nil
}

// blocksOfMessages are the types of blocks beside those of tools of the service.
func blocksOfMessages() []string {
	return strings.Fields("compaction container_upload document image redacted_thinking search_result text thinking tool_result tool_use")
}

func checkBlocks(at string, blocks []Block, allowed []string) error {
	for i, b := range blocks {
		at := fmt.Sprintf("%s.%d", at, i)
		if !slices.Contains(allowed, b.Type) && !ofService(b.Type) {
			return Bad(at, "Input tag '%s' found using 'type' does not match any of the expected tags: '%s'", b.Type, strings.Join(allowed, "', '"))
		}
		var err error
		switch b.Type {
		case "tool_result":
			err = checkBlocks(at+".tool_result.content", b.Content.Blocks, strings.Fields("document image search_result text tool_reference"))
		case "image", "document":
			err = checkSource(at+"."+b.Type+".source", b.Source)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkSource(at string, s *Source) error {
	if s == nil {
		return Bad(at, "Field required")
	}
	if kinds := strings.Fields("base64 content file text url"); !slices.Contains(kinds, s.Type) {
		return Bad(at, "Input tag '%s' found using 'type' does not match any of the expected tags: '%s'", s.Type, strings.Join(kinds, "', '"))
	}
	return checkBlocks(at+".content", s.Content.Blocks, strings.Fields("image text"))
}

var readOfBlocks = sync.OnceValue(func() map[string]bool { return provider.Fields(reflect.TypeFor[block]()) })

// unreadInBlocks returns the fields of blocks that have no neutral form. Blocks of the
// service are dropped as a whole.
func (r *Request) unreadInBlocks(text gjson.Result) []model.Drop {
	contents := text.Get("messages.#.content").Array()
	for _, c := range slices.Clone(contents) {
		contents = append(contents, c.Get("#.content").Array()...)
	}
	service := func(b gjson.Result) bool { return ofService(b.Get("type").Str) }
	return provider.UnreadIn(contents, "messages.content.", readOfBlocks(), service)
}
