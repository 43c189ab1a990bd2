// SPDX-License-Identifier: Apache-2.0

// Runs before anything of an app, in a frame of an opaque origin whose policy allows no
// load. What a policy cannot forbid is taken away here: elements that connect in advance
// or bring a fresh window, WebRTC, and whatever could make such elements. Trusted Types
// lead each string that becomes markup or script through the one policy below; a browser
// without them shows nothing.
(() => {
  "use strict";
  const source = document.getElementById("app-source");
  const html = JSON.parse(source.textContent);
  const { refused } = source.dataset;
  source.remove();
  document.currentScript.remove();
  const types = window.trustedTypes;
  if (!types || !window.DOMParser) {
    document.body.textContent = refused;
    return;
  }

  // The page may replace methods of the language later: those that are needed then are
  // kept, and nothing below uses an iterator or a regular expression.
  const { apply } = Reflect;
  const { parse } = JSON;
  const { has } = Set.prototype;
  const { toLowerCase, lastIndexOf, indexOf, slice, startsWith } = String.prototype;
  const names = new Set(["link", "iframe", "frame", "frameset", "object", "embed", "applet", "portal", "fencedframe", "base"]);
  const isRefused = (name) => apply(has, names, [apply(toLowerCase, apply(slice, name, [apply(lastIndexOf, name, [":"]) + 1]), [])]);
  const renamed = (name) => (isRefused(name) ? "x-refused" : name);

  const longest = 200; // characters of a name; a longer one is refused
  // inert renames the refused elements of markup. Whatever is around it, a tag begins with
  // < and its name, which ends at one of these characters.
  const inert = (text) => {
    if (apply(indexOf, text, ["<!ENTITY"]) >= 0) return null; // which may hold a tag in another spelling
    let out = "", from = 0;
    for (let at = apply(indexOf, text, ["<"]); at >= 0; at = apply(indexOf, text, ["<", at + 1])) {
      let begin = at + 1;
      if (text[begin] === "/") begin++;
      let end = begin;
      for (let c = text[end]; end - begin <= longest && c !== undefined && c !== " " && c !== "\t" && c !== "\n" && c !== "\f" && c !== "\r" && c !== "/" && c !== ">"; c = text[end]) end++;
      if (end - begin <= longest && !isRefused(apply(slice, text, [begin, end]))) continue;
      out += apply(slice, text, [from, begin]) + "x-refused";
      from = end;
    }
    return out + apply(slice, text, [from]);
  };
  // Rules of speculation fetch pages in advance.
  const speculates = (text) => {
    try {
      const rules = parse(text);
      return rules !== null && typeof rules === "object" && ("prefetch" in rules || "prerender" in rules);
    } catch {
      return false;
    }
  };
  let own = true; // while this script parses the page itself, and cleans it below
  types.createPolicy("default", {
    createHTML: (text) => (own ? text : inert(text)),
    // A script is that of an element or a handler; that of a javascript: address would get a fresh window.
    createScript: (text, _type, sink) => ((apply(startsWith, sink, ["HTMLScriptElement"]) || apply(startsWith, sink, ["SVGScriptElement"]) || apply(startsWith, sink, ["Element on"])) && !speculates(text) ? text : null),
    createScriptURL: (text) => text, // the policy of the frame loads none
  });

  // set replaces a property for good.
  const set = (object, name, value) => {
    if (object && name in object) Object.defineProperty(object, name, { value, writable: false, configurable: false, enumerable: true });
  };
  const around = (object, name, make) => {
    if (typeof object?.[name] === "function") set(object, name, make(object[name]));
  };
  for (const name of ["trustedTypes", "RTCPeerConnection", "webkitRTCPeerConnection", "RTCIceTransport", "XSLTProcessor", "MediaMetadata", "PaymentRequest", "fence", "sharedStorage"]) set(window, name, undefined);
  // Parsers that read in pieces, or by rules of their own, do not pass the policy above.
  for (const object of [Element.prototype, Document.prototype, DocumentFragment.prototype, window.ShadowRoot?.prototype, Document]) {
    for (const name of object ? Object.getOwnPropertyNames(object) : []) {
      if (/HTML/.test(name) && !/^(innerHTML|outerHTML|insertAdjacentHTML|getHTML)$/.test(name)) set(object, name, undefined);
    }
  }
  for (const name of ["write", "writeln", "open"]) around(Document.prototype, name, () => () => { console.warn("document." + name + " does nothing in this frame"); });
  around(Document.prototype, "createElement", (old) => function createElement(name, options) {
    const is = options?.is;
    return is === undefined ? apply(old, this, [renamed(`${name}`)]) : apply(old, this, [renamed(`${name}`), { is: `${is}` }]);
  });
  around(Document.prototype, "createElementNS", (old) => function createElementNS(space, name) {
    return apply(old, this, [space, renamed(`${name}`)]);
  });
  around(DOMImplementation.prototype, "createDocument", (old) => function createDocument(space, name, type) {
    return apply(old, this, [space, name === null ? null : renamed(`${name}`), type ?? null]);
  });
  around(Document.prototype, "execCommand", (old) => function execCommand(command, shows, value) {
    const name = `${command}`;
    return apply(toLowerCase, name, []) === "inserthtml" ? false : apply(old, this, [name, shows, value]);
  });
  around(window.CustomElementRegistry?.prototype, "define", (old) => function define(name, made, options) {
    const base = options?.extends;
    return apply(old, this, base === undefined ? [name, made] : [name, made, { extends: renamed(`${base}`) }]);
  });

  // A link would take the frame away from its page, which the page around it forbids: the
  // app would be gone. A click asks that page to open it instead.
  let clicks = 0;
  window.addEventListener("click", (event) => {
    const a = event.composedPath().find((e) => e instanceof HTMLAnchorElement || e instanceof HTMLAreaElement || e instanceof SVGAElement);
    const to = a?.getAttribute("href") ?? a?.getAttribute("xlink:href");
    if (to === null || to === undefined || to.startsWith("#")) return;
    event.preventDefault();
    if (event.isTrusted) parent.postMessage({ jsonrpc: "2.0", id: "link-" + ++clicks, method: "ui/open-link", params: { url: new URL(to, document.baseURI).href } }, "*");
  }, true);

  // The browser's own parser reads the page without running anything of it; the refused
  // elements are removed, and the rest moves here.
  const page = new DOMParser().parseFromString(html, "text/html");
  own = false;
  const clean = (root) => {
    for (const e of [...root.querySelectorAll("*")]) {
      if (isRefused(e.localName) || e.localName === "noscript" || e.localName === "meta" && e.hasAttribute("http-equiv")) e.remove();
      else if (e.content instanceof DocumentFragment) clean(e.content);
    }
  };
  clean(page);
  const copy = (from, to) => {
    for (const a of from.attributes) to.setAttribute(a.name, a.value);
  };
  copy(page.documentElement, document.documentElement);
  copy(page.body, document.body);
  document.head.append(...page.head.childNodes);
  document.body.append(...page.body.childNodes);
  // Scripts of a parsed page do not run; copies of them do, in their order.
  for (const old of document.querySelectorAll("script")) {
    if (!old.isConnected) continue;
    const script = document.createElement("script");
    copy(old, script);
    script.async = false;
    script.textContent = old.textContent;
    old.replaceWith(script);
  }
})();
