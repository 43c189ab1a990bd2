// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
	"github.com/artelhq/artel/run"
)

// modelClient may reach this machine and private networks, because the operator
// configures the services; their redirects may not.
func modelClient() *http.Client {
	// The gateway has hundreds of clients, all of which may use one service.
	return fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: fetch.SameOrigin, Proxy: http.ProxyFromEnvironment, IdlePerHost: 256})
}

// findServices finds services in the configuration and the environment.
func (s *server) findServices() error {
	if err := s.lookForServices(s.config); err != nil {
		return err
	}
	s.services = model.NewRegistry(nil, "")
	s.replaceServices(s.found, append(slices.Clip(s.findings), model.LocalServersIn(os.Getenv).Findings()...))
	return nil
}

// lookForServices records the services of the configuration and the
// environment. On failure it changes nothing.
func (s *server) lookForServices(c config) error {
	configured, findings, err := c.configured()
	if err != nil {
		return err
	}
	model.Reach(configured, findings, model.Dialects()...)
	for _, f := range findings {
		for _, w := range f.Warnings() {
			s.log.Warn("configuration: " + w)
		}
	}
	if len(c.withheld) > 0 {
		findings = append(findings, model.Finding{Source: model.InConfiguration, Place: c.file(), Found: model.FoundNothing, Problem: model.Untrusted, Detail: strings.Join(c.withheld, ", ")})
	}
	opened, doors := model.Discover(os.Getenv, model.Dialects()...)
	s.config, s.found, s.findings, s.named = c, append(configured, opened...), append(findings, doors...), nil
	return nil
}

func (s *server) replaceServices(services []model.Service, findings []model.Finding) {
	s.services.Replace(services, findings, s.config.DefaultService)
}

// nameModels asks endpoints configured without a model for theirs, before a
// first message would go to the demo instead.
func (s *server) nameModels(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	findings := slices.Clone(s.findings)
	var named []model.Service
	for _, service := range s.found {
		if service.Model != "" && !service.Several() || service.BaseURL == "" {
			named = append(named, service)
			continue
		}
		all, err := s.complete(ctx, service, findings)
		if err != nil {
			s.log.Warn("a model service did not say which model it has; set its model", "service", service.ID, "err", err)
			if all[0].Model == "" {
				all[0].Problem = artel.Shorten(err.Error(), 300)
			}
		}
		named = append(named, all...)
	}
	s.replaceServices(named, append(findings, model.LocalServersIn(os.Getenv).Findings()...))
}

// complete asks the endpoint of a configured service for its models and their
// facts, and notes in its finding what came of it. If the endpoint does not answer
// now, the models that it named before stay.
func (s *server) complete(ctx context.Context, service model.Service, findings []model.Finding) ([]model.Service, error) {
	all, more, err := model.CompleteAll(ctx, s.http, service)
	if before := s.named[service.ID]; err != nil && all[0].Model == "" && before != nil {
		all = slices.Clone(before)
	}
	if all[0].Model != "" {
		if s.named == nil {
			s.named = map[artel.ServiceID][]model.Service{}
		}
		s.named[service.ID] = all
	}
	i := slices.IndexFunc(findings, func(f model.Finding) bool { return slices.Contains(f.Services, service.ID) })
	if i < 0 {
		return slices.Clone(all), err
	}
	f := &findings[i]
	f.Services = make([]artel.ServiceID, len(all))
	for k, one := range all {
		f.Services[k] = one.ID
	}
	switch {
	case err != nil:
		f.SetProblem(err)
	case more > 0:
		f.Problem, f.Detail = model.TooManyModels, itoa(more)
		s.log.Warn("a model service lists more models than are taken; name those that are wanted in models", "service", service.ID, "taken", len(all), "left_out", more)
	}
	return slices.Clone(all), err
}

// askServices completes services with what their endpoints report, and looks
// for model servers on this machine. It takes a few seconds at most; a service
// without an answer by then is left unchanged.
func (s *server) askServices(parent context.Context) {
	s.looking.Lock()
	defer s.looking.Unlock()
	s.ask(parent)
}

func (s *server) ask(parent context.Context) {
	ctx, stop := context.WithTimeout(parent, 10*time.Second)
	defer stop()
	local, neighbors, err := model.DiscoverLocal(ctx, s.http, model.LocalServersIn(os.Getenv))
	if err != nil && parent.Err() == nil {
		s.log.Warn("a model server on this machine sent an invalid response", "err", err)
	}
	findings := slices.Clone(s.findings)
	var found []model.Service
	for _, service := range s.found {
		all, err := s.complete(ctx, service, findings)
		if err != nil && parent.Err() == nil {
			s.log.Warn("a model service could not be queried", "service", service.ID, "err", err)
			if all[0].Model == "" && service.BaseURL != "" {
				all[0].Problem = artel.Shorten(err.Error(), 300)
			}
		}
		found = append(found, all...)
	}
	if parent.Err() != nil {
		return
	}
	s.replaceServices(append(found, local...), append(findings, neighbors...))
	if s.app != nil { // otherwise of a command that lists models
		if err := s.app.Services.Load(ctx, true); err != nil {
			s.log.Warn("the services that were added at run time could not be read", "err", err)
		}
	}
	if want, got := s.config.DefaultService, s.defaultService(); want != "" && want != got {
		s.log.Warn("configuration: default_service names no callable service; another is used", "default_service", want, "used", got)
	}
	s.checkWords()
	s.checkAddresses()
}

// defaultService is the default service: the configured one, or "auto" for a choice
// per message.
func (s *server) defaultService() artel.ServiceID {
	if _, named := s.services.Lookup(model.AutoService); s.config.DefaultService == model.AutoService && !named {
		return model.AutoService
	}
	return s.services.Default().ID
}

// checkAddresses warns of services that are configured to fetch media but
// cannot reach this server.
func (s *server) checkAddresses() {
	for _, service := range s.services.All() {
		if service.Capabilities.Sends(model.ByURL) && s.config.Files.PublicBase == "" && s.public == "" {
			s.log.Warn("configuration: a service is to fetch media, and files.public_base, where it could, is missing; they are sent as bytes", "service", service.ID)
		}
	}
}

// checkWords warns of services configured for transcription or captions that
// cannot be called.
func (s *server) checkWords() {
	if id := s.config.Transcription.Service; id != "" {
		if found, ok := s.services.Lookup(id); !ok || !found.Callable() || !found.Dialect.Transcribes() {
			s.log.Warn("configuration: transcription.service names none that can write recordings down; they are described", "service", id)
		}
	}
	for key, id := range map[string]artel.ServiceID{"titles": s.config.smallCalls().Titles, "selector": s.config.Selector} {
		if found, ok := s.services.Lookup(id); id != "" && id != run.OwnService && (!ok || !found.Callable()) {
			s.log.Warn("configuration: "+key+" names no service that can be called; it is switched off", "service", id)
		}
	}
	if id := s.config.Caption.Service; id != "" {
		if found, ok := s.services.Lookup(id); !ok || !found.Callable() || !found.OnWire().Capabilities.Has(artel.CanVision) {
			s.log.Warn("configuration: caption.service names none that sees; pictures are not put into words", "service", id)
		}
	}
}

// keepServices asks the services for their models, and repeats discovery when a
// file with services changes and on SIGHUP, until ctx ends.
func (s *server) keepServices(ctx context.Context) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	defer signal.Stop(told)
	seen := s.serviceFiles()
	s.askServices(ctx)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-told:
		case <-tick.C:
			if slices.Equal(s.serviceFiles(), seen) {
				continue
			}
		}
		seen = s.serviceFiles()
		_ = s.reload(ctx) // it logs and reports its error
	}
}

// A fileState identifies a file's content.
type fileState struct {
	path string
	size int64
	time time.Time
}

// serviceFiles returns the states of the files that define services.
func (s *server) serviceFiles() []fileState {
	s.looking.Lock()
	paths := []string{s.config.file(), s.config.relative(s.config.ServicesFile)}
	s.looking.Unlock()
	if path, err := trustFile(); err == nil {
		paths = append(paths, path)
	}
	var out []fileState
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			out = append(out, fileState{path, info.Size(), info.ModTime()})
		} else {
			out = append(out, fileState{path: path})
		}
	}
	return out
}

// reload reads the configuration again and applies its services and plugins;
// other settings apply after a restart. On an error both stay unchanged, and the
// log and a finding explain it.
func (s *server) reload(ctx context.Context) error {
	s.looking.Lock()
	defer s.looking.Unlock()
	next, err := readConfig(s.config.asked)
	if err == nil && len(next.withheld) > 0 {
		err = next.errUntrusted()
	}
	if err == nil {
		if changed := differing(next.others(), s.config.others()); len(changed) > 0 {
			s.log.Warn("configuration: these settings have changed and take effect at the next start", "keys", strings.Join(changed, ", "))
		}
		err = s.apply(next)
	}
	if err != nil {
		s.log.Error("configuration: it cannot be reloaded; the services stay unchanged, and so do the plugins", "err", err)
		broken := model.Finding{Source: model.InConfiguration, Place: s.config.file(), Found: model.FoundNothing, Problem: model.Unreadable, Detail: artel.Shorten(err.Error(), 300)}
		old := slices.DeleteFunc(s.services.Findings(), func(f model.Finding) bool { return f.Problem == model.Unreadable || f.Source == model.BuiltIn })
		s.services.SetFindings(append([]model.Finding{broken}, old...))
		return err
	}
	s.ask(ctx)
	s.log.Info("configuration: the services were reloaded", "services", len(s.services.All()), "plugins", len(s.config.Pipeline.Plugins))
	return nil
}

// apply applies the services and plugins of next, or nothing if it returns an
// error.
func (s *server) apply(next config) error {
	if reflect.DeepEqual(next.Pipeline.Plugins, s.config.Pipeline.Plugins) {
		return s.lookForServices(s.config.withReloaded(next))
	}
	plugins, err := next.plugins(os.Getenv)
	if err != nil {
		return err
	}
	old := s.config.Pipeline.Plugins
	if err := checkPlugins(plugins); err != nil {
		return artel.Errorf(artel.Invalid, "config", next.path, "pipeline.plugins: %w", err)
	}
	if err := s.lookForServices(s.config.withReloaded(next)); err != nil {
		return err
	}
	ids := make([]string, len(old))
	for i, p := range old {
		ids[i] = p.ID
	}
	return s.app.ReplaceProcessors(ids, plugins)
}

// checkPlugins refuses processors that a registry would refuse, such as two of
// one id.
func checkPlugins(plugins []pipeline.Processor) error {
	_, err := pipeline.NewRegistry(token.NewCounter(), append(pipeline.BuiltIn(), plugins...)...)
	return err
}
