// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app/access"
)

// The artel.yaml of a folder, which may have come with files of others, can run
// commands and send environment variables anywhere. Until a user has accepted
// it with "artel trust", only settings that restrict or measure are used. Any
// change of the file, and of the files with services and tools that it names,
// ends the trust. A file named by --config or ARTEL_CONFIG is trusted.

// trustCommand accepts the configuration of a folder.
func trustCommand(g *globals) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use: "trust [FILE]", Short: "Accept the artel.yaml of this folder", Args: usage(cobra.MaximumNArgs(1)),
		Long: `Accepts artel.yaml in this folder, or FILE, as it is now: its commands are run,
its addresses are called, and the environment variables that it names are sent
there. It prints these. After a change it has to be accepted again. A file that
--config names needs no acceptance.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := defaultConfig
			if len(args) > 0 {
				path = args[0]
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return artel.Errorf(artel.Invalid, "trust", path, "it cannot be read: %w", err)
			}
			c := config{}
			if err := c.parse(path, src); err != nil {
				return err
			}
			at, digest, err := c.identity(src)
			if err != nil {
				return err
			}
			if remove {
				digest = ""
			}
			if err := storeTrust(at, digest); err != nil {
				return err
			}
			uses := usesOf(src)
			return g.print(cmd, map[string]any{"file": at, "trusted": !remove, "uses": uses}, func(w printer) {
				if remove {
					w.line(at + " is not trusted any more")
					return
				}
				for _, u := range uses {
					w.line("  " + u)
				}
				w.line(at + " is trusted until it changes")
			})
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "withdraw the acceptance")
	return cmd
}

// identity returns the absolute path of the file, and a digest of its content
// and of the files with services and tools that it names.
func (c config) identity(src []byte) (path, digest string, err error) {
	if path, err = filepath.Abs(c.path); err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", "", artel.Errorf(artel.Invalid, "trust", c.path, "%w", err)
	}
	named := []string{c.relative(c.ServicesFile)}
	if c.ToolsDir != "" {
		tools, err := filepath.Glob(filepath.Join(c.relative(c.ToolsDir), "*"))
		if err != nil {
			return "", "", artel.Errorf(artel.Invalid, "trust", c.path, "tools_dir: %w", err)
		}
		named = append(named, tools...)
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d\n%s", len(src), src)
	for _, name := range named {
		if name == "" {
			continue
		}
		content, err := readRegular(name)
		if errors.Is(err, errNotRegular) {
			return "", "", artel.Errorf(artel.Invalid, "trust", name, "%w", err)
		}
		if err != nil { // what cannot be read is not used either
			continue
		}
		_, _ = fmt.Fprintf(h, "%q %d\n%s", name, len(content), content)
	}
	return path, hex.EncodeToString(h.Sum(nil)), nil
}

var errNotRegular = errors.New("it is no regular file; put a copy of it in its place")

// readRegular reads a file. It refuses devices and pipes, which may have no end and
// which a link in a folder of others can name.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if m := info.Mode(); !m.IsRegular() && !m.IsDir() {
		return nil, errNotRegular
	}
	return os.ReadFile(path)
}

// trustFile is the path of the list of accepted files, outside of all folders
// with projects.
func trustFile() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "artel", "trusted.json"), err
}

// readTrust returns the digests of the accepted files by path.
func readTrust() (map[string]string, error) {
	path, err := trustFile()
	if err != nil {
		return nil, err
	}
	src, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	list := map[string]string{}
	if err == nil {
		err = json.Unmarshal(src, &list)
	}
	return list, err
}

// storeTrust accepts a file with a digest; "" withdraws it.
func storeTrust(at, digest string) error {
	list, err := readTrust()
	if err != nil {
		return artel.Errorf(artel.Unavailable, "trust", at, "the list of trusted files cannot be read: %w", err)
	}
	list[at] = digest
	if digest == "" {
		delete(list, at)
	}
	path, err := trustFile()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	text, e := json.MarshalIndent(list, "", "  ")
	if err = cmp.Or(err, e); err == nil {
		err = keepFile(path, append(text, '\n'))
	}
	if err != nil {
		return artel.Errorf(artel.Unavailable, "trust", at, "it cannot be stored; name the file with --config instead: %w", err)
	}
	return nil
}

// trusted reports whether the file is accepted with this content.
func (c config) trusted(src []byte) bool {
	at, digest, err := c.identity(src)
	if err != nil {
		return false
	}
	list, err := readTrust()
	return err == nil && list[at] == digest
}

// admission is what the keys of the gateway do beyond limiting clients: where a login
// is needed, a request with one acts for the first administrator.
const admission = "gateway.keys"

// admits reports whether the keys of the gateway are a login.
func (c config) admits() bool { return !slices.Contains(c.withheld, admission) }

// restricted returns the settings of c that are used without trust: those that
// restrict or measure. The others are named in withheld.
func (c config) restricted() config {
	safe := config{asked: c.asked, path: c.path, Edit: c.Edit, Gateway: c.Gateway, Limits: c.Limits, Locale: c.Locale, Log: c.Log, Artifacts: c.Artifacts}
	safe.Artifacts.EditRetention = ""
	safe.Gateway.Aliases, safe.Gateway.Origins, safe.Gateway.Headers = nil, nil, nil // which send requests and secrets elsewhere, and let pages in
	safe.Files.InlineLimit, safe.Files.ModelLimit = c.Files.InlineLimit, c.Files.ModelLimit
	if c.Auth.Mode == access.Required {
		safe.Auth.Mode = access.Required
	}
	for name, p := range c.Permissions {
		if p == agent.Auto {
			continue
		}
		if safe.Permissions == nil {
			safe.Permissions = map[string]agent.Permission{}
		}
		safe.Permissions[name] = p
	}
	safe.withheld = differing(c, safe)
	if len(safe.Gateway.Keys) > 0 { // they limit clients, but are no login
		safe.withheld = append(safe.withheld, admission)
	}
	return safe
}

// differing returns the keys of the file whose values in a and b differ.
func differing(a, b config) (keys []string) {
	one, other := reflect.ValueOf(a), reflect.ValueOf(b)
	for f := range one.Type().Fields() {
		key := f.Tag.Get("yaml")
		if key != "" && !reflect.DeepEqual(one.FieldByIndex(f.Index).Interface(), other.FieldByIndex(f.Index).Interface()) {
			keys = append(keys, key)
		}
	}
	return keys
}

// errUntrusted says which settings are not used, and what to do.
func (c config) errUntrusted() error {
	return artel.Errorf(artel.Denied, "config", c.path,
		"the file is new or has changed, so these settings in it, which can run commands and send keys, are not used: %s; read the file, then run: artel trust", strings.Join(c.withheld, ", "))
}

// errUnguarded refuses a server that other machines reach at an address and whose
// certificates, logins or names are among the settings that are not used.
func (c config) errUnguarded(addr string) error {
	var missing []string
	for _, key := range []string{"tls", "auth", "hosts"} {
		if slices.Contains(c.withheld, key) {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return artel.Errorf(artel.Denied, "config", c.path,
		"the file is new or has changed, so %s in it is not used, and other machines would reach the server at %s without it; read the file, then run: artel trust", strings.Join(missing, ", "), addr)
}

// usesOf lists the commands, addresses and environment variables in a file, each
// with its place.
func usesOf(src []byte) []string {
	var doc any
	if yaml.Unmarshal(src, &doc) != nil {
		return nil
	}
	var out []string
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, sub := range v {
				walk(strings.TrimPrefix(at+"."+key, "."), sub)
			}
		case []any:
			if strings.HasSuffix(at, "command") {
				out = append(out, "runs "+at+": "+artel.Visible(strings.TrimSpace(fmt.Sprintln(v...))))
				return
			}
			for i, sub := range v {
				walk(fmt.Sprintf("%s[%d]", at, i), sub)
			}
		case string:
			switch {
			case strings.HasSuffix(at, ".auth"), strings.HasSuffix(at, ".auth.type"):
				out = append(out, "signs "+at+": "+artel.Visible(v)+", with the credentials of this machine")
			case strings.HasSuffix(at, "command"):
				out = append(out, "runs "+at+": "+artel.Visible(v))
			case strings.Contains(v, "${"):
				out = append(out, "reads "+at+": "+artel.Visible(v))
			case strings.Contains(v, "://"), strings.HasSuffix(at, "_file"), strings.HasSuffix(at, "dir"), strings.HasPrefix(at, "skills["):
				out = append(out, "uses "+at+": "+artel.Visible(v))
			}
		}
	}
	walk("", doc)
	slices.Sort(out)
	return out
}
