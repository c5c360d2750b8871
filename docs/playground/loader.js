// Starts the playground on its own page alone. The theme changes pages without loading them anew,
// so it says when there is another one (`document$`), and the playground of the last one ends.

let end = null;

window.document$.subscribe(async () => {
  end?.();
  end = null;
  const root = document.querySelector(".playground");
  if (!root) return;
  try {
    const { start } = await import(new URL("page.js", import.meta.url).href);
    end = await start(root);
  } catch (error) {
    root.dataset.state = "absent";
    root.querySelector("[data-part=status]").textContent =
      `The playground's program could not be loaded (${error.message}). In a clone, "make serve" builds it.`;
  }
});
