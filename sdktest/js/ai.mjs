// SPDX-License-Identifier: Apache-2.0

// The AI SDK, with each of the providers that can be pointed at a server.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool as define } from "ai";

import { cancelled } from "./openai.mjs";
import { answer, call, calls, data, flaky, json, named, person, reason, result, say, told, tool, wait, write } from "./words.mjs";

function client(model, { files, retries: maxRetries }, { providerOptions, thinking, longest = 64 } = {}) {
	const message = (...content) => [{ role: "user", content: [{ type: "text", text: say }, ...content] }];
	const ask = async (prompt) => {
		const r = await generateText({ model, maxRetries, providerOptions, ...(typeof prompt === "string" ? { prompt } : { messages: prompt }) });
		return { text: r.text, usage: r.usage };
	};
	const loop = async (prompt, toModelOutput, called = tool) => {
		const r = await generateText({
			model, prompt, providerOptions, maxRetries, stopWhen: stepCountIs(4),
			tools: { [called.name]: define({ description: called.description, inputSchema: jsonSchema(called.schema), execute: ({ q }) => result(q), toModelOutput }) },
		});
		return { text: r.text, calls: r.steps.flatMap((s) => s.toolResults).length };
	};
	const streamed = async (prompt, each = () => {}, { signal } = {}) => {
		let failed;
		const r = streamText({ model, prompt, providerOptions, maxRetries, abortSignal: signal, onError: ({ error }) => (failed = error) });
		let text = "", chunks = 0;
		for await (const piece of r.textStream) {
			text += piece;
			chunks++;
			each(text);
		}
		if (failed) throw failed;
		if (signal?.aborted) return {};
		return { text, chunks, finish: await r.finishReason, usage: await r.usage };
	};
	const picture = { type: "image", image: files.png, mediaType: "image/png" };
	return {
		text: () => ask(say),
		stream: () => streamed(say),
		tools: () => loop(call),
		parallel: () => loop(calls),
		image: () => loop(call, ({ output }) => ({ type: "content", value: [{ type: "text", text: output }, { type: "media", data: files.png, mediaType: "image/png" }] })),
		picture: () => ask(message(picture)),
		pdf: () => ask(message({ type: "file", data: files.pdf, mediaType: "application/pdf", filename: "paper.pdf" })),
		audio: () => ask(message({ type: "file", data: files.wav, mediaType: "audio/wav" })),
		json: async () => {
			const r = await generateObject({ model, prompt: json, providerOptions, maxRetries, schema: jsonSchema(answer.schema), schemaName: answer.name });
			return { text: r.object.answer };
		},
		reasoning: async () => {
			const r = await generateText({ model, prompt: reason, maxRetries, providerOptions: { ...providerOptions, ...thinking } });
			return { text: r.text, thought: r.reasoningText };
		},
		schema: async () => told((await generateObject({ model, prompt: data, providerOptions, maxRetries, schema: jsonSchema(person.schema), schemaName: person.name })).object),
		names: () => loop(call, undefined, named(longest)),
		arguments: async () => {
			const r = streamText({ model, prompt: write, providerOptions, maxRetries, tools: { [tool.name]: define({ description: tool.description, inputSchema: jsonSchema(tool.schema) }) } });
			const parts = [];
			for await (const e of r.fullStream) {
				if (e.type === "error") throw e.error;
				if (e.type === "tool-input-delta") parts.push(e.delta);
			}
			return { text: JSON.parse(parts.join("")).q, chunks: parts.length };
		},
		retries: (mark) => ask(flaky(mark)),
		error: () => ask(say),
		broken: () => streamed(say),
		cancel: (mark) => cancelled((each, options) => streamed(wait(mark), each, options)),
	};
}

const google = { google: { thinkingConfig: { thinkingBudget: 12_000, includeThoughts: true } } };
const budget = { anthropic: { thinking: { type: "enabled", budgetTokens: 12_000 } } };
const effort = { openai: { reasoningEffort: "high", reasoningSummary: "auto", forceReasoning: true } };

export default {
	"ai openai chat": ({ bases, key, model, ...job }) => client(createOpenAI({ baseURL: bases["AI SDK"], apiKey: key }).chat(model), job, { thinking: effort }),
	"ai openai responses": ({ bases, key, model, ...job }) => client(createOpenAI({ baseURL: bases["AI SDK"], apiKey: key }).responses(model), job, { thinking: effort }),
	// Without store: false it names parts of answers by their id and leaves it to the API to remember them.
	"ai openai responses, store: false": ({ bases, key, model, ...job }) =>
		client(createOpenAI({ baseURL: bases["AI SDK"], apiKey: key }).responses(model), job, { providerOptions: { openai: { store: false } }, thinking: { openai: { ...effort.openai, store: false } } }),
	"ai compatible": ({ bases, key, model, ...job }) =>
		client(createOpenAICompatible({ name: "artel", baseURL: bases["AI SDK"], apiKey: key, supportsStructuredOutputs: true, includeUsage: true })(model), job, { thinking: { artel: { reasoningEffort: "high" } } }),
	"ai anthropic": ({ url, key, model, ...job }) => client(createAnthropic({ baseURL: url + "/v1", apiKey: key })(model), job, { thinking: budget, longest: 128 }),
	"ai google": ({ url, key, model, ...job }) => client(createGoogleGenerativeAI({ baseURL: url + "/v1beta", apiKey: key })(model), job, { thinking: google }),
};
