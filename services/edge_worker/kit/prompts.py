"""Fixed texts on which built models are compared with the reference.

Written for this purpose: English prose and dialogue, code, tables, some Chinese, which
the model knows little of but must not break on.
"""

from __future__ import annotations

PROMPTS: tuple[str, ...] = (
    "The harbour was quiet that morning. Two boats had come in before dawn, and their crews were "
    "already mending nets on the stone wall. A woman with a basket of bread walked from one to "
    "the next, selling what she had baked in the night. Nobody spoke of the storm, although it "
    "had taken the roof of the old customs house and left it lying in the square.",
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nMy order has "
    "not arrived yet. What can I do?<|im_end|>\n<|im_start|>assistant\nI'm sorry to hear that. "
    "First, check the delivery status with the tracking number in your confirmation e-mail. If "
    "it has not moved for more than three days, contact the carrier and ask for an update.",
    "def moving_average(values: list[float], width: int) -> list[float]:\n"
    '    """Return the mean of each window of `width` values."""\n'
    "    if width < 1:\n        raise ValueError('width must be positive')\n"
    "    total = sum(values[:width])\n    result = [total / width]\n"
    "    for old, new in zip(values, values[width:]):\n        total += new - old\n"
    "        result.append(total / width)\n    return result\n",
    "Photosynthesis is the process by which plants turn light into chemical energy. Water and "
    "carbon dioxide are the raw materials; sugar and oxygen are the products. It takes place in "
    "the chloroplasts, which contain the green pigment chlorophyll.",
    "| city | population | founded |\n|---|---|---|\n| Lisbon | 545,000 | c. 1200 BC |\n"
    "| Oslo | 709,000 | 1040 |\n| Nairobi | 4,397,000 | 1899 |\n",
    "人工智能正在改变我们的生活。今天天气很好，我们去公园散步吧。请问怎么重置密码？",
    "SELECT customer_id, SUM(amount) AS total FROM orders WHERE created_at >= '2024-01-01' "
    "GROUP BY customer_id HAVING SUM(amount) > 1000 ORDER BY total DESC LIMIT 10;",
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nSummarize: "
    "The meeting was moved from Tuesday to Thursday because the hall was not free.<|im_end|>\n"
    "<|im_start|>assistant\nThe meeting now takes place on Thursday, as the hall was not "
    "available on Tuesday.<|im_end|>\n",
)

# Texts that set the ranges of the 8-bit cache; none of them is among PROMPTS, so that
# verification sees unknown text.
CALIBRATION: tuple[str, ...] = (
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHow do I bake "
    "bread at home?<|im_end|>\n<|im_start|>assistant\nMix flour, water, salt and yeast. Knead the "
    "dough for ten minutes, let it rise for an hour, shape a loaf and bake it at 220 degrees for "
    "about 30 minutes.<|im_end|>\n<|im_start|>user\nAnd without yeast?<|im_end|>\n"
    "<|im_start|>assistant\nUse baking soda and buttermilk instead.<|im_end|>\n",
    "<|im_start|>system\nClassify the message as one of: billing, delivery, returns, other. Answer "
    'with JSON {"label": "..."}.<|im_end|>\n<|im_start|>user\nI was charged twice for invoice '
    '#20418 on 3 May!<|im_end|>\n<|im_start|>assistant\n{"label": "billing"}<|im_end|>\n',
    "Once upon a time there was a little fox who lived near the sea. Every evening she climbed the "
    'highest dune and asked the lighthouse: "Who are you waiting for?" The lighthouse never '
    "answered, but its beam went round and round over the dark water until the morning came.",
    "import asyncio\n\n\nclass Bucket:\n    def __init__(self, rate: float, size: int) -> None:\n"
    "        self._rate = rate\n        self._tokens = float(size)\n\n"
    "    async def take(self, n: int = 1) -> bool:\n        # refill first\n"
    "        await asyncio.sleep(0)\n        if self._tokens >= n:\n"
    "            self._tokens -= n\n            return True\n        return False\n",
    "In 1905, Albert Einstein published four papers that changed physics: on the photoelectric "
    "effect, Brownian motion, special relativity, and the equivalence of mass and energy, "
    "E = mc^2. He received the Nobel Prize in 1921. The speed of light is 299,792,458 m/s.",
    "请问我的订单什么时候发货？密码忘了怎么办，我想修改收货地址。谢谢！北京的冬天很冷。",
    "# Release notes\n\n- **Fixed**: a crash when the list was empty (#312)\n- Added `--dry-run`\n"
    "- See <https://example.com/docs?page=2&lang=en>\n\n```sh\ncurl -s localhost:8080 | jq .\n"
    "```\n",
    "Sehr geehrte Damen und Herren, vielen Dank für Ihre Nachricht. ¿Dónde está la estación? "
    "Le café est fermé jusqu'à lundi. Привет, как дела? 1, 2, 3 … αβγ ✓ 😀",
)
