"""Pairs that look alike and must never share an answer, and pairs that may; written by us."""

from __future__ import annotations

_OPPOSITES = [
    (
        "How do I {} automatic payments?",
        "open/close enable/disable start/stop activate/deactivate turn on/turn off allow/block",
    ),
    (
        "How can I {} my account?",
        "lock/unlock open/close activate/deactivate create/delete connect/disconnect",
    ),
    ("What happens if I {} the stock now?", "buy/sell purchase/sell"),
    ("How do I {} the file?", "upload/download encrypt/decrypt compress/decompress import/export"),
    ("What is the {} temperature for this room?", "maximum/minimum highest/lowest best/worst"),
    ("Is it {} to mix these two?", "safe/dangerous legal/illegal healthy/unhealthy"),
    ("What are the {} of remote work?", "advantages/disadvantages pros/cons benefits/drawbacks"),
    ("How do I {} weight quickly?", "gain/lose"),
    ("Which shop sells the {} shoes?", "cheapest/most-expensive men's/women's"),
    ("How do I {} this app?", "install/uninstall"),
    ("Can I {} the invitation?", "accept/reject accept/decline send/receive"),
    ("What should I eat {} training?", "before/after"),
    ("Can I go {} water?", "with/without above/below"),
    ("How do I {} money at the machine?", "deposit/withdraw"),
    ("怎么{}自动扣款", "开通/关闭 开启/关闭 打开/关掉 开通/取消 启用/停用"),
    ("如何{}空调制热", "打开/关闭 开/关"),
    ("现在应该{}股票吗", "买入/卖出 买/卖"),
    ("怎样{}文件", "上传/下载 加密/解密 压缩/解压 导入/导出"),
    ("怎么{}这个软件", "安装/卸载 登录/退出"),
    ("这里{}温度是多少", "最高/最低 最大/最小"),
    ("这样做有什么{}", "好处/坏处 优点/缺点 优势/劣势"),
    ("{}适合穿什么衣服", "男生/女生 早上/晚上 夏天/冬天"),
    ("How do I {} the brightness?", "increase/decrease raise/lower"),
    ("Is the {} entrance open?", "north/south front/back left/right"),
    ("怎么{}体重", "增加/减少"),
    ("饭{}可以吃药吗", "前/后"),
    ("我要{}一笔钱给朋友", "借/还"),
    ("如何{}好友申请", "同意/拒绝 接受/拒绝"),
    ("手机音量怎么调{}", "大/小 高/低"),
]
_NEGATIONS = [
    ("Can I take this with milk?", "Can't I take this with milk?"),
    ("Foods that contain gluten", "Foods that do not contain gluten"),
    ("Why does my phone charge?", "Why doesn't my phone charge?"),
    ("Which plans include roaming?", "Which plans don't include roaming?"),
    ("Who should take aspirin?", "Who should not take aspirin?"),
    ("Is the shop open with a reservation?", "Is the shop open without a reservation?"),
    ("哪些人可以喝酒", "哪些人不可以喝酒"),
    ("为什么手机能充电", "为什么手机不能充电"),
    ("收到退款怎么办", "没收到退款怎么办"),
    ("登录成功后怎么办", "登录不成功怎么办"),
    ("哪些商品支持退货", "哪些商品不支持退货"),
    ("会员免费吗需要付费", "会员免费吗无需付费"),
]
_NUMBERS = [
    ("How do I cook rice for {} people?", "3/30 4/5 two/ten 12/21"),
    ("What is {} percent of my salary?", "3/30 15/50 5/0.5"),
    ("What are the laws of {}?", "1999/2009 2023/2024"),
    ("Is {} dollars a good price for a bike?", "100/1,000 300/3000"),
    ("How many calories are in {} grams of bread?", "20/200 50/500"),
    ("Can I return goods after {} days?", "7/17 three/thirty 14/40"),
    ("What happened on {}?", "3/4/2020/4/3/2020"),
    ("{}天可以退货吗", "3/30 七/十七 两/二十"),
    ("贷款{}万元每月还多少", "3/30 三/三十 十/二十"),
    ("{}岁的孩子吃什么", "一/三 两/十二 8/18"),
    ("{}点的车票还有吗", "3/13 八/九"),
    ("{}年的政策是什么", "2023/2024 二〇二三/二〇二四"),
    ("Which {} songs are the most played?", "10/100 twenty/fifty"),
    ("体温{}度要紧吗", "37/39 三十七/三十九"),
]
_ENTITIES = [
    ("What is the capital of {}?", "Pakistan/India China/Japan Peru/Chile Ghana/Kenya Oman/Qatar"),
    ("what is the population of {}", "pakistan/india spain/portugal botswana/eswatini peru/chile"),
    ("How do I learn {} quickly?", "Python/Java Spanish/French guitar/piano"),
    ("Where is the {} office in town?", "Google/Microsoft Visa/Mastercard Siemens/Bosch"),
    ("Who is the founder of {}?", "Tesla/Toyota Acme/Globex"),
    ("How far is it to {}?", "London/Paris Leeds/York"),
    ("How do I cancel my {} subscription?", "Netflix/Spotify Hulu/Dropbox"),
    ("How do I clean a {} shirt?", "red/white silk/cotton"),
    ("What should I feed my {}?", "dog/cat rabbit/hamster"),
    ("Is there a bus on {}?", "Monday/Sunday Friday/Saturday"),
    ("How long is one {} in metres?", "mile/yard foot/inch"),
    ("{}的首都是哪里", "巴基斯坦/印度 法国/德国 秘鲁/智利"),
    ("{}有什么好玩的地方", "北京/上海 广州/深圳 丽江/大理"),
    ("怎么注销{}账号", "微信/支付宝 京东/淘宝 知乎/豆瓣"),
    ("{}手机怎么截图", "华为/小米 苹果/三星"),
    ("{}是什么乐器", "二胡/琵琶 古筝/唢呐"),
    ("{}怎么做好吃", "鸡肉/牛肉 土豆/茄子"),
    ("{}天气怎么样", "今天/明天 周一/周五"),
    ("{}的作者是谁", "红楼梦/西游记 三体/活着"),
    ("我想学{}", "英语/日语 钢琴/吉他"),
]
_DIRECTIONS = [
    ("How do I convert {0} to {1}?", "USD/EUR miles/kilometers PDF/Word Celsius/Fahrenheit"),
    ("Translate this from {0} to {1}", "English/Chinese French/German"),
    ("Flights from {0} to {1}", "Paris/Rome Leeds/Dublin Boston/Miami"),
    ("Can {0} eat {1}?", "cats/mice sharks/whales"),
    ("Is {0} bigger than {1}?", "Mars/Venus Texas/France"),
    ("How do I move photos from my {0} to my {1}?", "phone/laptop camera/tablet"),
    ("Did {0} beat {1}?", "Chelsea/Arsenal Nadal/Federer"),
    ("从{0}到{1}怎么走", "北京/上海 机场/车站 学校/医院"),
    ("{0}比{1}大吗", "火星/金星 上海/北京"),
    ("怎么把{0}换成{1}", "美元/欧元 积分/现金"),
    ("{0}转{1}怎么操作", "移动/联通 图片/文字"),
    ("{0}给{1}转账收费吗", "微信/支付宝 工行/农行"),
    ("{0}和{1}谁打败了谁", "曹操/刘备"),
    ("{0}能吃{1}吗", "老虎/狮子"),
]
_QUESTIONS = [
    ("When was the bridge built?", "Where was the bridge built?"),
    ("Who built the bridge?", "Why was the bridge built?"),
    ("How much does the bridge weigh?", "How long is the bridge?"),
    ("这座桥什么时候建的", "这座桥为什么建的"),
    ("这座桥在哪里", "这座桥多少钱"),
]
ALIKE = [
    ("How do I reset my password?", "How can I reset my password?"),
    ("What is the capital of France?", "what's the capital of France"),
    ("What should I eat to lose weight?", "what to eat to lose weight"),
    ("Could you tell me how to boil an egg?", "How do I boil an egg?"),
    ("Where can I buy cheap shoes?", "Where do I buy cheap shoes?"),
    ("What are the best ways of learning chess?", "What is the best way to learn chess?"),
    ("How do I cook rice for 3 people?", "How can I cook rice for three people?"),
    ("怎么重置密码", "如何重置密码?"),
    ("请问怎么退货", "怎么退货呢"),
    ("北京有什么好玩的地方", "北京有哪些好玩的地方？"),
    ("三天可以退货吗", "3天可以退货吗"),
    ("手机怎么截图", "手机如何截图啊"),
    ("能不能退货", "能退货吗"),
]


def hard_pairs() -> list[tuple[str, str]]:
    """Every pair of every kind."""
    pairs = [*_NEGATIONS, *_QUESTIONS]
    for template, options in [*_OPPOSITES, *_NUMBERS, *_ENTITIES]:
        pairs += [
            (template.format(one), template.format(other)) for one, other in _options(options)
        ]
    for template, options in _DIRECTIONS:
        pairs += [
            (template.format(one, other), template.format(other, one))
            for one, other in _options(options)
        ]
    return pairs


def _options(text: str) -> list[tuple[str, str]]:
    for phrase in ("turn on", "turn off"):
        text = text.replace(phrase, phrase.replace(" ", "_"))
    found: list[tuple[str, str]] = []
    for option in text.split():
        parts = option.replace("_", " ").split("/")
        half = len(parts) // 2
        found.append(("/".join(parts[:half]), "/".join(parts[half:])))
    return found
