"""The choice between two devices for calls of one kind, by what they take on each.

Calls begin at home: where the arrays of the arguments are. When two of them were measured, they are
compared with what the other device is expected to take. If that is not clearly more, a few calls
are run there and measured, too; from then on the device with the smaller mean is taken. What was
measured may have been disturbed, or may change: so the slower device is tried again from time to
time, seldom enough that it costs two percent of the time at most.

There is no clock here: the caller measures, and states what a call took.
"""

from __future__ import annotations

from treadle.runtime.costs import Estimate

# Times as long as at home, from which on an expected time decides without a trial; more where the
# estimate for home was wrong.
CLEAR = 5.0
_MEASURED = 2  # calls on each device that are measured before they are compared
_FIRST_RETRIAL = 64  # calls after the comparison; twice as many before each further one
_SHARE = 50  # times what a trial costs has to be spent before it
_TRACE = 1.0  # seconds that the first call on a device takes, with its compilers
_SAMPLED = 64  # calls, of which one is measured where the device has to be waited for
_QUICKLY_SAMPLED = 8  # the same where a call ends with its results
_CONSIDERED = 1024  # calls before one is considered where nothing is tried
_WEIGHT = 0.25  # of the newest call in the mean
_OUTLIER = 2.0  # times the mean: what a call counts at most


class Mean:
    """The exponentially weighted mean of what calls took on a device.

    The first calls are warming up, so the least of these counts; a call that was interrupted by
    something else counts no more than twice the mean.
    """

    __slots__ = ("count", "seconds")

    def __init__(self, seconds: float = 0.0, count: int = 0) -> None:
        self.seconds = seconds
        self.count = count

    def add(self, seconds: float) -> None:
        """Add what a call took."""
        self.count += 1
        if self.count == 1:
            self.seconds = seconds
        elif self.count <= _MEASURED + 1:
            self.seconds = min(self.seconds, seconds)
        else:
            seconds = min(seconds, _OUTLIER * self.seconds)
            self.seconds += _WEIGHT * (seconds - self.seconds)

    def lower(self, seconds: float) -> None:
        """Add what a call took on the slower device: if it was quicker than ever, that counts."""
        if seconds < self.seconds:
            self.seconds = seconds
        else:
            self.add(seconds)

    @property
    def is_known(self) -> bool:
        """Whether enough calls were measured to compare it."""
        return self.count >= _MEASURED


class Choice:
    """Where calls of one kind run: at home or on the other device. `pinned` is why they can only
    run at home; it is empty if they can run on both."""

    __slots__ = (
        "_is_away", "_left", "away", "calls", "estimated", "home", "is_compared", "is_corrected",
        "is_recalled", "is_retrial", "pinned", "retrials", "saved",
    )  # fmt: skip

    def __init__(self, pinned: str = "") -> None:
        self.home = Mean()
        self.away = Mean()
        self.pinned = pinned
        self.estimated: Estimate | None = None  # for the other device
        self.is_corrected = False  # whether what calls took there has corrected further estimates
        self.is_recalled = False  # whether the means began as an earlier process's
        self.is_retrial = False  # whether the slower device is tried again, until that is measured
        self.is_compared = False  # whether both were compared before
        self.retrials = 0
        self.saved: tuple[float, float] | None = None  # the means as they are on disk
        self.calls = 0  # up to the last one that was considered
        self._is_away = False
        self._left = 0  # calls before the next one that is considered

    @property
    def is_best_away(self) -> bool:
        """Whether the other device has the smaller mean."""
        return self.away.is_known and self.away.seconds < self.home.seconds

    @property
    def needs_estimate(self) -> bool:
        """Whether it depends on an estimate what the next call does."""
        return (
            not self.pinned
            and self.home.is_known
            and not self.away.is_known
            and self.estimated is None
        )

    @property
    def is_trial(self) -> bool:
        """Whether calls run on the other device because of an estimate."""
        estimated, home = self.estimated, self.home
        if estimated is None or self.away.is_known or not home.is_known:
            return False
        if estimated.seconds < CLEAR * estimated.doubt * home.seconds:
            return True
        # The estimate may be wrong; a trial is worth it where much time has been spent at home.
        return self.calls * home.seconds > _SHARE * (_TRACE + 3 * estimated.seconds)

    @property
    def is_settled(self) -> bool:
        """Whether the device of further calls is known, but for new trials."""
        if self.pinned:
            return True
        if not self.home.is_known:
            return False
        return self.away.is_known or (self.estimated is not None and not self.is_trial)

    def next_settled(self) -> bool | None:
        """Whether the next call runs on the other device, where there is nothing to consider; else
        None, and `next_considered` tells."""
        left = self._left
        if left > 0:
            self._left = left - 1
            return self._is_away
        return None

    @property
    def is_sample(self) -> bool:
        """Whether the current call is one of those that are measured where that takes time."""
        return self.is_retrial or self._left % _SAMPLED == 0

    @property
    def is_quick_sample(self) -> bool:
        """Whether the current call is one of those that are measured where that takes none."""
        return self.is_retrial or self._left % _QUICKLY_SAMPLED == 0

    def next_considered(self) -> bool:
        """Whether the next call runs on the other device. The following calls that need no
        consideration are settled, too."""
        self.calls += 1
        self.is_retrial = False
        self._is_away = False
        if not self.is_settled:
            return self.is_trial
        if self.pinned or not self.away.is_known:
            self._settle(_CONSIDERED)
            return False
        self._is_away = best = self.is_best_away
        means = self.home.seconds, self.away.seconds
        ratio = min(max(means) / max(min(means), 1e-12), 1e6)
        if self.is_compared:
            self.is_retrial = True
            self.retrials += 1
        self.is_compared = True
        self._settle(max(_FIRST_RETRIAL << min(self.retrials, 16), round(_SHARE * ratio)))
        return best is not self.is_retrial

    def took(self, away: bool, seconds: float) -> None:
        """Add what a call took on one of the devices."""
        mean = self.away if away else self.home
        before = self.is_best_away
        if self.is_retrial and away is not self._is_away:
            mean.lower(seconds)
        else:
            mean.add(seconds)
        self.is_retrial = False
        if self._left:
            self._is_away = best = not self.pinned and self.is_best_away
            if best is not before:
                self.retrials = 0

    def pin(self, why: str) -> None:
        """Run all calls at home from here on."""
        self.pinned = self.pinned or why
        self._left = 0

    def _settle(self, calls: int) -> None:
        self.calls += calls
        self._left = calls
