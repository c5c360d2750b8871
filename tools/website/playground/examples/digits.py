"""Digits, trained here

A network learns to read digits while you watch, and then reads yours.
"""

import playground
import treadle as td
from treadle import nn

pictures, labels = await playground.digits()  # 1797 of 8 by 8 pixels
pictures = td.asarray(pictures.reshape(-1, 64))
labels = td.asarray(labels)
known = 1536  # to learn from; the others are to test with

td.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 10))
optimizer = td.optim.AdamW(model.parameters(), lr=4e-3)


@td.compile
def learn(pictures, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(pictures), labels)
    loss.backward()
    optimizer.step()
    return loss


chart = playground.Chart("Loss while training", log=True)
for _epoch in range(12):
    for start in range(0, known, 128):
        loss = learn(pictures[start : start + 128], labels[start : start + 128])
        chart.add(await loss.numpy_async())

with td.no_grad():
    guesses = await td.argmax(model(pictures[known:]), axis=1).numpy_async()
right = (guesses == await labels[known:].numpy_async()).mean()
print(f"right on {right:.1%} of {len(guesses)} digits it has not seen")

box = playground.Sketch(8, "Draw a digit")
async for drawing in box.strokes():
    with td.no_grad():
        scores = nn.functional.softmax(model(td.asarray(drawing.reshape(1, 64))), dim=1)
    scores = (await scores.numpy_async())[0]
    box.say(f"{scores.argmax()} ({scores.max():.0%})")
