"""Train a convolutional network on handwritten digits, and stop and go on as you like.

The 1797 digits of 8 by 8 pixels come with scikit-learn: pip install treadle[demo]. After each epoch
the whole run (model, optimizer, schedule, order of the pictures, random numbers) is saved, if there
is an --out; with --resume it goes on from there, with the same result to the last bit.

    python examples/image_classifier.py --out results
    python examples/image_classifier.py --out results --epochs 20 --resume
"""

from __future__ import annotations

import numpy as np
from showing import count, options, save

import treadle as td
from treadle import nn


def digits() -> tuple[td.data.TensorDataset, td.data.TensorDataset]:
    """Pictures to train and to test with."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise SystemExit(
            "The digits come with scikit-learn, which is not installed: pip install treadle[demo]"
        ) from None

    pixels, labels = load_digits(return_X_y=True)
    pictures = (pixels / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    order = np.random.default_rng(0).permutation(len(pictures))
    test, training = np.split(order, [len(order) // 5])
    return tuple(
        td.data.TensorDataset(pictures[part], labels[part].astype(np.int32))
        for part in (training, test)
    )


def network(device: td.Device) -> nn.Module:
    """Two convolutions, and two layers on top."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, device=device), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, device=device), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3),
        nn.Linear(32 * 4 * 4, 64, device=device), nn.ReLU(),
        nn.Linear(64, 10, device=device),
    )  # fmt: skip


class Run:
    """All that a training consists of, and its state as one value."""

    def __init__(self, training: td.data.TensorDataset, epochs: int, seed: int, device: td.Device):
        self.draws = td.manual_seed(seed)
        self.model = network(device)
        self.optimizer = td.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.loader = td.data.DataLoader(
            training, 64, shuffle=True, generator=seed, num_workers=1, device=device
        )
        self.schedule = td.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)
        self.losses: list[float] = []
        self.accuracies: list[float] = []

    @property
    def parts(self) -> dict:
        """What has a state."""
        return {
            "model": self.model, "optimizer": self.optimizer, "schedule": self.schedule,
            "loader": self.loader,
        }  # fmt: skip

    def state(self) -> dict:
        """What `td.save` writes."""
        return {
            **{name: part.state_dict() for name, part in self.parts.items()},
            "draws": self.draws.get_state(), "losses": self.losses, "accuracies": self.accuracies,
        }  # fmt: skip

    def resume(self, state: dict) -> None:
        """Be where the state was taken."""
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.draws.set_state(state["draws"])
        self.losses, self.accuracies = state["losses"], state["accuracies"]

    def epoch(self) -> None:
        """Learn from each picture once."""
        total = 0.0
        batches = td.data.progress(self.loader, f"epoch {self.loader.epoch + 1}")
        for pictures, labels in batches:
            loss = nn.functional.cross_entropy(self.model(pictures), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total = total + loss.detach()
            batches.set(loss=loss)
        self.schedule.step()
        self.losses.append(float(total) / len(self.loader))

    def read(self, pictures: td.Tensor) -> np.ndarray:
        """The digits that the network sees."""
        self.model.eval()
        with td.no_grad():
            found = td.argmax(self.model(pictures), axis=1).numpy()
        self.model.train()
        return found


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The accuracy on the test pictures."""
    parser = options(__doc__)
    parser.add_argument("--epochs", type=count, default=10, help="in all (10)")
    parser.add_argument("--resume", action="store_true", help="go on from the run saved in --out")
    given = parser.parse_args(arguments)
    device = td.device(given.device) if given.device else td.default_device()
    checkpoint = given.out and given.out / "image_classifier.safetensors"
    if given.resume and not (checkpoint and checkpoint.exists()):
        parser.error(f"there is nothing to resume: {checkpoint or 'name the folder with --out'}")

    training, test = digits()
    run = Run(training, given.epochs, given.seed, device)
    if given.resume:
        run.resume(td.load(checkpoint, device=device))
    pictures, labels = td.asarray(test.tensors[0], device=device), test.tensors[1]
    while run.loader.epoch < given.epochs:
        run.epoch()
        run.accuracies.append(float(np.mean(run.read(pictures) == labels)))
        print(f"epoch {run.loader.epoch}: loss {run.losses[-1]:.4f}, "
              f"{run.accuracies[-1]:.1%} of the test pictures are right")  # fmt: skip
        if checkpoint:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            td.save(run.state(), checkpoint)

    def draw(figure, axes):
        readings = run.read(pictures)
        order = np.argsort(readings == labels, kind="stable")  # what is wrong first
        for number, place in zip(order, figure.subplots(3, 10).flat, strict=False):
            place.imshow(test.tensors[0][number, 0], cmap="gray_r")
            place.set_axis_off()
            color = "0.2" if readings[number] == labels[number] else "crimson"
            place.set_title(str(readings[number]), color=color)

    curves = {"loss": run.losses, "accuracy": run.accuracies}
    save(given.out, "image_classifier", curves, draw, device=device.id)
    return run.accuracies[-1]


if __name__ == "__main__":
    main()
