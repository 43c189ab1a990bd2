// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/skill"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
)

// SkillNames are the skills that an agent can open, or ["*"] for all of the user and
// of the deployment. In a file, "all" is the same.
type SkillNames []string

// The two ways to write all skills.
const (
	anySkill  = "*"
	allSkills = "all"
)

// All reports whether all skills are meant.
func (n SkillNames) All() bool { return slices.Contains(n, anySkill) }

// Has reports whether the agent can open a skill.
func (n SkillNames) Has(name string) bool { return n.All() || slices.Contains(n, name) }

// Missing returns the names that are not in a list of skills.
func (n SkillNames) Missing(there []skill.Listed) (out []string) {
	for _, name := range n {
		if name != anySkill && !slices.ContainsFunc(there, func(s skill.Listed) bool { return s.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}

// UnmarshalYAML implements a decoder of YAML.
func (n *SkillNames) UnmarshalYAML(decode func(any) error) error {
	var list []string
	if decode(&list) == nil {
		if *n = list; len(list) == 1 && list[0] == allSkills {
			*n = SkillNames{anySkill}
		}
		return nil
	}
	var one string
	if err := decode(&one); err != nil || one != allSkills && one != anySkill {
		return errors.New("skills: want a list of names, or all")
	}
	*n = SkillNames{anySkill}
	return nil
}

// check adds the flaws of names. Unknown skills are none, because skills come and go.
func (n SkillNames) check(fs *Flaws) {
	checkNames(fs, "skills", n, nil, phrase.AgentNoTool)
	for _, name := range n {
		if name != anySkill && !skill.IsName(name) {
			fs.add("skills", phrase.AgentSkillName, map[string]any{"Name": artel.Shorten(name, 80)})
		}
	}
}

// ParseSkillNames reads names with commas or spaces between them, or all.
func ParseSkillNames(s string) SkillNames {
	n := SkillNames(strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' }))
	if len(n) == 1 && n[0] == allSkills {
		return SkillNames{anySkill}
	}
	return n
}

// String is the inverse of [ParseSkillNames].
func (n SkillNames) String() string {
	if n.All() {
		return allSkills
	}
	return strings.Join(n, ", ")
}

// withSkills adds the tool that opens the agent's skills, if it has some.
func (r *run) withSkills(tools *tool.Set) *tool.Set {
	if r.in.Env.Skills == nil || r.permission(tool.OpenSkill) == Deny {
		return tools
	}
	list := r.in.Env.Skills.List()
	if len(list) == 0 {
		return tools
	}
	return tools.With(tool.OpenSkillTool(list))
}
