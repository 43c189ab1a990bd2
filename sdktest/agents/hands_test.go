// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

type arguments = map[string]any

// A hand is a tool of some programs: do returns its arguments for an act, or nil.
type hand struct {
	names []string
	do    func(a act) arguments
}

// is reports whether h is the tool of this name. That of an MCP server has the name of
// the server before its own.
func (h hand) is(name string) bool {
	return slices.Contains(h.names, name) || slices.Contains(h.names, "*shot") && strings.HasSuffix(name, "shot")
}

func only(verb string, do func(a act) arguments) func(a act) arguments {
	return func(a act) arguments {
		if a.verb != verb {
			return nil
		}
		return do(a)
	}
}

// hands are the tools that the model can use. Of several it takes the first.
var hands = []hand{
	{[]string{"*shot"}, only("shoot", func(act) arguments { return arguments{} })},
	// Codex
	{[]string{"view_image"}, only("look", func(a act) arguments { return arguments{"path": a.path()} })},
	{[]string{"exec_command"}, func(a act) arguments {
		if a.verb == "shoot" {
			return nil
		}
		return arguments{"cmd": command(a)}
	}},
	{[]string{"exec", "functions__exec"}, func(a act) arguments { return arguments{"input": orchestrated(a)} }},
	// Gemini CLI, Qwen Code
	{[]string{"read_file"}, onlyReads("file_path")},
	{[]string{"write_file"}, only("write", func(a act) arguments { return arguments{"file_path": a.path(), "content": a.text} })},
	{[]string{"replace"}, only("edit", func(a act) arguments {
		return arguments{"file_path": a.path(), "instruction": "Change the line.", "old_string": a.before, "new_string": a.with}
	})},
	// opencode
	{[]string{"read"}, onlyReads("filePath")},
	{[]string{"write"}, only("write", func(a act) arguments { return arguments{"filePath": a.path(), "content": a.text} })},
	// Cline
	{[]string{"read_files"}, func(a act) arguments {
		if a.verb != "read" && a.verb != "look" {
			return nil
		}
		return arguments{"files": []any{arguments{"path": a.path()}}}
	}},
	{[]string{"editor"}, func(a act) arguments {
		switch a.verb {
		case "write":
			return arguments{"path": a.path(), "new_text": a.text}
		case "edit":
			return arguments{"path": a.path(), "old_text": a.before, "new_text": a.with}
		}
		return nil
	}},
	// Qwen Code and opencode have a tool of this name each, with members of their own
	{[]string{"edit"}, only("edit", func(a act) arguments {
		return arguments{
			"file_path": a.path(), "old_string": a.before, "new_string": a.with,
			"filePath": a.path(), "oldString": a.before, "newString": a.with,
		}
	})},
}

func onlyReads(member string) func(a act) arguments {
	return func(a act) arguments {
		if a.verb != "read" && a.verb != "look" {
			return nil
		}
		return arguments{member: a.path()}
	}
}

// command is a shell command that does a.
func command(a act) string {
	switch a.verb {
	case "read":
		return "cat " + a.file
	case "write", "edit":
		return "apply_patch <<'END_OF_PATCH'\n" + patch(a) + "\nEND_OF_PATCH"
	}
	return ""
}

// orchestrated is JavaScript for Codex's tool exec that does a.
func orchestrated(a act) string {
	quoted := func(s string) string {
		b, _ := json.Marshal(s) // a string can be encoded
		return string(b)
	}
	switch a.verb {
	case "look":
		return fmt.Sprintf("image((await tools.view_image({path: %s})).image_url);", quoted(a.path()))
	case "shoot":
		return `for (const c of (await tools.mcp__screen__shot({})).content) c.type === "image" ? image(c) : text(c.text);`
	case "read":
		return fmt.Sprintf("text((await tools.exec_command({cmd: %s})).output);", quoted(command(a)))
	}
	return fmt.Sprintf("text(await tools.apply_patch(%s));", quoted(patch(a)))
}

// patch is a patch in Codex's format that does a.
func patch(a act) string {
	if a.verb == "edit" {
		return "*** Begin Patch\n*** Update File: " + a.file + "\n@@\n-" + a.before + "\n+" + a.with + "\n*** End Patch"
	}
	out := "*** Begin Patch\n*** Add File: " + a.file + "\n"
	for line := range strings.SplitSeq(strings.TrimSuffix(a.text, "\n"), "\n") {
		out += "+" + line + "\n"
	}
	return out + "*** End Patch"
}
