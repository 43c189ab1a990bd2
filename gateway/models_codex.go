// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// codexInstructions are the instructions with which Codex begins a conversation
// with a model of our list. It needs some in each entry.
const codexInstructions = `You are a coding agent in Codex CLI, an open-source terminal program, and work on the user's computer in the current folder.

- Work until the task is done: read what you need, change the files, run the checks that the project has, and mend what they show. Ask only if a decision is the user's.
- Read files before you change them. Keep to the style and the libraries of the code around, change nothing that the task does not need, and never undo changes that you did not make.
- Prefer rg for searching text and files. Run one command at a time if the next depends on its result.
- Edit files with the tool for patches if there is one, else with commands.
- Never run destructive commands, such as git reset --hard, unless the user asked for them. Follow the instructions in AGENTS.md files for the folders that they are in.
- Report in a few plain sentences what you changed and how you checked it, with the paths of the files.`

// codexModels is the answer to Codex's GET /v1/models?client_version=… (codex-rs,
// protocol/src/openai_models.rs, ModelsResponse). Models of OpenAI are left out:
// Codex knows them, and an entry would replace the instructions made for them.
func codexModels(all []model.Service) any {
	entries := []any{}
	for i, s := range all {
		if known := func(prefix string) bool {
			return strings.HasPrefix(string(s.ID), prefix)
		}; slices.ContainsFunc([]string{"gpt-", "codex", "o1", "o3", "o4"}, known) {
			continue
		}
		entries = append(entries, codexModel(s, i+1))
	}
	return map[string]any{"models": entries}
}

func codexModel(s model.Service, priority int) any {
	c := s.OnWire().Capabilities
	inputs := []string{"text"}
	if c.Takes(artel.CanVision, "image/png") {
		inputs = append(inputs, "image")
	}
	entry := map[string]any{
		"slug": s.ID, "display_name": s.Name, "description": s.Description, "priority": priority,
		"visibility": "list", "supported_in_api": true, "base_instructions": codexInstructions,
		"default_reasoning_level": nil, "supported_reasoning_levels": []any{},
		"supports_reasoning_summaries": true, "supports_reasoning_summary_parameter": true, "default_reasoning_summary": "auto",
		"support_verbosity": false, "default_verbosity": nil,
		"shell_type": "shell_command", "apply_patch_tool_type": nil, "web_search_tool_type": "text",
		"truncation_policy":            map[string]any{"mode": "tokens", "limit": 10_000},
		"supports_parallel_tool_calls": true, "supports_image_detail_original": false, "supports_search_tool": false,
		"context_window": nil, "effective_context_window_percent": 95, "experimental_supported_tools": []any{},
		"input_modalities": inputs, "availability_nux": nil, "upgrade": nil,
	}
	if n := c.ContextWindow.Value; n > 0 {
		entry["context_window"] = n
	}
	return entry
}
