// The JavaScript side of the driver for browsers. Python appends commands as 32-bit words to a block
// and hands the block over when a batch is complete: one crossing for any number of launches. Tables
// here have the WebGPU objects by the numbers that Python gave them.
//
// All work passes through one chain: a batch whose pipelines are still being made waits for them,
// and what comes later waits for it, so that work runs in the order in which it was appended, and
// nothing blocks. While nothing waits, work is done within the call.
//
// What Python is given, or a promise for it, is `undefined` where there is nothing, which is None
// there: Pyodide from 0.28 on has another object for `null`.
"use strict";
(() => {
  // Commands, as in commands.py.
  const DISPATCH = 1, COPY = 2, CLEAR = 3, UPLOAD = 4, BIND = 5, TIMESTAMP = 6, REPLAY = 7;
  const LENGTHS = { [DISPATCH]: 8, [COPY]: 6, [CLEAR]: 4, [UPLOAD]: 5, [TIMESTAMP]: 3 };
  const FORGET_BUFFER = 1, FORGET_GROUP = 2, FORGET_PIPELINE = 3, FORGET_RECORDING = 4, FORGET_QUERIES = 5;
  const lengthOf = (words, at) => {
    if (words[at] === BIND) return 4 + 3 * words[at + 3];
    if (words[at] === REPLAY) return 3 + 6 * words[at + 2];
    return LENGTHS[words[at]];
  };

  const { STORAGE, COPY_SRC, COPY_DST, UNIFORM, MAP_READ, QUERY_RESOLVE } = globalThis.GPUBufferUsage;
  const ORDINARY = STORAGE | COPY_SRC | COPY_DST;
  const SMALL_READ = 1 << 16; // bytes that all reads up to so many share memory of
  const KEPT_STAGING = 4;
  const FEATURES = ["shader-f16", "subgroups", "timestamp-query"];
  // Limits that a device gets as high as its adapter has them. Of alignments the adapter's are the
  // smallest that it can do.
  const LIMITS = [
    "maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX", "maxComputeWorkgroupSizeY",
    "maxComputeWorkgroupSizeZ", "maxComputeWorkgroupsPerDimension",
    "maxComputeWorkgroupStorageSize", "maxBufferSize", "maxStorageBufferBindingSize",
    "maxStorageBuffersPerShaderStage", "maxBindingsPerBindGroup",
    "minStorageBufferOffsetAlignment", "minUniformBufferOffsetAlignment",
  ];

  // What an adapter says of itself, as plain data; nothing if there is none.
  async function findAdapter(power) {
    const gpu = globalThis.navigator?.gpu;
    if (!gpu) return undefined;
    const adapter = await gpu.requestAdapter({ powerPreference: power });
    if (adapter === null) return undefined;
    const info = adapter.info ?? {};
    return {
      adapter,
      facts: JSON.stringify({
        vendor: info.vendor ?? "", architecture: info.architecture ?? "",
        device: info.device ?? "", description: info.description ?? "",
        software: Boolean(info.isFallbackAdapter ?? adapter.isFallbackAdapter ?? false),
        subgroups: [info.subgroupMinSize ?? 0, info.subgroupMaxSize ?? 0],
        features: FEATURES.filter((name) => adapter.features.has(name)),
        limits: Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]])),
      }),
    };
  }

  // A device with these limits; `heard(kind, message)` is called for its errors and its loss.
  async function openDevice(adapter, features, limits, heard) {
    const device = await adapter.requestDevice({
      requiredFeatures: JSON.parse(features), requiredLimits: JSON.parse(limits),
      label: "treadle",
    });
    return new Device(device, heard);
  }

  class Device {
    constructor(device, heard) {
      this.device = device;
      this.queue = device.queue;
      this.heard = heard;
      this.tail = null; // a promise while the chain has work that could not be done at once
      this.buffers = new Map();
      this.layouts = new Map(); // { group, pipeline }
      this.queries = new Map();
      this.recordings = new Map();
      this.making = new Map(); // pipelines that are being made, by number: their promises
      this.staging = []; // for reads: those not in use, the last used at the end
      this.closed = false;
      this.live = { pipelines: new Map(), groups: new Map(), parameters: [], buffer: null };
      this.uploads = null; // what small uploads pass through
      device.onuncapturederror = (event) => {
        event.preventDefault?.();
        this.fail(event.error);
      };
      device.lost.then((info) => this.hear("lost", `${info.message || info.reason || "unknown"}`));
    }

    hear(kind, message) {
      if (this.heard !== null) this.heard(kind, message);
    }

    fail(error) {
      const memory = globalThis.GPUOutOfMemoryError;
      const kind = memory !== undefined && error instanceof memory ? "memory" : "validation";
      this.hear(kind, String(error.message ?? error));
    }

    // -------------------------------------------------------------- the chain

    // Do `work` after all work so far: at once where nothing waits.
    enqueue(work, ready = null) {
      if (this.tail === null && ready === null) {
        this.guarded(work);
        return;
      }
      const before = this.tail;
      const link = (async () => {
        await before;
        await ready;
        if (!this.closed) this.guarded(work);
        if (this.tail === link) this.tail = null;
      })();
      this.tail = link;
    }

    guarded(work) {
      try {
        work();
      } catch (error) {
        this.fail(error);
      }
    }

    // Resolves when all work so far is on the queue.
    async handedOver() {
      while (this.tail !== null) await this.tail;
    }

    // Resolves when all work so far is done, and its errors are known.
    async finished() {
      await this.handedOver();
      if (!this.closed) await this.queue.onSubmittedWorkDone().catch(() => {});
    }

    // -------------------------------------------------------------- memory and kernels

    // With `check`, a promise for what is wrong, if something is, which is not heard then.
    allocate(number, size, check) {
      if (check) this.device.pushErrorScope("out-of-memory");
      this.buffers.set(number, this.device.createBuffer({ size, usage: ORDINARY }));
      if (!check) return undefined;
      return this.device.popErrorScope().then(
        (error) => error?.message,
        (error) => { // the browser's process for GPUs ended
          this.hear("lost", String(error.message ?? error));
          return undefined;
        },
      );
    }

    layout(number, types) {
      const entries = [...types].map((type, binding) => ({
        binding, visibility: 4,
        buffer: { type: type === "w" ? "storage" : "read-only-storage" },
      }));
      const group = this.device.createBindGroupLayout({ entries });
      this.parameterLayout ??= this.device.createBindGroupLayout({
        entries: [
          { binding: 0, visibility: 4, buffer: { type: "uniform", hasDynamicOffset: true } },
        ],
      });
      const make = (bindGroupLayouts) => this.device.createPipelineLayout({ bindGroupLayouts });
      this.layouts.set(number, {
        group, plain: make([group]), parameters: make([group, this.parameterLayout]),
      });
    }

    // Begin to make a pipeline. What is wrong with it is heard, as "kernel", with its number.
    compile(number, layout, parameters, code, entry, label) {
      const { device } = this;
      const made = async () => {
        device.pushErrorScope("validation");
        const module = device.createShaderModule({ code, label });
        const wrong = device.popErrorScope();
        const layouts = this.layouts.get(layout);
        const pipeline = device.createComputePipelineAsync({
          layout: parameters ? layouts.parameters : layouts.plain,
          compute: { module, entryPoint: entry }, label,
        });
        try {
          this.live.pipelines.set(number, await pipeline);
          await wrong;
        } catch (error) {
          const messages = (await module.getCompilationInfo().catch(() => ({ messages: [] })))
            .messages.filter((each) => each.type === "error")
            .map((each) => `:${each.lineNum}:${each.linePos} error: ${each.message}`);
          if ((await wrong) === null && messages.length === 0) messages.push(error.message);
          this.hear("kernel", `${number}\n${messages.join("\n") || error.message}`);
        } finally {
          this.making.delete(number);
        }
      };
      this.making.set(number, made());
    }

    // Uniform memory for parameter blocks, bound with each of some sizes.
    parameterGroups(bytes, bound) {
      const buffer = this.device.createBuffer({ size: bytes, usage: UNIFORM | COPY_DST });
      const groups = bound.map((size) => this.device.createBindGroup({
        layout: this.parameterLayout, entries: [{ binding: 0, resource: { buffer, size } }],
      }));
      return { buffer, groups };
    }

    prepare(parameterBytes, uploadBytes, bound) {
      this.bound = JSON.parse(bound);
      this.parameterSlack = Math.max(...this.bound);
      this.layout(0, "");
      const { buffer, groups } = this.parameterGroups(
        parameterBytes + this.parameterSlack, this.bound,
      );
      this.live.buffer = buffer;
      this.live.parameters = groups;
      this.uploads = this.device.createBuffer({ size: uploadBytes, usage: COPY_SRC | COPY_DST });
    }

    // -------------------------------------------------------------- batches

    // A block: four counts (words of commands, bytes of parameters, bytes of uploads, words of what
    // to forget afterwards), then each of these.
    submit(proxy) {
      const view = proxy.getBuffer("u32");
      try {
        const waits = this.making.size > 0 ? this.awaited(view.data) : null;
        if (this.tail === null && waits === null) {
          this.guarded(() => this.run(view.data));
        } else {
          const copy = view.data.slice();
          this.enqueue(() => this.run(copy), waits);
        }
      } finally {
        view.release();
      }
    }

    // A promise for the pipelines of a block that are being made; null if there are none.
    awaited(block) {
      const found = new Set();
      for (let at = 4, end = 4 + block[0]; at < end; at += lengthOf(block, at)) {
        if (block[at] === DISPATCH && this.making.has(block[at + 1])) {
          found.add(this.making.get(block[at + 1]));
        }
      }
      return found.size > 0 ? Promise.all(found) : null;
    }

    run(block) {
      const [count, parameterBytes, uploadBytes, forgotten] = block;
      const place = block.byteOffset + 16 + 4 * count;
      if (parameterBytes > 0) {
        this.queue.writeBuffer(this.live.buffer, 0, block.buffer, place, parameterBytes);
      }
      if (uploadBytes > 0) {
        this.queue.writeBuffer(
          this.uploads, 0, block.buffer, place + parameterBytes, uploadBytes,
        );
      }
      if (count > 0) {
        const encoder = this.device.createCommandEncoder();
        const pass = this.encode(encoder, null, block, 4, 4 + count, this.live);
        pass?.end();
        this.queue.submit([encoder.finish()]);
      }
      const end = 4 + count + (parameterBytes + uploadBytes) / 4;
      for (let at = end; at < end + forgotten; at += 2) this.forget(block[at], block[at + 1]);
    }

    encode(encoder, pass, words, at, end, tables) {
      const { pipelines, groups, parameters } = tables;
      let pipeline = null;
      let group = null;
      while (at < end) {
        const command = words[at];
        if (command === DISPATCH) {
          if (pass === null) {
            pass = encoder.beginComputePass();
            pipeline = group = null;
          }
          const wanted = pipelines.get(words[at + 1]);
          if (wanted === undefined) {
            at += 8; // it failed to build, which was heard
            continue;
          }
          if (wanted !== pipeline) pass.setPipeline(pipeline = wanted);
          const bound = groups.get(words[at + 2]);
          if (bound !== group) pass.setBindGroup(0, group = bound);
          const block = words[at + 3];
          if (block > 0) pass.setBindGroup(1, parameters[block - 1], words, at + 4, 1);
          pass.dispatchWorkgroups(words[at + 5], words[at + 6], words[at + 7]);
          at += 8;
          continue;
        }
        if (command === BIND) {
          this.bind(words, at);
        } else if (command === REPLAY) {
          pass = this.replay(encoder, pass, words, at, parameters);
          pipeline = group = null;
        } else {
          pass?.end();
          pass = null;
          this.copy(encoder, words, at);
        }
        at += lengthOf(words, at);
      }
      return pass;
    }

    copy(encoder, words, at) {
      const command = words[at];
      if (command === COPY) {
        encoder.copyBufferToBuffer(
          this.buffers.get(words[at + 1]), words[at + 2],
          this.buffers.get(words[at + 3]), words[at + 4], words[at + 5],
        );
      } else if (command === CLEAR) {
        encoder.clearBuffer(this.buffers.get(words[at + 1]), words[at + 2], words[at + 3]);
      } else if (command === UPLOAD) {
        encoder.copyBufferToBuffer(
          this.uploads, words[at + 1], this.buffers.get(words[at + 2]), words[at + 3],
          words[at + 4],
        );
      } else if (command === TIMESTAMP) {
        encoder.beginComputePass({
          timestampWrites: {
            querySet: this.queries.get(words[at + 1]), beginningOfPassWriteIndex: words[at + 2],
          },
        }).end();
      }
    }

    bind(words, at) {
      const entries = [];
      for (let i = 0; i < words[at + 3]; i++) {
        const place = at + 4 + 3 * i;
        const buffer = this.buffers.get(words[place]);
        const [offset, size] = [words[place + 1], words[place + 2]];
        entries.push({ binding: i, resource: { buffer, offset, size } });
      }
      const layout = this.layouts.get(words[at + 2]).group;
      this.live.groups.set(words[at + 1], this.device.createBindGroup({ layout, entries }));
    }

    forget(kind, number) {
      if (kind === FORGET_BUFFER) {
        this.buffers.get(number)?.destroy();
        this.buffers.delete(number);
      } else if (kind === FORGET_GROUP) {
        this.live.groups.delete(number);
      } else if (kind === FORGET_PIPELINE) {
        this.live.pipelines.delete(number);
      } else if (kind === FORGET_RECORDING) {
        this.recordings.get(number)?.buffer?.destroy();
        this.recordings.delete(number);
      } else if (kind === FORGET_QUERIES) {
        this.queries.get(number)?.destroy();
        this.queries.delete(number);
      }
    }

    // Data of more bytes than a batch takes.
    write(number, offset, proxy) {
      const view = proxy.getBuffer("u8");
      const put = (data) => this.queue.writeBuffer(
        this.buffers.get(number), offset, data.buffer, data.byteOffset, data.byteLength,
      );
      try {
        if (this.tail === null) {
          this.guarded(() => put(view.data));
        } else {
          const copy = view.data.slice();
          this.enqueue(() => put(copy));
        }
      } finally {
        view.release();
      }
    }

    // -------------------------------------------------------------- reads

    // Memory that is mapped to be read, of at least so many bytes.
    takeStaging(size) {
      const fits = (each) => each.size >= size && each.size <= Math.max(2 * size, SMALL_READ);
      const found = this.staging.findIndex(fits);
      if (found >= 0) return this.staging.splice(found, 1)[0];
      return this.device.createBuffer({
        size: size <= SMALL_READ ? SMALL_READ : Math.ceil(size / SMALL_READ) * SMALL_READ,
        usage: MAP_READ | COPY_DST,
      });
    }

    // The bytes of a buffer, as a view that is valid until `landed` is called with it; nothing if
    // they cannot be had, which was heard.
    read(number, offset, size) {
      const staging = this.takeStaging(size);
      let mapped = null;
      this.enqueue(() => {
        const encoder = this.device.createCommandEncoder();
        encoder.copyBufferToBuffer(this.buffers.get(number), offset, staging, 0, size);
        this.queue.submit([encoder.finish()]);
        mapped = staging.mapAsync(1, 0, size);
      });
      const arrive = async () => {
        await this.handedOver();
        try {
          await mapped;
          return { bytes: new Uint8Array(staging.getMappedRange(0, size)), staging };
        } catch (error) {
          staging.destroy();
          if (!this.closed) this.fail(error);
          return undefined;
        }
      };
      return arrive();
    }

    landed({ staging }) {
      staging.unmap();
      this.staging.push(staging);
      if (this.staging.length > KEPT_STAGING) this.staging.shift().destroy();
    }

    // -------------------------------------------------------------- recordings and timestamps

    // Keep commands for replays: a block as for `submit`, with nothing to forget. What they name is
    // kept with them, whatever is forgotten later.
    record(number, proxy) {
      const view = proxy.getBuffer("u32");
      const block = view.data.slice();
      view.release();
      const waits = this.making.size > 0 ? this.awaited(block) : null;
      this.enqueue(() => this.recordings.set(number, this.recorded(block)), waits);
    }

    recorded(block) {
      const [count, parameterBytes] = block;
      const recording = {
        words: block.slice(4, 4 + count), pipelines: new Map(), groups: new Map(), parameters: [],
        buffer: null,
      };
      for (let at = 4, end = 4 + count; at < end; at += lengthOf(block, at)) {
        if (block[at] !== DISPATCH) continue;
        const { pipelines, groups } = this.live;
        if (pipelines.has(block[at + 1])) {
          recording.pipelines.set(block[at + 1], pipelines.get(block[at + 1]));
        }
        recording.groups.set(block[at + 2], groups.get(block[at + 2]));
      }
      if (parameterBytes > 0) {
        const { buffer, groups } = this.parameterGroups(
          parameterBytes + this.parameterSlack, this.bound,
        );
        this.queue.writeBuffer(buffer, 0, block.buffer, 16 + 4 * count, parameterBytes);
        recording.buffer = buffer;
        recording.parameters = groups;
      }
      return recording;
    }

    // Changed launches have their parameter blocks in the memory of what replays them, whose bind
    // groups come after the recording's own in the table.
    replay(encoder, pass, block, at, outer) {
      const recording = this.recordings.get(block[at + 1]);
      const changes = block[at + 2];
      let { words } = recording;
      let { parameters } = recording;
      if (changes > 0) {
        words = words.slice();
        const own = this.bound.length;
        parameters = [...(parameters.length ? parameters : new Array(own)), ...outer];
        for (let i = 0; i < changes; i++) {
          const from = at + 3 + 6 * i;
          const to = block[from];
          words[to + 3] = block[from + 1] > 0 ? block[from + 1] + own : 0;
          for (let j = 0; j < 4; j++) words[to + 4 + j] = block[from + 2 + j];
        }
      }
      return this.encode(encoder, pass, words, 0, words.length, { ...recording, parameters });
    }

    makeQueries(number, count) {
      this.queries.set(number, this.device.createQuerySet({ type: "timestamp", count }));
    }

    // The timestamps of a set, 8 bytes each.
    async times(queries, count) {
      const size = 8 * count;
      const resolved = this.device.createBuffer({ size, usage: QUERY_RESOLVE | COPY_SRC });
      const staging = this.device.createBuffer({ size, usage: MAP_READ | COPY_DST });
      this.enqueue(() => {
        const encoder = this.device.createCommandEncoder();
        encoder.resolveQuerySet(this.queries.get(queries), 0, count, resolved, 0);
        encoder.copyBufferToBuffer(resolved, 0, staging, 0, size);
        this.queue.submit([encoder.finish()]);
      });
      await this.handedOver();
      const found = new Uint8Array(size);
      try {
        await staging.mapAsync(1);
        found.set(new Uint8Array(staging.getMappedRange()));
      } catch (error) {
        if (!this.closed) this.fail(error);
      }
      staging.destroy();
      resolved.destroy();
      return found;
    }

    // The time, in seconds, at which all work so far is done. `finished` would wait for what comes
    // onto the chain meanwhile, too: two marks could then be reached in either order.
    async mark() {
      await this.tail;
      if (!this.closed) await this.queue.onSubmittedWorkDone().catch(() => {});
      return performance.now() / 1000;
    }

    close() {
      this.closed = true;
      this.heard?.destroy?.(); // Python's function
      this.heard = null;
      this.device.onuncapturederror = null;
      this.device.destroy();
      for (const table of [this.buffers, this.recordings, this.queries]) table.clear();
      this.staging.length = 0;
      this.live.pipelines.clear();
      this.live.groups.clear();
    }
  }

  return { findAdapter, openDevice };
})()
