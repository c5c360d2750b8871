// Programs in links. The text lies in the URL's fragment, which browsers never send to a server:
// compressed, since chat programs cut long links, and in base64's alphabet for URLs.

/** The link to this page with the program in it. */
export async function linkTo(program) {
  const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(program));
  const base64 = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  const link = new URL(location.href);
  link.hash = "code=" + base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return link.href;
}

/** What the fragment asks for: `{program}`, `{example}` or `{}`. A broken link is an Error. */
export async function asked() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (fields.has("example")) return { example: fields.get("example") };
  if (!fields.has("code")) return {};
  try {
    const base64 = fields.get("code").replaceAll("-", "+").replaceAll("_", "/");
    const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return { program: new TextDecoder("utf-8", { fatal: true }).decode(await through(new DecompressionStream("deflate-raw"), packed)) };
  } catch {
    throw new Error("The program in this link is damaged: ask for the whole link.");
  }
}

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}
