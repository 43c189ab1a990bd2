// SPDX-License-Identifier: Apache-2.0

package sdktest

// What docs/compatibility.md says around the tables.
const head = `# Which clients work with what

Below are the SDKs; at the end are the [hosts of MCP](#mcp-hosts) and the [coding agents](#coding-agents). Every cell was tried: the
official SDK of the heading, through the gateway, with a stand-in of the service's API that enforces its rules. ` + "`make test`" + ` tries all of
them again and compares this page with what comes out.

- **✓**: it works as it would with an API of the client's own dialect; media arrive byte for byte where the client put them.
- **carried**: the service takes no media in the results of tools, so they arrive in a user message behind the results.
- **extracted**: the service does not take the file, so the model reads its text.
- **described**: the model cannot read it in any form, and gets a short text that says so.
- **shown**: the client gets the text of the reasoning, too.
- **whole**: the arguments come in one piece, as the service sends them.
- **refused**: the service's own API does not take what the client sends, and says so.
- **stateful**: the client leaves it to the service to remember the conversation. OpenAI's service does; its stand-in here stores nothing, and
  says so; ` + "`store: false`" + ` avoids it.
- **not retried**: the client shows the error and does not ask again by itself.

The clients have their default settings; only the errors at the end were tried without the clients' own retries.
`

// foot is beneath them.
const foot = `
With each client and each of the first four services, a 400, a 429 and a 500 of the service reach the client as the error
that its SDK has for that status, and a stream that breaks off is an error, never a good end.
`

// programs is the heading of the parts that the packages mcphosts, mcpconformance and agents write.
const programs = "\n## MCP hosts\n"

var names = map[string]string{
	"openai-go chat":                    "openai-go, Chat Completions",
	"openai-go responses":               "openai-go, Responses",
	"anthropic-go":                      "anthropic-sdk-go",
	"genai-go":                          "google.golang.org/genai",
	"openai chat":                       "openai (Node.js), Chat Completions",
	"openai responses":                  "openai (Node.js), Responses",
	"anthropic":                         "@anthropic-ai/sdk",
	"genai":                             "@google/genai",
	"ai openai chat":                    "AI SDK, @ai-sdk/openai chat",
	"ai openai responses":               "AI SDK, @ai-sdk/openai responses",
	"ai openai responses, store: false": "AI SDK, @ai-sdk/openai responses, with store: false",
	"ai compatible":                     "AI SDK, @ai-sdk/openai-compatible",
	"ai anthropic":                      "AI SDK, @ai-sdk/anthropic",
	"ai google":                         "AI SDK, @ai-sdk/google",
	"langchain":                         "LangChain, @langchain/openai",
}

var titles = map[string]string{
	"text": "an answer", "stream": "a stream", "tools": "a tool", "parallel": "two tools at once",
	"image": "a picture in a tool's result", "picture": "a picture", "pdf": "a PDF", "audio": "a recording",
	"file": "a file by id", "json": "an answer by a schema", "schema": "a schema with an optional property and a limit",
	"names": "the longest name of a tool", "arguments": "arguments of a tool in pieces", "reasoning": "reasoning with effort", "retries": "another try after a 500",
	"count": "counting tokens", "cancel": "leaving a stream",
}
