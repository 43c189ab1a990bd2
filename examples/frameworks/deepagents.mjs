// SPDX-License-Identifier: Apache-2.0

import { Files } from "./artel.mjs";

// A back end for the file tools of deepagents (1.14, BackendProtocolV2) that keeps the
// agent's files in one conversation of Artel, where users can view and edit them. Each
// write is a version. An edit is refused if the file was saved since it was read.
//
//   createDeepAgent({ ..., backend: new ArtelBackend("http://127.0.0.1:7420", "my research") })
export class ArtelBackend {
  #files;

  constructor(server, title) { this.#files = new Files(server, title); }

  // all returns the files below a folder by their absolute paths.
  async #all(folder = "/") {
    const below = folder.endsWith("/") ? folder : folder + "/";
    return (await this.#files.list()).map((file) => ({ file, path: "/" + file.filename }))
      .filter(({ path }) => path.startsWith(below) || path === folder)
      .sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  async #find(path) { return this.#files.find(path.replace(/^\//, "")); }

  async ls(path) {
    const below = path.endsWith("/") ? path : path + "/";
    const found = new Map();
    for (const { file, path: at } of await this.#all(path)) {
      const [name, ...rest] = at.slice(below.length).split("/");
      if (rest.length > 0) found.set(below + name + "/", { path: below + name + "/", is_dir: true });
      else found.set(at, info(file, at));
    }
    return { files: [...found.values()] };
  }

  async read(path, offset = 0, limit = 500) {
    const file = await this.#find(path);
    if (!file) return { error: `File '${path}' not found` };
    const bytes = await this.#files.bytes(file);
    if (file.is_binary) return { content: bytes, mimeType: file.media_type };
    const lines = decode(bytes).split("\n");
    if (offset >= lines.length) return { error: `Line offset ${offset} exceeds file length (${lines.length} lines)` };
    const end = Math.min(lines.length, offset + limit);
    return {
      content: lines.slice(offset, end).join("\n"), mimeType: file.media_type, totalLines: lines.length, startLine: offset + 1, endLine: end,
      ...(end < lines.length && { nextOffset: end }),
    };
  }

  async readRaw(path) {
    const file = await this.#find(path);
    if (!file) return { error: `File '${path}' not found` };
    const bytes = await this.#files.bytes(file);
    return { data: { content: file.is_binary ? bytes : decode(bytes), mimeType: file.media_type, created_at: file.created_at, modified_at: file.updated_at } };
  }

  async write(path, content) {
    if (await this.#find(path)) return { error: `Cannot write to ${path} because it already exists. Read and then make an edit, or write to a new path.` };
    await this.#files.write(path.replace(/^\//, ""), content, "text/plain");
    return { path, filesUpdate: null };
  }

  async edit(path, oldString, newString, replaceAll = false) {
    const file = await this.#find(path);
    if (!file) return { error: `Error: File '${path}' not found` };
    const text = decode(await this.#files.bytes(file, file.version));
    const occurrences = oldString === "" ? 0 : text.split(oldString).length - 1;
    if (occurrences === 0) return { error: `Error: String not found in file: '${oldString}'` };
    if (occurrences > 1 && !replaceAll) return { error: `Error: String '${oldString}' appears ${occurrences} times in file. Use replace_all=true, or give more of the text around it.` };
    const changed = replaceAll ? text.split(oldString).join(newString) : text.replace(oldString, () => newString);
    try {
      await this.#files.write(file.filename, changed, file.declared_type || file.media_type, file.version);
    } catch (e) {
      if (e.status === 412) return { error: `Error: '${path}' was changed by somebody else; read it again` };
      throw e;
    }
    return { path, filesUpdate: null, occurrences };
  }

  // delete removes a file, or all files below a folder. Artel keeps their versions.
  async delete(path) {
    const found = await this.#all(path);
    if (found.length === 0) return { error: `Error: File '${path}' not found` };
    for (const { file } of found) await this.#files.remove(file);
    return { path };
  }

  async grep(pattern, path = "/", glob = null) {
    const matches = [];
    for (const { file, path: at } of await this.#all(path ?? "/")) {
      if (file.is_binary || glob && !matcher(glob).test(at.split("/").at(-1)) && !matcher(glob).test(at.slice(1))) continue;
      decode(await this.#files.bytes(file)).split("\n").forEach((text, i) => {
        if (text.includes(pattern)) matches.push({ path: at, line: i + 1, text });
      });
    }
    return { matches };
  }

  async glob(pattern, path = "/") {
    const below = path.endsWith("/") ? path : path + "/";
    const wanted = matcher(pattern.replace(/^\//, ""));
    return { files: (await this.#all(path)).filter(({ path: at }) => wanted.test(at.slice(below.length))).map(({ file, path: at }) => info(file, at)) };
  }

  async uploadFiles(files) {
    const out = [];
    for (const [path, content] of files) {
      await this.#files.write(path.replace(/^\//, ""), content);
      out.push({ path, error: null });
    }
    return out;
  }

  async downloadFiles(paths) {
    return Promise.all(paths.map(async (path) => {
      const file = await this.#find(path);
      return file ? { path, content: await this.#files.bytes(file), error: null } : { path, content: null, error: "file_not_found" };
    }));
  }
}

const decode = (bytes) => new TextDecoder().decode(bytes);

const info = (file, path) => ({ path, is_dir: false, size: file.size, modified_at: file.updated_at });

// matcher returns the regular expression of a glob with *, ** and ?.
function matcher(glob) {
  const source = glob.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*\*\/|\*\*|\*|\?/g, (m) => ({ "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]" })[m]);
  return new RegExp(`^${source}$`);
}
