// SPDX-License-Identifier: Apache-2.0

// What every client asks, whatever its dialect. The models behind the server
// understand the words after "do:".
export const say = "do: tell";
export const call = "do: call";
export const calls = "do: calls";
export const json = "do: json";
export const reason = "do: reason";
export const data = "do: data";
export const write = "do: write";
export const flaky = (mark) => "do: flaky " + mark;
export const wait = (mark) => "do: wait " + mark;

export const tool = {
	name: "look_up",
	description: "Looks a word up.",
	schema: { type: "object", properties: { q: { type: "string", description: "the word" } }, required: ["q"], additionalProperties: false },
};

export const answer = {
	name: "answer",
	schema: { type: "object", properties: { answer: { type: "string" } }, required: ["answer"], additionalProperties: false },
};

// result is what the tool says of q.
export const result = (q) => `the meaning of ${q} is 42`;

// person has what the APIs' own strict schemas do not take: an optional property
// and a limit.
export const person = {
	name: "person",
	schema: {
		type: "object",
		properties: { name: { type: "string" }, age: { type: "integer", minimum: 0 }, nick: { type: "string" } },
		required: ["name", "age"], additionalProperties: false,
	},
};

// named is the tool with a name of n characters, the most that a dialect takes.
export const named = (n, more = "") => ({ ...tool, name: tool.name + more + "_".repeat(n - tool.name.length - more.length) });

// told is what a person of the model is.
export const told = (p) => ({ text: `${p.name} ${p.age}` });
