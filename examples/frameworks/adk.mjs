// SPDX-License-Identifier: Apache-2.0

import { Files } from "./artel.mjs";

// An artifact service for Google's Agent Development Kit (@google/adk 2.0) that keeps
// artifacts in Artel: a conversation for each session, and one for each user, which
// holds the files whose names begin with "user:". Versions count from 0, as in ADK.
//
//   new Runner({ ..., artifactService: new ArtelArtifactService("http://127.0.0.1:7420") })
export class ArtelArtifactService {
  #server; #files = new Map();

  constructor(server) { this.#server = server; }

  #of({ appName, userId, sessionId }, filename = "") {
    const scope = filename.startsWith("user:") ? [appName, userId] : [appName, userId, sessionId];
    const title = "ADK " + scope.map(encodeURIComponent).join("/");
    if (!this.#files.has(title)) this.#files.set(title, new Files(this.#server, title));
    return this.#files.get(title);
  }

  async saveArtifact({ filename, artifact, ...key }) {
    const { inlineData, text } = artifact;
    if (inlineData) return (await this.#of(key, filename).write(filename, Buffer.from(inlineData.data, "base64"), inlineData.mimeType)).version - 1;
    if (text !== undefined) return (await this.#of(key, filename).write(filename, text, "text/plain")).version - 1;
    throw new Error("an artifact needs inlineData or text: Artel keeps bytes, not addresses");
  }

  async loadArtifact({ filename, version, ...key }) {
    const files = this.#of(key, filename);
    const meta = await this.getArtifactVersion({ filename, version, ...key });
    if (!meta) return undefined;
    const bytes = await files.bytes(await files.find(filename), meta.version + 1);
    if (meta.mimeType.startsWith("text/plain")) return { text: Buffer.from(bytes).toString("utf8") };
    return { inlineData: { mimeType: meta.mimeType, data: Buffer.from(bytes).toString("base64") } };
  }

  async listArtifactKeys(key) {
    const lists = await Promise.all([this.#of(key).list(), this.#of(key, "user:").list()]);
    return lists.flat().map((a) => a.filename).sort();
  }

  async deleteArtifact({ filename, ...key }) {
    const files = this.#of(key, filename);
    const file = await files.find(filename);
    if (file) await files.remove(file);
  }

  async listArtifactVersions({ filename, ...key }) {
    const files = this.#of(key, filename);
    const file = await files.find(filename);
    if (!file) return [];
    return (await files.versions(file)).map((v) => ({ version: v.version - 1, mimeType: v.media_type, canonicalUri: `${file.ref}@${v.version}` }));
  }

  async listVersions(request) {
    return (await this.listArtifactVersions(request)).map((v) => v.version);
  }

  async getArtifactVersion({ version, ...request }) {
    const all = await this.listArtifactVersions(request);
    return version === undefined ? all.at(-1) : all.find((v) => v.version === version);
  }

  // preview returns what a model of a service of Artel gets of an artifact, such as the
  // text of a PDF for a model that reads text only. It is beyond ADK's interface.
  async preview({ filename, service, ...key }) {
    const files = this.#of(key, filename);
    const file = await files.find(filename);
    return file && files.route(file, service);
  }
}
