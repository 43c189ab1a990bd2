// SPDX-License-Identifier: Apache-2.0

package model

import (
	"net/url"
	"slices"
	"strings"
)

// Quirks are what a server of the Chat Completions dialect does in its own
// way. Servers that nobody knows have those of the last row of [AllQuirks].
type Quirks struct {
	Name   string   // for people
	Hosts  []string // of a vendor's API, with everything below them
	Server Server   // the kind of program; "": known by its hosts alone
	Takes  []string // media types; nil: those of the dialect

	OutputLimit string // the field that limits the output
	ToolLists   bool   // messages of tools may have a list as content, with media where the model takes them
	NoUser      bool   // a user message may not follow a tool message
	NoUsage     bool   // usage comes without being asked for, and asking is refused
	CallIDs     int    // the length of the ids of calls, of letters and digits alone; 0: any up to 40 characters
	SoundAsURL  bool   // sound travels as a data URL
	NoURLs      bool   // nothing is fetched: pictures come as bytes alone
	MediaIDs    bool   // parts with media have an id, by which the server knows them again
	Reasoning   Replay // what is passed back of the reasoning, in the field that the server told it in
}

// A Replay says which reasoning a server gets back.
type Replay string

// What is passed back. Details that a server gives its reasoning as a list go
// back with every message.
const (
	ReplayNothing Replay = ""
	ReplayCalls   Replay = "calls"       // that of messages with calls
	ReplayAlways  Replay = "every call"  // the same, and the field is there even where there was none
	ReplayDetails Replay = "its details" // the list of details alone
)

// AllQuirks returns the rows, of which the first that fits a service counts.
//
// Sources: the documentation and the code of each server, and what was reported
// of them; docs/dialects.md tells the same for people.
func AllQuirks() []Quirks {
	const limit = "max_tokens"
	images := []string{"image/png", "image/jpeg", "image/webp", "image/gif"}
	sound := []string{"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/mpeg", "audio/mp3"}
	return []Quirks{
		{Name: "OpenAI", Hosts: []string{"api.openai.com", "openai.azure.com"}, OutputLimit: "max_completion_tokens", ToolLists: true},
		{
			Name: "OpenRouter", Hosts: []string{"openrouter.ai"}, Server: OpenRouterAPI, OutputLimit: limit, ToolLists: true, Reasoning: ReplayDetails,
			Takes: slices.Concat(
				images, []string{"application/pdf"}, sound,
				[]string{"audio/flac", "audio/mp4", "audio/ogg", "audio/aiff", "audio/aac", "video/mp4", "video/mpeg", "video/quicktime", "video/webm"},
			),
		},
		{
			Name: "Ollama", Server: OllamaServer, OutputLimit: limit, NoURLs: true, Reasoning: ReplayCalls,
			Takes: []string{"image/png", "image/jpeg", "image/webp"},
		},
		{
			Name: "vLLM", Server: VLLMServer, OutputLimit: limit, ToolLists: true, MediaIDs: true, Reasoning: ReplayCalls,
			Takes: slices.Concat(images, sound, []string{"audio/flac", "audio/ogg", "video/mp4", "video/webm"}),
		},
		{
			Name: "llama.cpp", Server: LlamaCPPServer, OutputLimit: limit, ToolLists: true, Reasoning: ReplayCalls,
			Takes: slices.Concat([]string{"image/png", "image/jpeg", "image/gif"}, sound),
		},
		{
			Name: "LM Studio", Server: LMStudioServer, OutputLimit: limit, NoURLs: true,
			Takes: []string{"image/png", "image/jpeg", "image/webp"},
		},
		{
			Name: "DashScope", Hosts: []string{"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"}, OutputLimit: limit, SoundAsURL: true,
			Takes: slices.Concat([]string{"image/png", "image/jpeg", "image/webp"}, sound, []string{"audio/aac", "video/mp4", "video/quicktime", "video/webm"}),
		},
		{
			Name: "DeepSeek", Hosts: []string{"api.deepseek.com"}, OutputLimit: limit, Reasoning: ReplayAlways,
			Takes: []string{},
		},
		{
			Name: "Mistral", Hosts: []string{"api.mistral.ai"}, OutputLimit: limit, NoUser: true, NoUsage: true, CallIDs: 9,
			Takes: images,
		},
		{Name: "any other", OutputLimit: limit, ToolLists: true},
	}
}

// Quirks returns what the server of s does in its own way.
func (s Service) Quirks() Quirks {
	host := ""
	if u, err := url.Parse(s.BaseURL); err == nil {
		host = strings.ToLower(u.Hostname())
	}
	rows := AllQuirks()
	for _, q := range rows {
		if q.Server != "" && q.Server == s.Server || slices.ContainsFunc(q.Hosts, func(h string) bool { return host == h || strings.HasSuffix(host, "."+h) }) {
			return q
		}
	}
	return rows[len(rows)-1]
}
