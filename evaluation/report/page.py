"""The page: HTML with everything inside. No script, no address outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--paper:#fff;--line:#d1d9e0;
 --tile:#f6f8fa}
@media (prefers-color-scheme:dark){
 :root{--ink:#e6edf3;--soft:#9198a1;--paper:#0d1117;--line:#3d444d;--tile:#151b23}}
@media print{:root{--ink:#000;--soft:#444;--paper:#fff;--line:#bbb;--tile:#fff}
 section,svg,table,.tiles{break-inside:avoid}body{max-width:none;padding:0}}
body{margin:0 auto;max-width:60rem;padding:2rem 1.25rem;background:var(--paper);color:var(--ink);
 font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0}h2{font-size:1.2rem;margin:2.5rem 0 .75rem}
p,figcaption{color:var(--soft);margin:.4rem 0}figure{margin:1rem 0}svg{max-width:100%;height:auto}
.tiles{display:flex;flex-wrap:wrap;gap:.75rem;margin:1.5rem 0}
.tiles div{background:var(--tile);border:1px solid var(--line);border-radius:8px;
 padding:.7rem 1rem;flex:1 1 8rem}
.tiles b{display:block;font-size:1.35rem}.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.92rem}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:right}
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600}
.warn{border-left:4px solid #d9822b;padding-left:.75rem;color:var(--ink)}
"""


def page(title: str, subtitle: str, parts: Iterable[str]) -> str:
    """A whole document."""
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # Without it a browser asks the server for an icon.
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></header>\n"
        f"<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def section(title: str, *parts: str) -> str:
    """A heading and what stands under it."""
    return f"<section><h2>{escape(title)}</h2>\n" + "\n".join(parts) + "</section>"


def tiles(pairs: Iterable[tuple[str, str]]) -> str:
    """Figures in boxes."""
    boxes = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in pairs)
    return f'<div class="tiles">{boxes}</div>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are text."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></div>"
    )


def picture(svg: str, caption: str) -> str:
    """An inline SVG with words under it."""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def text(words: str, *, warning: bool = False) -> str:
    """A paragraph."""
    return f'<p class="warn">{escape(words)}</p>' if warning else f"<p>{escape(words)}</p>"
