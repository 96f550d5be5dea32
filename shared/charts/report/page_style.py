"""The page's style sheet: light and dark by the reader's setting, a phone's width, print.

The colours are those of the figures, which use the same variables, so that a figure has no edge.
"""

from __future__ import annotations

from shared.charts.drawing.colours import PALETTE
from shared.markup import palettes

_OWN = {"panel": ("#F4F5F7", "#1F232B"), "accent": ("#00568A", "#7CC4F0")}
"""Of boxes, and of links."""


def style() -> str:
    """The whole sheet."""
    return palettes(":root", {**PALETTE, **_OWN}) + _RULES


_RULES = """
html{color-scheme:light dark;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;-webkit-text-size-adjust:100%;text-size-adjust:100%}
*{box-sizing:border-box}
body{margin:0}
main{max-width:56rem;margin:0 auto;padding:2rem 1.5rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .4rem;letter-spacing:-.01em}
h2{font-size:1.35rem;line-height:1.25;margin:3rem 0 .8rem;padding-top:1.1rem;border-top:1px solid var(--rule)}
h3{font-size:1.02rem;line-height:1.35;margin:1.6rem 0 .4rem}
p,ul{max-width:46rem;margin:.5rem 0}
ul{padding-left:1.2rem}
li{margin:.25rem 0}
h1,h2,h3,p,li,dd,figcaption,summary{overflow-wrap:anywhere}
a{color:var(--accent);text-underline-offset:.15em}
.quiet{color:var(--quiet);font-size:.92rem}
.notice{border-left:.3rem solid #D55E00;background:var(--panel);padding:.6rem 1rem;max-width:46rem}
code{font:.88em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{background:var(--panel);border-radius:.35rem;padding:.7rem 1rem;max-width:46rem;overflow-x:auto;margin:.6rem 0}
.numbers{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:.8rem;margin:1.4rem 0;padding:0}
.numbers div{background:var(--panel);border-radius:.4rem;padding:.8rem 1rem}
.numbers dt{font-size:.88rem;font-weight:600}
.numbers dd{margin:.15rem 0 0;color:var(--quiet);font-size:.85rem;line-height:1.4}
.numbers dt+dd{color:var(--ink);font-size:1.3rem;line-height:1.3;font-weight:650;font-variant-numeric:tabular-nums}
.numbers small{font-size:.85rem;font-weight:400;color:var(--quiet);white-space:nowrap}
nav ul{columns:2 20rem;column-gap:2rem;max-width:none;list-style:none;padding:0;font-size:.95rem}
nav li{break-inside:avoid;margin:0;padding:.12rem 0}
figure{margin:2.6rem 0;scroll-margin-top:1rem}
figure svg{display:block;width:100%;max-width:44rem;height:auto;stroke-linejoin:round}
@media screen and (prefers-color-scheme:dark){figure .ink{filter:invert(1)}}
figcaption{max-width:46rem;color:var(--quiet);font-size:.92rem;margin-top:.5rem}
details{border-bottom:1px solid var(--rule);padding:.1rem 0}
details:first-of-type{border-top:1px solid var(--rule)}
summary{cursor:pointer;padding:.55rem 0;font-weight:600}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
summary span{font-weight:400;color:var(--quiet);font-size:.9rem}
details[open]{padding-bottom:1.1rem}
.scroll{overflow-x:auto;max-width:100%;margin:.6rem 0}
table{border-collapse:collapse;font-size:.88rem;line-height:1.4;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .95rem .28rem 0;text-align:left;vertical-align:top;white-space:nowrap;
border-bottom:1px solid var(--rule)}
thead th{color:var(--quiet);font-weight:500;vertical-align:bottom}
tbody th{font-weight:600}
.number{text-align:right}
tbody tr:hover{background:var(--panel)}
.wrap td,.wrap th{white-space:normal}
.wrap tbody th{min-width:12rem;font-weight:400}
.facts{display:grid;grid-template-columns:minmax(9rem,max-content) minmax(0,1fr);gap:.25rem 1.6rem;
margin:.8rem 0;font-size:.95rem}
.facts dt{color:var(--quiet)}
.facts dd{margin:0}
@media (max-width:36rem){
main{padding:1.2rem .8rem 3rem}
h1{font-size:1.55rem}
h2{margin-top:2.2rem}
.numbers{grid-template-columns:minmax(0,1fr);gap:.5rem}
.numbers div{padding:.6rem .8rem}
.facts{grid-template-columns:minmax(0,1fr);gap:0}
.facts dd{margin-bottom:.5rem}
figure{margin:2rem 0}
}
@media print{
html{color-scheme:light;font-size:10pt}
main{max-width:none;padding:0}
nav{display:none}
figure,.numbers div,tr{break-inside:avoid}
h2,h3,summary{break-after:avoid}
figure svg{width:80%}
.scroll{overflow:visible}
table{font-size:7.5pt}
th,td{white-space:normal;padding-right:.5rem}
details::details-content{content-visibility:visible;height:auto}
}
"""
