// SPDX-License-Identifier: Apache-2.0

// The composer: files with previews and progress, a draft that survives
// reloads, warnings about unsupported files, and sending without leaving the
// page. The message itself arrives by the event stream.

import { touched } from "./early.js";
import { glance } from "./glance.js";
import { keep, kept } from "./keep.js";
import { take, words } from "./place.js";
import { drops, post } from "./post.js";

const touch = matchMedia("(pointer: coarse)"); // such keyboards have no Shift+Enter
const headSize = 65536; // bytes of a file that the server looks at before sending

export function composer() {
  const form = document.getElementById("composer");
  if (!form) return;
  const text = form.elements.text;
  const error = document.getElementById("composer-error");
  const say = (message) => {
    error.querySelector("p").textContent = message;
    error.hidden = !message;
    delete error.dataset.full;
  };

  draft(form, text);
  let looked = () => {};
  const changed = () => {
    take(words().prefix + "/fit", { method: "POST", body: heads(form, files.all()) }); // of several under way, the last counts
    looked();
    if ("full" in error.dataset) say(""); // it was about the files before
  };
  const files = chosen(form, changed);
  const chooseModel = models(form, changed);
  agent(form, (service) => {
    if (service) chooseModel(service);
    changed();
  });
  looked = glance(form, () => heads(form, files.all()));
  if (touched(form.elements.file)) files.pick(); // also on a page that is loaded anew

  let sending; // the request under way
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (event.submitter?.classList.contains("stop")) {
      if (event.submitter.matches(":focus-visible")) text.focus(); // it is about to go away
      const stop = event.submitter;
      stop.disabled = true;
      if (!await take(stop.formAction, { method: "POST" })) stop.disabled = false;
      return;
    }
    if (sending) return;
    say("");
    sending = new XMLHttpRequest();
    const written = text.value, attached = files.all();
    form.classList.add("sending");
    const answer = await send(form, sending, files, event.submitter);
    form.classList.remove("sending");
    sending = undefined;
    files.progress(attached, 0);
    if (answer.cancelled) say(form.dataset.cancelled);
    else if (answer.error) {
      say(answer.error);
      const full = document.querySelector("#fit [data-full]");
      if (full && answer.status === 413) { // the note before sending said the same
        full.remove();
        error.dataset.full = "";
      }
    } else {
      // Text added during the request was not sent.
      if (text.value === written) text.value = "";
      text.dispatchEvent(new Event("input"));
      files.drop(attached);
      for (const id of ["returned", "picked"]) document.getElementById(id).replaceChildren();
      if (new URL(answer.url, location.href).pathname !== thread()) location.assign(answer.url);
    }
    text.focus();
  });
  document.getElementById("upload-cancel").addEventListener("click", () => sending?.abort());

  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229 && !touch.matches) {
      event.preventDefault();
      const tells = (event.ctrlKey || event.metaKey) && form.querySelector(".tell");
      form.requestSubmit(tells || form.querySelector(".queue") || form.querySelector(".send"));
    }
  });
  text.addEventListener("paste", (event) => {
    if (event.clipboardData.files.length > 0) {
      event.preventDefault();
      files.add(event.clipboardData.files);
    }
  });
  returns(text);
  serverContents();
  drops(files.add, (over) => form.classList.toggle("over", over));
}

// returns appends a cancelled queued message to the current text.
function returns(text) {
  // The event that removes it from the queue may arrive before the response;
  // then there is no form left.
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-take-back]")) return;
    event.preventDefault();
    take(event.target.getAttribute("action"), { method: "POST", body: new FormData(event.target, event.submitter) });
  });
  new MutationObserver(() => {
    const place = text.form.querySelector("#returned[data-run], #prompted[data-run]");
    if (!place) return;
    const back = place.dataset.text;
    place.removeAttribute("data-run");
    if (place.id === "prompted") document.getElementById("server-contents-picker").hidePopover();
    text.value = [text.value.trimEnd(), back].filter(Boolean).join("\n\n");
    text.dispatchEvent(new Event("input"));
    text.focus();
  }).observe(text.form, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-run"] });
}

// serverContents lists what tool servers have when it is opened, and adds a chosen
// resource to the message.
function serverContents() {
  const picker = document.getElementById("server-contents-picker");
  if (!picker) return;
  picker.addEventListener("toggle", (event) => { if (event.newState === "open") take(picker.dataset.address); });
  picker.addEventListener("click", (event) => {
    const button = event.target.closest("[data-resource]");
    if (!button) return;
    const picked = document.getElementById("picked");
    if (![...picked.querySelectorAll("input")].some((input) => input.value === button.dataset.resource)) {
      const label = document.getElementById("picked-resource").content.firstElementChild.cloneNode(true);
      label.querySelector("input").value = button.dataset.resource;
      label.querySelector("bdi").textContent = button.querySelector("bdi").textContent;
      picked.append(label);
    }
    picker.hidePopover();
  });
}

// thread is the URL of the conversation on display.
function thread() {
  return document.getElementById("panel")?.dataset.thread ?? location.pathname;
}

// send posts the form with progress and resolves to the response.
async function send(form, request, files, submitter) {
  const body = new FormData(form, submitter);
  body.delete("file");
  const sent = files.all();
  for (const file of sent) body.append("file", file);
  const cancel = document.getElementById("upload-cancel");
  const answer = await post(request, form.getAttribute("action"), body, (loaded, total) => {
    if (!sent.length) return;
    cancel.hidden = loaded === total;
    files.progress(sent, loaded, total);
  });
  cancel.hidden = true;
  return answer;
}

// draft keeps the unsent text across reloads.
function draft(form, text) {
  const key = "artel.draft " + form.getAttribute("action");
  const before = kept(key) ?? "";
  if (!text.defaultValue && !text.value.startsWith(before)) text.value = before + text.value; // some may be typed already
  text.addEventListener("input", () => keep(key, text.value));
}

// chosen keeps the files and shows them as cards: the browser's own field
// forgets earlier choices when the user chooses again.
function chosen(form, changed) {
  const list = document.getElementById("chosen");
  const field = form.elements.file;
  let all = [];
  const card = (file) => {
    const item = document.createElement("li");
    item.className = "file";
    if (file.type.startsWith("image/") && file.type !== "image/svg+xml") {
      const picture = document.createElement("img");
      picture.className = "thumb";
      picture.alt = "";
      picture.src = URL.createObjectURL(file);
      picture.addEventListener("load", () => URL.revokeObjectURL(picture.src), { once: true });
      picture.addEventListener("error", () => picture.replaceWith(icon("file")), { once: true });
      item.append(picture);
    } else {
      item.append(icon("file"));
    }
    const about = document.createElement("span");
    const name = document.createElement("bdi");
    const size = document.createElement("small");
    about.className = "about";
    name.className = "clip";
    name.textContent = file.name;
    size.textContent = sizeOf(file.size);
    about.append(name, size);
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "plain square";
    remove.setAttribute("aria-label", form.dataset.remove + " " + file.name);
    remove.textContent = "×";
    remove.addEventListener("click", () => {
      all = all.filter((other) => other !== file);
      show();
      form.elements.text.focus();
    });
    item.append(about, remove);
    return item;
  };
  const show = () => {
    list.replaceChildren(...all.map(card));
    changed();
  };
  const add = (more) => {
    all = [...all, ...more];
    show();
  };
  const pick = () => {
    add(field.files);
    field.value = "";
  };
  field.addEventListener("change", pick);
  return {
    all: () => all,
    add,
    pick,
    drop(some) {
      all = all.filter((file) => !some.includes(file));
      show();
    },
    // progress distributes the sent bytes over the files, which are sent one
    // after the other.
    progress(files, sent, total = 0) {
      const sum = files.reduce((n, file) => n + file.size, 0) || 1;
      let rest = total ? sent / total * sum : 0;
      files.forEach((file) => {
        const item = list.children[all.indexOf(file)];
        if (!item) return;
        let bar = item.querySelector("progress");
        if (!total) {
          bar?.remove();
          return;
        }
        if (!bar) {
          bar = document.createElement("progress");
          bar.setAttribute("aria-label", file.name);
          item.append(bar);
        }
        bar.max = file.size || 1;
        bar.value = Math.max(0, Math.min(file.size, rest));
        rest -= file.size;
      });
    },
  };
}

// icon references an icon of the sprite that the page uses.
function icon(name) {
  const copy = document.querySelector("svg.icon").cloneNode(true);
  const use = copy.querySelector("use");
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, "#" + name));
  return copy;
}

function sizeOf(bytes) {
  let n = bytes, unit = "B";
  for (const next of ["KB", "MB", "GB"]) {
    if (n < 1024) break;
    n /= 1024;
    unit = next;
  }
  return (unit === "B" ? n : n.toFixed(1)) + " " + unit;
}

// models updates the button of the model picker, and keeps the choice across
// reloads.
function models(form, changed) {
  const button = document.getElementById("model");
  const radios = [...form.querySelectorAll("input[name=service]")];
  const key = "artel.model " + form.getAttribute("action");
  const show = () => {
    const label = radios.find((radio) => radio.checked)?.closest("label");
    if (label) button.replaceChildren(...label.querySelector("template").content.firstElementChild.cloneNode(true).childNodes);
  };
  const choose = (id) => {
    const radio = radios.find((one) => one.value === id);
    if (!radio) return;
    radio.checked = true;
    show();
  };
  document.getElementById("picker").addEventListener("toggle", (event) => {
    if (event.newState === "open") radios.find((radio) => radio.checked)?.focus();
  });
  const remember = (id) => {
    keep(key, id);
    keep("artel.model", id);
  };
  // A conversation keeps the model of its last answer, as rendered by the
  // server; a new one starts with the model chosen last. Automatic choice
  // applies everywhere.
  const last = kept("artel.model");
  if (radios.some(touched)) show();
  else choose(kept(key) ?? (form.getAttribute("action") === words().prefix + "/c" || last === "auto" ? last : null));
  form.addEventListener("change", (event) => {
    if (event.target.name !== "service") return;
    remember(event.target.value);
    show();
    changed();
  });
  form.addEventListener("click", (event) => {
    const other = event.target.closest("[data-choose]");
    if (!other) return;
    choose(other.dataset.choose);
    remember(other.dataset.choose);
    changed();
    form.elements.text.focus();
  });
  return choose;
}

// agent updates the button of the agent picker. An agent with a model of its
// own selects that model.
function agent(form, changed) {
  const button = document.getElementById("agent");
  if (!button) return;
  const show = () => {
    const chosen = form.querySelector("input[name=agent]:checked");
    button.replaceChildren(...chosen.closest("label").querySelector("template").content.firstElementChild.cloneNode(true).childNodes);
    changed(chosen.dataset.service);
  };
  form.addEventListener("change", (event) => { if (event.target.name === "agent") show(); });
  document.getElementById("agent-picker").addEventListener("toggle", (event) => {
    if (event.newState === "open") form.querySelector("input[name=agent]:checked").focus();
  });
  if (touched(form.querySelector("input[name=agent]:checked"))) show();
}


// heads are the beginnings of files, from which the server determines how the
// model would receive them.
function heads(form, files) {
  const body = new FormData();
  const fields = new FormData(form);
  body.append("service", fields.get("service") ?? "");
  if (fields.has("agent")) body.append("agent", fields.get("agent"));
  for (const file of files) {
    body.append("head", file.slice(0, headSize, file.type), file.name);
    body.append("size", String(file.size));
  }
  return body;
}
