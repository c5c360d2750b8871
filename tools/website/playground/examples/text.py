"""A language model

The file (about 105 MB) is fetched once, and stays in this browser's storage.
"""

import playground
import treadle as td

MODEL = "MODEL_URL"

path = await playground.file(MODEL)
model = td.models.load(path, context=256)
print(model)
async for piece in model.generate("The capital of France is", max_tokens=24):
    print(piece, end="", flush=True)
