// The page's side of the worker in which Python runs.

/**
 * Start a worker; `on` has a function for each kind of message: status, ready, text, done, failed,
 * and what programs show. Every run is a promise of its outcome.
 */
export function createPython(config, on) {
  let worker, ready, finish, patience;

  function launch() {
    worker = new Worker(new URL("worker.js", config.base), { type: "module" });
    ready = new Promise((resolve, reject) => {
      worker.addEventListener("message", ({ data }) => {
        if (data.kind === "ready") resolve();
        if (data.kind === "failed") reject(new Error(data.error));
        if (data.kind === "done") finished(data);
        else if (data.kind === "ask") answer(data);
        else on[data.kind]?.(data);
      });
      worker.addEventListener("error", (event) => {
        const error = event.message || "The worker could not be loaded.";
        on.failed({ error });
        reject(new Error(error));
      });
    });
    ready.catch(() => {}); // what failed was shown by `on.failed`
    worker.postMessage({ kind: "start", ...config.start });
  }

  async function answer({ number, what, ...fields }) {
    const { value, transfer = [] } = on.ask[what](fields);
    worker.postMessage({ kind: "answer", number, value }, transfer);
  }

  function finished(outcome) {
    clearTimeout(patience);
    const told = finish;
    finish = undefined;
    told?.(outcome);
  }

  launch();
  return {
    get running() { return finish !== undefined; },
    async run(program) {
      await ready;
      return new Promise((resolve) => {
        finish = resolve;
        worker.postMessage({ kind: "run", program });
      });
    },
    /** Ask the program to end; if it does not within a second, end the worker and start anew. */
    stop() {
      if (!finish) return;
      worker.postMessage({ kind: "stop" });
      patience = setTimeout(() => {
        worker.terminate();
        finished({ stopped: true });
        launch();
      }, 1000);
    },
    send: (target, fields) => worker.postMessage({ kind: "event", target, fields }),
    terminate: () => worker.terminate(),
  };
}
