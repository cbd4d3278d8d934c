"""How long the cloud tiers take: p90 of the last five minutes, with a prior."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from services.common.vocabulary import Target
from services.router.policy.config import LatencyPolicy
from services.router.policy.facts import CloudFacts

WINDOW_S = 300.0
_MAX_SAMPLES = 512
# Under this many samples one slow answer would be the p90, so the prior is kept.
_MIN_SAMPLES = 5
_QUANTILE = 0.9
# So many probes in a row, each in this share of the p90, end a slow spell.
_PROBES = 3
_RECOVERED_SHARE = 0.5


class CloudLatency:
    """Keeps the duration of whole answers by tier; `now` is monotonic seconds."""

    def __init__(self) -> None:
        self._samples: dict[Target, deque[tuple[float, float]]] = {
            target: deque(maxlen=_MAX_SAMPLES)
            for target in (Target.CLOUD_SMALL, Target.CLOUD_LARGE)
        }
        self._quick_probes = dict.fromkeys(self._samples, 0)

    def took(self, target: Target, duration_ms: float, now: float) -> None:
        """Takes in one whole answer of a cloud tier."""
        self._samples[target].append((now, duration_ms))

    def probed(self, target: Target, duration_ms: float, now: float) -> None:
        """Takes note of a probe, whose answer `took` has taken in like any other.

        A tier that nobody uses gets no other samples, and nine of ten would have to be quick
        before a p90 shows it: a few quick probes in a row tell that the slow ones are history.
        """
        samples = self._samples[target]
        slow_ms = _p90(samples)
        quick = duration_ms < _RECOVERED_SHARE * slow_ms
        self._quick_probes[target] = self._quick_probes[target] + 1 if quick else 0
        if self._quick_probes[target] >= _PROBES:
            self._quick_probes[target] = 0
            samples.clear()
            samples.append((now, duration_ms))

    def facts(self, prior: LatencyPolicy, now: float) -> dict[Target, CloudFacts]:
        """Both tiers as they are now."""
        return {
            Target.CLOUD_SMALL: self._facts(Target.CLOUD_SMALL, prior.cloud_small_prior_ms, now),
            Target.CLOUD_LARGE: self._facts(Target.CLOUD_LARGE, prior.cloud_large_prior_ms, now),
        }

    def _facts(self, target: Target, prior_ms: float, now: float) -> CloudFacts:
        samples = self._samples[target]
        while samples and samples[0][0] < now - WINDOW_S:
            samples.popleft()
        if len(samples) < _MIN_SAMPLES:
            return CloudFacts(prior_ms)
        return CloudFacts(_p90(samples))


def _p90(samples: Collection[tuple[float, float]]) -> float:
    ordered = sorted(duration for _, duration in samples)
    return ordered[int(_QUANTILE * (len(ordered) - 1))] if ordered else 0.0
