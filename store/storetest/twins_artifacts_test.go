// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// artifactTwins are those of the clauses about remembering and thinning.
func artifactTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"artifacts/live": nouns(func(tx *store.Tx) { // only where no version is newer
			real := tx.Artifacts
			tx.Artifacts = brokenArtifacts{Artifacts: real, live: func(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
				heads, err := real.Heads(c, at)
				var live []artel.Artifact
				for _, a := range heads {
					if a.Live {
						live = append(live, a)
					}
				}
				return live, err
			}}
		}),
		"artifacts/changed": nouns(func(tx *store.Tx) { // a claim is no change
			real := tx.Artifacts
			tx.Artifacts = brokenArtifacts{Artifacts: real, since: func(c artel.ConversationID, after int64) ([]artel.ArtifactID, int64, error) {
				ids, mark, err := real.Changed(c, after)
				for _, id := range ids {
					a, _ := real.Head(c, id, "")
					if a.ID == "" && after > 0 {
						return nil, mark, err
					}
				}
				return ids, mark, err
			}}
		}),
		"artifacts/beginnings": nouns(func(tx *store.Tx) { // ends at a NUL, as C does
			real := tx.Artifacts
			tx.Artifacts = brokenArtifacts{Artifacts: real, began: func(c artel.ConversationID, at artel.MessageID, chars int) ([]store.Beginning, error) {
				list, err := real.Beginnings(c, at, chars)
				for i, b := range list {
					list[i].Text, _, _ = strings.Cut(b.Text, "\x00")
				}
				return list, err
			}}
		}),
		"versions/get": nouns(func(tx *store.Tx) { // the journal's row
			real := tx.Versions
			tx.Versions = brokenVersions{Versions: real, get: func(c artel.ConversationID, id artel.ArtifactID, n int) (artel.Version, error) {
				edits, err := real.Edits(c, store.EditQuery{Artifact: id, Number: n})
				if err != nil || len(edits) == 0 {
					return real.Get(c, id, n)
				}
				return edits[0].Version, nil
			}}
		}),
		"versions/artifacts": nouns(func(tx *store.Tx) { // what the active run has begun too
			real := tx.Versions
			tx.Versions = brokenVersions{Versions: real, ids: func(c artel.ConversationID) ([]artel.ArtifactID, error) {
				edits, err := real.Edits(c, store.EditQuery{})
				var ids []artel.ArtifactID
				for _, e := range edits {
					ids = append(ids, e.Artifact)
				}
				return slices.Compact(ids), err
			}}
		}),
		"versions/thin": nouns(func(tx *store.Tx) { // keeps an empty text
			real := tx.Versions
			tx.Versions = brokenVersions{
				Versions: real,
				text: func(c artel.ConversationID, id artel.ArtifactID, n int) (string, error) {
					text, err := real.Text(c, id, n)
					if artel.KindOf(err) == artel.NotFound {
						return "", nil
					}
					return text, err
				},
			}
		}),
	}
}
