"""All trials, and the kernels that are not tried."""

from __future__ import annotations

from tools.cuda_corpus.spec import Excluded, Trial
from tools.cuda_corpus.trials import (
    concepts,
    domain,
    features,
    introduction,
    llmc,
    llmc_development,
    platforms,
)
from tools.cuda_corpus.trials.excluded import EXCLUDED

__all__ = ["EXCLUDED", "TRIALS", "Excluded", "Trial"]

TRIALS: tuple[Trial, ...] = (
    *introduction.TRIALS,
    *concepts.TRIALS,
    *features.TRIALS,
    *domain.TRIALS,
    *platforms.TRIALS,
    *llmc.TRIALS,
    *llmc_development.TRIALS,
)
