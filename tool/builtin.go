// SPDX-License-Identifier: Apache-2.0

package tool

// BuiltIn returns the tools of the product.
func BuiltIn() []Tool {
	return []Tool{
		createArtifact(),
		updateArtifact(),
		rewriteArtifact(),
		readArtifact(),
		listArtifacts(),
		grepArtifacts(),
		diffArtifact(),
		renameArtifact(),
		deleteArtifact(),
		restoreArtifact(),
		putArtifact(),
		getArtifact(),
	}
}
