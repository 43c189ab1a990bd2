// SPDX-License-Identifier: Apache-2.0

// Uses the examples for frameworks against a server: node frameworks.mjs URL
import assert from "node:assert/strict";
import { ArtelArtifactService } from "../../examples/frameworks/adk.mjs";
import { ArtelBackend } from "../../examples/frameworks/deepagents.mjs";

const url = process.argv[2];
const key = { appName: "app", userId: "a/b " + crypto.randomUUID(), sessionId: "s1" };
const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==", "base64");

// Artifacts of ADK.
{
  const s = new ArtelArtifactService(url);
  assert.deepEqual(await s.listArtifactKeys(key), []);
  assert.equal(await s.loadArtifact({ ...key, filename: "none" }), undefined);
  assert.equal(await s.saveArtifact({ ...key, filename: "chart.png", artifact: { inlineData: { mimeType: "image/png", data: png.toString("base64") } } }), 0);
  assert.equal(await s.saveArtifact({ ...key, filename: "notes.txt", artifact: { text: "one" } }), 0);
  assert.equal(await s.saveArtifact({ ...key, filename: "notes.txt", artifact: { text: "two" } }), 1);
  assert.equal(await s.saveArtifact({ ...key, filename: "user:name.txt", artifact: { text: "Ann" } }), 0);
  await assert.rejects(s.saveArtifact({ ...key, filename: "x", artifact: { fileData: { fileUri: "gs://x" } } }));
  const again = new ArtelArtifactService(url); // what is kept does not depend on the process
  assert.deepEqual(await again.loadArtifact({ ...key, filename: "notes.txt" }), { text: "two" });
  assert.deepEqual(await again.loadArtifact({ ...key, filename: "notes.txt", version: 0 }), { text: "one" });
  assert.deepEqual(await again.loadArtifact({ ...key, filename: "chart.png" }), { inlineData: { mimeType: "image/png", data: png.toString("base64") } });
  assert.deepEqual(await again.listVersions({ ...key, filename: "notes.txt" }), [0, 1]);
  assert.equal(await again.getArtifactVersion({ ...key, filename: "notes.txt", version: 7 }), undefined);
  assert.deepEqual(await again.listArtifactKeys(key), ["chart.png", "notes.txt", "user:name.txt"]);
  assert.deepEqual(await again.listArtifactKeys({ ...key, sessionId: "s2" }), ["user:name.txt"]);
  assert.equal((await again.preview({ ...key, filename: "notes.txt", service: "demo" })).content, "two");
  await again.deleteArtifact({ ...key, filename: "notes.txt" });
  assert.deepEqual(await again.listVersions({ ...key, filename: "notes.txt" }), []);
  await again.deleteArtifact({ ...key, filename: "notes.txt" });
}

// Files of deepagents.
{
  const b = new ArtelBackend(url, "research " + crypto.randomUUID());
  assert.deepEqual(await b.ls("/"), { files: [] });
  assert.match((await b.read("/a.md")).error, /not found/);
  assert.deepEqual(await b.write("/notes/a.md", "# A\nfirst line\nlast $& line\n"), { path: "/notes/a.md", filesUpdate: null });
  assert.match((await b.write("/notes/a.md", "again")).error, /already exists/);
  await b.write("/notes/deep/b.txt", "first line");
  await b.uploadFiles([["/chart.png", png]]);
  assert.deepEqual((await b.ls("/")).files.map((f) => f.path).sort(), ["/chart.png", "/notes/"]);
  assert.deepEqual((await b.ls("/notes")).files.map((f) => [f.path, f.is_dir]).sort(), [["/notes/a.md", false], ["/notes/deep/", true]]);
  const page = await b.read("/notes/a.md", 1, 1);
  assert.deepEqual([page.content, page.totalLines, page.startLine, page.nextOffset], ["first line", 4, 2, 2]);
  assert.deepEqual(Buffer.from((await b.read("/chart.png")).content), png);
  assert.deepEqual(Buffer.from((await b.downloadFiles(["/chart.png"]))[0].content), png);
  assert.equal((await b.downloadFiles(["/none"]))[0].error, "file_not_found");
  assert.match((await b.edit("/notes/a.md", "line", "row")).error, /2 times/);
  assert.equal((await b.edit("/notes/a.md", "line", "$1 row", true)).occurrences, 2);
  assert.equal((await b.readRaw("/notes/a.md")).data.content, "# A\nfirst $1 row\nlast $& $1 row\n");
  assert.match((await b.edit("/notes/a.md", "nothing", "x")).error, /not found/);
  assert.deepEqual(await b.grep("first", "/"), { matches: [{ path: "/notes/a.md", line: 2, text: "first $1 row" }, { path: "/notes/deep/b.txt", line: 1, text: "first line" }] });
  assert.deepEqual((await b.grep("first", "/", "*.txt")).matches.map((m) => m.path), ["/notes/deep/b.txt"]);
  assert.deepEqual((await b.glob("**/*.txt", "/")).files.map((f) => f.path), ["/notes/deep/b.txt"]);
  assert.deepEqual((await b.glob("*.md", "/notes")).files.map((f) => f.path), ["/notes/a.md"]);
  assert.match((await b.delete("/none")).error, /not found/);
  assert.deepEqual(await b.delete("/notes"), { path: "/notes" });
  assert.deepEqual((await b.ls("/")).files.map((f) => f.path), ["/chart.png"]);
}
console.log("ok");
