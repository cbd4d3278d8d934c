"""What callers ask: a stated mix of tasks, languages, lengths and repeats, from one seed.

80 % simple (open questions of a line, and intents with fixed labels), 20 % complex (several
sentences; reasoning is asked for or amounts are computed); half English, half Chinese. A stated
share of requests repeats one of `POPULAR` questions, chosen by Zipf's law; the others are new.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SIMPLE_SHARE, LABEL_SHARE, CHINESE_SHARE, REPEAT_SHARE = 0.8, 0.25, 0.5, 0.4
POPULAR, ZIPF = 200, 1.1
LABELS = ("billing", "delivery", "returns", "account", "other")

_THINGS = {
    "en": [
        "invoice",
        "parcel",
        "password",
        "refund",
        "booking",
        "contract",
        "router",
        "battery",
        "printer",
        "passport",
    ],
    "zh": ["发票", "包裹", "密码", "退款", "预订", "合同", "路由器", "电池", "打印机", "护照"],
}
_PLACES = {
    "en": [
        "Lisbon",
        "Oslo",
        "Nairobi",
        "Lima",
        "Hanoi",
        "Quito",
        "Dublin",
        "Cairo",
        "Kyoto",
        "Perth",
    ],
    "zh": ["里斯本", "奥斯陆", "内罗毕", "利马", "河内", "基多", "都柏林", "开罗", "京都", "珀斯"],
}
_SIMPLE = {
    "en": [
        "How do I change the {thing} for my trip to {place}?",
        "Which office in {place} handles a lost {thing}?",
        "Write one friendly sentence about a {thing} from {place}.",
        "What should I check first when my {thing} does not arrive in {place}?",
    ],
    "zh": [
        "我在{place}的{thing}怎么修改?",
        "{place}哪个部门处理丢失的{thing}?",
        "写一句关于{place}的{thing}的话。",
        "{thing}没有送到{place},先查什么?",
    ],
}
_COMPLEX = {
    "en": [
        "Explain why a {thing} that passed every check in {place} still failed a week later. Go "
        "through the causes step by step, weigh them against each other, and say which evidence "
        "would rule each one out. {filler}",
        "Compare and contrast two ways to move every {thing} of our customers from {place} to a "
        "new system without an outage. Name the trade-offs, the order of steps, and the way back. "
        "{filler}",
    ],
    "zh": [
        "一批{thing}分三期付款运往{place},请计算实际年化利率,并一步一步说明每一步的理由。{filler}",
        "请分析把{place}的所有{thing}迁移到新系统的两种方案,比较各自的风险、成本和回退办法。{filler}",
    ],
}
_FILLER = {
    "en": "The last release moved part of the data and nobody has seen this before. ",
    "zh": "上一个版本迁移了部分数据,之前没有人遇到过这种情况。",
}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. `labels`: the answer must be one of `LABELS`."""

    text: str
    complex: bool
    labels: bool = False
    max_output_tokens: int = 48

    @property
    def task_type(self) -> str:
        """As a caller who knows its task names it."""
        return "intent_classification" if self.labels else "open_question"


def asks(seed: int) -> Iterator[Ask]:
    """Requests without end."""
    rng = random.Random(seed)
    # The same for every caller, so that one's question may be another's.
    popular = [_new(random.Random(number), f"p{number}") for number in range(POPULAR)]
    weights = list(itertools.accumulate(1.0 / rank**ZIPF for rank in range(1, POPULAR + 1)))
    for number in itertools.count():
        if rng.random() < REPEAT_SHARE:
            yield rng.choices(popular, cum_weights=weights)[0]
        else:
            yield _new(rng, f"{seed}-{number}")


def samples(file: Path, seed: int) -> Iterator[Ask]:
    """Redacted samples, drawn at random: JSON lines {"text", "complex", "max_output_tokens"}."""
    read = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
    rng = random.Random(seed)
    while True:
        one = rng.choice(read)
        yield Ask(one["text"], bool(one.get("complex")), False, one.get("max_output_tokens", 48))


def _new(rng: random.Random, mark: str) -> Ask:
    language = "zh" if rng.random() < CHINESE_SHARE else "en"
    hard = rng.random() >= SIMPLE_SHARE
    # 0 to 8 sentences more: complex prompts have 100 to 800 characters.
    filler = _FILLER[language] * min(8, int(rng.expovariate(0.4))) if hard else ""
    template = rng.choice((_COMPLEX if hard else _SIMPLE)[language])
    text = template.format(
        thing=rng.choice(_THINGS[language]), place=rng.choice(_PLACES[language]), filler=filler
    )
    labels = not hard and rng.random() < LABEL_SHARE
    # In letters: digits might be taken for personal data.
    word = "".join(chr(97 + int(digit)) if digit.isdigit() else digit for digit in mark)
    return Ask(f"{text} (ref {word})", hard, labels, 128 if hard else 48)
