// SPDX-License-Identifier: Apache-2.0

// What every client asks, whatever its dialect. The models behind the server
// understand the words after "do:".
export const say = "do: tell";
export const call = "do: call";
export const calls = "do: calls";
export const json = "do: json";
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
