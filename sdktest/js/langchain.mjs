// SPDX-License-Identifier: Apache-2.0

import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";

import { cancelled } from "./openai.mjs";
import { answer, call, calls, data, flaky, json, named, person, result, say, told, tool, wait, write } from "./words.mjs";

export default function langchain({ bases, key, retries, model, files }) {
	const llm = new ChatOpenAI({ model, apiKey: key, maxRetries: retries, configuration: { baseURL: bases.LangChain } });
	const given = (t) => [{ type: "function", function: { name: t.name, description: t.description, parameters: t.schema } }];
	const ask = async (content) => {
		const r = await llm.invoke([new HumanMessage({ content })]);
		return { text: r.text, usage: r.usage_metadata };
	};
	const loop = async (prompt, content, tools = given(tool)) => {
		const messages = [new HumanMessage(prompt)];
		const bound = llm.bindTools(tools);
		for (let turn = 0; turn < 4; turn++) {
			const r = await bound.invoke(messages);
			messages.push(r);
			if (!r.tool_calls?.length) return { text: r.text, calls: messages.filter((m) => m instanceof ToolMessage).length };
			for (const c of r.tool_calls) messages.push(new ToolMessage({ tool_call_id: c.id, content: content(c.args.q) }));
		}
		throw new Error("it calls tools for ever");
	};
	const streamed = async (prompt, each = () => {}, options = {}) => {
		let text = "", chunks = 0, usage, finish;
		for await (const m of await llm.stream([new HumanMessage(prompt)], options)) {
			text += m.text;
			chunks++;
			usage = m.usage_metadata ?? usage;
			finish = m.response_metadata?.finish_reason ?? finish;
			each(text);
		}
		return { text, chunks, usage, finish };
	};
	const url64 = (type, base64) => ({ type: "image_url", image_url: { url: `data:${type};base64,${base64}` } });
	return {
		text: () => ask(say),
		stream: () => streamed(say),
		tools: () => loop(call, result),
		parallel: () => loop(calls, result),
		image: () => loop(call, (q) => [{ type: "text", text: result(q) }, url64("image/png", files.png)]),
		picture: () => ask([{ type: "text", text: say }, url64("image/png", files.png)]),
		pdf: () => ask([{ type: "text", text: say }, { type: "file", source_type: "base64", mime_type: "application/pdf", data: files.pdf, metadata: { filename: "paper.pdf" } }]),
		audio: () => ask([{ type: "text", text: say }, { type: "audio", source_type: "base64", mime_type: "audio/wav", data: files.wav }]),
		json: async () => ({ text: (await llm.withStructuredOutput(answer.schema, { name: answer.name }).invoke(json)).answer }),
		schema: async () => told(await llm.withStructuredOutput(person.schema, { name: person.name }).invoke(data)),
		names: () => loop(call, result, given(named(64))),
		arguments: async () => {
			const parts = [];
			for await (const m of await llm.bindTools(given(tool)).stream(write)) for (const c of m.tool_call_chunks ?? []) if (c.args) parts.push(c.args);
			return { text: JSON.parse(parts.join("")).q, chunks: parts.length };
		},
		retries: (mark) => ask(flaky(mark)),
		error: () => ask(say),
		broken: () => streamed(say),
		cancel: (mark) => cancelled((each, options) => streamed(wait(mark), each, options)),
	};
}
