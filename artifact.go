// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"regexp"
	"time"
	"unicode"
	"unicode/utf8"
)

// An ArtifactID names an artifact inside its conversation. Its creator chooses
// it, and it never changes: 1 to 64 letters and digits of any script, "_", "."
// or "-", in NFC, beginning with a letter, digit or "_".
type ArtifactID string

// MaxArtifactID is the longest artifact id, in code points.
const MaxArtifactID = 64

// TaskPlan is the artifact that is part of every model call, in full.
const TaskPlan ArtifactID = "task_plan"

// PlanProgress counts the check boxes of a plan: [x], [X] and [✓] are done, [ ]
// and [✗] are open. A box begins a line, optionally after a list marker.
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

// CodeArtifactNotFound is the error code for an unknown artifact ref or id.
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

// A Source says how an artifact was created. Edits keep it.
type Source string

// The sources.
const (
	SourceAgent      Source = "agent"
	SourceUserUpload Source = "user_upload"
	SourceUser       Source = "user"
	SourceToolResult Source = "tool_result"
	SourceSummary    Source = "summary"
)

// An Artifact is a named document or file in a conversation, at one of its
// versions (by default the newest on the active branch).
type Artifact struct {
	ID           ArtifactID     `json:"id"`
	Conversation ConversationID `json:"conversation_id"`
	Ref          Ref            `json:"ref"` // long form, without a version
	Version      int            `json:"version"`
	Title        string         `json:"title"`
	Filename     string         `json:"filename"` // of the upload; empty: not uploaded
	MediaInfo
	Binary     bool      `json:"is_binary"`
	Digest     Digest    `json:"digest"` // of the original bytes
	InBlob     bool      `json:"-"`      // the bytes are in the blob store; otherwise the text is the content
	Preview    string    `json:"-"`      // see [Version]
	Source     Source    `json:"source"`
	LastEditor string    `json:"last_editor,omitempty"`
	Deleted    bool      `json:"deleted,omitempty"`
	Live       bool      `json:"live,omitempty"` // Version is in the journal of an active run
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// MediaPart returns a media part for a, pinned to its version.
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

// An UpdateType is the kind of change that made a version.
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

// A Layer says how old text was matched.
type Layer string

// The layers, closest first.
const (
	LayerExact       Layer = "exact"
	LayerNormalized  Layer = "normalized"
	LayerApproximate Layer = "approximate"
)

// A Change is one replaced span. Start and End count code points of the text
// before the edit.
type Change struct {
	Layer Layer  `json:"layer,omitempty"`
	Start int    `json:"start"`
	End   int    `json:"end"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// A Version is one immutable state of an artifact. Numbers are unique per
// artifact over all branches and have gaps: a run leaves one visible version,
// and its intermediate edits keep their numbers in the journal.
type Version struct {
	Number     int        `json:"version"`
	Parent     int        `json:"parent,omitempty"`     // 0: none
	Message    MessageID  `json:"message_id,omitempty"` // the message of the run that made it; empty: visible on every branch
	Run        RunID      `json:"run_id,omitempty"`
	Author     string     `json:"author"`
	Update     UpdateType `json:"update_type"`
	Changes    []Change   `json:"changes,omitempty"`
	Title      string     `json:"title"`
	Filename   string     `json:"filename,omitempty"`
	Provenance Source     `json:"source"` // of the artifact; the same for all versions
	MediaInfo
	Digest    Digest    `json:"digest"` // of the original bytes
	InBlob    bool      `json:"-"`      // the bytes are in the blob store; otherwise the text is the content
	Preview   string    `json:"-"`      // [Beginning] of the text; empty: no text, or not stored
	CreatedAt time.Time `json:"created_at"`
}

// PreviewChars is the length limit of a preview, in code points.
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

// Artifact returns the artifact at version v.
func (v Version) Artifact(c ConversationID, id ArtifactID, createdAt time.Time) Artifact {
	return Artifact{
		ID: id, Conversation: c, Ref: Ref{Conversation: c, Artifact: id}, Version: v.Number,
		Title: v.Title, Filename: v.Filename, MediaInfo: v.MediaInfo, Binary: v.IsBinary(),
		Digest: v.Digest, InBlob: v.InBlob, Preview: v.Preview, Source: v.Provenance, LastEditor: v.Author,
		Deleted: v.Update == UpdateDelete, CreatedAt: createdAt, UpdatedAt: v.CreatedAt,
	}
}
