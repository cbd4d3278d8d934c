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
