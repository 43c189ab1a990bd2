// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// A Server is a kind of model server with its own API for the capabilities of its
// models.
type Server string

// The servers. Those with an OpenAI-compatible list of models are recognised by it,
// except for LiteLLM, which must be configured.
const (
	AnyServer       Server = ""           // recognise it by the list of models
	NoServer        Server = "none"       // no queries
	OpenRouterAPI   Server = "openrouter" // GET {base}/models says all
	VLLMServer      Server = "vllm"       // GET {base}/models says the window
	OllamaServer    Server = "ollama"     // POST /api/show
	LlamaCPPServer  Server = "llamacpp"   // GET /props
	LMStudioServer  Server = "lmstudio"   // GET /api/v1/models, or /api/v0/models of older ones
	LiteLLMServer   Server = "litellm"    // GET /model/info
	AnthropicServer Server = "anthropic"  // GET /v1/models/{id}
)

// Servers returns all servers that can be configured.
func Servers() []Server {
	return []Server{NoServer, OpenRouterAPI, VLLMServer, OllamaServer, LlamaCPPServer, LMStudioServer, LiteLLMServer, AnthropicServer}
}

// server recognises the server by an element of its list of models.
func (m listedModel) server() Server {
	switch strings.ToLower(m.OwnedBy) {
	case "vllm":
		return VLLMServer
	case "library":
		return OllamaServer
	case "llamacpp":
		return LlamaCPPServer
	case "organization_owner":
		return LMStudioServer
	}
	return AnyServer
}

// askServer asks a server by its own API for the capabilities of the model of s.
// Without such an API, and for an unknown model, it returns none.
func askServer(ctx context.Context, client *http.Client, s Service, kind Server) (Capabilities, error) {
	root := strings.TrimSuffix(s.BaseURL, "/v1")
	switch kind {
	case OllamaServer:
		var m ollamaModel
		err := ask(ctx, client, s, root+"/api/show", map[string]string{"model": s.Model}, &m)
		return m.facts(), err
	case LlamaCPPServer:
		var p llamaProps
		err := ask(ctx, client, s, root+"/props", nil, &p)
		return p.facts(), err
	case LMStudioServer:
		models, err := askLMStudio(ctx, client, s, root)
		if i := slices.IndexFunc(models, func(m studioModel) bool { return m.is(s.Model) }); err == nil && i >= 0 {
			return models[i].facts(), nil
		}
		return TextOnly(), err
	case LiteLLMServer:
		return askLiteLLM(ctx, client, s, root)
	case AnthropicServer:
		return askAnthropic(ctx, client, s, root)
	}
	return TextOnly(), nil
}

// llamaProps is the answer of llama.cpp's GET /props.
type llamaProps struct {
	Modalities *struct {
		Vision bool `json:"vision"`
		Audio  bool `json:"audio"`
	} `json:"modalities"`
	Settings *struct {
		Window int `json:"n_ctx"`
	} `json:"default_generation_settings"`
}

func (p llamaProps) facts() Capabilities {
	c := TextOnly()
	if m := p.Modalities; m != nil {
		c.Input = known(FromEndpoint, inputsOf(map[artel.Capability]bool{artel.CanVision: m.Vision, artel.CanAudio: m.Audio}))
	}
	if p.Settings != nil {
		stated(&c.ContextWindow, FromEndpoint, int64(p.Settings.Window))
	}
	return c
}

// A studioModel is an element of LM Studio's lists of version 1 or 0.
type studioModel struct {
	Key  string `json:"key"` // 1
	ID   string `json:"id"`  // 0
	Type string `json:"type"`

	MaxWindow    int `json:"max_context_length"`
	LoadedWindow int `json:"loaded_context_length"` // 0
	Loaded       []struct {
		ID     string `json:"id"`
		Config struct {
			Window int `json:"context_length"`
		} `json:"config"`
	} `json:"loaded_instances"` // 1
	Capabilities any `json:"capabilities"` // 1: an object with vision; 0: a list of words
}

func (m studioModel) is(name string) bool {
	for _, l := range m.Loaded {
		if l.ID == name {
			return true
		}
	}
	return name == m.Key || name == m.ID
}

func (m studioModel) facts() Capabilities {
	c := TextOnly()
	said, _ := m.Capabilities.(map[string]any)
	vision, _ := said["vision"].(bool)
	c.Input = known(FromEndpoint, inputsOf(map[artel.Capability]bool{artel.CanVision: vision || m.Type == "vlm"}))
	window := m.LoadedWindow
	for _, l := range m.Loaded {
		window = l.Config.Window
	}
	if window == 0 {
		window = m.MaxWindow
	}
	stated(&c.ContextWindow, FromEndpoint, int64(window))
	// LM Studio refuses lists in tool messages as an invalid payload.
	c.ToolImage, c.ToolFile = known(FromEndpoint, false), known(FromEndpoint, false)
	return c
}

// askLMStudio returns the chat models, from the newer list if available.
func askLMStudio(ctx context.Context, client *http.Client, s Service, root string) ([]studioModel, error) {
	var now struct {
		Models []studioModel `json:"models"`
	}
	err := ask(ctx, client, s, root+"/api/v1/models", nil, &now)
	models := now.Models
	if err != nil || models == nil {
		var before struct {
			Data []studioModel `json:"data"`
		}
		if err = ask(ctx, client, s, root+"/api/v0/models", nil, &before); err != nil {
			return nil, err
		}
		models = before.Data
	}
	return slices.DeleteFunc(models, func(m studioModel) bool { return m.Type != "llm" && m.Type != "vlm" }), nil
}

// askLiteLLM reads the proxy's own list. Missing flags are unknown. The group list
// is not used because it omits some flags.
func askLiteLLM(ctx context.Context, client *http.Client, s Service, root string) (Capabilities, error) {
	var list struct {
		Data []struct {
			Name string `json:"model_name"`
			Info struct {
				Vision *bool `json:"supports_vision"`
				PDF    *bool `json:"supports_pdf_input"`
				Audio  *bool `json:"supports_audio_input"`
				Window int   `json:"max_input_tokens"`
				Output int   `json:"max_output_tokens"`
			} `json:"model_info"`
		} `json:"data"`
	}
	c := TextOnly()
	if err := ask(ctx, client, s, root+"/model/info", nil, &list); err != nil {
		return c, err
	}
	for _, m := range list.Data {
		if m.Name != s.Model {
			continue
		}
		said := func(b *bool) bool { return b != nil && *b }
		if i := m.Info; i.Vision != nil || i.PDF != nil || i.Audio != nil {
			c.Input = known(FromEndpoint, inputsOf(map[artel.Capability]bool{
				artel.CanVision: said(i.Vision), artel.CanFile: said(i.PDF), artel.CanAudio: said(i.Audio),
			}))
			if said(i.PDF) {
				c.Accepts = known(FromEndpoint, []string{"image/*", "audio/*", "application/pdf"})
			}
		}
		stated(&c.ContextWindow, FromEndpoint, int64(m.Info.Window))
		stated(&c.MaxOutput, FromEndpoint, int64(m.Info.Output))
		break
	}
	return c, nil
}

// askAnthropic reads the vendor's description of one model.
func askAnthropic(ctx context.Context, client *http.Client, s Service, root string) (Capabilities, error) {
	type flag struct {
		Supported *bool `json:"supported"`
	}
	var m struct {
		Window       int `json:"max_input_tokens"`
		Output       int `json:"max_tokens"`
		Capabilities struct {
			Image flag `json:"image_input"`
			PDF   flag `json:"pdf_input"`
		} `json:"capabilities"`
	}
	c := TextOnly()
	err := askWith(ctx, client, s, root+"/v1/models/"+url.PathEscape(s.Model), nil, &m, anthropicHeaders(s))
	if err != nil {
		return c, err
	}
	if image, pdf := m.Capabilities.Image.Supported, m.Capabilities.PDF.Supported; image != nil && pdf != nil {
		c.Input = known(FromEndpoint, inputsOf(map[artel.Capability]bool{artel.CanVision: *image, artel.CanFile: *pdf}))
		// The media types are those of the catalog.
		c.Accepts = Catalog("claude-").Accepts
		c.Accepts.Source = FromEndpoint
	}
	stated(&c.ContextWindow, FromEndpoint, int64(m.Window))
	stated(&c.MaxOutput, FromEndpoint, int64(m.Output))
	return c, nil
}

// findLMStudio returns the models of an LM Studio, which it loads on demand. Its
// lists have a unique form.
func findLMStudio(ctx context.Context, client *http.Client, base string) ([]Service, error) {
	models, err := askLMStudio(ctx, client, Service{}, base)
	if errors.Is(err, errOther) {
		return nil, errOtherServer
	}
	var found []Service
	for _, m := range models[:min(len(models), maxOllama)] {
		name := cmp.Or(m.Key, m.ID)
		found = append(found, Service{
			ID: artel.ServiceID("lmstudio-" + slug(name)), Name: name + " (LM Studio)", Dialect: OpenAI,
			BaseURL: base + "/v1", Model: name, Server: LMStudioServer, Origin: "LM Studio at " + base,
			Capabilities: combine(m.facts(), unserved(name)),
		})
	}
	return found, err
}

// findVLLM returns the models of a vLLM, recognised by its list.
func findVLLM(ctx context.Context, client *http.Client, base string) ([]Service, error) {
	var list struct {
		Data []listedModel `json:"data"`
	}
	if err := ask(ctx, client, Service{}, base+"/v1/models", nil, &list); errors.Is(err, errOther) {
		return nil, errOtherServer
	} else if err != nil {
		return nil, err
	}
	var found []Service
	for _, m := range list.Data[:min(len(list.Data), maxOllama)] {
		if m.server() != VLLMServer {
			return nil, errOtherServer
		}
		found = append(found, Service{
			ID: artel.ServiceID("vllm-" + slug(m.ID)), Name: m.ID + " (vLLM)", Dialect: OpenAI,
			BaseURL: base + "/v1", Model: m.ID, Server: VLLMServer, Origin: "vLLM at " + base,
			Capabilities: combine(m.capabilities(), unserved(m.ID)),
		})
	}
	return found, nil
}
