// SPDX-License-Identifier: Apache-2.0

package tool

// A Catalog has the tools that are available: the built-in ones and those of
// servers, which come and go.
type Catalog struct {
	BuiltIn *Set
	Servers Servers // nil: none
}

// Set returns the tools currently available.
func (c Catalog) Set() *Set {
	if c.Servers == nil {
		return c.BuiltIn
	}
	return c.BuiltIn.With(c.Servers.Tools()...)
}

// Prefixes are the beginnings of the names of tools that may come later.
func (c Catalog) Prefixes() []string {
	if c.Servers == nil {
		return nil
	}
	return c.Servers.Prefixes()
}

// Health says how the servers are doing.
func (c Catalog) Health() []ServerHealth {
	if c.Servers == nil {
		return []ServerHealth{}
	}
	return c.Servers.Health()
}
