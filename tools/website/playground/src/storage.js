// Files that stay: fetched once, with progress, into the browser's own storage (OPFS), and read
// from there on every later visit. Python sees them as files: a read, or a mapping into memory, takes
// bytes from the disk. It works in a worker only, where such reads are synchronous.

const folderName = "treadle-playground";

async function folder() {
  if (!navigator.storage?.getDirectory) {
    throw new Error("This browser has no storage for files (OPFS), or the window is a private one.");
  }
  return (await navigator.storage.getDirectory()).getDirectoryHandle(folderName, { create: true });
}

/**
 * An access handle to the file of that URL. `progress` is called with the bytes so far and in all.
 * A download that stops half way leaves no file: it has another name until it is whole.
 */
export async function stored(url, progress) {
  const root = await folder();
  const name = await digest(url);
  const kept = await root.getFileHandle(name).catch(() => null);
  if (kept) return { handle: await open(kept), fetched: false };

  const response = await fetch(url).catch(() => {
    throw new Error(`${url} cannot be fetched: the network is down, or its server does not allow other pages to read it (CORS).`);
  });
  if (!response.ok) throw new Error(`${url} answers with ${response.status} ${response.statusText}`);
  const total = Number(response.headers.get("content-length")) || 0;
  // Without this browsers may clear the file when the disk runs full; they may also refuse.
  await navigator.storage.persist?.().catch(() => false);
  const { quota = Infinity, usage = 0 } = await navigator.storage.estimate();
  if (total > quota - usage) {
    throw new Error(`The file has ${megabytes(total)}; the browser has room for ${megabytes(quota - usage)} more.`);
  }
  const file = await root.getFileHandle(name + ".part", { create: true });
  const handle = await open(file);
  handle.truncate(0);
  let done = 0;
  try {
    for (const reader = response.body.getReader(); ;) {
      const { value, done: ended } = await reader.read();
      if (ended) break;
      done += handle.write(value, { at: done });
      progress(done, total);
    }
    handle.flush();
  } finally {
    handle.close();
  }
  await rename(root, file, name);
  return { handle: await open(await root.getFileHandle(name)), fetched: true };
}

// `move` is newer than the rest of OPFS; without it the bytes are copied.
async function rename(root, file, name) {
  if (file.move) return file.move(name);
  const target = await root.getFileHandle(name, { create: true });
  await (await file.getFile()).stream().pipeTo(await target.createWritable());
  await root.removeEntry(file.name);
}

async function open(file) {
  try {
    return await file.createSyncAccessHandle();
  } catch (error) {
    if (error.name !== "NoModificationAllowedError") throw error;
    throw new Error("Another tab of the playground is using this file: close it, or its run.");
  }
}

async function digest(text) {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;

/** Make `path` a file of Pyodide's file system whose bytes are read through the access handle. */
export function mount(python, path, handle) {
  const { FS, _module } = python;
  const slash = path.lastIndexOf("/");
  FS.mkdirTree(path.slice(0, slash));
  if (FS.analyzePath(path).exists) FS.unlink(path);
  const node = FS.createFile(path.slice(0, slash), path.slice(slash + 1), {}, true, false);
  node.usedBytes = handle.getSize();
  const { mmap } = node.stream_ops;
  node.contents = new Uint8Array(0); // the file's content, as far as Emscripten knows
  node.stream_ops = {
    ...node.stream_ops,
    read(stream, target, offset, length, position) {
      const count = Math.max(0, Math.min(length, node.usedBytes - position));
      return count && handle.read(target.subarray(offset, offset + count), { at: position });
    },
    mmap(stream, length, position, protection, flags) {
      const mapped = mmap(stream, length, position, protection, flags); // memory, and no content
      handle.read(_module.HEAPU8.subarray(mapped.ptr, mapped.ptr + length), { at: position });
      return mapped;
    },
  };
}
