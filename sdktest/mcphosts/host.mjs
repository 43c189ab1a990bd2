// SPDX-License-Identifier: Apache-2.0

// A host by the official SDK for TypeScript: it starts the server of its arguments, and for
// each line of standard input, {"tool", "arguments"} or {}, it writes the result of the call,
// or the list of tools.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const client = new Client({ name: "typescript", version: "1" });
const [command, ...args] = process.argv.slice(2);
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
for await (const line of createInterface({ input: process.stdin })) {
	const { tool, arguments: input } = JSON.parse(line);
	let out;
	try {
		out = tool ? await client.callTool({ name: tool, arguments: input }) : await client.listTools();
	} catch (e) {
		out = { failed: String(e) };
	}
	process.stdout.write(JSON.stringify(out) + "\n");
}
await client.close();
