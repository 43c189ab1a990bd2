// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// purpose is authenticated with the secrets of a kind.
func purpose(kind store.EntryKind) string { return "entry:" + string(kind) }

// secrets are the values of an entry that are stored encrypted.
type secrets struct {
	APIKey  string            `json:"apiKey,omitempty"`
	Headers map[string]string `json:"headers,omitempty"` // by their names as given
	Client  string            `json:"client_secret,omitempty"`
}

func (s secrets) none() bool { return s.APIKey == "" && s.Client == "" && len(s.Headers) == 0 }

// shown is what a reader sees of a secret: that it is set, and the last four of at
// least 16 characters.
func shown(secret string) map[string]any {
	out := map[string]any{"set": true}
	if len(secret) >= 16 {
		out["ends_with"] = secret[len(secret)-4:]
	}
	return out
}

// isShown reports whether a value is one of shown, which a client sends back for a
// secret that stays.
func isShown(v any) bool {
	m, ok := v.(map[string]any)
	return ok && m["set"] == true
}

// A draft is an entry as a client sent it.
type draft struct {
	fields   map[string]any // with secrets, for [model.ParseEntry]
	stored   map[string]any // with shown in their place
	secrets  secrets
	disabled bool
	kept     bool // a secret of the earlier entry is used
}

// newDraft takes the secrets out of fields. before are the secrets of the entry that it
// replaces: apiKey stays if it is absent, values of headers if they are sent back as
// they were read.
func newDraft(fields map[string]any, before secrets) (draft, error) {
	const op = "entries"
	d := draft{fields: maps.Clone(fields), stored: maps.Clone(fields)}
	if v, ok := fields["disabled"]; ok {
		if d.disabled, ok = v.(bool); !ok {
			return d, refused(model.Flaw{Code: model.WrongType, Key: "disabled", Value: "flag"})
		}
		delete(d.fields, "disabled")
		delete(d.stored, "disabled")
	}
	if v, ok := fields["api_key"]; ok { // the other name of apiKey in artel.yaml
		if _, both := fields["apiKey"]; both {
			return d, artel.Errorf(artel.Invalid, op, "", "apiKey and api_key name the same: give one of them")
		}
		delete(d.fields, "api_key")
		delete(d.stored, "api_key")
		d.fields["apiKey"] = v
	}
	var err error
	if d.secrets.APIKey, err = d.take("apiKey", before.APIKey); err != nil {
		return d, err
	}
	if d.secrets.Client, err = d.take("client_secret", before.Client); err != nil {
		return d, err
	}
	headers, ok := fields["headers"].(map[string]any)
	if !ok || len(headers) == 0 {
		return d, nil
	}
	d.secrets.Headers = map[string]string{}
	full, masked := map[string]any{}, map[string]any{}
	for name, v := range headers {
		value, isText := v.(string)
		if isShown(v) {
			if value, isText = before.Headers[name]; isText {
				d.kept = true
			}
		}
		if !isText {
			return d, refused(model.Flaw{Code: model.WrongType, Key: "headers." + artel.Shorten(name, 60), Value: "text"})
		}
		d.secrets.Headers[name] = value
		full[name], masked[name] = value, shown(value)
	}
	d.fields["headers"], d.stored["headers"] = full, masked
	return d, nil
}

// take takes a secret out of the fields. before is that of the earlier entry, which stays
// if the key is absent or sent back as it was read.
func (d *draft) take(key, before string) (secret string, err error) {
	given, ok := d.fields[key]
	switch text, isText := given.(string); {
	case !ok || isShown(given):
		secret, d.kept = before, d.kept || before != ""
	case isText:
		secret = strings.TrimSpace(text)
	case given != nil:
		return "", refused(model.Flaw{Code: model.WrongType, Key: key, Value: "text"})
	}
	delete(d.fields, key)
	delete(d.stored, key)
	if secret != "" {
		d.fields[key], d.stored[key] = secret, shown(secret)
	}
	return secret, nil
}

func refused(f model.Flaw) error {
	return &artel.Error{Op: "entries", Kind: artel.Invalid, Err: model.Flaws{f}}
}

// seal returns the fields and the encrypted secrets of d.
func (d draft) seal(box *secret.Box, kind store.EntryKind, id string) (fields json.RawMessage, sealed []byte, err error) {
	if fields, err = json.Marshal(d.stored); err != nil {
		return nil, nil, artel.Errorf(artel.Invalid, "entries", artel.Shorten(id, 60), "it cannot be written as JSON: %w", err)
	}
	if len(fields) > maxFields {
		return nil, nil, artel.Errorf(artel.TooLarge, "entries", artel.Shorten(id, 60), "it has %d bytes; at most %d are stored", len(fields), maxFields)
	}
	if d.secrets.none() {
		return fields, nil, nil
	}
	if box == nil {
		return nil, nil, artel.Errorf(artel.Unsupported, "entries", artel.Shorten(id, 60), "this server has no key to encrypt secrets with")
	}
	plain, err := json.Marshal(d.secrets)
	if err == nil {
		sealed, err = box.Seal(purpose(kind), id, plain)
	}
	return fields, sealed, err
}

// maxFields is the largest entry in bytes, without secrets.
const maxFields = 256 << 10

// sealed sets fields and secrets of e. While there are secrets of another key, none are
// added: the way back is to restore that key.
func (v *Vault) sealed(ctx context.Context, e *store.Entry, d draft) (err error) {
	if !d.secrets.none() && v.secrets != nil {
		for _, kind := range []store.EntryKind{store.ServiceEntry, store.MCPServerEntry, store.HTTPToolEntry} {
			all, err := v.list(ctx, kind)
			if err != nil {
				return err
			}
			for _, other := range all {
				if other.Kind == e.Kind && other.ID == e.ID || len(other.Secrets) == 0 {
					continue
				}
				if err := v.secrets.Check(other.Secrets); errors.Is(err, secret.ErrNoKey) {
					return err
				}
			}
		}
	}
	e.Fields, e.Secrets, err = d.seal(v.secrets, e.Kind, e.ID)
	return err
}

// open returns the secrets of an entry.
func open(box *secret.Box, e store.Entry) (out secrets, err error) {
	if len(e.Secrets) == 0 {
		return out, nil
	}
	if box == nil {
		return out, artel.Errorf(artel.Unavailable, "entries", e.ID, "%w", secret.ErrNoKey)
	}
	plain, err := box.Open(purpose(e.Kind), e.ID, e.Secrets)
	if err == nil {
		err = json.Unmarshal(plain, &out)
	}
	return out, err
}

// fieldsOf returns the fields of an entry as a client reads them.
func fieldsOf(e store.Entry) (map[string]any, error) {
	out := map[string]any{}
	if err := json.Unmarshal(e.Fields, &out); err != nil {
		return nil, artel.Errorf(artel.Internal, "entries", e.ID, "the stored entry cannot be read: %w", err)
	}
	return out, nil
}

// full returns the fields of an entry with its secrets, for [model.ParseEntry].
func full(box *secret.Box, e store.Entry) (map[string]any, error) {
	fields, err := fieldsOf(e)
	if err != nil {
		return nil, err
	}
	s, err := open(box, e)
	if err != nil {
		return nil, err
	}
	d, err := newDraft(fields, s)
	return d.fields, err
}
