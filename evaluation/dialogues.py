"""Generated support dialogues with known constraints, English and Chinese.

Each constraint is a sentence that a customer said in an older turn, among small talk, and that
the answer to the last turn must respect. Written by us; the same seed gives the same set.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

_EN_CONSTRAINTS = (
    "I am allergic to {food}.",
    "Please do not call me before {hour} o'clock.",
    "I cannot be at home on {day}.",
    "My budget is at most {amount} dollars.",
    "Only deliver if my neighbour is there to sign.",
    "Never charge the card that ends with the blue logo.",
    "The return has to be done before {day}.",
    "Unless it comes with a charger, I don't want it.",
    "I need {count} of them, not fewer.",
    "It must work without an internet connection.",
)
_EN_SAYS = (
    "Thanks, that helps a lot.",
    "I see, the display looks fine to me now.",
    "My sister uses the same model and likes it.",
    "The colour is nice and the box arrived in good shape.",
    "Okay, I will have a look at the settings page.",
)
_EN_REPLIES = (
    "Thank you for reaching out to us, we are happy to help you with this.",
    "I understand that this is frustrating and I am sorry for the trouble that it caused you.",
    "Please open the settings page, choose your profile, and have a look at the section there.",
    "Our team looks at every message with care and answers as quickly as possible.",
    "You can find the full description of the device on the product page of our shop.",
    "Let me explain how the process works so that you know what happens next.",
    "The warehouse prepares the parcel, the carrier picks it up, and you receive a message.",
    "It is a popular choice among our customers because it is light and easy to use.",
    "We keep improving the service, and your feedback is very welcome.",
    "Please let us know in case anything else comes up, we are here for you.",
)
_EN_LAST = ("So what do you suggest for my order?", "Can you now arrange everything for me?")
_ZH_CONSTRAINTS = (
    "我对{food}过敏。",
    "请不要在{hour}点之前打电话。",
    "{day}我不在家。",
    "我的预算最多{amount}元。",
    "只有邻居在家才能送货。",
    "千万别从那张蓝色的卡扣款。",
    "退货必须在{day}之前办完。",
    "除非带充电器，否则我不买。",
    "我需要{count}个，不能少。",
    "没有网络也要能用。",
)
_ZH_SAYS = (
    "好的，谢谢你的帮助。",
    "明白了，屏幕现在看起来挺好的。",
    "我姐姐用的是同款，她很喜欢。",
    "颜色很好看，包装也很完整。",
    "行，我去设置页面看看。",
)
_ZH_REPLIES = (
    "感谢您联系我们，很高兴为您服务。",
    "非常理解您的心情，给您带来麻烦我们深感抱歉。",
    "请打开设置页面，选择个人资料，再查看相关的选项。",
    "我们的团队会认真阅读您的留言，并尽快答复您。",
    "商品的详细介绍可以在商城的产品页面找到。",
    "我先向您说明一下流程，方便您了解后续的安排。",
    "仓库会准备包裹，快递员上门揽收，随后您会收到短信通知。",
    "这款产品很受顾客欢迎，因为它轻便而且容易上手。",
    "我们在持续改进服务，欢迎您提出宝贵意见。",
    "还有其他问题请随时告诉我们，我们很乐意为您解答。",
)
_ZH_LAST = ("那我的订单你建议怎么处理？", "现在可以帮我安排好吗？")
_EN_SYSTEM = "You are a support assistant of a shop. Answer politely and keep what was agreed."
_ZH_SYSTEM = "你是商店的客服。请礼貌作答，并遵守顾客提出的条件。"


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One conversation.

    Attributes:
        turns: (role, text), the customer's first and last.
        constraints: Sentences of older turns that must survive.
        passages: (id, text, score).
    """

    language: str
    system: str
    turns: tuple[tuple[str, str], ...]
    constraints: tuple[str, ...]
    slots: tuple[tuple[str, str], ...]
    passages: tuple[tuple[str, str, float], ...]
    draft: str


def generate_dialogues(count: int, seed: int) -> list[Dialogue]:
    """`count` dialogues, English and Chinese in turn; 13 to 17 turns each."""
    draw = random.Random(seed)  # noqa: S311
    return [_dialogue(draw, "zh" if number % 2 else "en") for number in range(count)]


def _dialogue(draw: random.Random, language: str) -> Dialogue:
    chinese = language == "zh"
    said, replies = (_ZH_SAYS, _ZH_REPLIES) if chinese else (_EN_SAYS, _EN_REPLIES)
    join = "" if chinese else " "
    size = draw.randint(6, 8)
    stated = [_fill(draw, one, chinese) for one in draw.sample(_constraints(chinese), 3)]
    # Not in the last two turns of the customer, which are sent word for word anyway.
    places = draw.sample(range(size - 1), 3)
    turns: list[tuple[str, str]] = []
    for number in range(size):
        spoken = draw.sample(said, 2)
        if number in places:
            spoken.insert(draw.randint(0, 2), stated[places.index(number)])
        turns.append(("user", join.join(spoken)))
        turns.append(("assistant", join.join(draw.sample(replies, draw.randint(4, 6)))))
    turns.append(("user", draw.choice(_ZH_LAST if chinese else _EN_LAST)))
    return Dialogue(
        language=language,
        system=_ZH_SYSTEM if chinese else _EN_SYSTEM,
        turns=tuple(turns),
        constraints=tuple(stated),
        slots=(("order", f"A{draw.randint(1000, 9999)}"),),
        passages=tuple((f"p{n}", draw.choice(replies), draw.random()) for n in range(6)),
        draft=join.join(draw.sample(replies, 2)),
    )


def _constraints(chinese: bool) -> Sequence[str]:
    return _ZH_CONSTRAINTS if chinese else _EN_CONSTRAINTS


def _fill(draw: random.Random, template: str, chinese: bool) -> str:
    days = ("周一", "周三", "下周五") if chinese else ("Monday", "Friday", "next Sunday")
    foods = ("花生", "海鲜", "牛奶") if chinese else ("peanuts", "shellfish", "milk")
    return template.format(
        day=draw.choice(days),
        food=draw.choice(foods),
        hour=draw.randint(8, 11),
        amount=draw.randint(2, 90) * 10,
        count=draw.randint(2, 9),
    )
