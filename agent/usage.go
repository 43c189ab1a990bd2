// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
)

// Usage returns the usage of a call of request with its cost. If the service
// reported none, because it never does or because the answer broke off, the
// tokens of the request and of what was said are counted instead, and the usage
// is Estimated. input is the number of tokens of the request; 0: not counted yet.
func (e *Engine) Usage(request *model.Request, reported artel.Usage, said artel.Parts, input int) artel.Usage {
	u := reported
	if !model.Reported(u) {
		answer := model.Request{Service: request.Service, Messages: []model.Message{{Role: artel.RoleAssistant, Parts: said}}}
		u = artel.Usage{Estimated: true, InputTokens: int64(input), OutputTokens: e.count(&answer)}
		if input == 0 {
			u.InputTokens = e.count(request)
		}
	}
	u.Calls, u.Cost = 1, request.Service.Cost(u)
	return u
}

// count returns the tokens of a request; 0 if its vocabulary cannot be read.
func (e *Engine) count(request *model.Request) int64 {
	n, err := e.pipeline.Count(request)
	if err != nil {
		return 0
	}
	return int64(n)
}

// emitUsage emits the usage of a model call.
func (r *run) emitUsage(purpose artel.CallPurpose, u artel.Usage) error {
	return r.emitUsageOf(r.in.Service.ID, purpose, u)
}

func (r *run) emitUsageOf(service artel.ServiceID, purpose artel.CallPurpose, u artel.Usage) error {
	r.tree.addUsage(&r.usage, u)
	return r.emit(artel.UsageReported{Service: service, Purpose: purpose, Usage: u})
}

// renderedCalls are calls for transcripts and captions, which are made while a
// request is built and by tools.
type renderedCalls struct {
	mu  sync.Mutex
	all []rendition.Call
}

// reporting returns a maker that adds its calls to c.
func (c *renderedCalls) reporting(m *rendition.Maker) *rendition.Maker {
	if m == nil {
		return nil
	}
	return m.Reporting(func(call rendition.Call) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, call)
	})
}

// emitRendered emits the usage of the calls for transcripts and captions.
func (r *run) emitRendered() error {
	r.rendered.mu.Lock()
	all := r.rendered.all
	r.rendered.all = nil
	r.rendered.mu.Unlock()
	for _, c := range all {
		request := c.Request
		if request == nil { // the length of a recording in tokens is not known
			request = &model.Request{Service: c.Service}
		}
		u := r.Usage(request, c.Usage, artel.Parts{artel.Text{Text: c.Text}}, 0)
		if err := r.emitUsageOf(c.Service.ID, artel.CallRenders, u); err != nil {
			return err
		}
	}
	return nil
}
