"""The style sheet of the page: light, dark and printed, from a telephone's width up."""

from __future__ import annotations

__all__ = ["STYLE"]

#: Shades of cells, from faint to strong, as opacities that leave texts readable.
_OPACITIES = (0.07, 0.13, 0.19, 0.26, 0.33, 0.4, 0.47, 0.54)


def _shades() -> str:
    return "\n".join(
        f".right{k}{{background:rgb(var(--good)/{share})}}"
        f".wrong{k}{{background:rgb(var(--bad)/{share})}}"
        for k, share in enumerate(_OPACITIES, 1)
    )


_LIGHT = """
--paper:#ffffff;--card:#f5f7fa;--ink:#1b1f24;--soft:#596170;--rule:#dfe3ea;
--first:#1f5fa8;--second:#b3541e;--faint:#8d97a8;--good:31 122 86;--bad:194 40 28;--warn:#8a5a00;
--warn-paper:#fff6e0;"""
_DARK = """
--paper:#14171c;--card:#1d2229;--ink:#e8ebf0;--soft:#a2abb9;--rule:#323944;
--first:#7db3f2;--second:#f0a36b;--faint:#727d8e;--good:74 178 132;--bad:240 98 84;--warn:#f0c060;
--warn-paper:#33290f;"""

STYLE = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
*{{box-sizing:border-box}}
html{{-webkit-text-size-adjust:100%}}
body{{margin:0 auto;padding:1.5rem 1rem 3rem;max-width:62rem;background:var(--paper);
color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",
"DejaVu Sans",sans-serif;overflow-wrap:break-word}}
h1{{font-size:1.7rem;line-height:1.2;margin:0 0 .4rem;overflow-wrap:anywhere}}
h2{{font-size:1.25rem;margin:0 0 .7rem;padding-top:.9rem;border-top:2px solid var(--ink)}}
h3{{font-size:1rem;margin:1.2rem 0 .4rem}}
p{{margin:.5rem 0;max-width:46rem}}
.about{{color:var(--soft);margin:0 0 1rem}}
.lead{{font-size:1.05rem}}
small,figcaption,caption,footer{{color:var(--soft);font-size:.86rem;font-weight:normal}}
section{{margin-top:2.2rem}}
a{{color:var(--first)}}
code,pre{{font-family:ui-monospace,"SF Mono","DejaVu Sans Mono",monospace;font-size:.88em}}
pre{{background:var(--card);border-radius:.4rem;padding:.6rem .8rem;white-space:pre-wrap;
overflow-wrap:anywhere}}
.cards{{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.2rem,1fr));gap:.6rem;
margin:1rem 0}}
.cards div{{background:var(--card);border-radius:.5rem;padding:.7rem .8rem;display:flex;
flex-direction:column-reverse;justify-content:flex-end}}
.cards dt{{color:var(--soft);font-size:.84rem;line-height:1.3}}
.cards dd{{margin:0;font-size:1.5rem;line-height:1.25;font-weight:650;
font-variant-numeric:tabular-nums}}
.cards .warn dt::before{{content:"\\26a0\\fe0e  "}}
.cards .warn dt{{color:var(--warn)}}
nav ul{{list-style:none;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;margin:0;padding:0}}
nav a{{display:inline-block;padding:.3rem 0}}
.note,.warning{{border-left:.25rem solid var(--rule);background:var(--card);padding:.6rem .8rem;
border-radius:0 .4rem .4rem 0}}
.warning{{border-color:var(--warn);background:var(--warn-paper)}}
.beside .scroll{{margin:0}}
.beside{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));
gap:1rem 1.6rem;align-items:start;margin:.8rem 0}}
figure{{margin:0}}
figcaption{{min-height:2.6em}}
figcaption strong{{color:var(--ink)}}
svg{{display:block;width:100%;max-width:32rem;height:auto;overflow:visible}}
svg text{{font-size:11px;fill:var(--soft);font-family:inherit;font-variant-numeric:tabular-nums}}
svg .name{{fill:var(--ink)}}
svg .mid{{text-anchor:middle}}
svg .end{{text-anchor:end}}
svg path{{fill:none}}
.grid{{stroke:var(--rule)}}
.axis{{stroke:var(--soft)}}
.asked{{stroke:var(--soft);stroke-dasharray:4 3}}
.line{{stroke-width:2;stroke-linejoin:round}}
.line.thin{{stroke-width:1}}
.line.first{{stroke:var(--first)}}
.line.second{{stroke:var(--second)}}
.line.faint{{stroke:var(--faint);stroke-width:1.2}}
.dot.first{{fill:var(--first);fill-opacity:.85}}
.dot.second{{fill:var(--second)}}
.dot.faint{{fill:none;stroke:var(--faint);stroke-width:1.2}}
svg .ink-first{{fill:var(--first)}}
svg .ink-second{{fill:var(--second)}}
svg .ink-faint{{fill:var(--soft)}}
.mark{{fill:none;stroke:var(--ink);stroke-width:2}}
.column{{fill:var(--first);fill-opacity:.75}}
.scroll{{overflow-x:auto;margin:1rem 0;max-width:100%}}
table{{border-collapse:collapse;min-width:min(100%,22rem);font-size:.92rem;font-variant-numeric:tabular-nums}}
caption{{text-align:left;padding-bottom:.35rem;font-size:.92rem;color:var(--ink);font-weight:600}}
caption span{{position:sticky;left:0;display:inline-block;max-width:min(100%,calc(100vw - 2rem))}}
th,td{{padding:.28rem .55rem;text-align:left;vertical-align:top;
border-bottom:1px solid var(--rule)}}
th:first-child{{padding-left:0}}
thead th{{color:var(--soft);font-weight:600;font-size:.82rem;vertical-align:bottom}}
tbody th{{font-weight:normal;overflow-wrap:anywhere;min-width:5rem;max-width:20rem}}
td{{max-width:24rem;overflow-wrap:break-word}}
.n{{text-align:right;white-space:nowrap}}
.marked{{background:var(--card)}}
.marked th,.marked td{{font-weight:650}}
.bar{{display:block;width:5.5rem;height:.55rem;margin-top:.42rem;background:var(--card);
border-radius:.2rem}}
.bar span{{display:block;height:100%;background:var(--first);border-radius:.2rem}}
.bar .plus{{background:rgb(var(--good))}}
.bar .minus{{background:rgb(var(--bad))}}
.matrix{{font-size:.82rem;min-width:0}}
.matrix th{{min-width:0;white-space:nowrap;padding-left:.2rem}}
.matrix td{{text-align:right;border:1px solid var(--rule);padding:.22rem .35rem;min-width:2.1rem}}
.matrix .corner{{border:0;text-align:left;color:var(--soft);vertical-align:bottom;
min-width:5.5rem;white-space:normal;padding-left:0}}
.matrix thead th{{padding:.2rem .1rem;text-align:left;height:6.5rem}}
.matrix thead th>span{{writing-mode:vertical-rl;transform:rotate(180deg);max-height:6.3rem;
overflow:hidden}}
{_shades()}
.error{{margin:.9rem 0;padding:.6rem .8rem;background:var(--card);border-radius:.5rem}}
.error h3{{margin:0 0 .3rem}}
.error small{{white-space:normal}}
.tokens{{display:flex;flex-wrap:wrap;gap:.25rem .5rem;margin:0;max-width:none}}
.token{{display:inline-flex;flex-direction:column;max-width:100%;overflow-wrap:anywhere}}
.labels{{font-size:.72rem;line-height:1.25;color:var(--soft);min-height:1.25em}}
.token.bad mark{{background:rgb(var(--bad)/.2);color:inherit;border-radius:.2rem;padding:0 .2rem}}
.labels del{{color:rgb(var(--bad))}}
.labels ins{{color:rgb(var(--good));text-decoration:none;font-weight:650}}
details{{margin:.4rem 0}}
summary{{cursor:pointer;padding:.25rem 0;color:var(--first)}}
.by-label{{margin:1rem 0;display:grid;gap:0 1.6rem;
grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr))}}
.by-label h3{{grid-column:1/-1}}
footer{{margin-top:3rem;border-top:1px solid var(--rule)}}
@media (max-width:30rem){{
.bars thead th{{font-size:.74rem}}
body{{padding-top:1rem}}
h1{{font-size:1.4rem}}
th,td{{padding-left:.35rem;padding-right:.35rem}}
table{{font-size:.85rem}}
.bar{{width:2.6rem}}
tbody th{{max-width:9.5rem}}
td:not(.n){{overflow-wrap:anywhere}}
.cards{{grid-template-columns:1fr 1fr}}
.cards dd{{font-size:1.3rem}}
}}
@media print{{
:root{{{_LIGHT}}}
body{{max-width:none;padding:0;font-size:10pt}}
*{{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
nav{{display:none}}
.scroll{{overflow:visible}}
.beside .scroll,.by-label details{{grid-column:1/-1}}
figure,.error,tr{{break-inside:avoid}}
h2,h3,caption{{break-after:avoid}}
details::details-content{{content-visibility:visible;block-size:auto}}
summary{{color:var(--ink);font-weight:600;list-style:none}}
a{{color:inherit;text-decoration:none}}
}}
"""
