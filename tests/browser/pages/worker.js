"use strict";
importScripts("/harness/boot.js");

const calls = { boot, runPython, printed: () => globalThis.printed.splice(0) };

onmessage = async ({ data: [number, name, args] }) => {
  try {
    postMessage([number, await calls[name](...args), null]);
  } catch (error) {
    postMessage([number, null, String(error.stack ?? error)]);
  }
};
