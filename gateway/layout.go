// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A layout describes the parts of a request that the gateway's rules are about.
// Spans are of the scanned text.
type layout struct {
	elements     []element     // of the conversation's list, usually messages
	media        []medium      // in the order of the request
	results      []result      // of tools, in the order of the request
	libraryParts []libraryPart // parts that no service of the dialect understands
	flat         bool          // results without media are strings, which every service of the dialect takes
	split        bool          // results hold text and media in different places
}

// An element is an element of the conversation's list.
type element struct {
	span
	role     artel.Role
	calls    bool // an assistant message with tool calls
	content  span // its content; zero: none
	result   bool // it holds results of tools
	insertAt int  // position of parts inserted after the results; 0: they need an element of their own
}

// A medium is a part that holds media.
type medium struct {
	part       span   // the part, an object in a list of parts
	slot       span   // what [partWriter.replaceMedia] replaces
	value      string // the mark of a payload, an address or an id
	id         bool   // value is the id of a file
	slotHasKey bool   // slot includes the member's key
	declared   string // media type according to the request; may be empty
	filename   string
	accepts    artel.MediaKind // the only kind that the part takes; empty: several
	result     int             // index of its result; -1: it is in a message
	element    int
}

// A libraryPart is a content part in a client library's own format (LangChain's
// source_type), which no API accepts.
type libraryPart struct {
	span
	call   artel.CallID // of its result
	result bool
}

// libraryMark occurs in every request with such a part.
const libraryMark = `"source_type"`

// isLibraryPart reports whether a part is a libraryPart.
func isLibraryPart(part gjson.Result) bool {
	return strings.Contains(part.Raw, libraryMark) && part.Get("source_type").Type == gjson.String
}

// A result is the result of a tool call.
type result struct {
	call        artel.CallID
	content     span   // the JSON value that models read
	texts       []span // the JSON strings of its text
	list        bool   // content is a list of parts
	mediaList   span   // the list of media beside the content, if the dialect has one
	mediaMember span   // that list with its key and a comma
	element     int
}

// A partWriter writes the parts of a dialect as JSON.
type partWriter interface {
	// textPart returns a part of text in a message.
	textPart(s string) string
	// mediaPart returns a part of media in a message, or with inTool in the
	// result of a tool. add returns the mark of the payload, given the text
	// before the base64.
	mediaPart(m artel.Media, inTool bool, add func(head string) string) string
	// replaceMedia returns the edit that replaces the media of a part and keeps
	// the rest of it; false if the part cannot hold them.
	replaceMedia(at medium, m artel.Media, add func(head string) string) (edit, bool)
	// nameMedia returns a part with a name of its media, a file id or an
	// address, instead of their bytes; false if it cannot hold one.
	nameMedia(part string, m artel.Media, name model.Name) (string, bool)
}

// A requestEditor edits the requests of a dialect.
type requestEditor interface {
	// fillResult returns the edits that replace the text of a result, unless
	// with is nil, and append parts to it.
	fillResult(text string, r result, with *string, parts []string) []edit
	// userMessage returns an element of the user with parts.
	userMessage(parts []string) string
	// prependParts returns the edits that insert parts before the content of an
	// element; nil if it cannot hold them.
	prependParts(text string, e element, parts []string) []edit
	// filler returns an element of the assistant to put between results of
	// tools and a user.
	filler() string
}

// A head is what the outer level of a request says.
type head struct {
	model  string
	models []span // all values of that key: clients may repeat it
	stream bool
	asList bool // the stream is a JSON list instead of events
}

// readHead reads the outer level of a request; false if the text is not an
// object.
func readHead(text string) (head, bool) {
	var h head
	root := gjson.Parse(text)
	if !root.IsObject() {
		return h, false
	}
	root.ForEach(func(key, value gjson.Result) bool {
		switch key.String() {
		case "model":
			h.models = append(h.models, at(value))
			h.model = ""
			if value.Type == gjson.String {
				h.model = value.String()
			}
		case "stream":
			h.stream = value.Type == gjson.True
		}
		return true
	})
	return h, true
}

// withModel returns text, the request's JSON, with the service's name of its
// model.
func (x *exchange) withModel(text string, s model.Service) string {
	h := x.head
	if text != x.headText {
		h, _ = readHead(text)
	}
	name := quote(s.Model)
	var edits []edit
	for _, m := range h.models {
		if m.of(text) != name {
			edits = append(edits, edit{m, name})
		}
	}
	return apply(text, edits)
}
