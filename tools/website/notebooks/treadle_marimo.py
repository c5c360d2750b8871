"""treadle in a marimo notebook that runs in the browser."""

import marimo

app = marimo.App(width="medium", app_title="treadle in a notebook")


@app.cell
def _():
    import marimo as mo

    mo.md(
        """
        # treadle in a notebook

        Everything here runs in this page: Python, and the kernels on your own GPU. Move the slider.
        """
    )
    return (mo,)


@app.cell
async def _(mo):
    import micropip
    from pyodide.http import pyfetch

    # treadle and what it depends on lie beside this notebook.
    folder = f"{mo.notebook_location()}/public"
    names = await (await pyfetch(f"{folder}/wheels.txt")).string()
    await micropip.install([f"{folder}/{name}" for name in names.split()], deps=False)

    import numpy as np
    import treadle as td

    await td.init()  # asks the browser for its GPU
    mo.md(f"Device: **{td.default_device().name}**")
    return np, td


@app.cell
def _(td):
    @td.kernel
    def saxpy(a, x, y):
        i = td.grid(1)
        y[i] = a * x[i] + y[i]

    return (saxpy,)


@app.cell
def _(mo):
    factor = mo.ui.slider(0, 10, value=2, label="factor")
    factor
    return (factor,)


@app.cell
async def _(factor, mo, np, saxpy, td):
    n = 10_000
    x, y = td.arange(n, dtype=td.float32), td.ones(n)
    saxpy.launch(n, float(factor.value), x, y)
    result = await y.numpy_async()
    error = abs(result - (factor.value * np.arange(n) + 1)).max()
    mo.md(f"sum: `{result.sum(dtype=np.float64):.0f}`, largest error: `{error}`")
    return


if __name__ == "__main__":
    app.run()
