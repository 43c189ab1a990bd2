// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// Profiles are the use cases of what users say about themselves. It is part of
// every context that is built for them.
type Profiles struct{ config *Config }

// A Profile is a user's profile with its revision.
type Profile struct {
	pipeline.Profile
	Revision int // 0: not set
}

// Limits of a profile, in code points.
const (
	maxProfileName    = 200
	maxProfilePersona = 20_000
)

// Find returns the profile of the user; the zero Profile if none is set.
func (ps *Profiles) Find(ctx context.Context) (p Profile, err error) {
	err = ps.config.view(ctx, func(tx store.Tx) error {
		p.Profile, p.Revision, err = stored[pipeline.Profile](tx, profileSettings)
		return err
	})
	return p, err
}

// Set replaces the profile. revision is that of the one that it replaces;
// another one is of kind Conflict, code [artifact.CodeStale]. Rules that the
// regex-processor does not take are of kind Invalid.
func (ps *Profiles) Set(ctx context.Context, p pipeline.Profile, revision int) (Profile, error) {
	if err := ps.config.checkProfile(p); err != nil {
		return Profile{}, err
	}
	if string(p.Rules) == "null" {
		p.Rules = nil
	}
	if _, err := ps.config.put(ctx, profileSettings, p, revision); err != nil {
		return Profile{}, err
	}
	return ps.Find(ctx)
}

func (k *Config) checkProfile(p pipeline.Profile) error {
	const op = "settings.Profiles.Set"
	switch {
	case utf8.RuneCountInString(p.Name) > maxProfileName:
		return artel.Errorf(artel.TooLarge, op, "name", "a name has at most %d characters", maxProfileName)
	case utf8.RuneCountInString(p.Persona) > maxProfilePersona:
		return artel.Errorf(artel.TooLarge, op, "persona", "a persona has at most %d characters", maxProfilePersona)
	}
	if p.Language != "" {
		if _, err := language.Parse(p.Language); err != nil {
			return artel.Errorf(artel.Invalid, op, "language", "%q is no language tag: want one like en, zh or pt-BR", artel.Shorten(p.Language, 40))
		}
	}
	if len(p.Rules) == 0 || string(p.Rules) == "null" {
		return nil
	}
	if _, err := k.Pipeline.Processors().Check([]pipeline.Setting{{ID: pipeline.RegexProcessor, Config: p.Rules}}); err != nil {
		return artel.Errorf(artel.KindOf(err), op, "rules", "%w", err)
	}
	return nil
}
