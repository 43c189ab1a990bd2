// SPDX-License-Identifier: Apache-2.0

import OpenAI, { toFile } from "openai";

import { answer, call, calls, data as askData, flaky, json, named, person, reason, result, say, told, tool, wait, write } from "./words.mjs";

const open = ({ bases, key, retries }) => new OpenAI({ baseURL: bases.OpenAI, apiKey: key, maxRetries: retries });

const data = (type, base64) => `data:${type};base64,${base64}`;

export function chat({ bases, key, retries, model, files }) {
	const api = open({ bases, key, retries });
	const given = (t) => [{ type: "function", function: { name: t.name, description: t.description, parameters: t.schema } }];
	const ask = async (content, more = {}) => {
		const r = await api.chat.completions.create({ model, messages: [{ role: "user", content }], ...more });
		return { text: r.choices[0].message.content, usage: r.usage };
	};
	const loop = async (prompt, content, tools = given(tool)) => {
		const messages = [{ role: "user", content: prompt }];
		for (let turn = 0; turn < 4; turn++) {
			const r = await api.chat.completions.create({ model, messages, tools });
			const m = r.choices[0].message;
			messages.push(m);
			if (!m.tool_calls?.length) return { text: m.content, calls: messages.filter((m) => m.role === "tool").length };
			for (const c of m.tool_calls) messages.push({ role: "tool", tool_call_id: c.id, content: content(JSON.parse(c.function.arguments).q) });
		}
		throw new Error("it calls tools for ever");
	};
	const streamed = async (prompt, each = () => {}, options = {}) => {
		const s = await api.chat.completions.create({ model, messages: [{ role: "user", content: prompt }], stream: true, stream_options: { include_usage: true } }, options);
		let text = "", chunks = 0, usage, finish;
		for await (const e of s) {
			text += e.choices[0]?.delta?.content ?? "";
			chunks++;
			usage = e.usage ?? usage;
			finish = e.choices[0]?.finish_reason ?? finish;
			each(text, s);
		}
		return { text, chunks, usage, finish };
	};
	const pieces = async (prompt) => {
		const s = await api.chat.completions.create({ model, messages: [{ role: "user", content: prompt }], stream: true, tools: given(tool) });
		const parts = [];
		for await (const e of s) for (const c of e.choices[0]?.delta?.tool_calls ?? []) if (c.function?.arguments) parts.push(c.function.arguments);
		return { text: JSON.parse(parts.join("")).q, chunks: parts.length };
	};
	return {
		text: () => ask(say),
		stream: () => streamed(say),
		tools: () => loop(call, result),
		parallel: () => loop(calls, result),
		// The types say that only text goes into a tool message; programs send this all the same.
		image: () => loop(call, (q) => [{ type: "text", text: result(q) }, { type: "image_url", image_url: { url: data("image/png", files.png) } }]),
		picture: () => ask([{ type: "text", text: say }, { type: "image_url", image_url: { url: data("image/png", files.png) } }]),
		pdf: () => ask([{ type: "text", text: say }, { type: "file", file: { filename: "paper.pdf", file_data: data("application/pdf", files.pdf) } }]),
		audio: () => ask([{ type: "text", text: say }, { type: "input_audio", input_audio: { data: files.wav, format: "wav" } }]),
		file: async () => {
			const f = await api.files.create({ file: await toFile(Buffer.from(files.pdf, "base64"), "paper.pdf", { type: "application/pdf" }), purpose: "user_data" });
			const r = await ask([{ type: "text", text: say }, { type: "file", file: { file_id: f.id } }]);
			const back = Buffer.from(await (await api.files.content(f.id)).arrayBuffer()).toString("base64");
			const listed = (await api.files.list()).data.some((x) => x.id === f.id);
			const gone = await api.files.delete(f.id);
			return { ...r, same: back === files.pdf && listed && gone.deleted };
		},
		json: async () => {
			const r = await api.chat.completions.create({
				model, messages: [{ role: "user", content: json }],
				response_format: { type: "json_schema", json_schema: { name: answer.name, schema: answer.schema, strict: true } },
			});
			return { text: JSON.parse(r.choices[0].message.content).answer };
		},
		reasoning: () => ask(reason, { reasoning_effort: "high" }),
		schema: async () => told(JSON.parse((await ask(askData, { response_format: { type: "json_schema", json_schema: person } })).text)),
		names: () => loop(call, result, given(named(64))),
		arguments: () => pieces(write),
		retries: (mark) => ask(flaky(mark)),
		error: () => ask(say),
		broken: () => streamed(say),
		cancel: (mark) => cancelled((each, options) => streamed(wait(mark), each, options)),
	};
}

export function responses({ bases, key, retries, model, files }) {
	const api = open({ bases, key, retries });
	const given = (t) => [{ type: "function", name: t.name, description: t.description, parameters: t.schema, strict: false }];
	const ask = async (content, more = {}) => {
		const r = await api.responses.create({ model, input: [{ role: "user", content }], ...more });
		return { text: r.output_text, usage: r.usage };
	};
	const loop = async (prompt, output, tools = given(tool)) => {
		const input = [{ role: "user", content: prompt }];
		for (let turn = 0; turn < 4; turn++) {
			const r = await api.responses.create({ model, input, tools });
			input.push(...r.output);
			const made = r.output.filter((o) => o.type === "function_call");
			if (!made.length) return { text: r.output_text, calls: input.filter((i) => i.type === "function_call_output").length };
			for (const c of made) input.push({ type: "function_call_output", call_id: c.call_id, output: output(JSON.parse(c.arguments).q) });
		}
		throw new Error("it calls tools for ever");
	};
	const streamed = async (prompt, each = () => {}, options = {}) => {
		const s = await api.responses.create({ model, input: prompt, stream: true }, options);
		let text = "", chunks = 0, finish, usage;
		for await (const e of s) {
			chunks++;
			if (e.type === "response.output_text.delta") text += e.delta;
			if (e.type === "response.completed") (finish = "completed"), (usage = e.response.usage);
			if (e.type === "response.failed" || e.type === "error") throw new Error(e.response?.error?.message ?? e.message);
			each(text, s);
		}
		return { text, chunks, finish, usage };
	};
	const pieces = async (prompt) => {
		const s = await api.responses.create({ model, input: prompt, stream: true, tools: given(tool) });
		const parts = [];
		for await (const e of s) if (e.type === "response.function_call_arguments.delta") parts.push(e.delta);
		return { text: JSON.parse(parts.join("")).q, chunks: parts.length };
	};
	return {
		text: () => ask(say),
		stream: () => streamed(say),
		tools: () => loop(call, result),
		parallel: () => loop(calls, result),
		image: () => loop(call, (q) => [{ type: "input_text", text: result(q) }, { type: "input_image", image_url: data("image/png", files.png), detail: "auto" }]),
		picture: () => ask([{ type: "input_text", text: say }, { type: "input_image", image_url: data("image/png", files.png), detail: "auto" }]),
		pdf: () => ask([{ type: "input_text", text: say }, { type: "input_file", filename: "paper.pdf", file_data: data("application/pdf", files.pdf) }]),
		file: async () => {
			const f = await api.files.create({ file: await toFile(Buffer.from(files.pdf, "base64"), "paper.pdf", { type: "application/pdf" }), purpose: "user_data" });
			return ask([{ type: "input_text", text: say }, { type: "input_file", file_id: f.id }]);
		},
		json: async () => {
			const r = await ask(json, { text: { format: { type: "json_schema", name: answer.name, schema: answer.schema, strict: true } } });
			return { text: JSON.parse(r.text).answer };
		},
		reasoning: async () => {
			const r = await api.responses.create({ model, input: reason, reasoning: { effort: "high", summary: "auto" } });
			return { text: r.output_text, thought: r.output.filter((o) => o.type === "reasoning").flatMap((o) => o.summary.map((s) => s.text)).join("") };
		},
		schema: async () => told(JSON.parse((await ask(askData, { text: { format: { type: "json_schema", ...person } } })).text)),
		names: () => loop(call, result, given(named(64))),
		arguments: () => pieces(write),
		retries: (mark) => ask(flaky(mark)),
		error: () => ask(say),
		broken: () => streamed(say),
		cancel: (mark) => cancelled((each, options) => streamed(wait(mark), each, options)),
	};
}

// cancelled leaves a stream when the first text has come.
export async function cancelled(run) {
	const stop = new AbortController();
	try {
		const out = await run((text) => text && stop.abort(), { signal: stop.signal });
		return { left: stop.signal.aborted, ...out };
	} catch (e) {
		if (!stop.signal.aborted) throw e;
		return { left: true };
	}
}
