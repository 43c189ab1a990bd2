// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// A Guard decides what a host may do with the server. The context is that of the request. It
// is safe for concurrent use.
type Guard interface {
	// Method refuses a method other than tools/call.
	Method(ctx context.Context, method string) error
	// Offers reports whether the tool is one of those that are offered.
	Offers(tool string) bool
	// Call refuses a call. The error has the code [CodeConfirm] if the user has to agree
	// first; confirmed says that the user has.
	Call(ctx context.Context, tool string, confirmed bool) error
	// Secrets returns by name the values that no message of the server may show.
	Secrets() map[string]string
}

// CodeConfirm is the code of an error of a call that needs the agreement of the user.
const CodeConfirm = "tool_needs_confirmation"

// offers reports whether a tool of the server is offered.
func (p *Proxy) offers(tool string) bool {
	return p.options.Guard == nil || p.options.Guard.Offers(tool)
}

// guarded returns the answer to a request that may not be made; nil: it may.
func (p *Proxy) guarded(ctx context.Context, m *message) *message {
	if p.options.Guard == nil || m.method == "tools/call" {
		return nil
	}
	if err := p.options.Guard.Method(ctx, m.method); err != nil {
		return failure(m.id, codeRefused, p.up.hide(err.Error()))
	}
	return nil
}

// codeRefused is the code of refusals that JSON-RPC has no code for.
const codeRefused = -32000

// permitted returns the answer to a call that may not be made; nil: it may. It asks the user
// through the host if the user has to agree.
func (p *Proxy) permitted(ctx context.Context, m *message, tool string) (refusal *message, err error) {
	g := p.options.Guard
	if g == nil {
		return nil, nil
	}
	if !g.Offers(tool) {
		return failure(m.id, codeInvalid, fmt.Sprintf("unknown tool %q; tools/list has the available tools", artel.Shorten(tool, 80))), nil
	}
	say := func(format string, args ...any) (*message, error) {
		return answer(m.id, texts(true, fmt.Sprintf(format, args...))), nil
	}
	err = g.Call(ctx, tool, false)
	switch {
	case err == nil:
		return nil, nil
	case artel.CodeOf(err) != CodeConfirm:
		return say("%s", p.up.hide(err.Error()))
	case !p.asks(m):
		return say("%s needs the agreement of a user, and this client cannot ask (it has no elicitation): set permissions for it in artel.yaml", tool)
	}
	args := ""
	if at := m.member(m.params, "arguments"); !at.empty() {
		b, err := m.bytes(span{at.from, min(at.to, at.from+maxAsked)}, maxAsked)
		if err != nil {
			return nil, err
		}
		args = string(b)
	}
	question := fmt.Appendf(nil, `{"mode":"form","message":%s,"requestedSchema":{"type":"object","properties":{"allow":{"type":"boolean","title":"Allow this call"}},"required":["allow"]}}`,
		quoted(fmt.Sprintf("Allow %s of %s with %s?", tool, p.options.Name, artel.Shorten(strings.ToValidUTF8(args, ""), 1000))))
	if m.version() >= statelessFrom {
		return p.askedInResult(m, question)
	}
	agreed, err := p.ask(ctx, question)
	switch {
	case err != nil || ctx.Err() != nil:
		return nil, err
	case !agreed:
		return say("the user did not allow %s; do not try it again in other words", tool)
	}
	return nil, g.Call(ctx, tool, true)
}

// maxAsked is the most bytes of the arguments that a question begins with.
const maxAsked = 4 << 10

// version returns the version of the protocol that a request names itself; "": none.
func (m *message) version() string {
	return m.word(m.member(m.member(m.params, "_meta"), metaVersion))
}

// Members of _meta.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// asks reports whether the host can ask its user.
func (p *Proxy) asks(m *message) bool {
	var raw []byte
	if m.version() >= statelessFrom {
		raw, _ = m.bytes(m.member(m.member(m.params, "_meta"), metaCapabilities), maxOther)
	} else {
		p.up.mu.Lock()
		greeting := p.up.initialize
		p.up.mu.Unlock()
		var said struct{ Capabilities json.RawMessage }
		if json.Unmarshal(greeting, &said) == nil {
			raw = said.Capabilities
		}
	}
	var can struct {
		Elicitation *struct{ Form, URL json.RawMessage }
	}
	return json.Unmarshal(raw, &can) == nil && can.Elicitation != nil && (can.Elicitation.Form != nil || can.Elicitation.URL == nil)
}

// ask asks the user of a host with a session.
func (p *Proxy) ask(ctx context.Context, question []byte) (agreed bool, err error) {
	id := p.up.newID()
	got := make(chan *message, 1)
	p.mu.Lock()
	p.asking[id] = got
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.asking, id)
		p.mu.Unlock()
	}()
	q := request(id, "elicitation/create", question)
	err = p.front.send(ctx, q)
	_ = q.Close()
	if err != nil {
		return false, err
	}
	select {
	case m := <-got:
		defer m.Close() //nolint:errcheck // a temporary file
		return agrees(m.spool, m.result), nil
	case <-ctx.Done():
		return false, nil
	}
}

// answered takes an answer of the host to a question of the proxy itself.
func (p *Proxy) answered(m *message) bool {
	p.mu.Lock()
	got := p.asking[m.id]
	delete(p.asking, m.id)
	p.mu.Unlock()
	if got != nil {
		got <- m
	}
	return got != nil
}

// withoutAgreement returns a call without the agreement of the user, which is not for the
// server; m itself if there is none.
func (m *message) withoutAgreement() (*message, error) {
	if !strings.HasPrefix(m.word(m.member(m.params, "requestState")), statePrefix) {
		return m, nil
	}
	out := &spool{}
	err := m.copyTo(out, span{0, m.params.from})
	next := "{"
	if err == nil {
		err = m.members(m.params, func(key string, v span) error {
			if key == "requestState" || key == "inputResponses" {
				return nil
			}
			if _, err := out.WriteString(next + string(quoted(key)) + ":"); err != nil {
				return err
			}
			next = ","
			return m.copyTo(out, v)
		})
	}
	if err == nil {
		_, err = out.WriteString("}")
	}
	if err == nil {
		err = m.copyTo(out, span{m.params.to, m.size})
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	made, err := parse(out)
	if made != nil {
		made.asker = m.asker
	}
	return made, err
}

// statePrefix begins the states of the proxy's own questions.
const statePrefix = "artel:"

// agrees reports whether an answer of a user allows a call.
func agrees(s *spool, at span) bool {
	allow, err := s.bytes(s.member(s.member(at, "content"), "allow"), 10)
	return err == nil && s.word(s.member(at, "action")) == "accept" && string(allow) == "true"
}

// confirmKey names the question for the agreement of a user.
const confirmKey = "artel_confirm"

// askedInResult asks the user of a host without a session: the answer is in the next request
// for the same call.
func (p *Proxy) askedInResult(m *message, question []byte) (*message, error) {
	state := p.stateOf(m)
	given := m.word(m.member(m.params, "requestState"))
	p.mu.Lock()
	agreed := given != "" && slices.Contains(p.agreed, given)
	p.mu.Unlock()
	if agreed { // of the server, which has asked the user more after the agreement
		return nil, nil
	}
	reply := m.member(m.member(m.params, "inputResponses"), confirmKey)
	if given != state || reply.empty() {
		return answer(m.id, fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{%s:{"method":"elicitation/create","params":%s}},"requestState":%s}`, quoted(confirmKey), question, quoted(state))), nil
	}
	if !agrees(m.spool, reply) {
		return answer(m.id, texts(true, "the user did not allow this call; do not try it again in other words")), nil
	}
	return nil, nil
}

// stateOf binds an agreement to one call.
func (p *Proxy) stateOf(m *message) string {
	sum := sha256.New()
	for _, key := range []string{"name", "arguments"} {
		_ = m.copyTo(sum, m.member(m.params, key)) // what cannot be read is another call
		sum.Write([]byte{0})
	}
	return statePrefix + hex.EncodeToString(sum.Sum(nil))
}

// maxAgreed is how many states of calls are remembered in which a server asks for more.
const maxAgreed = 1000

// goesOn remembers that the user has agreed to a call for which the server asks for more.
func (p *Proxy) goesOn(got *message) {
	state := got.word(got.member(got.result, "requestState"))
	if state == "" || p.options.Guard == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agreed = append(p.agreed, state)
	p.agreed = p.agreed[max(0, len(p.agreed)-maxAgreed):]
}
