// A host of MCP Apps by the official package: it shows one app and calls tools for it.

import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const call = async (name, given) => (await fetch("/call", { method: "POST", body: JSON.stringify({ name, arguments: given }) })).json();

window.start = async (page, name, given, hostContext) => {
  const frame = document.createElement("iframe");
  document.body.replaceChildren(frame);
  window.opened = [];
  const bridge = window.bridge = new AppBridge(null, { name: "Host", version: "1" }, { openLinks: {}, serverTools: {} }, { hostContext });
  bridge.oncalltool = (params) => call(params.name, params.arguments);
  bridge.onopenlink = async ({ url }) => {
    window.opened.push(url);
    return {};
  };
  bridge.onsizechange = ({ height }) => { frame.style.height = height + "px"; };
  bridge.oninitialized = async () => {
    const result = await call(name, given);
    await bridge.sendToolInput({ arguments: given });
    await bridge.sendToolResult(result);
  };
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = page;
};
window.ready = true;
