// SPDX-License-Identifier: Apache-2.0

// Apps of MCP servers: the frame of each talks to this page by messages (MCP Apps,
// JSON-RPC), and this page asks the server for it. A frame has an opaque origin and
// loads nothing; what it may ask for is below.

import { tell, words } from "./place.js";

const version = "2026-01-26"; // of the protocol
const highest = 640; // pixels of a frame; what is longer scrolls in it
const most = { second: 200, atWork: 4, link: 2000, text: 20000, body: 1 << 20, refusals: 2 };

class Refusal extends Error {
  constructor(message, code = -32000) {
    super(message);
    this.code = code;
  }
}

const states = new WeakMap(); // by frame

export function apps() {
  window.addEventListener("message", (event) => {
    const frame = event.source && [...document.querySelectorAll(".app iframe")].find((one) => one.contentWindow === event.source);
    if (frame) take(frame, event.data);
  });
  // Frames that came with the page may have spoken before anybody listened.
  for (const frame of document.querySelectorAll(".app iframe")) frame.src = frame.src;
  const changed = () => {
    for (const frame of document.querySelectorAll(".app iframe")) {
      const state = states.get(frame), context = surroundings(frame), now = JSON.stringify(context);
      if (!state?.ready || state.context === now) continue;
      state.context = now;
      send(frame, { method: "ui/notifications/host-context-changed", params: context });
    }
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  new MutationObserver(changed).observe(document.documentElement, { attributeFilter: ["data-theme", "lang"] });
  window.addEventListener("resize", changed);
  window.addEventListener("pagehide", () => {
    for (const frame of document.querySelectorAll(".app iframe")) if (states.get(frame)?.ready) send(frame, { id: "teardown", method: "ui/resource-teardown", params: {} });
  });
}

function take(frame, message) {
  let state = states.get(frame);
  if (!state) states.set(frame, state = { count: 0, since: 0, atWork: 0, refusals: 0, calls: new Map(), ready: false });
  const now = performance.now();
  if (now - state.since > 1000) Object.assign(state, { since: now, count: 0 });
  if (++state.count > most.second) {
    said(frame).textContent = texts().stopped;
    frame.remove();
    return;
  }
  if (message?.jsonrpc !== "2.0" || typeof message.method !== "string") return; // also answers to what this page has sent
  const params = message.params ?? {};
  if (message.id === undefined) {
    heard(frame, state, message.method, params);
    return;
  }
  answer(frame, state, message.method, params).then(
    (result) => send(frame, { id: message.id, result }),
    (error) => send(frame, { id: message.id, error: { code: error.code ?? -32603, message: error.message } }),
  );
}

// send sends a message to a frame, whose origin has no name.
function send(frame, message) {
  frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

function heard(frame, state, method, params) {
  switch (method) {
    case "ui/notifications/initialized":
      if (!state.ready) begin(frame, state);
      break;
    case "ui/notifications/size-changed":
      if (Number.isFinite(params.height)) frame.style.height = Math.min(Math.max(Math.ceil(params.height), 24), highest) + "px";
      break;
  }
}

// begin gives a page what its tool was called with, and what came out.
async function begin(frame, state) {
  state.ready = true;
  const app = await ask(frame, "").catch((error) => {
    tell(error.message);
    return null;
  });
  if (!app) return;
  send(frame, { method: "ui/notifications/tool-input", params: { arguments: app.arguments } });
  send(frame, { method: "ui/notifications/tool-result", params: app.answer ?? { content: [{ type: "text", text: "The result was too long to be kept for its app." }] } });
}

async function answer(frame, state, method, params) {
  switch (method) {
    case "ping": return {};
    case "ui/initialize":
      state.ready = false; // also when a frame that was moved in the thread is loaded anew
      state.context = JSON.stringify(surroundings(frame));
      return {
        protocolVersion: version,
        hostInfo: { name: "Artel", version: "1" },
        hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, message: { text: {} }, sandbox: {} },
        hostContext: surroundings(frame),
      };
    case "ui/request-display-mode": return { mode: "inline" };
    case "ui/open-link": return open(frame, state, params);
    case "ui/message": return write(frame, params);
    case "tools/call": return working(state, () => call(frame, state, params));
    case "resources/read": return working(state, () => ask(frame, "/resources", { uri: String(params.uri) }));
  }
  throw new Refusal("this host does not know " + String(method).slice(0, 80), -32601);
}

async function working(state, work) {
  if (state.atWork >= most.atWork) throw new Refusal(`an app may have ${most.atWork} requests at once; wait for the others`);
  state.atWork++;
  try {
    return await work();
  } finally {
    state.atWork--;
  }
}

// ask asks the server for the app of a frame.
async function ask(frame, path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  if (options.body?.length > most.body) throw new Refusal("a request of an app has at most 1 MB");
  const response = await fetch(frame.closest(".app").dataset.app + path, options).catch(() => { throw new Refusal(words().lost); });
  const held = await response.json().catch(() => ({}));
  if (!response.ok) throw Object.assign(new Refusal(held.detail ?? response.statusText), { reason: held.code });
  return held;
}

async function call(frame, state, { name, arguments: given = {} }) {
  const path = "/tools/" + encodeURIComponent(name);
  const result = await ask(frame, path, given).catch(async (error) => {
    if (error.reason !== "tool_needs_confirmation") throw error;
    await agreed(frame, state, "call", name, JSON.stringify(given, null, 2));
    return ask(frame, path + "?confirm=true", given);
  });
  state.calls.set(name, (state.calls.get(name) ?? 0) + 1);
  said(frame).textContent = texts().called + " " + [...state.calls].map(([n, count]) => n + " ×" + count).join(", ");
  return result;
}

async function open(frame, state, { url }) {
  let to;
  try {
    to = new URL(String(url));
  } catch {
    throw new Refusal("this is no address", -32602);
  }
  if (!/^https?:$/.test(to.protocol) || to.href.length > most.link) throw new Refusal("want an address of http or https, of at most 2,000 characters", -32602);
  await agreed(frame, state, "open", to.host, to.href, () => window.open(to.href, "_blank", "noopener,noreferrer"));
  return {};
}

// agreed asks the person, one question at a time. An app that was refused twice does not
// ask again.
function agreed(frame, state, kind, name, about, then = () => {}) {
  const dialog = document.getElementById("app-ask");
  if (dialog.open) throw new Refusal("the user is asked something already");
  if (state.refusals >= most.refusals) throw new Refusal("the user has refused this app twice, and is not asked again before the page is loaded anew");
  dialog.querySelector("h2").textContent = (kind === "open" ? dialog.dataset.asksOpen : dialog.dataset.asksCall).replace("%", () => frame.closest(".app").dataset.server).replace("%", () => name);
  dialog.querySelector("pre").textContent = about.slice(0, 4000);
  dialog.showModal();
  dialog.querySelector("[data-refuse]").focus(); // Enter that was meant for something else refuses
  return new Promise((resolve, reject) => {
    const allow = dialog.querySelector("[data-allow]");
    let allowed = false;
    allow.onclick = () => {
      allowed = true;
      then();
      dialog.close();
    };
    dialog.addEventListener("close", () => {
      if (allowed) return resolve();
      state.refusals++;
      reject(new Refusal("the user refused"));
    }, { once: true });
  });
}

// write puts a text into the composer. The person sends it.
function write(frame, { content }) {
  const text = document.getElementById("text");
  const parts = (Array.isArray(content) ? content : [content]).filter((part) => part?.type === "text" && typeof part.text === "string").map((part) => part.text);
  const added = parts.join("\n\n").trim();
  if (!text || !added) throw new Refusal("there is no text to write, or no place for it", -32602);
  if (added.length > most.text) throw new Refusal("a message of an app has at most 20,000 characters", -32602);
  if (!text.value.includes(added)) {
    text.value = [text.value.trimEnd(), added].filter(Boolean).join("\n\n");
    text.dispatchEvent(new Event("input"));
  }
  if (document.activeElement === frame) text.focus();
  return {};
}

const said = (frame) => frame.closest(".app").querySelector("[data-app-said]");
const texts = () => document.getElementById("app-ask").dataset;

// The names of the protocol for the colours of this page.
const styles = {
  "--color-background-primary": "--raised", "--color-background-secondary": "--sunken", "--color-background-tertiary": "--hover",
  "--color-background-info": "--accent-soft", "--color-background-success": "--good-soft", "--color-background-warning": "--warn-soft", "--color-background-danger": "--bad-soft",
  "--color-text-primary": "--ink", "--color-text-secondary": "--quiet", "--color-text-tertiary": "--quiet", "--color-text-inverse": "--on-accent",
  "--color-text-info": "--accent", "--color-text-success": "--good", "--color-text-warning": "--warn", "--color-text-danger": "--bad",
  "--color-border-primary": "--edge", "--color-border-secondary": "--line", "--color-border-tertiary": "--line", "--color-ring-primary": "--accent",
  "--font-sans": "--sans", "--font-mono": "--mono", "--border-radius-sm": "--round", "--border-radius-md": "--round", "--border-radius-lg": "--rounder",
};

// surroundings are what a page has to know of this one.
function surroundings(frame) {
  const root = document.documentElement, style = getComputedStyle(root);
  const { tool } = frame.closest(".app").dataset;
  return {
    theme: root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"),
    locale: root.lang, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, platform: "web", userAgent: "artel",
    displayMode: "inline", availableDisplayModes: ["inline"],
    containerDimensions: { width: frame.clientWidth, maxHeight: highest },
    toolInfo: { tool: { name: tool, inputSchema: { type: "object" } } },
    styles: { variables: Object.fromEntries(Object.entries(styles).map(([name, role]) => [name, style.getPropertyValue(role).trim()])) },
  };
}
