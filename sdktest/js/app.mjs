// An app by the official package. It reports to its server what it got.

import { App } from "@modelcontextprotocol/ext-apps/app-with-deps";

const app = new App({ name: "Pears", version: "1" }, {});
const seen = {};
app.ontoolinput = ({ arguments: given }) => { seen.input = given; };
app.ontoolresult = async (result) => {
  seen.result = result.structuredContent;
  seen.host = app.getHostVersion();
  seen.theme = app.getHostContext()?.theme;
  const read = await app.readServerResource({ uri: "memo://1" });
  seen.memo = read.contents[0].text;
  await app.sendMessage({ role: "user", content: [{ type: "text", text: "More pears, please." }] });
  document.body.textContent = "The app has " + seen.result.pears + " pears";
  await app.callServerTool({ name: "report", arguments: seen });
};
await app.connect();
