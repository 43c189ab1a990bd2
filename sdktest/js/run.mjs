// SPDX-License-Identifier: Apache-2.0

// Runs what standard input asks for and writes one line of JSON for each case:
// what the client said of the answer, or its error. The input is an object with
// url (of the server), bases (where its page says that each SDK is to look), key,
// services, clients (none: all), cases, and the files as base64.
import { text } from "node:stream/consumers";

import ai from "./ai.mjs";
import anthropic from "./anthropic.mjs";
import genai from "./genai.mjs";
import langchain from "./langchain.mjs";
import { chat, responses } from "./openai.mjs";

const makers = { "openai chat": chat, "openai responses": responses, "anthropic": anthropic, "genai": genai, ...ai, "langchain": langchain };

globalThis.AI_SDK_LOG_WARNINGS = false; // it writes to standard output

const job = JSON.parse(await text(process.stdin));

function said(e) {
	const status = e?.status ?? e?.statusCode ?? e?.response?.status ?? e?.lastError?.statusCode ?? e?.cause?.status;
	return { name: e?.constructor?.name ?? "Error", status: status ?? 0, message: String(e?.message ?? e).slice(0, 600) };
}

async function one(client, service, name) {
	const began = Date.now();
	const out = { client, service, case: name };
	try {
		// The SDKs have their default settings, except that an error is not waited for again and again.
		const c = makers[client]({ url: job.url, bases: job.bases, key: job.key, model: service, files: job.files, retries: name === "error" ? 0 : undefined });
		if (!c[name]) out.absent = true;
		else Object.assign(out, await Promise.race([c[name](`${client} ${service}`.replaceAll(" ", "-")), late(300_000)]));
	} catch (e) {
		out.error = said(e);
	}
	out.ms = Date.now() - began;
	process.stdout.write(JSON.stringify(out) + "\n");
}

function late(ms) {
	return new Promise((_, no) => setTimeout(() => no(new Error(`the client did not come to an end in ${ms} ms`)), ms).unref());
}

// Eight at a time: enough to overlap waiting, few enough for a small machine.
const todo = [];
for (const client of job.clients?.length ? job.clients : Object.keys(makers))
	for (const { service, cases } of job.services) for (const name of cases) todo.push([client, service, name]);
await Promise.all(Array.from({ length: 8 }, async () => {
	for (let next; (next = todo.shift());) await one(...next);
}));
process.exit(0); // some clients keep connections open
