// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A layout is where the things stand in a request that the gateway's rules are
// about. Its spans are of the text that was scanned.
type layout struct {
	elements []element // messages, or whatever the conversation is a list of
	media    []medium  // in the order of the request
	results  []result  // of tools, likewise
	odd      []odd     // parts that no service of the dialect knows
	flat     bool      // results without media are strings, which every service of the dialect takes
	apart    bool      // results hold text in one place and media in another
}

// An element is one of the conversation's list.
type element struct {
	span
	role    artel.Role
	calls   bool // an assistant's that calls tools
	content span // the JSON of its content; empty: it has none
	result  bool // it holds results of tools
	inside  int  // where parts come that follow the results in it; 0: they need an element of their own
}

// A medium is a place for media.
type medium struct {
	part     span   // the part, an object, in a list of parts
	slot     span   // what [parts.swap] replaces
	value    string // the payload's mark, the address or the id
	id       bool   // it is the id of a file
	keyed    bool   // slot begins with its key
	declared string // media type, as the request says it; may be empty
	filename string
	holds    artel.MediaKind // the kind that the part takes; empty: others too
	result   int             // index of the result that it is in; -1: it stands in a message
	element  int
}

// An odd part is in a form of a client library.
type odd struct {
	span
	call   artel.CallID // of the result that it is in
	result bool
}

// oddMark is in each request that has such a part.
const oddMark = `"source_type"`

// isOdd reports whether a part of a list is one.
func isOdd(part gjson.Result) bool {
	return strings.Contains(part.Raw, oddMark) && part.Get("source_type").Type == gjson.String
}

// A result is the result of a tool's call.
type result struct {
	call    artel.CallID
	content span   // the JSON value that models read
	texts   []span // the strings of text in it
	list    bool   // content is a list of parts
	extra   span   // the list of media beside the content, where the dialect has one
	member  span   // that list with its key and a comma
	element int
}

// parts writes the parts of a dialect. What it returns is JSON.
type parts interface {
	// text is a part of text in a message.
	text(s string) string
	// media is a part in a message, or with inTool in the result of a tool. Its
	// payload is the mark that add returns for what comes before the base64.
	media(m artel.Media, inTool bool, add func(head string) string) string
	// swap is the edit that puts other media into a part that is there, and
	// leaves the rest of it; false: the part cannot hold them.
	swap(at medium, m artel.Media, add func(head string) string) (edit, bool)
	// named returns the part, which is JSON, with a name of its media, which is a
	// file's or an address, in the place of their bytes; false: it has no place for one.
	named(part string, m artel.Media, name model.Name) (string, bool)
}

// places says where things stand in the requests of a dialect.
type places interface {
	// fill gives a result its text, in the place of the one that it has, and parts
	// behind it.
	fill(text string, r result, with *string, parts []string) []edit
	// carrier is an element with parts that stood in results of tools.
	carrier(parts []string) string
	// join puts parts before all else in an element; nil: it cannot.
	join(text string, e element, parts []string) []edit
	// bridge is what the assistant says between results of tools and a user.
	bridge() string
}

// quote writes a string as JSON, and leaves what HTML would want escaped as it
// is, as the wings do.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil { // of a string
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// each calls yield for the elements of a list; other values have none.
func each(list gjson.Result, yield func(_, v gjson.Result) bool) {
	if list.IsArray() {
		list.ForEach(yield)
	}
}

// at is where a value stands in the text that was parsed.
func at(r gjson.Result) span { return span{r.Index, r.Index + len(r.Raw)} }

// A head is what the outer level of a request says.
type head struct {
	model  string
	models []span // the values under that key: clients may repeat it
	stream bool
	listed bool // the stream is to be a JSON list, and no events
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
func (x *exchange) named(text string, s model.Service) string {
	h := x.head
	if text != x.headed {
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

// textOf returns what the JSON string at s says.
func textOf(text string, s span) string {
	var out string
	if json.Unmarshal([]byte(s.of(text)), &out) != nil {
		return ""
	}
	return out
}
