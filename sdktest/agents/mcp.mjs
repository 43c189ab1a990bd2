// SPDX-License-Identifier: Apache-2.0

// An MCP server on standard input and output with one tool, shot, which returns a
// text and the PNG file that the first argument names.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const tool = { name: "shot", description: "Takes a picture of the screen.", inputSchema: { type: "object", properties: {} } };

for await (const line of createInterface({ input: process.stdin })) {
	const { id, method, params } = JSON.parse(line);
	const results = {
		initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "screen", version: "1.0.0" } }),
		"tools/list": () => ({ tools: [tool] }),
		"tools/call": () => ({
			content: [{ type: "text", text: "the screen" }, { type: "image", data: readFileSync(process.argv[2]).toString("base64"), mimeType: "image/png" }],
		}),
		ping: () => ({}),
	};
	if (id === undefined) continue;
	const answer = results[method] ? { result: results[method]() } : { error: { code: -32601, message: "no such method" } };
	process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...answer }) + "\n");
}
