// The viewer of artifacts as an MCP App (io.modelcontextprotocol/ui, 2026-01-26). Content
// comes through the host alone: the tool artel_show renders it to safe HTML.
(() => {
  "use strict";
  const words = JSON.parse(document.getElementById("words").textContent);
  const $ = (id) => document.getElementById(id);
  const waiting = new Map();
  let last = 0, context = {}, say = words.en;

  const post = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const tell = (method, params = {}) => post({ method, params });
  const ask = (method, params = {}) => new Promise((resolve, reject) => {
    const id = ++last;
    waiting.set(id, { resolve, reject });
    post({ id, method, params });
  });
  addEventListener("message", ({ source, data }) => {
    if (source !== parent || data?.jsonrpc !== "2.0") return;
    if (data.method === undefined) {
      const one = waiting.get(data.id);
      waiting.delete(data.id);
      if (data.error) one?.reject(new Error(data.error.message)); else one?.resolve(data.result);
      return;
    }
    if (data.id !== undefined) post({ id: data.id, ...(data.method === "ping" || data.method === "ui/resource-teardown" ? { result: {} } : { error: { code: -32601, message: "unknown method" } }) });
    else heard[data.method]?.(data.params ?? {});
  });

  // at is what is shown: { conversation, id, version, view, from }.
  let at = {}, shown = null, asked = 0;
  const heard = {
    "ui/notifications/host-context-changed": (changed) => settle({ ...context, ...changed }),
    "ui/notifications/tool-input": ({ arguments: given = {} }) => {
      at = { conversation: given.conversation, id: given.id, from: given.from, version: given.version ?? given.to };
    },
    "ui/notifications/tool-result": (result) => {
      const held = result.structuredContent ?? {};
      const link = (result.content ?? []).find((c) => c.type === "resource_link" && /^artel:/.test(c.uri))?.uri.match(/^artel:\/\/([^/]+)\/([^@]+)(?:@(\d+))?$/);
      if (held.id) at = { ...at, conversation: held.conversation, id: held.id, version: held.version };
      else if (link && !at.id) at = { conversation: link[1], id: decodeURIComponent(link[2]), version: link[3] && Number(link[3]) };
      if (result.isError || !at.id) fail((result.content ?? []).filter((c) => c.type === "text").map((c) => c.text).join("\n") || say.nothing);
      else load({});
    },
    "ui/notifications/tool-cancelled": ({ reason }) => fail(reason || say.cancelled),
  };

  // settle takes over what the host says about itself.
  function settle(next) {
    const before = context.locale;
    context = next;
    const root = document.documentElement;
    if (context.theme) root.dataset.theme = context.theme;
    for (const [name, value] of Object.entries(context.styles?.variables ?? {})) if (name.startsWith("--") && typeof value === "string") root.style.setProperty(name, value);
    const zh = /^zh/i.test(context.locale ?? navigator.language);
    say = zh ? words.zh : words.en;
    root.lang = zh ? "zh" : "en";
    for (const e of document.querySelectorAll("[data-say]")) e.textContent = say[e.dataset.say];
    if (shown && before !== context.locale) load({});
  }

  function fail(text) {
    $("problem").textContent = text;
    $("problem").hidden = false;
    $("loading").hidden = true;
  }

  async function load(change) {
    Object.assign(at, change);
    const number = ++asked;
    $("loading").hidden = false;
    $("problem").hidden = true;
    const given = { id: at.id, view: at.view ?? document.body.dataset.view, locale: document.documentElement.lang };
    for (const name of ["conversation", "version", "from"]) if (at[name]) given[name] = at[name];
    try {
      const result = await ask("tools/call", { name: "artel_show", arguments: given });
      if (number !== asked) return; // something else was asked for meanwhile
      if (result.isError || !result.structuredContent) throw new Error(result.content?.[0]?.text ?? say.failed);
      show(result.structuredContent);
    } catch (error) {
      if (number === asked) fail(say.failed + " " + error.message);
    }
  }

  function show(s) {
    shown = s;
    at = { ...at, conversation: s.conversation, id: s.id };
    $("loading").hidden = true;
    $("title").firstChild.data = s.title || s.id;
    $("about").textContent = s.about;
    for (const button of document.querySelectorAll("[data-view-of]")) {
      button.hidden = !s.text;
      button.setAttribute("aria-pressed", String(button.dataset.viewOf === s.view));
    }
    options($("version"), s.versions.map((v) => ({ value: v.number, text: "v" + v.number + (v.number === s.latest ? " · " + say.newest : "") + " · " + when(v.at) })), s.version);
    const older = s.versions.filter((v) => v.number !== s.version).map((v) => ({ value: v.number, text: "v" + v.number + " · " + when(v.at) }));
    options($("from"), s.from ? older : [{ value: 0, text: say.before }, ...older], s.from ?? 0);
    $("from-label").hidden = s.view !== "changes" || older.length === 0;
    $("version-label").hidden = s.versions.length < 2;
    $("copy").hidden = !s.text;
    $("open").hidden = !s.url;
    $("note").textContent = s.note ?? "";
    $("note").hidden = !s.note;
    $("content").innerHTML = s.html; // rendered by package render, which writes safe HTML alone
    for (const img of $("content").querySelectorAll("img")) img.alt ||= s.title;
  }

  function options(select, all, value) {
    select.replaceChildren(...all.map((o) => Object.assign(document.createElement("option"), { value: o.value, textContent: o.text })));
    select.value = String(value);
  }

  const when = (time) => new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short", timeZone: context.timeZone }).format(new Date(time));

  $("version").addEventListener("change", (e) => load({ version: Number(e.target.value), from: undefined }));
  $("from").addEventListener("change", (e) => load({ from: Number(e.target.value) || undefined }));
  for (const button of document.querySelectorAll("[data-view-of]")) button.addEventListener("click", () => load({ view: button.dataset.viewOf }));
  $("open").addEventListener("click", () => ask("ui/open-link", { url: shown.url }).catch(() => {}));
  $("copy").addEventListener("click", async () => {
    const button = $("copy");
    let done = await navigator.clipboard?.writeText(shown.text).then(() => true, () => false);
    if (!done) { // hosts may keep the clipboard from frames; a selection may still be copied
      const area = Object.assign(document.createElement("textarea"), { value: shown.text, readOnly: true });
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = done ? say.copied : say.failed;
    setTimeout(() => { button.textContent = say.copy; }, 2000);
  });
  $("content").addEventListener("click", (event) => {
    const to = event.target.closest("a[href]")?.getAttribute("href");
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    const own = to.match(/^\/c\/([^/]+)\/a\/([^?]+)(?:\?v=(\d+))?$/);
    if (own) load({ conversation: own[1], id: decodeURIComponent(own[2]), version: own[3] && Number(own[3]), from: undefined, view: "content" });
    else if (/^https?:/.test(to)) ask("ui/open-link", { url: to }).catch(() => {});
    else if (to.startsWith("#")) document.getElementById(to.slice(1))?.scrollIntoView();
  });
  let height = 0;
  new ResizeObserver(() => {
    const now = Math.ceil(document.documentElement.getBoundingClientRect().height);
    if (now !== height) tell("ui/notifications/size-changed", { width: innerWidth, height: height = now });
  }).observe(document.documentElement);

  settle({});
  ask("ui/initialize", { protocolVersion: "2026-01-26", appInfo: { name: "artel", version: "1" }, appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] } }).then((result) => {
    settle(result.hostContext ?? {});
    tell("ui/notifications/initialized");
  }, (error) => fail(error.message));
})();
