// Draws an array on a canvas without reading it back: a render pipeline on the GPUDevice that
// computed the array reads the storage buffer that holds it. It runs in the worker, where both the
// device and the canvas (an OffscreenCanvas) are.

// One triangle covers the canvas; each pixel reads the element below it. Values between `low` and
// `high` become colours: blue, the background, red for signed ones; black to yellow for others.
const shader = /* wgsl */ `
struct View {
    width: u32, height: u32, offset: u32, row: u32,
    low: f32, high: f32, palette: u32, unused: u32,
}
@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<uniform> view: View;

@vertex fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4f {
    return vec4f(f32(i & 1u) * 4.0 - 1.0, f32(i >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

fn diverging(t: f32) -> vec3f {
    let paper = vec3f(0.96, 0.96, 0.97);
    let cold = mix(paper, vec3f(0.05, 0.28, 0.63), smoothstep(0.0, 1.0, -t));
    return mix(cold, vec3f(0.78, 0.16, 0.11), smoothstep(0.0, 1.0, t));
}

fn sequential(t: f32) -> vec3f {
    return clamp(vec3f(1.5 * t, 1.6 * t * t, 0.35 + 1.4 * t * (0.6 - t)), vec3f(0.0), vec3f(1.0)) * smoothstep(0.0, 0.15, t);
}

@fragment fn pixel(@builtin(position) at: vec4f) -> @location(0) vec4f {
    let x = min(u32(at.x), view.width - 1u);
    let y = min(u32(at.y), view.height - 1u);
    let value = values[view.offset + y * view.row + x];
    let t = clamp((value - view.low) / (view.high - view.low), 0.0, 1.0);
    if (view.palette == 0u) { return vec4f(diverging(2.0 * t - 1.0), 1.0); }
    return vec4f(sequential(t), 1.0);
}
`;

export const palettes = ["diverging", "sequential"]; // by their numbers in the shader

/**
 * Draws arrays on the canvas. `helper` is the driver's side in JavaScript: it has the device, its
 * buffers by number, and the chain through which all work on the device goes.
 */
export function createPainter(helper, canvas) {
  const { device } = helper;
  const context = canvas.getContext("webgpu");
  const format = navigator.gpu.getPreferredCanvasFormat();
  context.configure({ device, format, alphaMode: "opaque" });
  const module = device.createShaderModule({ code: shader, label: "playground canvas" });
  const pipeline = device.createRenderPipeline({
    layout: "auto",
    vertex: { module },
    fragment: { module, targets: [{ format }] },
  });
  const uniforms = device.createBuffer({ size: 32, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
  const groups = new WeakMap(); // of the buffers drawn so far: an animation has two or three

  function groupOf(buffer) {
    if (!groups.has(buffer)) {
      groups.set(buffer, device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [{ binding: 0, resource: { buffer } }, { binding: 1, resource: { buffer: uniforms } }],
      }));
    }
    return groups.get(buffer);
  }

  return {
    /** Draw elements `offset + y * row + x` of a buffer, after all work handed over so far. */
    draw(number, offset, row, low, high, palette) {
      const buffer = helper.buffers.get(number);
      helper.enqueue(() => this.drawNow(buffer, offset, row, low, high, palette));
    },
    drawNow(buffer, offset, row, low, high, palette) {
      const view = new ArrayBuffer(32);
      new Uint32Array(view).set([canvas.width, canvas.height, offset, row]);
      new Float32Array(view, 16, 2).set([low, high]);
      new Uint32Array(view, 24, 1).set([palettes.indexOf(palette)]);
      device.queue.writeBuffer(uniforms, 0, view);
      const encoder = device.createCommandEncoder();
      const target = context.getCurrentTexture().createView();
      const pass = encoder.beginRenderPass({
        colorAttachments: [{ view: target, loadOp: "clear", storeOp: "store" }],
      });
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, groupOf(buffer));
      pass.draw(3);
      pass.end();
      device.queue.submit([encoder.finish()]);
    },
    destroy() {
      uniforms.destroy();
      context.unconfigure();
    },
  };
}

/** The same without a GPU, for arrays in Python's own memory. */
export function createHostPainter(canvas) {
  const context = canvas.getContext("2d");
  const picture = context.createImageData(canvas.width, canvas.height);
  const smooth = (t) => t * t * (3 - 2 * t), limited = (t) => Math.min(Math.max(t, 0), 1);
  const mix = (from, to, t) => from.map((value, i) => value + (to[i] - value) * t);
  const paper = [0.96, 0.96, 0.97];
  const colours = { // as the shader's
    diverging: (t) => t < 0.5
      ? mix(paper, [0.05, 0.28, 0.63], smooth(1 - 2 * t))
      : mix(paper, [0.78, 0.16, 0.11], smooth(2 * t - 1)),
    sequential: (t) => [1.5 * t, 1.6 * t * t, 0.35 + 1.4 * t * (0.6 - t)]
      .map((value) => limited(value) * smooth(limited(t / 0.15))),
  };
  return {
    draw(values, low, high, palette) {
      const table = Array.from({ length: 256 }, (_, i) => colours[palette](i / 255).map((c) => 255 * c));
      for (let i = 0; i < values.length; i++) {
        const t = limited((values[i] - low) / (high - low)) || 0; // NaN is drawn as the lowest
        picture.data.set(table[Math.round(255 * t)], 4 * i);
        picture.data[4 * i + 3] = 255;
      }
      context.putImageData(picture, 0, 0);
    },
    destroy() {},
  };
}
