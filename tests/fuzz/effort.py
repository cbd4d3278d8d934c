"""How long each test looks: seconds in CI, as long as wished by `TANDEM_FUZZ_EXAMPLES`."""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, settings

_EXAMPLES = int(os.environ.get("TANDEM_FUZZ_EXAMPLES", "80"))

EFFORT = settings(
    max_examples=_EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def damaged(good: bytes, seed: int, *, within: int | None = None) -> bytes:
    """`good` with a few bytes changed, taken out, doubled or cut off; from one seed."""
    rng, data = random.Random(seed), bytearray(good)
    for _ in range(rng.randint(1, 6)):
        if not data:
            break
        place = rng.randrange(min(len(data), within or len(data)))
        end = place + rng.choice([1, 1, 2, 4, 8, 40])
        match rng.randrange(6):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                data[place] ^= 1 << rng.randrange(8)
            case 2:
                del data[place:end]
            case 3:
                data[place:place] = data[place:end]
            case 4:
                data[place:end] = rng.choice([b"\xff" * 8, b"\x00" * 8, b"\x7f\xff\xff\xff", b"-1"])
            case _:
                if rng.random() < 0.2:
                    del data[place:]
    return bytes(data)
