// SPDX-License-Identifier: Apache-2.0

// node count.js FILE SIZE prints what gpt-tokenizer counts of a file's pieces of
// SIZE bytes in a second of processor time, in bytes: at first, and when it has
// seen them before; and how many tokens they are.
import { readFileSync } from 'node:fs';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

const bytes = readFileSync(process.argv[2]);
const size = Number(process.argv[3]);
const pieces = [];
for (let from = 0; from < bytes.length;) {
  let to = Math.min(from + size, bytes.length);
  while (to < bytes.length && (bytes[to] & 0xc0) === 0x80) to--;
  pieces.push(bytes.toString('utf8', from, to));
  from = to;
}
countTokens('load the vocabulary');
let tokens = 0;
const pass = (mark) => {
  tokens = 0;
  for (const p of pieces) tokens += countTokens(mark + p);
};
const busy = () => {
  const u = process.cpuUsage();
  return (u.user + u.system) / 1e6;
};
let began = busy();
pass('');
const cold = bytes.length / (busy() - began);
const counted = tokens;
began = busy();
let n = 0;
do pass(`${++n}\n`); while (busy() - began < 0.3);
console.log(Math.round(cold), Math.round((bytes.length * n) / (busy() - began)), counted);
