// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A Client is a program or library that calls model providers, with the snippet
// that connects it to this server.
type Client struct {
	Name  string
	Where string // language of the snippet, or file that it belongs into; "": shell
	Code  string
}

// clients returns the snippets for a server address, a service and a key. Without a
// key any is accepted.
func clients(address, service, key string) []Client {
	envKey := ""
	if key == "" {
		key = "any"
	} else {
		envKey = "env_key = \"ARTEL_KEY\" # export ARTEL_KEY=" + key + "\n"
	}
	name, _ := json.Marshal(service) // of a string it cannot fail
	fill := strings.NewReplacer(
		"{address}", address, "{key}", key, "{service}", strconv.Quote(service), "{shell}", quoteShell(service), "{env_key}", envKey,
		"{request}", quoteShell(`{"model": `+string(name)+`, "messages": [{"role": "user", "content": "Hello"}]}`),
	)
	all := []Client{
		{"OpenAI", "Python", `from openai import OpenAI

client = OpenAI(base_url="{address}/v1", api_key="{key}")
answer = client.chat.completions.create(model={service}, messages=[{"role": "user", "content": "Hello"}])
print(answer.choices[0].message.content)`},
		{"OpenAI", "JavaScript", `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "{address}/v1", apiKey: "{key}" });
const answer = await client.chat.completions.create({ model: {service}, messages: [{ role: "user", content: "Hello" }] });
console.log(answer.choices[0].message.content);`},
		{"OpenAI", "Go", `client := openai.NewClient(option.WithBaseURL("{address}/v1"), option.WithAPIKey("{key}"))
answer, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
	Model:    {service},
	Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")},
})`},
		{"Anthropic", "Python", `from anthropic import Anthropic

client = Anthropic(base_url="{address}", api_key="{key}")
answer = client.messages.create(model={service}, max_tokens=1024, messages=[{"role": "user", "content": "Hello"}])
print(answer.content[0].text)`},
		{"Anthropic", "TypeScript", `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: "{address}", apiKey: "{key}" });
const answer = await client.messages.create({ model: {service}, max_tokens: 1024, messages: [{ role: "user", content: "Hello" }] });
console.log(answer.content);`},
		{"Google Gemini", "Python", `from google import genai

client = genai.Client(api_key="{key}", http_options={"base_url": "{address}"})
answer = client.models.generate_content(model={service}, contents="Hello")
print(answer.text)`},
		{"Google Gemini", "JavaScript", `import { GoogleGenAI } from "@google/genai";

const ai = new GoogleGenAI({ apiKey: "{key}", httpOptions: { baseUrl: "{address}" } });
const answer = await ai.models.generateContent({ model: {service}, contents: "Hello" });
console.log(answer.text);`},
		{"AI SDK", "TypeScript", `import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";

const artel = createOpenAICompatible({ name: "artel", baseURL: "{address}/v1", apiKey: "{key}" });
const { text } = await generateText({ model: artel({service}), prompt: "Hello" });`},
		{"LangChain", "Python", `from langchain_openai import ChatOpenAI

llm = ChatOpenAI(base_url="{address}/v1", api_key="{key}", model={service})
print(llm.invoke("Hello").content)`},
		{"curl", "", `curl {address}/v1/chat/completions -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \
  -d {request}`},
		{"Claude Code", "", `ANTHROPIC_BASE_URL={address} ANTHROPIC_AUTH_TOKEN={key} ANTHROPIC_MODEL={shell} claude`},
		{"Codex", "~/.codex/config.toml", `model = {service}
model_provider = "artel"

[model_providers.artel]
name = "Artel"
base_url = "{address}/v1"
{env_key}wire_api = "responses"`},
		{"Gemini CLI", "", `GEMINI_API_KEY={key} GOOGLE_GEMINI_BASE_URL={address} gemini -m {shell}`},
		{"Qwen Code", "", `OPENAI_API_KEY={key} OPENAI_BASE_URL={address}/v1 qwen --auth-type openai -m {shell}`},
		{"opencode", "opencode.json", `{
  "provider": {
    "artel": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "Artel",
      "options": { "baseURL": "{address}/v1", "apiKey": "{key}" },
      "models": { {service}: { "attachment": true, "modalities": { "input": ["text", "image", "pdf"], "output": ["text"] } } }
    }
  }
}`},
		{"Cline", "", `cline auth -p openai-compatible -k {key} -b {address}/v1 -m {shell}`},
	}
	for i := range all {
		all[i].Code = fill.Replace(all[i].Code)
	}
	return all
}

// hosts returns the snippets that connect MCP hosts to this server. A host that needs a
// token takes it from the environment variable ARTEL_TOKEN, or in its place.
func hosts(address string, token bool) []Client {
	shell, codex, field, quoted := "", "", "", ""
	if token {
		shell = ` --header "Authorization: Bearer $ARTEL_TOKEN"`
		codex = "\nbearer_token_env_var = \"ARTEL_TOKEN\" # export ARTEL_TOKEN=artel_…"
		field = `, "headers": { "Authorization": "Bearer artel_…" }`
		quoted = "\n    headers: { Authorization: Bearer artel_… }"
	}
	fill := strings.NewReplacer("{url}", address+"/mcp", "{shell}", shell, "{codex}", codex, "{field}", field, "{quoted}", quoted)
	all := []Client{
		{"Claude Code", "", `claude mcp add --transport http artel {url}{shell}`},
		{"Codex", "~/.codex/config.toml", `[mcp_servers.artel]
url = "{url}"{codex}`},
		{"Cursor", "~/.cursor/mcp.json", `{ "mcpServers": { "artel": { "url": "{url}"{field} } } }`},
		{"VS Code", ".vscode/mcp.json", `{ "servers": { "artel": { "type": "http", "url": "{url}"{field} } } }`},
		{"Gemini CLI", "~/.gemini/settings.json", `{ "mcpServers": { "artel": { "httpUrl": "{url}"{field} } } }`},
		{"Qwen Code", "~/.qwen/settings.json", `{ "mcpServers": { "artel": { "httpUrl": "{url}"{field} } } }`},
		{"opencode", "opencode.json", `{ "mcp": { "artel": { "type": "remote", "url": "{url}"{field} } } }`},
		{"goose", "~/.config/goose/config.yaml", `extensions:
  artel:
    name: artel
    type: streamable_http
    enabled: true
    uri: {url}{quoted}`},
	}
	for i := range all {
		all[i].Code = fill.Replace(all[i].Code)
	}
	return all
}

// quoteShell quotes a word for a shell.
func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
