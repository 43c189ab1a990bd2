// SPDX-License-Identifier: Apache-2.0

package model

// The limits of Anthropic's API on the sides of pictures, in pixels ("Vision" of
// its documentation): those of a request with many of them are lower.
const (
	anthropicSide     = 8000
	anthropicManySide = 2000
	anthropicMany     = 20
)

// ForPictures returns s as a request with so many pictures sees it: where the API of
// its dialect has a limit on their sides, that holds, unless the operator says
// another or a lower one is known.
func (s Service) ForPictures(pictures int) Service {
	if s.Dialect != Anthropic || s.Capabilities.MaxSide.Source == FromOperator {
		return s
	}
	side := anthropicSide
	if pictures > anthropicMany {
		side = anthropicManySide
	}
	if have := s.Capabilities.MaxSide.Value; have == 0 || have > side {
		s.Capabilities.MaxSide = known(FromDialect, side)
	}
	return s
}
