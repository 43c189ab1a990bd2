// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// artifactTwins are those of the clauses about heads and thinning.
func artifactTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"artifacts/histories": nouns(func(tx *store.Tx) { // what is newer on another branch is missing here
			real, versions := tx.Artifacts, tx.Versions
			tx.Artifacts = brokenArtifacts{Artifacts: real, heads: func(c artel.ConversationID, at artel.MessageID) ([]artel.Artifact, error) {
				heads, err := real.Heads(c, at)
				return slices.DeleteFunc(heads, func(a artel.Artifact) bool {
					all, _ := versions.List(c, a.ID)
					return len(all) > 0 && all[len(all)-1].Number > a.Version
				}), err
			}}
		}),
		"versions/get": nouns(func(tx *store.Tx) { // the journal's row
			real, journal := tx.Versions, tx.Journal
			tx.Versions = brokenVersions{Versions: real, get: func(c artel.ConversationID, id artel.ArtifactID, n int) (artel.Version, error) {
				edits, err := journal.Edits(c, store.EditQuery{Artifact: id, Number: n})
				if err != nil || len(edits) == 0 {
					return real.Get(c, id, n)
				}
				return edits[0].Version, nil
			}}
		}),
		"versions/artifacts": nouns(func(tx *store.Tx) { // what the active run has begun too
			real, journal := tx.Versions, tx.Journal
			tx.Versions = brokenVersions{Versions: real, ids: func(c artel.ConversationID) ([]artel.ArtifactID, error) {
				edits, err := journal.Edits(c, store.EditQuery{})
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
