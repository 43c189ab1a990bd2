// SPDX-License-Identifier: Apache-2.0

import { GoogleGenAI } from "@google/genai";

import { cancelled } from "./openai.mjs";
import { answer, call, calls, data, flaky, json, named, person, reason, result, say, told, tool, wait } from "./words.mjs";

export default function genai({ bases, key, retries, model, files }) {
	const api = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: bases["Google Gemini"], ...(retries === 0 && { retryOptions: { attempts: 1 } }) } });
	const given = (t) => [{ functionDeclarations: [{ name: t.name, description: t.description, parametersJsonSchema: t.schema }] }];
	const inline = (mimeType, data) => ({ inlineData: { mimeType, data } });
	const ask = async (parts, config) => {
		const r = await api.models.generateContent({ model, contents: [{ role: "user", parts }], config });
		return { text: r.text, usage: r.usageMetadata };
	};
	const loop = async (prompt, response, tools = given(tool)) => {
		const contents = [{ role: "user", parts: [{ text: prompt }] }];
		let results = 0;
		for (let turn = 0; turn < 4; turn++) {
			const r = await api.models.generateContent({ model, contents, config: { tools } });
			contents.push(r.candidates[0].content);
			const made = r.functionCalls ?? [];
			if (!made.length) return { text: r.text, calls: results };
			results += made.length;
			contents.push({ role: "user", parts: made.map((c) => ({ functionResponse: { id: c.id, name: c.name, ...response(c.args.q) } })) });
		}
		throw new Error("it calls tools for ever");
	};
	const streamed = async (prompt, each = () => {}, { signal } = {}) => {
		const s = await api.models.generateContentStream({ model, contents: prompt, config: { abortSignal: signal } });
		let text = "", chunks = 0, finish, usage;
		for await (const r of s) {
			text += r.text ?? "";
			chunks++;
			finish = r.candidates?.[0]?.finishReason ?? finish;
			usage = r.usageMetadata ?? usage;
			each(text, s);
		}
		// The SDK does not say so itself when a stream ends too early.
		if (!finish && !signal?.aborted) throw new Error("the stream ended without a reason");
		return { text, chunks, finish, usage };
	};
	return {
		text: () => ask([{ text: say }]),
		stream: () => streamed(say),
		tools: () => loop(call, (q) => ({ response: { output: result(q) } })),
		parallel: () => loop(calls, (q) => ({ response: { output: result(q) } })),
		image: () => loop(call, (q) => ({ response: { output: result(q) }, parts: [inline("image/png", files.png)] })),
		picture: () => ask([{ text: say }, inline("image/png", files.png)]),
		pdf: () => ask([{ text: say }, inline("application/pdf", files.pdf)]),
		audio: () => ask([{ text: say }, inline("audio/wav", files.wav)]),
		json: async () => {
			const r = await ask([{ text: json }], { responseMimeType: "application/json", responseJsonSchema: answer.schema });
			return { text: JSON.parse(r.text).answer };
		},
		count: async () => {
			const r = await api.models.countTokens({ model, contents: [{ role: "user", parts: [{ text: say }, inline("image/png", files.png)] }] });
			return { text: r.totalTokens > 0 && r.totalTokens < 5000 ? "counted" : String(r.totalTokens) };
		},
		reasoning: async () => {
			const r = await api.models.generateContent({ model, contents: reason, config: { thinkingConfig: { thinkingBudget: 12_000, includeThoughts: true } } });
			return { text: r.text, thought: r.candidates[0].content.parts.filter((p) => p.thought).map((p) => p.text).join("") };
		},
		schema: async () => told(JSON.parse((await ask([{ text: data }], { responseMimeType: "application/json", responseJsonSchema: person.schema })).text)),
		names: () => loop(call, (q) => ({ response: { output: result(q) } }), given(named(64, ".a:b-c"))),
		retries: (mark) => ask([{ text: flaky(mark) }]),
		error: () => ask([{ text: say }]),
		broken: () => streamed(say),
		cancel: (mark) => cancelled((each, options) => streamed(wait(mark), each, options)),
	};
}
