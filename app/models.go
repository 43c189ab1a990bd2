// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/probe"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// Models are the use cases of services.
type Models struct {
	core    *core
	probing sync.Map // artel.ServiceID: struct{}, those that are being tried out
}

// Services returns the services, in the order in which they are preferred.
func (m *Models) Services(context.Context) []model.Service { return m.core.services.All() }

// Default returns the service that is used where none is named.
func (m *Models) Default(context.Context) model.Service { return m.core.services.Default() }

// Preferred is what is used where no service is named: the id of Default, or
// [model.AutoService] where one is chosen for each message.
func (m *Models) Preferred(context.Context) artel.ServiceID {
	if want := m.core.services.ConfiguredDefault(); m.core.chooser().IsAuto(want) {
		return want
	}
	return m.core.services.Default().ID
}

// Findings returns everywhere that models were looked for and what came of it,
// in the order of preference: the entries of the configuration, the
// environment, the servers of this machine, and what is built in. Only
// administrators see them, because they name files and addresses.
func (m *Models) Findings(ctx context.Context) ([]model.Finding, error) {
	if err := access.Require(ctx, store.ScopeAdmin); err != nil {
		return nil, err
	}
	return m.core.services.Findings(), nil
}

// Marks returns what was tried out with a service and learned from its
// refusals, oldest first, as far as it still holds.
func (m *Models) Marks(_ context.Context, id artel.ServiceID) []model.Mark {
	return m.core.services.Learned().Marks(id)
}

// Forget drops what was tried out with a service and learned from its refusals: the
// mark with a key ([model.Mark.Key]), or all with the key "". Of kind NotFound if there
// is no such service or mark.
func (m *Models) Forget(ctx context.Context, id artel.ServiceID, key string) error {
	const op = "app.Models.Forget"
	if err := access.Require(ctx, store.ScopeAdmin); err != nil {
		return err
	}
	if _, ok := m.core.services.Lookup(id); !ok {
		return artel.Errorf(artel.NotFound, op, string(id), "there is no such service")
	}
	n := m.core.services.Learned().Forget(id, key)
	if n == 0 && key != "" {
		return artel.Errorf(artel.NotFound, op, string(id), "there is no mark %s", artel.Shorten(key, 40))
	}
	m.core.recordAct(ctx, audit.Act{Action: audit.MarksForgotten, Target: string(id), Detail: key})
	m.core.logger.InfoContext(ctx, "what was learned about a service was forgotten", "service", id, "marks", n)
	return nil
}

// Reload reads the services anew from where they are configured. When that
// fails, which is of kind Invalid, they stay as they are.
func (m *Models) Reload(ctx context.Context) error {
	if err := access.Require(ctx, store.ScopeAdmin); err != nil {
		return err
	}
	if m.core.reload == nil {
		return artel.Errorf(artel.Unsupported, "app.Models.Reload", "", "the services of this server cannot be read anew; start it again")
	}
	err := m.core.reload(ctx)
	if err == nil {
		m.core.recordAct(ctx, audit.Act{Action: audit.ServicesReloaded})
	}
	return err
}

// probeTime is the longest that trying out a service may take.
const probeTime = 5 * time.Minute

// Probe tries out what a service really takes: it makes up to
// [probe.MostCalls] small model calls, which cost what such calls cost, and
// keeps what they show; see [Models.Marks]. Of kind Invalid where the service
// is not there, cannot be called, or is the demo; Conflict while it is being
// tried out.
func (m *Models) Probe(ctx context.Context, id artel.ServiceID) (probe.Report, error) {
	if err := access.Require(ctx, store.ScopeAdmin); err != nil {
		return probe.Report{}, err
	}
	s, err := m.core.chooser().Callable(id)
	if err != nil {
		return probe.Report{}, err
	}
	if s.Demo() {
		return probe.Report{}, artel.Errorf(artel.Invalid, "app.Models.Probe", string(id), "its answers are scripted: there is nothing to try out")
	}
	if _, busy := m.probing.LoadOrStore(id, struct{}{}); busy {
		return probe.Report{}, artel.Errorf(artel.Conflict, "app.Models.Probe", string(id), "it is being tried out already; wait for the result")
	}
	defer m.probing.Delete(id)
	ctx, stop := context.WithTimeoutCause(ctx, probeTime, artel.Errorf(artel.Unavailable, "app.Models.Probe", string(id), "it took longer than %v", probeTime))
	defer stop()
	report, err := probe.Run(ctx, m.core.caller, m.core.blobs, s)
	if err != nil {
		return report, err
	}
	m.core.services.Learned().Add(report.Marks(s)...)
	for _, r := range report.Results {
		m.core.logger.InfoContext(ctx, "a model service was tried out", "service", id, "place", r.Place, "media_type", r.MediaType, "outcome", r.Outcome, "said", r.Evidence)
	}
	return report, nil
}

// A Target says for which model something is routed: a service by id, or bare
// capability words. The zero Target is a model that takes text only.
type Target struct {
	Service      artel.ServiceID
	Capabilities []artel.Capability
	Forms        []artel.Step // beside native and converted: extracted and transcribed are made where they are asked for
	Pages        string       // of a PDF, the pages to show as pictures: "3" or "21-24"; "": none are asked for
	Inline       bool         // payloads of any size are carried, and none is named by its URL
	Shown        tool.Shown   // how much of the result of a tool is shown; zero fields: as the deployment says
}

// target resolves t. It cannot fail: what is not known takes text only.
func (k *core) target(t Target) route.Target {
	out := route.Target{Service: t.Service, Capabilities: model.TextOnly(), Suggest: k.services.Suggest, Forms: run.FormsOf(k.renditions).With(t.Forms...)}
	if s, ok := k.services.Lookup(t.Service); ok && t.Service != "" {
		out.Capabilities = s.Capabilities
	} else if t.Service != "" {
		k.logger.Warn("routing for a service that is not known; text only", "service", artel.Shorten(string(t.Service), 80))
	} else if len(t.Capabilities) > 0 {
		out.Capabilities.Input = model.Fact[[]artel.Capability]{Value: t.Capabilities, Source: model.FromOperator}
	}
	return out
}

// route returns the form of s for t, or the chosen pages of s.
func (k *core) route(s route.Source, t Target) (*route.Result, error) {
	if t.Pages == "" {
		return route.New(s, k.target(t), k.locale), nil
	}
	first, last, err := rendition.ParsePages(t.Pages)
	if err != nil {
		return nil, err
	}
	return route.Pages(s, k.target(t), first, last, k.locale)
}

func (k *core) chooser() model.Chooser { return model.NewChooser(k.services) }
