"""The page's style sheet: light and dark by the reader's setting, narrow screens, print.

All rules are limited to .lens, so that they do not affect a notebook's own styles. The colours are those of svg.py, by
Okabe and Ito, which colour-blind readers can distinguish.
"""

from __future__ import annotations

from .page_maps import STYLE as CHOICES
from .svg import STYLE as PICTURES

FRAME = """
html{color-scheme:light dark;background:#fff}
@media (prefers-color-scheme:dark){html{background:#191918}}
@media print{html{background:#fff;color-scheme:light}}
body{margin:0}
body>.lens{max-width:74rem;margin:0 auto;padding:1.5rem 1.25rem 3rem}
body>.lens.two{max-width:110rem}
@media (max-width:40rem){body>.lens{padding:1rem .75rem 2rem}}
"""
"""Styles of a page of its own; a notebook's cell does not use them."""

STYLE = (
    PICTURES
    + CHOICES
    + """
.lens{color:var(--ink);background:var(--ground);font:16px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
-webkit-text-size-adjust:100%;text-size-adjust:100%}
.lens *{box-sizing:border-box}
.lens h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}
.lens h2{font-size:1.35rem;line-height:1.25;margin:0 0 .3rem}
.lens h3{font-size:1.1rem;margin:2rem 0 .5rem}
.lens h4{font-size:1rem;margin:1.2rem 0 .4rem}
.lens p{margin:.3rem 0;max-width:46rem}
.lens h1,.lens h2,.lens h3,.lens h4,.lens p,.lens dd,.lens li{overflow-wrap:anywhere}
.lens .quiet{color:var(--quiet);font-size:.9rem}
.lens code,.lens .source{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.85rem}
.lens h1 code,.lens h2 code{font-size:inherit}
.lens article+article{margin-top:3rem}
.lens .pair{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:2.5rem}
.lens .pair article+article{margin-top:0}
@media (max-width:62rem){.lens .pair{grid-template-columns:minmax(0,1fr);gap:4rem}}
.lens .launch{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem 1rem;margin:.6rem 0}
.lens .launch dt{color:var(--quiet)}.lens .launch dd{margin:0}
.lens .good{color:var(--good);font-weight:600}
.lens .problem{border-left:.4rem solid var(--hot);background:var(--panel);padding:.6rem 1rem;margin:.8rem 0;
max-width:60rem}
.lens .problem h4{margin:0 0 .2rem}.lens .problem ul{margin:.2rem 0;padding-left:1.2rem}
.lens .figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(11.5rem,1fr));gap:.6rem;margin:.6rem 0;
padding:0}
.lens .figures div{background:var(--panel);padding:.55rem .8rem;border-radius:.3rem;display:flex;
flex-direction:column-reverse;
justify-content:flex-end}
.lens .figures dt{color:var(--quiet);font-size:.85rem;line-height:1.3}
.lens .figures dd{margin:0;font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums}
.lens table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.lens .scroll{overflow-x:auto;max-width:100%}
.lens .scroll:focus-visible{outline:2px solid var(--used)}
.lens .scroll table{font-size:.92rem}
.lens .scroll th,.lens .scroll td{padding:.25rem .9rem .25rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--rule);
white-space:nowrap}
.lens .scroll th.number,.lens .scroll td.number{text-align:right}
.lens .scroll thead th{color:var(--quiet);font-weight:500}.lens .scroll tbody th{font-weight:500}
.lens table.source{width:100%;table-layout:fixed;border-top:1px solid var(--rule);border-bottom:1px solid var(--rule)}
.lens .source td,.lens .source th{padding:.08rem 0;vertical-align:top;text-align:left;font-weight:400}
.lens .source col.line{width:3.4rem}.lens .source col.cost{width:6.2rem}
.lens .source th.line{color:var(--quiet);text-align:right;padding-right:.7rem;border-left:.3rem solid transparent}
.lens .source tr.error th.line{border-left-color:var(--hot);color:var(--ink);font-weight:700}
.lens .source tr.costly th.line{border-left:.3rem double var(--edge);color:var(--ink)}
.lens .source tr.error,.lens .source tr.costly,.lens .source tr.fine{background:var(--panel)}
.lens .source .code{white-space:pre-wrap;overflow-wrap:anywhere}
.lens .source ul{list-style:none;margin:.1rem 0 .35rem;padding:0;
font-family:system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
font-size:.86rem;line-height:1.4}
.lens .source li{padding-left:1.1rem;text-indent:-1.1rem;color:var(--quiet)}
.lens .source li.costly,.lens .source li.error{color:var(--ink);font-weight:600}
.lens .source li b{display:inline-block;width:1.1rem;text-indent:0}
.lens .source li.error b{color:var(--hot)}.lens .source li.costly b{color:var(--edge)}
.lens .share{display:block;font-size:.75rem;line-height:1.25;margin-right:.6rem;padding-top:.1rem;color:var(--quiet);
font-family:system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.lens .bar{display:block;height:.35rem;background:var(--rule)}
.lens .bar i{display:block;height:100%;background:var(--used);print-color-adjust:exact;
-webkit-print-color-adjust:exact}
.lens .bar.shared i{background:repeating-linear-gradient(90deg,var(--store) 0 3px,transparent 3px 5px)}
.lens figure{margin:1rem 0 1.6rem}
.lens figcaption{font-weight:600;margin-bottom:.2rem;overflow-wrap:anywhere}
.lens figcaption span{display:block;font-weight:400;color:var(--quiet);font-size:.9rem}
.lens figure svg{max-width:max(100%,52rem);height:auto}
.lens figure svg:focus-visible{outline:2px solid var(--used);outline-offset:2px}
.lens .lens-roof{stroke:var(--ink);stroke-width:2;fill:none}
.lens .lens-ring{stroke:var(--ink);stroke-width:1.5;fill:var(--ground)}
.lens .here>*{outline:2px solid var(--ink);stroke:var(--ink);stroke-width:1.5}
.lens .said{display:block;min-height:1.4em;color:var(--quiet);font-size:.85rem}
.lens .choice{display:inline-flex;gap:.2rem .9rem;flex-wrap:wrap;border:0;margin:.2rem 1.5rem .5rem 0;padding:0;
font-size:.9rem}
.lens .choice[hidden]{display:none}
.lens .maps{display:flex;flex-wrap:wrap;gap:.5rem 2rem;align-items:flex-start}
.lens .maps>*{min-width:0;max-width:100%}
.lens .two article+article,.lens.two>article{margin-top:3rem;border-top:1px solid var(--rule);padding-top:1rem}
.lens .choice legend{float:left;color:var(--quiet);padding:0 .8rem 0 0}
.lens .problem.costly{border-left-style:double;border-left-color:var(--edge)}
.lens .problem .remedy{font-weight:600}
.lens .problem ul{color:var(--quiet);font-size:.92rem}
.lens .pair{margin-top:2.5rem}
.lens svg{print-color-adjust:exact;-webkit-print-color-adjust:exact}
@media (max-width:40rem){.lens .source col.line{width:2.6rem}.lens .source col.cost{width:4rem}
.lens .source{font-size:.78rem}
.lens .launch{grid-template-columns:minmax(0,1fr)}.lens .launch dd{margin-bottom:.3rem}
.lens .figures{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media (max-width:40rem){.lens .scroll tbody th{white-space:normal;min-width:7rem}}
@media print{.lens{font-size:10pt}.lens .scroll{overflow:visible}.lens svg{max-width:100%;height:auto}
.lens figure,.lens .problem,.lens .figures div,.lens tr{break-inside:avoid}
.lens h3,.lens h4,.lens figcaption{break-after:avoid}
.lens .pair{display:block}.lens .pair article+article{margin-top:2rem;break-before:page}
.lens .scroll th,.lens .scroll td{white-space:normal}}
"""
)
