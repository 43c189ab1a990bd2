// SPDX-License-Identifier: Apache-2.0

// Importing a skill: a ZIP or a folder, by button or drop; then the browser opens the
// page that shows it.

import { words } from "./place.js";
import { post } from "./post.js";

// filesOf yields the files of a dropped file or folder with their paths.
async function* filesOf(entry) {
  if (entry.isFile) {
    yield [entry.fullPath.replace(/^\//, ""), await new Promise((resolve, reject) => entry.file(resolve, reject))];
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const one of some) yield* filesOf(one);
  }
}

export function skills() {
  const form = document.getElementById("skill-import");
  if (!form) return;
  const status = document.getElementById("skill-status");
  const error = document.getElementById("skill-error");
  const hint = status.textContent;
  let busy = false;

  const send = async (files) => {
    if (busy || !files.length) return;
    busy = true;
    error.hidden = true;
    status.textContent = status.dataset.sending;
    const body = new FormData();
    for (const [path, file] of files) body.append("file", file, path);
    const answer = await post(new XMLHttpRequest(), form.action, body, () => {});
    if (answer.url) {
      location.assign(answer.url);
      return;
    }
    busy = false;
    status.textContent = hint;
    form.reset();
    error.querySelector("span").textContent = answer.error ?? words().broken;
    error.hidden = false;
    error.scrollIntoView({ block: "nearest" });
  };

  form.addEventListener("change", (event) => send([...event.target.files].map((file) => [file.webkitRelativePath || file.name, file])));
  const carries = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0;
  const mark = () => form.classList.toggle("over", depth > 0);
  document.addEventListener("dragenter", (event) => { if (carries(event)) { depth++; mark(); } });
  document.addEventListener("dragleave", (event) => { if (carries(event)) { depth--; mark(); } });
  document.addEventListener("dragover", (event) => { if (carries(event)) event.preventDefault(); });
  document.addEventListener("drop", async (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    depth = 0;
    mark();
    // The entries are gone after the first wait.
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    const files = [];
    for (const entry of entries) for await (const one of filesOf(entry)) files.push(one);
    send(files);
  });
}
