// SPDX-License-Identifier: Apache-2.0

// Files of one conversation of Artel, over /api/v1. Names may have slashes.
export class Files {
  #url; #title; #id;

  // title names the conversation, which is made when the first file is written.
  constructor(server, title) {
    this.#url = server.replace(/\/$/, "") + "/api/v1";
    this.#title = title;
  }

  async #ask(method, path, init = {}) {
    const answer = await fetch(this.#url + path, { method, ...init });
    if (answer.ok) return answer;
    const problem = await answer.json().catch(() => ({}));
    throw Object.assign(new Error(problem.detail ?? `${method} ${path}: ${answer.status}`), { status: answer.status, code: problem.code });
  }

  async #pages(path) {
    const items = [];
    for (let cursor = ""; ;) {
      const page = await (await this.#ask("GET", path + (cursor && (path.includes("?") ? "&" : "?") + "cursor=" + encodeURIComponent(cursor)))).json();
      items.push(...page.items);
      if (!(cursor = page.next)) return items;
    }
  }

  // conversation returns the id of the conversation; undefined if there is none and
  // create is not set.
  async conversation(create = false) {
    this.#id ??= (await this.#pages("/conversations?limit=200")).find((c) => c.title === this.#title)?.id;
    if (!this.#id && create) {
      const made = await this.#ask("POST", "/conversations", { headers: { "Content-Type": "application/json" }, body: JSON.stringify({ title: this.#title }) });
      this.#id = (await made.json()).id;
    }
    return this.#id;
  }

  // list describes the newest versions of all files.
  async list() {
    const id = await this.conversation();
    return id ? this.#pages(`/conversations/${id}/artifacts`) : [];
  }

  async find(name) {
    return (await this.list()).find((a) => a.filename === name);
  }

  #path(file, rest = "") {
    return `/conversations/${file.conversation_id}/artifacts/${encodeURIComponent(file.id)}${rest}`;
  }

  // write stores bytes as a new file, or as the next version of one. base is the
  // version that was changed: if there is a newer one, the error has status 412.
  async write(name, bytes, mediaType, base) {
    const headers = { "Content-Type": mediaType ?? "application/octet-stream" };
    const file = await this.find(name);
    if (!file) {
      const id = await this.conversation(true);
      return (await this.#ask("POST", `/conversations/${id}/artifacts`, { headers: { ...headers, "X-Filename": encodeURIComponent(name) }, body: bytes })).json();
    }
    headers["If-Match"] = base ? `"${base}"` : "*";
    return (await this.#ask("PUT", this.#path(file), { headers, body: bytes })).json();
  }

  async bytes(file, version) {
    return new Uint8Array(await (await this.#ask("GET", this.#path(file, "/raw" + (version ? `?version=${version}` : "")))).arrayBuffer());
  }

  async versions(file) {
    return (await this.#pages(this.#path(file, "/versions"))).filter((v) => v.version > 0);
  }

  // route says what a model gets of a file: text, a picture, its transcript, or a
  // description with the services that can read it.
  async route(file, service) {
    return (await this.#ask("GET", this.#path(file, `/route?service=${encodeURIComponent(service)}`))).json();
  }

  async remove(file) {
    await this.#ask("DELETE", this.#path(file));
  }
}
