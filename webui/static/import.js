// SPDX-License-Identifier: Apache-2.0

// Importing a conversation: by button or drop, with progress; then the browser
// opens the result.

import { words } from "./place.js";
import { drops, post } from "./post.js";

export function importing() {
  const form = document.getElementById("import");
  if (!form) return;
  const error = document.getElementById("import-error");
  const under = document.getElementById("importing");
  const landing = document.getElementById("landing");
  const bar = under.querySelector("progress");
  const status = document.getElementById("import-status");
  const say = (text) => {
    error.querySelector("p").textContent = text;
    error.hidden = !text;
  };

  let request;
  const send = async (file) => {
    if (!file || request) return;
    say("");
    under.hidden = false;
    landing.hidden = true;
    document.getElementById("import-name").textContent = file.name;
    status.textContent = "";
    bar.value = 0;
    const body = new FormData();
    body.append("zip", file);
    request = new XMLHttpRequest();
    document.getElementById("import-cancel").focus();
    const answer = await post(request, form.action, body, (sent, total) => {
      bar.value = sent / total;
      status.textContent = sent === total ? status.dataset.checking : "";
    });
    request = undefined;
    if (answer.url) {
      location.assign(answer.url);
      return;
    }
    under.hidden = true;
    landing.hidden = false;
    form.elements.zip.value = "";
    form.elements.zip.focus();
    say(answer.cancelled ? form.dataset.cancelled : answer.error ?? words().broken);
  };

  form.elements.zip.addEventListener("change", () => send(form.elements.zip.files[0]));
  document.getElementById("import-cancel").addEventListener("click", () => request?.abort());
  drops((files) => send(files[0]), (over) => form.classList.toggle("over", over));
}
