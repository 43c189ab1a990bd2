// SPDX-License-Identifier: Apache-2.0

import Anthropic, { toFile } from "@anthropic-ai/sdk";
import { jsonSchemaOutputFormat } from "@anthropic-ai/sdk/helpers/json-schema";

import { cancelled } from "./openai.mjs";
import { answer, call, calls, data, flaky, json, named, person, reason, result, say, told, tool, wait, write } from "./words.mjs";

export default function anthropic({ bases, key, retries, model, files }) {
	const api = new Anthropic({ baseURL: bases.Anthropic, apiKey: key, maxRetries: retries });
	const given = (t) => [{ name: t.name, description: t.description, input_schema: t.schema }];
	const base64 = (media_type, data) => ({ type: "base64", media_type, data });
	const words = (content) => content.filter((b) => b.type === "text").map((b) => b.text).join("");
	const ask = async (content, more = {}) => {
		const r = await api.messages.create({ model, max_tokens: 1000, messages: [{ role: "user", content }], ...more });
		return { text: words(r.content), usage: r.usage };
	};
	const loop = async (prompt, content, tools = given(tool)) => {
		const messages = [{ role: "user", content: prompt }];
		let results = 0;
		for (let turn = 0; turn < 4; turn++) {
			const r = await api.messages.create({ model, max_tokens: 1000, messages, tools });
			messages.push({ role: "assistant", content: r.content });
			const made = r.content.filter((b) => b.type === "tool_use");
			if (!made.length) return { text: words(r.content), calls: results };
			results += made.length;
			messages.push({ role: "user", content: made.map((c) => ({ type: "tool_result", tool_use_id: c.id, content: content(c.input.q) })) });
		}
		throw new Error("it calls tools for ever");
	};
	const streamed = async (prompt, each = () => {}, options = {}) => {
		const s = await api.messages.create({ model, max_tokens: 1000, messages: [{ role: "user", content: prompt }], stream: true }, options);
		let text = "", chunks = 0, finish, usage;
		for await (const e of s) {
			chunks++;
			if (e.type === "content_block_delta" && e.delta.type === "text_delta") text += e.delta.text;
			if (e.type === "message_delta") (finish = e.delta.stop_reason), (usage = e.usage);
			each(text, s);
		}
		return { text, chunks, finish, usage };
	};
	return {
		text: () => ask(say),
		stream: () => streamed(say),
		tools: () => loop(call, result),
		parallel: () => loop(calls, result),
		image: () => loop(call, (q) => [{ type: "text", text: result(q) }, { type: "image", source: base64("image/png", files.png) }]),
		picture: () => ask([{ type: "text", text: say }, { type: "image", source: base64("image/png", files.png) }]),
		pdf: () => ask([{ type: "text", text: say }, { type: "document", title: "paper.pdf", source: base64("application/pdf", files.pdf) }]),
		file: async () => {
			const f = await api.beta.files.upload({ file: await toFile(Buffer.from(files.pdf, "base64"), "paper.pdf", { type: "application/pdf" }) });
			const r = await api.beta.messages.create({
				model, max_tokens: 1000, betas: ["files-api-2025-04-14"],
				messages: [{ role: "user", content: [{ type: "text", text: say }, { type: "document", source: { type: "file", file_id: f.id } }] }],
			});
			return { text: words(r.content) };
		},
		json: async () => {
			const r = await ask(json, { output_config: { format: { type: "json_schema", schema: answer.schema } } });
			return { text: JSON.parse(r.text).answer };
		},
		count: async () => {
			const n = (content) => api.messages.countTokens({ model, messages: [{ role: "user", content }] });
			const few = await n(say), more = await n([{ type: "text", text: say }, { type: "image", source: base64("image/png", files.png) }]);
			return { text: few.input_tokens > 0 && more.input_tokens > few.input_tokens && more.input_tokens < 5000 ? "counted" : `${few.input_tokens} and ${more.input_tokens}` };
		},
		reasoning: async () => {
			const r = await api.messages.create({ model, max_tokens: 20_000, thinking: { type: "enabled", budget_tokens: 12_000 }, messages: [{ role: "user", content: reason }] });
			return { text: words(r.content), thought: r.content.filter((b) => b.type === "thinking").map((b) => b.thinking).join("") };
		},
		// What the API does not take of the schema, the SDK's helper puts into descriptions.
		schema: async () => {
			const r = await api.messages.parse({ model, max_tokens: 1000, messages: [{ role: "user", content: data }], output_config: { format: jsonSchemaOutputFormat(person.schema) } });
			return told(r.parsed_output);
		},
		names: () => loop(call, result, given(named(128))),
		arguments: async () => {
			const s = await api.messages.create({ model, max_tokens: 1000, messages: [{ role: "user", content: write }], stream: true, tools: given(tool) });
			const parts = [];
			for await (const e of s) if (e.type === "content_block_delta" && e.delta.type === "input_json_delta" && e.delta.partial_json) parts.push(e.delta.partial_json);
			return { text: JSON.parse(parts.join("")).q, chunks: parts.length };
		},
		retries: (mark) => ask(flaky(mark)),
		error: () => ask(say),
		broken: () => streamed(say),
		cancel: (mark) => cancelled((each, options) => streamed(wait(mark), each, options)),
	};
}
