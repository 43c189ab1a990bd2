// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Layout describes the parts of a request that the gateway's rules are about.
// Spans are of the scanned text.
type Layout struct {
	Elements     []Element     // of the conversation's list, usually messages
	Media        []Medium      // in the order of the request
	Results      []Result      // of tools, in the order of the request
	LibraryParts []LibraryPart // parts that no service of the dialect understands
	Flat         bool          // results without media are strings, which every service of the dialect takes
	Split        bool          // results hold text and media in different places, and of media the bytes alone
}

// An Element is an element of the conversation's list.
type Element struct {
	Span
	Role     artel.Role
	Calls    bool // an assistant message with tool calls
	Content  Span // its content; zero: none
	Result   bool // it holds results of tools
	InsertAt int  // position of parts inserted after the results; 0: they need an element of their own
}

// A Medium is a part that holds media.
type Medium struct {
	Part       Span   // the part, an object in a list of parts
	Slot       Span   // what [PartWriter.ReplaceMedia] replaces
	Value      string // the mark of a payload, an address or an id
	ID         bool   // value is the id of a file
	SlotHasKey bool   // slot includes the member's key
	Declared   string // media type according to the request; may be empty
	Filename   string
	Accepts    artel.MediaKind // the only kind that the part takes; empty: several
	Result     int             // index of its result; -1: it is in a message
	Element    int
}

// A LibraryPart is a content part in a client library's own format (those of LangChain
// and langchaingo), which no API accepts.
type LibraryPart struct {
	Span
	Call   artel.CallID // of its result
	Result bool
}

// IsLibraryPart reports whether a part may be a [LibraryPart], by its type and by a
// member that parts of the dialects lack; the gateway decides.
func IsLibraryPart(part gjson.Result) bool {
	switch part.Get("type").Str {
	case "image", "audio", "video", "file":
		return slices.ContainsFunc(libraryMarks, func(m string) bool { return part.Get(m).Exists() })
	case "binary":
		return part.Get("binary").Exists()
	}
	return false
}

var libraryMarks = []string{"source_type", "data", "base64", "url", "file_id", "fileId"}

// A Result is the result of a tool call.
type Result struct {
	Call        artel.CallID
	Content     Span   // the JSON value that models read
	Texts       []Span // the JSON strings of its text
	List        bool   // content is a list of parts
	MediaList   Span   // the list of media beside the content, if the dialect has one
	MediaMember Span   // that list with its key and a comma
	Element     int
}

// A PartWriter writes the parts of a dialect as JSON.
type PartWriter interface {
	// TextPart returns a part of text in a message.
	TextPart(s string) string
	// MediaPart returns a part of media in a message, or with inTool in the
	// result of a tool. add returns the mark of the payload, given the text
	// before the base64.
	MediaPart(m artel.Media, inTool bool, add func(head string) string) string
	// ReplaceMedia returns the edit that replaces the media of a part and keeps
	// the rest of it; false if the part cannot hold them.
	ReplaceMedia(at Medium, m artel.Media, add func(head string) string) (Edit, bool)
	// NameMedia returns a part with a name of its media, a file id or an
	// address, instead of their bytes; false if it cannot hold one.
	NameMedia(part string, m artel.Media, name model.Name) (string, bool)
}

// A RequestEditor edits the requests of a dialect.
type RequestEditor interface {
	// FillResult returns the edits that replace the text of a result, unless
	// with is nil, and append parts to it.
	FillResult(text string, r Result, with *string, parts []string) []Edit
	// UserMessage returns an element of the user with parts.
	UserMessage(parts []string) string
	// PrependParts returns the edits that insert parts before the content of an
	// element; nil if it cannot hold them.
	PrependParts(text string, e Element, parts []string) []Edit
	// AskUsage returns the request for a stream with the field that asks for token
	// counts, if the dialect has one and the request lacks it; added reports that.
	AskUsage(text string) (with string, added bool)
	// Filler returns an element of the assistant to put between results of
	// tools and a user.
	Filler() string
}

// A TurnEditor edits calls and results, for dialects whose clients often get them
// wrong.
type TurnEditor interface {
	// JoinResults moves results in adjacent elements into the first of these elements.
	// moved are the calls of the moved results.
	JoinResults(text string) (joined string, moved []artel.CallID)
	// CallStates returns the calls in an answer, or in an event of one, that the
	// service has signed. Each call is in them twice: by its id, and by its content,
	// which clients keep when they drop the id.
	CallStates(data []byte) []artel.ToolCall
	// SignCalls adds the states that find knows to calls without one. signed are those
	// calls.
	SignCalls(text string, find func(artel.ToolCall) json.RawMessage) (with string, signed []artel.CallID)
}

// A Head is what the outer level of a request says.
type Head struct {
	Model  string
	Models []Span // all values of that key: clients may repeat it
	Stream bool
	AsList bool // the stream is a JSON list instead of events
}

// ReadHead reads the outer level of a request; false if the text is not an
// object.
func ReadHead(text string) (Head, bool) {
	var h Head
	root := gjson.Parse(text)
	if !root.IsObject() {
		return h, false
	}
	root.ForEach(func(key, value gjson.Result) bool {
		switch key.String() {
		case "model":
			h.Models = append(h.Models, SpanOf(value))
			h.Model = ""
			if value.Type == gjson.String {
				h.Model = value.String()
			}
		case "stream":
			h.Stream = value.Type == gjson.True
		}
		return true
	})
	return h, true
}

// Kind returns the kind of the media, as far as the part tells it.
func (m Medium) Kind() artel.MediaKind {
	if m.Accepts == "" {
		return artel.KindDocument
	}
	return m.Accepts
}
