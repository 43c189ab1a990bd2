// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/route"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/tool"
)

// The faces see this package and the words below it, not the rooms between.
// These are the types of those rooms that use cases take and return.
type (
	// A Page asks for a part of a list.
	Page = store.Page
	// An Answer is a remembered response.
	Answer = store.Answer
	// Staged is an upload whose bytes are in, and which is not yet visible.
	Staged = artifact.Staged
	// A Service is one configured model endpoint.
	Service = model.Service
	// Provenance says who stated a fact about a service.
	Provenance = model.Provenance
	// A ToolSpec is what a tool says of itself.
	ToolSpec = model.ToolSpec
	// A ToolResult is the outcome of a tool call.
	ToolResult = tool.Result
	// A RouteResult says what a model would get of some content.
	RouteResult = route.Result
)
