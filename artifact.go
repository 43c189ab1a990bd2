// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"regexp"
	"time"
	"unicode"
	"unicode/utf8"
)

// An ArtifactID names an artifact inside its conversation. It is chosen by
// whoever makes the artifact and never changes: 1 to 64 letters, digits, "_",
// "." or "-" of any script, in NFC, beginning with a letter, digit or "_".
type ArtifactID string

// MaxArtifactID is the longest artifact id, in code points.
const MaxArtifactID = 64

// TaskPlan is the artifact that every agent is shown in full on every call.
const TaskPlan ArtifactID = "task_plan"

// PlanProgress counts the boxes of a plan: [x], [X] and [✓] are done, [ ] and
// [✗] are open. A box begins a line, after the mark of a list item where there
// is one.
func PlanProgress(plan string) (done, total int) {
	for _, m := range planBox.FindAllStringSubmatch(plan, -1) {
		total++
		switch m[1] {
		case "x", "X", "✓":
			done++
		}
	}
	return done, total
}

var planBox = regexp.MustCompile(`(?m)^[ \t]*(?:[-*+]|\d+[.)])?[ \t]*\[([ xX✓✗])\](?:[ \t]|\r?$)`)

// CodeArtifactNotFound is the error code of a ref or id that names nothing.
const CodeArtifactNotFound = "artifact_not_found"

// ParseArtifactID checks the form of s: ^[\p{L}\p{N}_][\p{L}\p{M}\p{N}_.\-]{0,63}\z.
// It does not normalise; see [Error] of kind [Invalid].
func ParseArtifactID(s string) (ArtifactID, error) {
	n := 0
	for i, r := range s {
		ok := r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
		if i > 0 {
			ok = ok || r == '.' || r == '-' || unicode.IsMark(r)
		}
		if !ok || r == utf8.RuneError {
			return "", badArtifactID(s)
		}
		n++
	}
	if n == 0 || n > MaxArtifactID {
		return "", badArtifactID(s)
	}
	return ArtifactID(s), nil
}

func badArtifactID(s string) error {
	return Errorf(Invalid, "artel.ParseArtifactID", Shorten(s, 80),
		"not an artifact id: want 1 to %d letters, digits, _, - or ., beginning with a letter, digit or _", MaxArtifactID)
}

// A Source says how an artifact came to be. It stays when others edit it.
type Source string

// The sources.
const (
	SourceAgent      Source = "agent"
	SourceUserUpload Source = "user_upload"
	SourceUser       Source = "user"
	SourceToolResult Source = "tool_result"
	SourceSummary    Source = "summary"
)

// An Artifact is a named document or file in a conversation, as seen at one of
// its versions (by default the newest on the active branch).
type Artifact struct {
	ID           ArtifactID     `json:"id"`
	Conversation ConversationID `json:"conversation_id"`
	Ref          Ref            `json:"ref"` // long form, without a version
	Version      int            `json:"version"`
	Title        string         `json:"title"`
	Filename     string         `json:"filename"` // as uploaded; empty: it was not
	MediaInfo
	Binary     bool      `json:"is_binary"`
	Digest     Digest    `json:"digest"` // of the bytes as they came
	InBlob     bool      `json:"-"`      // the bytes lie in the blob store; else they are the text itself
	Preview    string    `json:"-"`      // as of [Version]
	Source     Source    `json:"source"`
	LastEditor string    `json:"last_editor,omitempty"`
	Deleted    bool      `json:"deleted,omitempty"`
	Live       bool      `json:"live,omitempty"` // Version is journalled by a run that has not ended
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// MediaPart returns the part that stands for a, pinned to its version.
func (a Artifact) MediaPart() Media {
	ref := a.Ref
	ref.Version = a.Version
	name := a.Filename
	if name == "" {
		name = string(a.ID)
	}
	return Media{
		Ref: ref, MediaType: a.MediaType, Kind: a.Kind, Filename: name, Size: a.Size,
		Width: a.Width, Height: a.Height, Pages: a.Pages, Duration: a.Duration,
	}
}

// An UpdateType says what kind of change made a version.
type UpdateType string

// The update types.
const (
	UpdateCreate  UpdateType = "create"
	UpdateRestore UpdateType = "restore"
	UpdateRewrite UpdateType = "rewrite"
	UpdateFuzzy   UpdateType = "update_fuzzy"
	UpdateExact   UpdateType = "update"
	UpdateRename  UpdateType = "rename"
	UpdateDelete  UpdateType = "delete"
)

// A Layer says how closely old text had to be matched.
type Layer string

// The layers, closest first.
const (
	LayerExact       Layer = "exact"
	LayerNormalized  Layer = "normalized"
	LayerApproximate Layer = "approximate"
)

// A Change is one replaced span. Start and End are code points of the text
// before the edit that it belongs to.
type Change struct {
	Layer Layer  `json:"layer,omitempty"`
	Start int    `json:"start"`
	End   int    `json:"end"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// A Version is an artifact's immutable state n. Numbers are unique per
// artifact over all branches and sparse: each run leaves one visible version,
// and the edits in between stay in the journal under their own numbers.
type Version struct {
	Number     int        `json:"version"`
	Parent     int        `json:"parent,omitempty"`     // 0: none
	Message    MessageID  `json:"message_id,omitempty"` // whose run made it; empty: visible on every branch
	Run        RunID      `json:"run_id,omitempty"`
	Author     string     `json:"author"`
	Update     UpdateType `json:"update_type"`
	Changes    []Change   `json:"changes,omitempty"`
	Title      string     `json:"title"`
	Filename   string     `json:"filename,omitempty"`
	Provenance Source     `json:"source"` // of the artifact; carried from version to version
	MediaInfo
	Digest    Digest    `json:"digest"` // of the bytes as they came
	InBlob    bool      `json:"-"`      // the bytes lie in the blob store; else they are the text itself
	Preview   string    `json:"-"`      // [Beginning] of the text; empty where there is none, or it was not kept
	CreatedAt time.Time `json:"created_at"`
}

// PreviewChars is how many code points of a text its preview has at most.
const PreviewChars = 200

// Beginning returns the first n code points of text, or all of it.
func Beginning(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// Artifact returns the artifact as it is at v.
func (v Version) Artifact(c ConversationID, id ArtifactID, createdAt time.Time) Artifact {
	return Artifact{
		ID: id, Conversation: c, Ref: Ref{Conversation: c, Artifact: id}, Version: v.Number,
		Title: v.Title, Filename: v.Filename, MediaInfo: v.MediaInfo, Binary: v.IsBinary(),
		Digest: v.Digest, InBlob: v.InBlob, Preview: v.Preview, Source: v.Provenance, LastEditor: v.Author,
		Deleted: v.Update == UpdateDelete, CreatedAt: createdAt, UpdatedAt: v.CreatedAt,
	}
}
