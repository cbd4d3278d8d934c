"""Names, organizations and postal addresses by rule, English and Chinese. Off unless asked for.

Rules need a cue: a title, a phrase of introduction, a legal form, a street word. A name without
one is not found, so this never counts among the structured kinds and is reported apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from services.common.pii.span import PiiSpan


class EntityKind(StrEnum):
    """What a rule for free text finds."""

    PERSON = "PERSON"
    ORGANIZATION = "ORGANIZATION"
    ADDRESS = "ADDRESS"


# The hundred most frequent family names cover 85 % of people in China (Ministry of Public
# Security, 2020 report on names); compound ones beside them.
_FAMILY: Final = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩邓冯曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚"
    "沈钟姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常"
)
_COMPOUND: Final = "欧阳|司马|上官|诸葛|东方|皇甫|尉迟|公孙|慕容|司徒"
_CN_NAME: Final = rf"(?:{_COMPOUND}|[{_FAMILY}])[\u4e00-\u9fff]{{1,2}}"
_WORD: Final = r"[A-ZÀ-Þ](?:[a-zß-ÿ]+|['’][A-ZÀ-Þ][a-zß-ÿ]+)(?:['’\-][A-ZÀ-Þ]?[a-zß-ÿ]+)*"
_FULL: Final = rf"{_WORD}(?: (?:[A-Z]\.|de|van|von|der|da|del|bin|al))*(?: {_WORD}){{0,2}}"

_PERSON = re.compile(
    rf"\b(?:Mr|Mrs|Ms|Miss|Dr|Prof|Sir|Madam)\.? (?P<title>{_FULL})"
    rf"|\b(?i:my name is|name[’']?s|i am called|call me|this is|regards,?|sincerely,?|"
    rf"dear|signed by|on behalf of) (?P<intro>{_FULL})"
    rf"|(?:我叫|我是|名叫|姓名[:：是]?|联系人[:：是]?|收件人[:：是]?|客户)\s?(?P<cn>{_CN_NAME})"
    rf"|(?P<honoured>(?:{_COMPOUND}|[{_FAMILY}])[\u4e00-\u9fff]{{0,2}}?)"
    rf"(?:先生|女士|小姐|老师|经理|医生|律师|教授)"
)
_ORGANIZATION = re.compile(
    rf"\b(?P<en>(?:{_WORD}|[A-Z]{{2,}})(?:(?: (?:&|and|of))? (?:{_WORD}|[A-Z]{{2,}})){{0,4}},? "
    r"(?:Inc|Ltd|LLC|LLP|PLC|Corp|Corporation|Company|GmbH|AG|Holdings|Bank|University)\b\.?)"
    r"|(?P<cn>[\u4e00-\u9fff]{2,16}?(?:有限责任公司|股份有限公司|有限公司|集团|银行|大学|医院|事务所))"
)
_STREET: Final = (
    "Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Way|Terrace"
    "|Square|Sq|Highway|Hwy|Parkway|Crescent|Close"
)
_ADDRESS = re.compile(
    rf"\b(?P<en>\d{{1,5}}[A-Za-z]? (?:[NSEW]\.? )?(?:{_WORD} ){{1,4}}(?:{_STREET})\b\.?"
    r"(?:,? (?:Apt|Suite|Unit|Floor|#) ?[\w-]{1,6})?"
    rf"(?:,? {_WORD}(?: {_WORD})?)?(?:,? [A-Z]{{2}})?(?: \d{{5}}(?:-\d{{4}})?)?)"
    r"|(?P<box>\bP\.? ?O\.? Box \d{1,6})"
    r"|(?P<cn>(?:[\u4e00-\u9fff]{2,7}(?:省|自治区))?(?:[\u4e00-\u9fff]{2,7}(?:市|自治州))?"
    r"(?:[\u4e00-\u9fff]{1,7}(?:区|县|镇))?[\u4e00-\u9fff\d]{1,12}(?:路|街|道|巷|弄|胡同)"
    r"\d{1,5}(?:号|弄)(?:[\u4e00-\u9fff\d]{1,8}(?:栋|幢|座|楼|单元|室|层)){0,4})"
)
_RULES: Final = (
    (EntityKind.ADDRESS, _ADDRESS),
    (EntityKind.ORGANIZATION, _ORGANIZATION),
    (EntityKind.PERSON, _PERSON),
)
# Words that follow a cue and are no name.
_NO_NAME: Final = frozenset(
    {"The", "This", "That", "Your", "Sir", "Madam", "Team", "Customer", "All", "Support", "Not"}
)


class EntityDetector:
    """Finds kinds of `EntityKind`. Holds no state; time grows with the text alone."""

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        """Spans in order of their rule; of overlapping ones the longest is for `resolve`."""
        return tuple(self._found(text))

    def _found(self, text: str) -> Iterator[PiiSpan]:
        for kind, rule in _RULES:
            for match in rule.finditer(text):
                group = match.lastgroup
                if group is not None and match.group(group).split(" ")[0] not in _NO_NAME:
                    start, end = match.span(group)
                    yield PiiSpan(kind, start, end)
