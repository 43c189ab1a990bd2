// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

// Identifiers minted by Artel are a three-letter prefix and 26 characters of
// lower-case Crockford base 32: 48 bits of milliseconds since 1970, then 80
// random bits. They sort by the time they were made.
type (
	// A ConversationID names a conversation: "cnv_…".
	ConversationID string
	// A MessageID names a message: "msg_…".
	MessageID string
	// A RunID names a run: "run_…".
	RunID string
	// A CallID names a tool call. Providers choose it, so it has no prefix.
	CallID string
	// A CallPath names the thread of a subagent in its run: the ids of the tool
	// calls that lead to it, outermost first, with "/" between them. Empty: the
	// run's own agent.
	CallPath string
	// An Owner owns rows. Every store query is limited to one owner.
	Owner string
	// A ServiceID names a configured model endpoint; the operator chooses it.
	ServiceID string
	// An AgentName names an agent definition.
	AgentName string
)

// Join returns the path of the subagent that is called from p.
func (p CallPath) Join(call CallID) CallPath {
	if p == "" {
		return CallPath(call)
	}
	return p + "/" + CallPath(call)
}

// Split returns the calls of p, outermost first.
func (p CallPath) Split() []CallID {
	if p == "" {
		return nil
	}
	parts := strings.Split(string(p), "/")
	calls := make([]CallID, len(parts))
	for i, c := range parts {
		calls[i] = CallID(c)
	}
	return calls
}

// Call returns the innermost call.
func (p CallPath) Call() CallID {
	return CallID(p[strings.LastIndexByte(string(p), '/')+1:])
}

// Outer returns the path of the calling agent.
func (p CallPath) Outer() CallPath {
	return p[:max(0, strings.LastIndexByte(string(p), '/'))]
}

// In reports whether p is outer or below it.
func (p CallPath) In(outer CallPath) bool {
	return outer == "" || p == outer || strings.HasPrefix(string(p), string(outer)+"/")
}

// Local owns everything as long as there are no users. The first administrator
// gets this id, and with it all that was made before.
const Local Owner = "local"

// MaxIDLength is the length limit of identifiers, in bytes.
const MaxIDLength = 256

// NewConversationID mints an identifier from now and the system's randomness.
func NewConversationID(now time.Time) ConversationID { return ConversationID(mint("cnv_", now)) }

// NewMessageID mints an identifier from now and the system's randomness.
func NewMessageID(now time.Time) MessageID { return MessageID(mint("msg_", now)) }

// NewRunID mints an identifier from now and the system's randomness.
func NewRunID(now time.Time) RunID { return RunID(mint("run_", now)) }

// ParseConversationID checks the form of s. The error is of kind [NotFound],
// because an identifier of another form cannot exist.
func ParseConversationID(s string) (ConversationID, error) {
	return parseID[ConversationID](s, "cnv_", "conversation")
}

// ParseMessageID checks the form of s; see [ParseConversationID].
func ParseMessageID(s string) (MessageID, error) {
	return parseID[MessageID](s, "msg_", "message")
}

// ParseRunID checks the form of s; see [ParseConversationID].
func ParseRunID(s string) (RunID, error) {
	return parseID[RunID](s, "run_", "run")
}

const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

func mint(prefix string, now time.Time) string {
	var b [16]byte
	ms := uint64(now.UnixMilli())
	binary.BigEndian.PutUint64(b[:8], ms<<16)
	_, _ = rand.Read(b[6:]) // crypto/rand.Read never returns an error
	return prefix + base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding).EncodeToString(b[:])
}

func parseID[ID ~string](s, prefix, noun string) (ID, error) {
	ok := len(s) == len(prefix)+26 && strings.HasPrefix(s, prefix)
	for i := len(prefix); ok && i < len(s); i++ {
		ok = strings.IndexByte(idAlphabet, s[i]) >= 0
	}
	if ok {
		return ID(s), nil
	}
	return "", &Error{Op: "artel.ParseID", Subject: Shorten(s, 60), Kind: NotFound, Err: textError("no such " + noun)}
}
