"""All trials, and the kernels that are not tried."""

from __future__ import annotations

from tools.cuda_corpus.spec import Excluded, Trial
from tools.cuda_corpus.trials import (
    concepts,
    domain,
    features,
    groups,
    groups_llmc,
    introduction,
    llmc,
    llmc_development,
    platforms,
    polybench,
    rodinia,
    wider,
)
from tools.cuda_corpus.trials.excluded import EXCLUDED

__all__ = ["ALL", "BEYOND", "EXCLUDED", "MORE", "TRIALS", "Excluded", "Trial"]

# The kernels that are counted: every one that is not excluded.
TRIALS: tuple[Trial, ...] = (
    *introduction.TRIALS,
    *concepts.TRIALS,
    *features.TRIALS,
    *domain.TRIALS,
    *platforms.TRIALS,
    *llmc.TRIALS,
    *llmc_development.TRIALS,
)

# Of the excluded ones, those that are tried all the same.
BEYOND: tuple[Trial, ...] = (*groups.TRIALS, *groups_llmc.TRIALS, *wider.TRIALS)

# Of benchmark suites that were not asked for.
MORE: tuple[Trial, ...] = (*polybench.TRIALS, *rodinia.TRIALS)

ALL: tuple[Trial, ...] = (*TRIALS, *BEYOND, *MORE)
