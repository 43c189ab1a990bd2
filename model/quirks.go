// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
	"sync"
)

// Quirks describe how a server deviates from the Chat Completions API.
type Quirks struct {
	Name   string   // display name
	Hosts  []string // host names of the vendor's API; subdomains match too
	Server Server   // the kind of program; "": matched by Hosts alone
	Takes  []string // media types; nil: those of the dialect

	OutputLimit     string // the field that limits the output
	ToolLists       bool   // the content of a tool message may be a list, with media if the model takes them
	NoUserAfterTool bool   // a user message may not follow a tool message
	NoUsage         bool   // stream_options is refused; usage arrives without it
	CallIDs         int    // length of call ids, which are alphanumeric; 0: any id of up to 40 characters
	AudioAsURL      bool   // audio is sent as a data URL
	NoURLs          bool   // the server fetches no URLs: pictures are sent as bytes
	MediaIDs        bool   // media parts carry an id by which the server caches them
	Reasoning       Replay // the reasoning to send back, in the field in which it arrived
}

// A Replay says which reasoning is sent back to a server.
type Replay string

// The replays.
const (
	ReplayNothing Replay = ""
	ReplayCalls   Replay = "calls"       // the reasoning of messages with tool calls
	ReplayAlways  Replay = "every call"  // the same; the field is present even if there was no reasoning
	ReplayDetails Replay = "its details" // the list reasoning_details of every message
)

// QuirkSettings are the quirks that an operator has set for one service. Those
// with a source replace the values of the matching row of [AllQuirks].
type QuirkSettings struct {
	Takes       Fact[[]string]
	OutputLimit Fact[string]
	ToolLists   Fact[bool]
	NoUsage     Fact[bool]
	CallIDs     Fact[int]
	AudioAsURL  Fact[bool]
	NoURLs      Fact[bool]
	MediaIDs    Fact[bool]
	Reasoning   Fact[Replay]
}

// apply returns q with the values that o sets.
func (o QuirkSettings) apply(q Quirks) Quirks {
	override(&q.Takes, o.Takes)
	override(&q.OutputLimit, o.OutputLimit)
	override(&q.ToolLists, o.ToolLists)
	override(&q.NoUsage, o.NoUsage)
	override(&q.CallIDs, o.CallIDs)
	override(&q.AudioAsURL, o.AudioAsURL)
	override(&q.NoURLs, o.NoURLs)
	override(&q.MediaIDs, o.MediaIDs)
	override(&q.Reasoning, o.Reasoning)
	return q
}

func override[T any](dst *T, fact Fact[T]) {
	if fact.Source != FromNothing {
		*dst = fact.Value
	}
}

// quirks reads the quirks of an entry.
func (e *entry) quirks() (q QuirkSettings) {
	o, ok := e.object("quirks")
	if !ok {
		return q
	}
	if types, ok := o.list("takes"); ok {
		q.Takes = known(FromOperator, o.mediaTypes("takes", types))
	}
	choice(o, &q.OutputLimit, "output_limit", map[string]string{"max_tokens": "max_tokens", "max_completion_tokens": "max_completion_tokens"})
	o.flag(&q.ToolLists, "tool_lists")
	o.flag(&q.NoUsage, "no_usage")
	o.count(&q.CallIDs, "call_ids")
	if q.CallIDs.Value > maxCallIDs {
		o.mistyped("call_ids", wantNumber)
		q.CallIDs = Fact[int]{}
	}
	o.flag(&q.AudioAsURL, "audio_as_url")
	o.flag(&q.NoURLs, "no_urls")
	o.flag(&q.MediaIDs, "media_ids")
	choice(o, &q.Reasoning, "reasoning", map[string]Replay{"none": ReplayNothing, "calls": ReplayCalls, "always": ReplayAlways, "details": ReplayDetails})
	o.rest()
	return q
}

// maxCallIDs is the longest fixed length of call ids: they are cut from a
// SHA-256 in base 32.
const maxCallIDs = 52

// choice reads one of the words that are the keys of meanings.
func choice[T any](e *entry, fact *Fact[T], key string, meanings map[string]T) {
	word := e.text(key)
	if v, ok := meanings[word]; ok {
		*fact = known(FromOperator, v)
	} else if word != "" {
		e.flaw(UnknownWord, key, word)
	}
}

// AllQuirks returns the known servers; the first row that matches a service
// counts, the last one matches all.
//
// Sources: each server's documentation, code and bug reports. docs/dialects.md
// has the same table.
func AllQuirks() []Quirks {
	const limit = "max_tokens"
	images := []string{"image/png", "image/jpeg", "image/webp", "image/gif"}
	audio := []string{"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/mpeg", "audio/mp3"}
	return []Quirks{
		{Name: "OpenAI", Hosts: []string{"api.openai.com", "openai.azure.com"}, OutputLimit: "max_completion_tokens", ToolLists: true},
		{
			Name: "OpenRouter", Hosts: []string{"openrouter.ai"}, Server: OpenRouterAPI, OutputLimit: limit, ToolLists: true, Reasoning: ReplayDetails,
			Takes: slices.Concat(
				images, []string{"application/pdf"}, audio,
				[]string{"audio/flac", "audio/mp4", "audio/ogg", "audio/aiff", "audio/aac", "video/mp4", "video/mpeg", "video/quicktime", "video/webm"},
			),
		},
		{
			Name: "Ollama", Server: OllamaServer, OutputLimit: limit, NoURLs: true, Reasoning: ReplayCalls,
			Takes: []string{"image/png", "image/jpeg", "image/webp"},
		},
		{
			Name: "vLLM", Server: VLLMServer, OutputLimit: limit, ToolLists: true, MediaIDs: true, Reasoning: ReplayCalls,
			Takes: slices.Concat(images, audio, []string{"audio/flac", "audio/ogg", "video/mp4", "video/webm"}),
		},
		{
			Name: "llama.cpp", Server: LlamaCPPServer, OutputLimit: limit, ToolLists: true, Reasoning: ReplayCalls,
			Takes: slices.Concat([]string{"image/png", "image/jpeg", "image/gif"}, audio),
		},
		{
			Name: "LM Studio", Server: LMStudioServer, OutputLimit: limit, NoURLs: true,
			Takes: []string{"image/png", "image/jpeg", "image/webp"},
		},
		{
			Name: "DashScope", Hosts: []string{"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"}, OutputLimit: limit, AudioAsURL: true,
			Takes: slices.Concat([]string{"image/png", "image/jpeg", "image/webp"}, audio, []string{"audio/aac", "video/mp4", "video/quicktime", "video/webm"}),
		},
		{
			Name: "DeepSeek", Hosts: []string{"api.deepseek.com"}, OutputLimit: limit, Reasoning: ReplayAlways,
			Takes: []string{},
		},
		{
			Name: "Mistral", Hosts: []string{"api.mistral.ai"}, OutputLimit: limit, NoUserAfterTool: true, NoUsage: true, CallIDs: 9,
			Takes: images,
		},
		{Name: "any other", OutputLimit: limit, ToolLists: true},
	}
}

// quirkRows holds the rows of [AllQuirks], made once because every request asks for
// one; they are read only.
var quirkRows = sync.OnceValue(AllQuirks)

// hostname returns the host name of an http address without the port, in lower
// case. It reads less than [url.Parse], which every request would pay for.
func hostname(address string) string {
	_, rest, found := strings.Cut(address, "://")
	if !found {
		return ""
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if strings.HasPrefix(rest, "[") {
		host, _, _ := strings.Cut(rest[1:], "]")
		return strings.ToLower(host)
	}
	host, _, _ := strings.Cut(rest, ":")
	return strings.ToLower(host)
}

// Quirks returns the row of [AllQuirks] that matches the address or the server
// of s, with the operator's settings applied.
func (s Service) Quirks() Quirks { return s.QuirkSettings.apply(s.knownQuirks()) }

func (s Service) knownQuirks() Quirks {
	host := hostname(s.BaseURL)
	rows := quirkRows()
	for _, q := range rows {
		if q.Server != "" && q.Server == s.Server || slices.ContainsFunc(q.Hosts, func(h string) bool { return host == h || strings.HasSuffix(host, "."+h) }) {
			return q
		}
	}
	return rows[len(rows)-1]
}
