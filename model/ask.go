// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
)

const (
	maxAnswer  = 16 << 20 // bytes; OpenRouter's list of models has some megabytes
	maxOllama  = 32       // most models taken from one local server
	askAtOnce  = 4
	ollamaAt   = "http://127.0.0.1:11434"
	llamaCPPAt = "http://127.0.0.1:8080"
	lmStudioAt = "http://127.0.0.1:1234"
	vllmAt     = "http://127.0.0.1:8000"
	quoted     = 300 // bytes quoted of an error's body
)

// Complete asks the endpoint of s for missing facts: the model if none is named
// (the first of GET {base}/models), the facts in that list (max_model_len of vLLM;
// context_length, architecture and top_provider of OpenRouter), and those of the
// server's own API; see [Server]. Facts of the operator and limits of the endpoint
// stay. [Gemini]'s list gives windows and output limits. Services of other
// dialects are returned unchanged, and so are services with a model at a vendor's
// OpenAI-compatible endpoint, whose list describes the vendor's own API.
//
// If a query fails, s is returned with the answers of the others, and the error.
func Complete(ctx context.Context, client *http.Client, s Service) (Service, error) {
	own := s.Server == AnthropicServer || s.Dialect == Anthropic
	switch {
	case s.BaseURL == "", s.Server == NoServer, s.Carries != nil && s.Model != "":
		return s, nil
	case own && s.Model != "":
		facts, err := askServer(ctx, client, s, AnthropicServer)
		s.Capabilities = combine(s.Capabilities.stated(), facts, s.builtIn())
		return s.narrowed(), err
	case s.Dialect == Gemini:
		return completeGemini(ctx, client, s)
	case s.Dialect != OpenAI && s.Dialect != OpenAIResponses:
		return s, nil
	}
	list, err := s.listModels(ctx, client)
	if err != nil {
		return s, err
	}
	if s.Model == "" {
		if len(list) == 0 {
			return s, artel.Errorf(artel.Unavailable, "model.Complete", string(s.ID), "%s/models %w", s.BaseURL, errNoModels)
		}
		s.Model = list[0].ID
	}
	return s.describedBy(ctx, client, list)
}

// describedBy returns s with the facts about its model in the list of its
// endpoint, and those of the server's own API.
func (s Service) describedBy(ctx context.Context, client *http.Client, list []listedModel) (Service, error) {
	facts, kind := TextOnly(), s.Server
	if i := slices.IndexFunc(list, func(m listedModel) bool { return m.ID == s.Model }); i >= 0 {
		facts, kind = list[i].capabilities(), cmp.Or(kind, list[i].server())
		s.Server = kind
	}
	more, err := askServer(ctx, client, s, kind)
	if err != nil {
		more = TextOnly()
		err = fmt.Errorf("asked as %s: %w", kind, err)
		err = &artel.Error{Op: "model.Complete", Subject: string(s.ID), Kind: artel.KindOf(err), Err: err}
	}
	s.Capabilities = combine(s.Capabilities.stated(), more, facts, s.builtIn())
	return s.narrowed(), err
}

// errNoModels means that a server answers and has no models.
var errNoModels = errors.New("lists no model")

// listedModel is an element of GET /models, with the extensions of some servers.
type listedModel struct {
	ID            string `json:"id"`
	OwnedBy       string `json:"owned_by"`
	MaxModelLen   int    `json:"max_model_len"`  // vLLM
	ContextLength int    `json:"context_length"` // OpenRouter
	Architecture  struct {
		Input []string `json:"input_modalities"`
	} `json:"architecture"`
	TopProvider struct {
		Window    int `json:"context_length"`
		MaxOutput int `json:"max_completion_tokens"`
	} `json:"top_provider"`
}

func (m listedModel) capabilities() Capabilities {
	c := TextOnly()
	window := max(m.MaxModelLen, m.ContextLength)
	if n := m.TopProvider.Window; n > 0 && n < window {
		window = n // the provider behind OpenRouter allows less than the model
	}
	stated(&c.ContextWindow, FromEndpoint, int64(window))
	if n := m.TopProvider.MaxOutput; n > 0 {
		c.MaxOutput = known(FromEndpoint, n)
	}
	if words := m.Architecture.Input; words != nil {
		c.Input = known(FromEndpoint, inputsOf(map[artel.Capability]bool{
			artel.CanVision: slices.Contains(words, "image"),
			artel.CanFile:   slices.Contains(words, "file"),
			artel.CanAudio:  slices.Contains(words, "audio"),
			artel.CanVideo:  slices.Contains(words, "video"),
		}))
	}
	return c
}

func inputsOf(can map[artel.Capability]bool) []artel.Capability {
	out := []artel.Capability{artel.CanText}
	for _, c := range []artel.Capability{artel.CanVision, artel.CanFile, artel.CanAudio, artel.CanVideo} {
		if can[c] {
			out = append(out, c)
		}
	}
	return out
}

// LocalServers holds the addresses of model servers on this machine.
type LocalServers struct {
	Ollama   string // base URL; "": http://127.0.0.1:11434
	LlamaCPP string // base URL; "": http://127.0.0.1:8080
	LMStudio string // base URL; "": http://127.0.0.1:1234
	VLLM     string // base URL; "": http://127.0.0.1:8000
}

// LocalServersIn reads the addresses from the environment: OLLAMA_BASE_URL,
// LLAMACPP_BASE_URL, LMSTUDIO_BASE_URL and VLLM_BASE_URL.
func LocalServersIn(getenv func(string) string) LocalServers {
	return LocalServers{
		Ollama:   strings.TrimSpace(getenv("OLLAMA_BASE_URL")),
		LlamaCPP: strings.TrimSpace(getenv("LLAMACPP_BASE_URL")),
		LMStudio: strings.TrimSpace(getenv("LMSTUDIO_BASE_URL")),
		VLLM:     strings.TrimSpace(getenv("VLLM_BASE_URL")),
	}
}

// A localServer is a kind of model server that may run on this machine.
type localServer struct {
	name, variable string
	set            bool
	base           string // without a trailing slash
	optional       bool   // no finding unless it answers or was configured
	find           func(ctx context.Context, client *http.Client, base string) ([]Service, error)
}

func (at LocalServers) servers() []localServer {
	return []localServer{
		{"Ollama", "OLLAMA_BASE_URL", at.Ollama != "", strings.TrimRight(cmp.Or(at.Ollama, ollamaAt), "/"), false, findOllama},
		{"llama.cpp", "LLAMACPP_BASE_URL", at.LlamaCPP != "", strings.TrimRight(cmp.Or(at.LlamaCPP, llamaCPPAt), "/"), false, findLlamaCPP},
		{"LM Studio", "LMSTUDIO_BASE_URL", at.LMStudio != "", strings.TrimRight(cmp.Or(at.LMStudio, lmStudioAt), "/"), at.LMStudio == "", findLMStudio},
		{"vLLM", "VLLM_BASE_URL", at.VLLM != "", strings.TrimRight(cmp.Or(at.VLLM, vllmAt), "/"), at.VLLM == "", findVLLM},
	}
}

func (n localServer) finding() Finding {
	place := n.base
	if u, err := url.Parse(n.base); err == nil {
		place = u.Redacted()
	}
	return Finding{Source: OnMachine, Place: place, Name: n.name, Found: FoundLater, Variables: []Variable{{n.variable, n.set}}}
}

// Findings returns the findings before the servers are asked.
func (at LocalServers) Findings() []Finding {
	var out []Finding
	for _, n := range at.servers() {
		if !n.optional {
			out = append(out, n.finding())
		}
	}
	return out
}

// DiscoverLocal asks an Ollama, a llama.cpp, an LM Studio and a vLLM server on
// this machine for their models. There is one finding for each; for the last two
// only if they answer or were configured, because other programs use their ports
// too. A port without a listener is no error; a wrong answer is, and the services
// of the other servers are returned with it. The client must allow loopback
// addresses; bound the search by ctx.
func DiscoverLocal(ctx context.Context, client *http.Client, at LocalServers) ([]Service, []Finding, error) {
	neighbors := at.servers()
	answers := make([][]Service, len(neighbors))
	errs := make([]error, len(neighbors))
	var g errgroup.Group // no shared context: a failure must not cancel the other queries
	for i, n := range neighbors {
		g.Go(func() error {
			answers[i], errs[i] = n.find(ctx, client, n.base)
			return nil
		})
	}
	_ = g.Wait()
	var found []Service
	var findings []Finding
	for i, n := range neighbors {
		if n.optional && len(answers[i]) == 0 {
			errs[i] = nil
			continue
		}
		f := n.finding()
		f.Found = FoundNothing
		switch err := errs[i]; {
		case errors.Is(err, errOtherServer):
			f.Problem, errs[i] = OtherServer, nil
		case err != nil:
			f.SetProblem(err)
			errs[i] = ignoreUnreachable(err)
		case len(answers[i]) == 0:
			f.Problem = NoModel
		}
		for _, s := range answers[i] {
			f.Services = append(f.Services, s.ID)
		}
		found, findings = append(found, answers[i]...), append(findings, f)
	}
	return found, findings, errors.Join(errs...)
}

// errOtherServer means that the port belongs to another kind of server.
var errOtherServer = errors.New("another server is there")

// ignoreUnreachable drops the error of an unreachable server.
func ignoreUnreachable(err error) error {
	if fetch.Unreachable(err) {
		return nil
	}
	return err
}

// findOllama reads GET /api/tags and, per model, POST /api/show.
// Source: docs/api.md of github.com/ollama/ollama.
func findOllama(ctx context.Context, client *http.Client, base string) ([]Service, error) {
	var tags struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := ask(ctx, client, Service{}, base+"/api/tags", nil, &tags); err != nil {
		return nil, err
	}
	models := tags.Models[:min(len(tags.Models), maxOllama)]
	shown := make([]ollamaModel, len(models))
	errs := make([]error, len(models))
	var g errgroup.Group
	g.SetLimit(askAtOnce)
	for i, m := range models {
		g.Go(func() error {
			errs[i] = ask(ctx, client, Service{}, base+"/api/show", map[string]string{"model": m.Name}, &shown[i])
			return nil
		})
	}
	_ = g.Wait()
	var found []Service
	for i, m := range models {
		if errs[i] == nil && !shown[i].chats() {
			continue // an embedding model
		}
		found = append(found, Service{
			ID: artel.ServiceID("ollama-" + slug(m.Name)), Name: m.Name + " (Ollama)", Dialect: OpenAI,
			BaseURL: base + "/v1", Model: m.Name, Origin: "Ollama at " + base,
			Capabilities: combine(shown[i].facts(), unserved(m.Name)),
		})
	}
	return found, errors.Join(errs...)
}

// unserved returns the catalog's facts about a model without its window and
// output limit, which are settings of the server that runs it.
func unserved(name string) Capabilities {
	c := Catalog(name)
	c.ContextWindow, c.MaxOutput = Fact[int]{}, Fact[int]{}
	return c
}

type ollamaModel struct {
	Capabilities []string `json:"capabilities"`
	Parameters   string   `json:"parameters"` // lines of "name value"
}

// chats reports whether the model completes text. Old servers do not state it.
func (m ollamaModel) chats() bool {
	return m.Capabilities == nil || slices.Contains(m.Capabilities, "completion")
}

// facts takes the window from num_ctx only: without it the server truncates at
// its own setting, regardless of the model's window.
func (m ollamaModel) facts() Capabilities {
	c := TextOnly()
	if m.Capabilities != nil {
		c.Input = known(FromEndpoint, inputsOf(map[artel.Capability]bool{artel.CanVision: slices.Contains(m.Capabilities, "vision")}))
	}
	for line := range strings.Lines(m.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			if n, err := strconv.Atoi(f[1]); err == nil && n > 0 {
				c.ContextWindow = known(FromEndpoint, n)
			}
		}
	}
	return c
}

// findLlamaCPP reads GET /props and GET /v1/models.
// Source: tools/server/README.md of github.com/ggml-org/llama.cpp.
func findLlamaCPP(ctx context.Context, client *http.Client, base string) ([]Service, error) {
	var props llamaProps
	switch err := ask(ctx, client, Service{}, base+"/props", nil, &props); {
	case errors.Is(err, errOther), err == nil && props.Modalities == nil && props.Settings == nil:
		return nil, errOtherServer // another program on the port
	case err != nil:
		return nil, err
	}
	s, err := Complete(ctx, client, Service{
		ID: "llamacpp", Name: "llama.cpp", Dialect: OpenAI, BaseURL: base + "/v1", Origin: "llama.cpp at " + base,
		Capabilities: TextOnly(),
	})
	if err != nil {
		return nil, err
	}
	s.Name = s.Model + " (llama.cpp)"
	s.Capabilities = combine(props.facts(), s.Capabilities)
	return []Service{s}, nil
}

// slug replaces characters that are not safe in a URL by "-".
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, s)
}

// errOther marks an answer that is not the expected document.
var errOther = errors.New("not the expected answer")

// A statusError is a response without success.
type statusError struct {
	code int
	line string // "401 Unauthorized"
}

func (e *statusError) Error() string { return errOther.Error() + ": " + e.line }
func (e *statusError) Unwrap() error { return errOther }

// ask requests a JSON document of a service, with its key: by GET, or by POST if body
// is not nil.
func ask(ctx context.Context, client *http.Client, s Service, address string, body, into any) error {
	headers := map[string]string{}
	if s.APIKey != "" {
		headers["Authorization"] = "Bearer " + s.APIKey.Reveal()
	}
	return askWith(ctx, client, s, address, body, into, headers)
}

// askWith is ask with the given headers in place of the key. The service's own header
// fields replace them, as in its calls.
func askWith(ctx context.Context, client *http.Client, s Service, address string, body, into any, headers map[string]string) error {
	method, payload := http.MethodGet, io.Reader(nil)
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return &artel.Error{Op: "model.ask", Subject: address, Kind: artel.Internal, Err: err}
		}
		method, payload = http.MethodPost, bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, payload)
	if err != nil {
		return artel.Errorf(artel.Invalid, "model.ask", artel.Shorten(address, 200), "not an address: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	for name, value := range s.Extra.Header {
		req.Header.Set(name, value.Reveal())
	}
	resp, err := client.Do(req)
	if err != nil {
		return &artel.Error{Op: "model.ask", Kind: askKind(ctx, err), Err: err}
	}
	defer resp.Body.Close()
	b, err := fetch.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		return &artel.Error{Op: "model.ask", Subject: address, Kind: artel.KindOf(err), Err: err}
	}
	if resp.StatusCode/100 != 2 {
		return artel.Errorf(artel.Unavailable, "model.ask", address, "%w: %s", &statusError{resp.StatusCode, resp.Status}, artel.Shorten(string(b), quoted))
	}
	if err := json.Unmarshal(b, into); err != nil {
		return artel.Errorf(artel.Unavailable, "model.ask", address, "%w: %w", errOther, err)
	}
	return nil
}

func askKind(ctx context.Context, err error) artel.Kind {
	switch {
	case ctx.Err() != nil:
		return artel.Canceled
	case errors.Is(err, artel.Denied):
		return artel.Denied
	}
	return artel.Unavailable
}
