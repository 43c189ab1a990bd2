// SPDX-License-Identifier: Apache-2.0

// The AI SDK, with each of the providers that can be pointed at a server.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool as define } from "ai";

import { cancelled } from "./openai.mjs";
import { answer, call, calls, json, result, say, tool, wait } from "./words.mjs";

function client(model, files, providerOptions) {
	const message = (...content) => [{ role: "user", content: [{ type: "text", text: say }, ...content] }];
	const ask = async (prompt) => {
		const r = await generateText({ model, maxRetries: 0, providerOptions, ...(typeof prompt === "string" ? { prompt } : { messages: prompt }) });
		return { text: r.text, usage: r.usage };
	};
	const loop = async (prompt, toModelOutput) => {
		const r = await generateText({
			model, prompt, providerOptions, maxRetries: 0, stopWhen: stepCountIs(4),
			tools: { [tool.name]: define({ description: tool.description, inputSchema: jsonSchema(tool.schema), execute: ({ q }) => result(q), toModelOutput }) },
		});
		return { text: r.text, calls: r.steps.flatMap((s) => s.toolResults).length };
	};
	const streamed = async (prompt, each = () => {}, { signal } = {}) => {
		let failed;
		const r = streamText({ model, prompt, providerOptions, maxRetries: 0, abortSignal: signal, onError: ({ error }) => (failed = error) });
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
			const r = await generateObject({ model, prompt: json, providerOptions, maxRetries: 0, schema: jsonSchema(answer.schema), schemaName: answer.name });
			return { text: r.object.answer };
		},
		error: () => ask(say),
		broken: () => streamed(say),
		cancel: (mark) => cancelled((each, options) => streamed(wait(mark), each, options)),
	};
}

export default {
	"ai openai chat": ({ bases, key, model, files }) => client(createOpenAI({ baseURL: bases["AI SDK"], apiKey: key }).chat(model), files),
	// Without store: false it names parts of answers by their id and leaves it to the API to remember them.
	"ai openai responses": ({ bases, key, model, files }) => client(createOpenAI({ baseURL: bases["AI SDK"], apiKey: key }).responses(model), files, { openai: { store: false } }),
	"ai compatible": ({ bases, key, model, files }) =>
		client(createOpenAICompatible({ name: "artel", baseURL: bases["AI SDK"], apiKey: key, supportsStructuredOutputs: true, includeUsage: true })(model), files),
	"ai anthropic": ({ url, key, model, files }) => client(createAnthropic({ baseURL: url + "/v1", apiKey: key })(model), files),
	"ai google": ({ url, key, model, files }) => client(createGoogleGenerativeAI({ baseURL: url + "/v1beta", apiKey: key })(model), files),
};
