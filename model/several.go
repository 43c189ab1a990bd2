// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/artelhq/artel"
)

// maxSeveral is how many models of one endpoint become services.
const maxSeveral = 64

// Several reports whether s stands for more than one model.
func (s Service) Several() bool { return s.AllModels || len(s.Models) > 0 }

// CompleteAll is [Complete] for a service that may stand for several models:
// Model, Models, and with AllModels the chat models that the endpoint lists. Each
// becomes a service, named by its model. The first keeps the id; the others get
// it with a hyphen and the model. more is the number of models left out, because
// there are too many.
//
// If the endpoint cannot be asked, the services that the configuration names are
// returned, or s itself, and the error.
func CompleteAll(ctx context.Context, client *http.Client, s Service) (services []Service, more int, err error) {
	if !s.Several() {
		one, err := Complete(ctx, client, s)
		return []Service{one}, 0, err
	}
	asked := s.BaseURL != "" && s.Server != NoServer && (s.Dialect == OpenAI || s.Dialect == OpenAIResponses)
	var list []listedModel
	switch {
	case asked:
		list, err = s.listModels(ctx, client)
	case s.AllModels && s.BaseURL != "" && s.Server != NoServer:
		list, err = s.listAny(ctx, client)
	}
	names := s.modelNames(list)
	if len(names) == 0 {
		if err == nil {
			err = artel.Errorf(artel.Unavailable, "model.CompleteAll", string(s.ID), "%s %w", s.BaseURL, errNoModels)
		}
		return []Service{s}, 0, err
	}
	if more = len(names) - maxSeveral; more > 0 {
		names = names[:maxSeveral]
	}
	services = s.each(names)
	errs := make([]error, len(services))
	var g errgroup.Group
	g.SetLimit(askAtOnce)
	for i := range services {
		g.Go(func() error {
			one := &services[i]
			switch {
			case asked && err == nil:
				*one, errs[i] = one.describedBy(ctx, client, list)
			case asked:
				one.Capabilities = combine(one.Capabilities.stated(), one.builtIn())
			case err == nil:
				*one, errs[i] = Complete(ctx, client, *one)
			}
			return nil
		})
	}
	_ = g.Wait()
	return services, max(0, more), errors.Join(append(errs, err)...)
}

// modelNames returns the models that s stands for, the configured ones first.
func (s Service) modelNames(list []listedModel) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(s.Model)
	for _, name := range s.Models {
		add(name)
	}
	if s.AllModels {
		for _, m := range list {
			if !otherPurpose().MatchString(m.ID) {
				add(m.ID)
			}
		}
	}
	return names
}

// otherPurpose matches the names of models that do not chat. Lists of models do
// not state what a model is for.
var otherPurpose = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|[-_/.])(embed(ding|dings)?|rerank(er)?|whisper|tts|dall-e|moderation|transcribe|realtime|sora|babbage|davinci|imagen|veo|aqa)([-_/.:]|$|[0-9])`)
})

// each returns a service for each model.
func (s Service) each(names []string) []Service {
	label := s.Name
	if s.NamedByHost {
		if u, err := url.Parse(s.BaseURL); err == nil {
			label = u.Host
		}
	}
	out := make([]Service, len(names))
	taken := map[artel.ServiceID]bool{}
	for i, name := range names {
		one := s.clone()
		one.Model, one.Models, one.AllModels = name, nil, false
		one.Name = fmt.Sprintf("%s (%s)", name, label)
		if i > 0 {
			base := s.ID + artel.ServiceID("-"+slug(name))
			one.ID = base
			for n := 2; taken[one.ID]; n++ {
				one.ID = base + artel.ServiceID(fmt.Sprintf("-%d", n))
			}
		}
		taken[one.ID] = true
		out[i] = one
	}
	return out
}

// listModels asks an OpenAI-compatible endpoint for its models. Where the base URL
// has no version and the endpoint answers 404, it tries /v1 once, and keeps it in
// s.BaseURL if that answers or wants a key: servers print their address without it.
func (s *Service) listModels(ctx context.Context, client *http.Client) ([]listedModel, error) {
	var list struct {
		Data []listedModel `json:"data"`
	}
	err := ask(ctx, client, *s, s.BaseURL+"/models", nil, &list)
	status, answered := errors.AsType[*statusError](err)
	if answered && status.code == http.StatusNotFound && !apiVersion().MatchString(s.BaseURL) {
		base := strings.TrimRight(s.BaseURL, "/") + "/v1"
		e := ask(ctx, client, *s, base+"/models", nil, &list)
		if status, answered = errors.AsType[*statusError](e); e == nil || answered && (status.code == http.StatusUnauthorized || status.code == http.StatusForbidden) {
			s.BaseURL, err = base, e
		}
	}
	return list.Data, err
}
