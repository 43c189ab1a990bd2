// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// A SettingsFile has everything that a user has set, as one file. It has no
// secrets.
type SettingsFile struct {
	Version  int                                    `json:"artel_settings"` // of the format: 1
	Profile  *pipeline.Profile                      `json:"profile,omitempty"`
	Order    []string                               `json:"order,omitempty"` // nil: the deployment's
	Services map[artel.ServiceID][]pipeline.Setting `json:"services,omitempty"`
	Agents   map[artel.AgentName][]pipeline.Setting `json:"agents,omitempty"`
}

// settingsVersion is the version of the format that is written.
const settingsVersion = 1

// Tag returns a digest of the file: equal files have equal tags.
func (f SettingsFile) Tag() string {
	b, err := json.Marshal(f)
	if err != nil {
		return ""
	}
	return artel.NewDigest(sha256.Sum256(b)).Hex()[:32]
}

// Export returns all settings of the user.
func (ps *Profiles) Export(ctx context.Context) (f SettingsFile, err error) {
	err = ps.config.view(ctx, func(tx store.Tx) error {
		f, err = exported(tx)
		return err
	})
	return f, err
}

func exported(tx store.Tx) (SettingsFile, error) {
	f := SettingsFile{Version: settingsVersion}
	all, err := filed(tx)
	if err != nil {
		return f, err
	}
	for _, s := range all {
		if id, ok := strings.CutPrefix(s.Name, serviceSettings); ok {
			err = collect(&f.Services, artel.ServiceID(id), s.Value)
		} else if name, ok := strings.CutPrefix(s.Name, agentSettings); ok {
			err = collect(&f.Agents, artel.AgentName(name), s.Value)
		} else if s.Name == orderSettings {
			err = json.Unmarshal(s.Value, &f.Order)
		} else if s.Name == profileSettings {
			err = json.Unmarshal(s.Value, &f.Profile)
		}
		if err != nil {
			return f, artel.Errorf(artel.Internal, "settings.Profiles.Export", artel.Shorten(s.Name, 80), "the setting is damaged: %w", err)
		}
	}
	return f, nil
}

// filed returns the settings that are part of the file. Agents, world books, pictures
// and skills have files of their own.
func filed(tx store.Tx) (all []store.Setting, err error) {
	for _, prefix := range []string{serviceSettings, agentSettings} {
		list, err := tx.Settings.List(prefix)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	for _, name := range []string{orderSettings, profileSettings} {
		s, err := tx.Settings.Get(name)
		switch {
		case err == nil:
			all = append(all, s)
		case !errors.Is(err, artel.NotFound):
			return nil, err
		}
	}
	return all, nil
}

func collect[K comparable](to *map[K][]pipeline.Setting, key K, value json.RawMessage) error {
	if *to == nil {
		*to = map[K][]pipeline.Setting{}
	}
	var list []pipeline.Setting
	err := json.Unmarshal(value, &list)
	(*to)[key] = list
	return err
}

// ParseSettingsFile reads a file made by [Profiles.Export]. Unknown keys and other
// versions are of kind Invalid.
func ParseSettingsFile(data []byte) (f SettingsFile, err error) {
	const op = "settings.ParseSettingsFile"
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return f, artel.Errorf(artel.Invalid, op, "settings", "it is no file of settings: %w", err)
	}
	if f.Version != settingsVersion {
		return f, artel.Errorf(artel.Invalid, op, "artel_settings", "the file has version %d of the format, and %d is read here", f.Version, settingsVersion)
	}
	return f, nil
}

// Import puts the settings of a file in the place of all that were set: what
// the file does not name is reset. All of it is taken, or nothing. tag is that
// of the settings that are replaced, and others are of kind Conflict, code
// [artifact.CodeStale]; "" replaces whatever is there.
func (ps *Profiles) Import(ctx context.Context, f SettingsFile, tag string) (SettingsFile, error) {
	values, err := ps.values(f)
	if err != nil {
		return f, err
	}
	err = ps.config.update(ctx, func(tx store.Tx) error {
		if now, err := exported(tx); err != nil {
			return err
		} else if tag != "" && now.Tag() != tag {
			return &artel.Error{Op: "settings.Profiles.Import", Subject: "settings", Kind: artel.Conflict, Code: artifact.CodeStale, Err: errStaleSettings}
		}
		all, err := filed(tx)
		if err != nil {
			return err
		}
		for _, s := range all {
			v, stays := values[s.Name]
			if !stays {
				v = nil
			}
			if _, err := ps.config.putTx(tx, s.Name, v, s.Revision); err != nil {
				return err
			}
		}
		for name, v := range values {
			if known(all, name) {
				continue
			}
			if _, err := ps.config.putTx(tx, name, v, 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	return ps.Export(ctx)
}

func known(all []store.Setting, name string) bool {
	for _, s := range all {
		if s.Name == name {
			return true
		}
	}
	return false
}

// values returns the settings of a file by the names under which they are stored.
func (ps *Profiles) values(f SettingsFile) (map[string]any, error) {
	out := map[string]any{}
	if f.Profile != nil {
		if err := ps.config.checkProfile(*f.Profile); err != nil {
			return nil, err
		}
		out[profileSettings] = *f.Profile
	}
	if f.Order != nil {
		if _, err := ps.config.Pipeline.Processors().CheckOrder(f.Order); err != nil {
			return nil, err
		}
		out[orderSettings] = f.Order
	}
	take := func(under, name string, list []pipeline.Setting) error {
		if name == "" || len(name) > artel.MaxIDLength {
			return artel.Errorf(artel.Invalid, "settings.Profiles.Import", strings.TrimSuffix(under, "/"), "a name has 1 to %d bytes", artel.MaxIDLength)
		}
		if err := ps.config.check(list); err != nil {
			return &artel.Error{Op: "settings.Profiles.Import", Subject: under + artel.Shorten(name, 80), Kind: artel.KindOf(err), Err: err}
		}
		if list == nil {
			list = []pipeline.Setting{}
		}
		out[under+name] = list
		return nil
	}
	for id, list := range f.Services {
		if err := take(serviceSettings, string(id), list); err != nil {
			return nil, err
		}
	}
	for name, list := range f.Agents {
		if err := take(agentSettings, string(name), list); err != nil {
			return nil, err
		}
	}
	return out, nil
}
