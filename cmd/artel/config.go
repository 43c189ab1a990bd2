// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run"
)

// config is the configuration file. Every key is optional.
type config struct {
	Services       []any                       `yaml:"services"`        // entries as in an llmservices.json
	ServicesFile   string                      `yaml:"services_file"`   // an llmservices.json, relative to this file
	DefaultService artel.ServiceID             `yaml:"default_service"` // used if a request names no service
	Selector       artel.ServiceID             `yaml:"selector"`        // chooses the service if that is "auto" and several are suitable; default: the first of them
	Titles         artel.ServiceID             `yaml:"titles"`          // generates titles after the first answer: a service, own (the one that answered) or off; default: off
	AgentsDir      string                      `yaml:"agents_dir"`      // *.md; replace shipped agents of the same name, or are added to them
	Skills         []string                    `yaml:"skills"`          // folders with skills for all users: with SKILL.md, or with such folders below, relative to this file
	Permissions    map[string]agent.Permission `yaml:"permissions"`     // of tools, * for all others: auto (default), ask or deny; agents may be stricter
	Tools          []tool.EndpointConfig       `yaml:"tools"`           // HTTP APIs for agents
	ToolsDir       string                      `yaml:"tools_dir"`       // *.yaml, each with one entry as in tools, relative to this file
	MCP            []mcp.Config                `yaml:"mcp"`             // MCP servers with tools for agents
	Blobs          struct {
		Dir string `yaml:"dir"` // default: blobs in the data directory
		URL string `yaml:"url"` // in place of dir: s3://BUCKET?…, or file:///FOLDER
	} `yaml:"blobs"`
	Files struct {
		PublicBase  string `yaml:"public_base"`  // public URL of /api/v1/files/tool_results, such as a CDN or a proxy; default: none
		Retention   string `yaml:"retention"`    // of unreferenced tool results outside any run, as 7d or 36h; default 7d; 0: for ever
		InlineLimit int    `yaml:"inline_limit"` // bytes of a tool result in events and answers; default 102,400
		ModelLimit  int    `yaml:"model_limit"`  // characters of a tool result for models; default 20,000
	} `yaml:"files"`
	Artifacts struct {
		UploadLimit      int64              `yaml:"upload_limit"`      // bytes of one upload, and a twentieth of an imported ZIP; default 200 MB
		InventoryPreview *int               `yaml:"inventory_preview"` // characters; default 200
		TaskPlanCap      *int               `yaml:"task_plan_cap"`     // characters; default 16,000; 0: none
		Placement        pipeline.Placement `yaml:"placement"`         // of plan and inventory: tail (default) or system
		EditRetention    string             `yaml:"edit_retention"`    // of the edits between versions, as 90d or 36h; default and 0: for ever
	} `yaml:"artifacts"`
	Edit struct { // tolerance of approximate matches of old text
		MaxRatio    *float64 `yaml:"max_ratio"`    // ratio of the old text that may differ, 0 to 1; default 0.3
		MinDistance *int     `yaml:"min_distance"` // edits that are always allowed; default 5
		MinLength   *int     `yaml:"min_length"`   // shorter old texts must match exactly; default 12
		Margin      *int     `yaml:"margin"`       // minimum number of edits between the best match and the second; default: a tenth of the old text, and at least 2
	} `yaml:"edit"`
	Transcription struct { // of recordings for models without audio; default: none
		Service     artel.ServiceID `yaml:"service"`      // a service with an endpoint /audio/transcriptions, like OpenAI's
		Model       string          `yaml:"model"`        // default: the service's
		Language    string          `yaml:"language"`     // of the recordings, in two letters; default: detected by the service
		UploadLimit int64           `yaml:"upload_limit"` // bytes of one recording; default 25 MB
	} `yaml:"transcription"`
	Caption struct { // descriptions of pictures for models without vision, and on request of agents; default: none
		Service artel.ServiceID `yaml:"service"` // a service with vision
		Prompt  string          `yaml:"prompt"`  // instruction for each picture
	} `yaml:"caption"`
	Webhooks struct {
		AllowPrivate bool `yaml:"allow_private"` // addresses on this machine and in private networks too; default: false
	} `yaml:"webhooks"`
	Gateway  gatewayConfig `yaml:"gateway"`
	Limits   limitsConfig  `yaml:"limits"` // of each user, and of each key of the gateway
	Pipeline struct {      // of contexts, for the whole deployment
		Disabled   []string           `yaml:"disabled"`   // ids of processors that cannot be enabled
		Order      []string           `yaml:"order"`      // of formatters and plugins, by id; the others keep their places
		Processors []pipeline.Setting `yaml:"processors"` // defaults: id, enabled, config
		Plugins    []pluginConfig     `yaml:"plugins"`    // processors in other programs
	} `yaml:"pipeline"`
	Auth           authConfig  `yaml:"auth"`            // who may use the server
	Hosts          []string    `yaml:"hosts"`           // names of this server beside loopback, which the Host of a request may have
	ContentHost    string      `yaml:"content_host"`    // another name of this server, which shows artifacts and nothing else
	TrustedProxies []string    `yaml:"trusted_proxies"` // networks of proxies whose X-Forwarded-* and Forwarded are believed
	TLS            tlsSettings `yaml:"tls"`             // how this server encrypts; default: not
	BasePath       string      `yaml:"base_path"`       // below which a proxy serves this server, such as /artel
	Locale         string      `yaml:"locale"`          // of texts for models: en (default) or zh
	Log            struct {
		Level  slog.Level `yaml:"level"`  // debug, info (default), warn, error
		Format string     `yaml:"format"` // json (default) or text
	} `yaml:"log"`

	asked    string // value of --config; "": the default
	blobs    string // value of --blobs, which comes before the file
	database string // address of --database; "": the file in the data directory
	replica  replica
	path     string // "": no file
	lines    []int  // line numbers of the entries of services, if known

	withheld []string // keys that are not used, because the file is not trusted
	running  string   // folder in which the server names itself for commands of its user; "": none
}

// minShown is the smallest inline limit: the notice about a long result needs
// space too.
const minShown = 1000

const defaultConfig = "artel.yaml"

// loadConfig is readConfig that says on standard error if the file is not
// trusted.
func loadConfig(path string) (config, error) {
	c, err := readConfig(path)
	if len(c.withheld) > 0 {
		fmt.Fprintln(os.Stderr, "artel: "+c.errUntrusted().Error())
	}
	return c, err
}

// readConfig reads the file at path, or ./artel.yaml if it exists, of which only
// the restricted settings are used if it is not trusted. The error names file
// and line, and for an unknown key the nearest known one.
func readConfig(path string) (config, error) {
	c := config{asked: path}
	chosen := path != ""
	read := os.ReadFile
	if !chosen {
		path, read = defaultConfig, readRegular
	}
	src, err := read(path)
	if errors.Is(err, fs.ErrNotExist) && !chosen {
		return c, nil
	}
	if err != nil {
		return c, artel.Errorf(artel.Invalid, "config", path, "the configuration cannot be read: %w", err)
	}
	if err := c.parse(path, src); err != nil {
		return c, err
	}
	if safe := c.restricted(); !chosen && len(safe.withheld) > 0 && !c.trusted(src) {
		return safe, nil
	}
	return c, nil
}

func (c *config) parse(path string, src []byte) error {
	c.path = path
	if err := c.decode(src); err != nil {
		return &artel.Error{Op: "config", Subject: path, Kind: artel.Invalid, Err: err}
	}
	return nil
}

func (c *config) decode(src []byte) (err error) {
	defer func() {
		// The YAML library panics on some values with unknown tags.
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return withLine(err)
	}
	if len(file.Docs) > 1 {
		return errors.New("there is more than one YAML document in it; want one")
	}
	c.lines = nil
	for _, doc := range file.Docs {
		c.lines = append(c.lines, entryLines(doc.Body)...)
		switch body := doc.Body.(type) {
		case nil, *ast.NullNode:
		case *ast.MappingNode, *ast.MappingValueNode:
			if err := checkKeys(body, reflect.TypeFor[config](), ""); err != nil {
				return err
			}
		default:
			return fmt.Errorf("line %d: want keys with values", body.GetToken().Position.Line)
		}
	}
	if err := yaml.UnmarshalWithOptions(src, c, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		return withLine(err)
	}
	return c.check()
}

// withLine returns the YAML library's error without its excerpt of the file,
// which may contain a key.
func withLine(err error) error {
	if e, ok := errors.AsType[yaml.Error](err); ok {
		return fmt.Errorf("line %d: %s", e.GetToken().Position.Line, e.GetMessage())
	}
	return err
}

// check rejects invalid values of the right type.
func (c *config) check() error {
	if err := agent.Permissions(c.Permissions).Check(); err != nil {
		return fmt.Errorf("permissions: %w", err)
	}
	switch c.Artifacts.Placement {
	case "", pipeline.PlaceTail, pipeline.PlaceSystem:
	default:
		return fmt.Errorf("artifacts.placement is %q: want tail or system", c.Artifacts.Placement)
	}
	language, _, _ := strings.Cut(strings.ToLower(c.Locale), "-")
	if language != "" && !slices.Contains(phrase.Locales(), phrase.Locale(language)) {
		return fmt.Errorf("locale is %q: want one of %q", c.Locale, phrase.Locales())
	}
	for key, n := range map[string]*int{"inventory_preview": c.Artifacts.InventoryPreview, "task_plan_cap": c.Artifacts.TaskPlanCap} {
		if n != nil && *n < 0 {
			return fmt.Errorf("artifacts.%s is %d: want a number of characters", key, *n)
		}
	}
	if r := c.Edit.MaxRatio; r != nil && !(*r >= 0 && *r <= 1) {
		return fmt.Errorf("edit.max_ratio is %v: want a part from 0 to 1", *r)
	}
	for key, n := range map[string]*int{"min_distance": c.Edit.MinDistance, "min_length": c.Edit.MinLength, "margin": c.Edit.Margin} {
		if n != nil && *n < 0 {
			return fmt.Errorf("edit.%s is %d: want a number from 0", key, *n)
		}
	}
	if _, err := peer.ParseTrusted(c.TrustedProxies); err != nil {
		return fmt.Errorf("trusted_proxies: %w", err)
	}
	if c.ContentHost != "" {
		if _, err := httpapi.ParseContentHost(c.ContentHost); err != nil {
			return fmt.Errorf("content_host: %w", err)
		}
		if slices.ContainsFunc(c.Hosts, func(h string) bool { return strings.EqualFold(h, c.ContentHost) }) {
			return fmt.Errorf("content_host is %s, which is one of hosts: want a name that has neither page nor API", artel.Shorten(c.ContentHost, 80))
		}
	}
	for _, check := range []func() error{c.TLS.check, c.Auth.check, c.checkBlobs} {
		if err := check(); err != nil {
			return err
		}
	}
	if p, err := peer.ParsePrefix(c.BasePath); err != nil {
		return fmt.Errorf("base_path is %q: %w", artel.Shorten(c.BasePath, 80), err)
	} else if first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/"); slices.Contains([]string{"api", "auth", "c", "r", "static", "v1", "v1beta"}, first) {
		return fmt.Errorf("base_path is %q: paths of Artel itself begin like this; want another one, such as /artel", artel.Shorten(c.BasePath, 80))
	}
	if _, err := parseAge(c.Files.Retention); err != nil {
		return fmt.Errorf("files.retention is %q: want days or hours, as in 7d or 36h", artel.Shorten(c.Files.Retention, 40))
	}
	for key, n := range map[string]int{"inline_limit": c.Files.InlineLimit, "model_limit": c.Files.ModelLimit} {
		if n < 0 || n > 0 && n < minShown {
			return fmt.Errorf("files.%s is %d: want at least %d, or none for the default", key, n, minShown)
		}
	}
	if base := c.Files.PublicBase; base != "" {
		u, err := url.Parse(base)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("files.public_base: want an address like https://cdn.example/files, without a query")
		}
	}
	if err := c.Limits.check(); err != nil {
		return err
	}
	if err := c.Gateway.check(); err != nil {
		return err
	}
	t := c.Transcription
	switch {
	case t.Service == "" && (t.Model != "" || t.Language != "" || t.UploadLimit != 0):
		return errors.New("transcription.service is missing: it names the service that writes recordings down")
	case t.Language != "" && (len(t.Language) != 2 || strings.Trim(t.Language, "abcdefghijklmnopqrstuvwxyz") != ""):
		return fmt.Errorf("transcription.language is %q: want two lower-case letters, as ISO 639-1 has them", artel.Shorten(t.Language, 40))
	case t.UploadLimit < 0:
		return fmt.Errorf("transcription.upload_limit is %d: want a number of bytes, or none for the default", t.UploadLimit)
	case c.Caption.Service == "" && c.Caption.Prompt != "":
		return errors.New("caption.service is missing: it names the service that puts pictures into words")
	}
	if _, err := parseAge(c.Artifacts.EditRetention); err != nil {
		return fmt.Errorf("artifacts.edit_retention is %q: want days or hours, as in 90d or 36h", artel.Shorten(c.Artifacts.EditRetention, 40))
	}
	if n := c.Artifacts.UploadLimit; n < 0 {
		return fmt.Errorf("artifacts.upload_limit is %d: want a number of bytes, or none for the default", n)
	}
	return nil
}

// parseAge parses a duration with an optional unit of days.
func parseAge(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = errors.New("before now")
	}
	return d, err
}

// retention is how long unreferenced tool results are kept, in the form of
// app.FileOptions.
func (c *config) retention() time.Duration {
	d, _ := parseAge(c.Files.Retention) // validated by check
	if d == 0 && c.Files.Retention != "" {
		return -1
	}
	return d
}

// limits are the limits of approximate matches.
func (c *config) limits() *edit.Limits {
	l := edit.DefaultLimits()
	if c.Edit.MaxRatio != nil {
		l.MaxRatio = *c.Edit.MaxRatio
	}
	for _, n := range []struct{ given, to *int }{{c.Edit.MinDistance, &l.MinDistance}, {c.Edit.MinLength, &l.MinLength}, {c.Edit.Margin, &l.Margin}} {
		if n.given != nil {
			*n.to = *n.given
		}
	}
	return &l
}

// entryLines returns the line numbers of the entries of services.
func entryLines(body ast.Node) []int {
	var lines []int
	for _, pair := range pairsOf(body) {
		list, ok := pair.Value.(*ast.SequenceNode)
		if !ok || pair.Key.GetToken().Value != "services" {
			continue
		}
		for _, entry := range list.Values {
			lines = append(lines, entry.GetToken().Position.Line)
		}
	}
	return lines
}

func pairsOf(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// checkKeys rejects keys without a field in t. Entries of free form (the
// services) have rules of their own.
func checkKeys(n ast.Node, t reflect.Type, under string) error {
	if t.Kind() != reflect.Struct {
		return nil
	}
	known := map[string]reflect.Type{}
	for f := range t.Fields() {
		if key := f.Tag.Get("yaml"); key != "" {
			known[key] = f.Type
		}
	}
	for _, pair := range pairsOf(n) {
		key := pair.Key.GetToken().Value
		sub, ok := known[key]
		if !ok {
			keys := make([]string, 0, len(known))
			for k := range known {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			nearest := ""
			if near := model.Nearest(key, keys); near != "" {
				nearest = fmt.Sprintf("; the nearest is %q", under+near)
			}
			return fmt.Errorf("line %d: there is no key %q%s (there are: %s)",
				pair.Key.GetToken().Position.Line, artel.Shorten(under+key, 80), nearest, strings.Join(keys, ", "))
		}
		if err := checkKeys(pair.Value, sub, under+key+"."); err != nil {
			return err
		}
	}
	return nil
}

// file is the path of the configuration file, even if it does not exist.
func (c config) file() string { return cmp.Or(c.path, c.asked, defaultConfig) }

// withReloaded returns c with the settings of next that a reload applies.
func (c config) withReloaded(next config) config {
	c.Services, c.ServicesFile, c.DefaultService, c.path, c.lines, c.withheld = next.Services, next.ServicesFile, next.DefaultService, next.path, next.lines, next.withheld
	c.Pipeline.Plugins = next.Pipeline.Plugins
	return c
}

// others returns c without the settings that a reload applies.
func (c config) others() config { return c.withReloaded(config{}) }

// relative resolves a path relative to the configuration file.
func (c config) relative(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(c.path), path)
}

// configured returns the services of the file, with one finding per entry.
func (c config) configured() ([]model.Service, []model.Finding, error) {
	services, findings := model.ParseServices(c.Services, c.path, os.Getenv, c.lines...)
	for _, f := range findings {
		for _, flaw := range f.Flaws {
			if flaw.Code == model.UnknownKey {
				return nil, nil, artel.Errorf(artel.Invalid, "config", c.path, "line %d: service %q %s", f.Line, f.Name, flaw)
			}
		}
	}
	if c.ServicesFile == "" {
		return services, findings, nil
	}
	path := c.relative(c.ServicesFile)
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, artel.Errorf(artel.Invalid, "config", c.path, "services_file cannot be read: %w", err)
	}
	more, alsoFound, err := model.ParseServicesFile(path, src, os.Getenv)
	return append(services, more...), append(findings, alsoFound...), err
}

// agents returns the shipped agents and those of agents_dir, which take
// precedence.
func (c config) agents() ([]agent.Definition, error) {
	all, err := agent.Shipped()
	if err != nil || c.AgentsDir == "" {
		return all, err
	}
	dir := c.relative(c.AgentsDir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, artel.Errorf(artel.Invalid, "config", c.path, "agents_dir: there is no folder %s", dir)
	}
	own, err := agent.Load(os.DirFS(dir))
	if err != nil {
		return nil, err
	}
	for _, d := range own {
		all = slices.DeleteFunc(all, func(o agent.Definition) bool { return o.Name == d.Name })
	}
	return append(all, own...), nil
}

// smallCalls configures model calls outside of runs.
func (c config) smallCalls() run.BackgroundTasks {
	e := run.BackgroundTasks{Titles: c.Titles, Selector: c.Selector}
	if e.Titles == "off" {
		e.Titles = ""
	}
	return e
}

// context returns the options of context pipelines.
func (c config) context() (app.Context, error) {
	settings, err := c.settings()
	if err != nil {
		return app.Context{}, err
	}
	plugins, err := c.plugins(os.Getenv)
	t := c.Transcription
	return app.Context{
		Placement: c.Artifacts.Placement, Settings: settings, Processors: plugins, Machine: thisMachine(),
		Transcription: rendition.Transcription{Service: t.Service, Model: t.Model, Language: t.Language, MaxBytes: t.UploadLimit},
		Caption:       rendition.Caption{Service: c.Caption.Service, Prompt: c.Caption.Prompt},
	}, err
}

// settings returns the deployment's settings of processors.
func (c config) settings() (pipeline.Settings, error) {
	injection := map[string]int{}
	if n := c.Artifacts.InventoryPreview; n != nil {
		injection["preview"] = *n
	}
	if n := c.Artifacts.TaskPlanCap; n != nil {
		injection["plan_limit"] = *n
	}
	out := pipeline.Settings{Disabled: c.Pipeline.Disabled, Order: c.Pipeline.Order, Deployment: c.Pipeline.Processors}
	if len(injection) == 0 {
		return out, nil
	}
	if slices.ContainsFunc(out.Deployment, func(s pipeline.Setting) bool { return s.ID == pipeline.InjectionAssembler && s.Config != nil }) {
		return out, artel.Errorf(artel.Invalid, "config", c.path,
			"artifacts.inventory_preview and task_plan_cap say the same as the config of %s in pipeline.processors: give one of them", pipeline.InjectionAssembler)
	}
	b, err := json.Marshal(injection)
	merged := pipeline.Setting{ID: pipeline.InjectionAssembler, Config: b}
	for _, s := range out.Deployment {
		if s.ID == merged.ID {
			merged.Enabled = s.Enabled
		}
	}
	out.Deployment = append(slices.DeleteFunc(slices.Clone(out.Deployment), func(s pipeline.Setting) bool { return s.ID == merged.ID }), merged)
	return out, err
}
