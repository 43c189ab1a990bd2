// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A layout is where the things stand in a request that the gateway's rules are
// about. Its spans are of the text that was scanned.
type layout struct {
	elements     []element     // messages, or whatever the conversation is a list of
	media        []medium      // in the order of the request
	results      []result      // of tools, likewise
	libraryParts []libraryPart // parts that no service of the dialect knows
	flat         bool          // results without media are strings, which every service of the dialect takes
	split        bool          // results hold text in one place and media in another
}

// An element is one of the conversation's list.
type element struct {
	span
	role     artel.Role
	calls    bool // an assistant's that calls tools
	content  span // the JSON of its content; empty: it has none
	result   bool // it holds results of tools
	insertAt int  // where parts come that follow the results in it; 0: they need an element of their own
}

// A medium is a place for media.
type medium struct {
	part       span   // the part, an object, in a list of parts
	slot       span   // what [parts.swap] replaces
	value      string // the payload's mark, the address or the id
	id         bool   // it is the id of a file
	slotHasKey bool   // slot begins with its key
	declared   string // media type, as the request says it; may be empty
	filename   string
	accepts    artel.MediaKind // the kind that the part takes; empty: others too
	result     int             // index of the result that it is in; -1: it stands in a message
	element    int
}

// An odd part is in a form of a client library.
type libraryPart struct {
	span
	call   artel.CallID // of the result that it is in
	result bool
}

// libraryMark is in each request that has such a part.
const libraryMark = `"source_type"`

// isLibraryPart reports whether a part of a list is one.
func isLibraryPart(part gjson.Result) bool {
	return strings.Contains(part.Raw, libraryMark) && part.Get("source_type").Type == gjson.String
}

// A result is the result of a tool's call.
type result struct {
	call        artel.CallID
	content     span   // the JSON value that models read
	texts       []span // the strings of text in it
	list        bool   // content is a list of parts
	mediaList   span   // the list of media beside the content, where the dialect has one
	mediaMember span   // that list with its key and a comma
	element     int
}

// parts writes the parts of a dialect. What it returns is JSON.
type partWriter interface {
	// text is a part of text in a message.
	textPart(s string) string
	// media is a part in a message, or with inTool in the result of a tool. Its
	// payload is the mark that add returns for what comes before the base64.
	mediaPart(m artel.Media, inTool bool, add func(head string) string) string
	// swap is the edit that puts other media into a part that is there, and
	// leaves the rest of it; false: the part cannot hold them.
	replaceMedia(at medium, m artel.Media, add func(head string) string) (edit, bool)
	// named returns the part, which is JSON, with a name of its media, which is a
	// file's or an address, in the place of their bytes; false: it has no place for one.
	nameMedia(part string, m artel.Media, name model.Name) (string, bool)
}

// places says where things stand in the requests of a dialect.
type requestEditor interface {
	// fill gives a result its text, in the place of the one that it has, and parts
	// behind it.
	fillResult(text string, r result, with *string, parts []string) []edit
	// carrier is an element with parts that stood in results of tools.
	userMessage(parts []string) string
	// join puts parts before all else in an element; nil: it cannot.
	prependParts(text string, e element, parts []string) []edit
	// bridge is what the assistant says between results of tools and a user.
	filler() string
}

// A head is what the outer level of a request says.
type head struct {
	model  string
	models []span // the values under that key: clients may repeat it
	stream bool
	asList bool // the stream is to be a JSON list, and no events
}

// readHead reads the outer level. It is false where the text is no object.
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

// named returns text, the JSON of the request, with the model that a service
// goes by.
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
