// SPDX-License-Identifier: Apache-2.0

import { GoogleGenAI } from "@google/genai";

import { cancelled } from "./openai.mjs";
import { answer, call, calls, json, result, say, tool, wait } from "./words.mjs";

export default function genai({ bases, key, model, files }) {
	const api = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: bases["Google Gemini"], retryOptions: { attempts: 1 } } });
	const tools = [{ functionDeclarations: [{ name: tool.name, description: tool.description, parametersJsonSchema: tool.schema }] }];
	const inline = (mimeType, data) => ({ inlineData: { mimeType, data } });
	const ask = async (parts, config) => {
		const r = await api.models.generateContent({ model, contents: [{ role: "user", parts }], config });
		return { text: r.text, usage: r.usageMetadata };
	};
	const loop = async (prompt, response) => {
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
		error: () => ask([{ text: say }]),
		broken: () => streamed(say),
		cancel: (mark) => cancelled((each, options) => streamed(wait(mark), each, options)),
	};
}
