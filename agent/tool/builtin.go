// SPDX-License-Identifier: Apache-2.0

package tool

// BuiltIn returns the tools of the product.
func BuiltIn() []Tool {
	return []Tool{
		writes(createArtifact()),
		writes(updateArtifact()),
		writes(rewriteArtifact()),
		reads(readArtifact()),
		reads(listArtifacts()),
		reads(grepArtifacts()),
		reads(searchArtifacts()),
		reads(diffArtifact()),
		reads(listVersions()),
		writes(renameArtifact()),
		writes(deleteArtifact()),
		writes(restoreArtifact()),
		writes(putArtifact()),
		reads(getArtifact()),
		SearchHistoryTool(),
	}
}

// reads marks a tool that changes nothing.
func reads(t Tool) Tool {
	t.Repeat = RepeatAlways
	return t
}

// writes marks a tool that makes at most one edit.
func writes(t Tool) Tool {
	t.Repeat = RepeatUnlessEdited
	return t
}
