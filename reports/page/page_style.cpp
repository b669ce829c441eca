#include "reports/page/page_style.hpp"

namespace spiked::reports {

const char* const page_style = R"css(
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--paper:#fff;--line:#d5dae0;--stripe:#f5f7f9;--link:#0058a3;
--pass:#00684a;--fail:#b3261e;--open:#8a5300;--pass-bg:#e4f4ee;--fail-bg:#fdeceb;--open-bg:#fff3dc}
@media (prefers-color-scheme:dark){:root{--ink:#e3e7eb;--soft:#a3acb6;--paper:#14181d;--line:#353c45;--stripe:#1b2027;
--link:#7fbcff;--pass:#5fd3a8;--fail:#ff9c92;--open:#f2bd5c;--pass-bg:#12312a;--fail-bg:#3d1c1b;--open-bg:#3a2c10}}
@media (prefers-color-scheme:dark){
/* colours of curves, as gnuplot writes them, lightened */
.plot [stroke="rgb(  0,  76, 127)"]{stroke:#4a7fd0}
.plot [color="rgb(  0,  76, 127)"]{color:#4a7fd0}
.plot [fill="rgb(  0,  76, 127)"]{fill:#4a7fd0}
.plot [stroke="rgb(166,  60,   0)"]{stroke:#e8743b}
.plot [color="rgb(166,  60,   0)"]{color:#e8743b}
.plot [fill="rgb(166,  60,   0)"]{fill:#e8743b}
.plot [stroke="rgb(  0, 158, 115)"]{stroke:#17a577}
.plot [color="rgb(  0, 158, 115)"]{color:#17a577}
.plot [fill="rgb(  0, 158, 115)"]{fill:#17a577}
.plot [stroke="rgb(207, 124,   0)"]{stroke:#e69f00}
.plot [color="rgb(207, 124,   0)"]{color:#e69f00}
.plot [fill="rgb(207, 124,   0)"]{fill:#e69f00}
.plot [stroke="rgb( 21, 115, 209)"]{stroke:#56b4e9}
.plot [color="rgb( 21, 115, 209)"]{color:#56b4e9}
.plot [fill="rgb( 21, 115, 209)"]{fill:#56b4e9}
.plot [stroke="rgb( 68,  68,  68)"]{stroke:#c8c8c8}
.plot [color="rgb( 68,  68,  68)"]{color:#c8c8c8}
.plot [fill="rgb( 68,  68,  68)"]{fill:#c8c8c8}
}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.2rem 1.4rem 4rem;max-width:1200px;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
h1{font-size:1.75rem;line-height:1.2;margin:.4rem 0 .2rem;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.4rem 0 .6rem;padding-bottom:.2rem;border-bottom:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.4rem 0 .3rem;overflow-wrap:anywhere}
h4{font-size:.98rem;margin:1.2rem 0 .3rem;overflow-wrap:anywhere}
article{margin-top:3rem;border-top:3px solid var(--line)}
a{color:var(--link)}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.92rem;margin:.6rem 0}
.facts,.note,figcaption{color:var(--soft)}
.facts{margin:0 0 1rem;overflow-wrap:anywhere}
.note,figcaption{font-size:.92rem}
figcaption{max-width:75ch}
code,pre{font:.86rem/1.45 ui-monospace,"DejaVu Sans Mono",Consolas,monospace}
code{overflow-wrap:anywhere}
pre{background:var(--stripe);border:1px solid var(--line);border-radius:4px;padding:.6rem .8rem;overflow-x:auto;
white-space:pre-wrap;overflow-wrap:anywhere}
.band{border:1px solid var(--line);border-left:6px solid var(--soft);border-radius:4px;padding:.7rem 1rem;margin:1rem 0}
.band p{margin:.15rem 0}
.band .word{font-size:1.15rem;font-weight:700}
.band.pass{border-left-color:var(--pass);background:var(--pass-bg)}
.band.fail{border-left-color:var(--fail);background:var(--fail-bg)}
.band.inconclusive{border-left-color:var(--open);background:var(--open-bg)}
.partial p{margin:0}
.partial{border:2px dashed var(--open);border-radius:4px;padding:.5rem 1rem;margin:1rem 0}
.v{font-weight:600;white-space:nowrap}
.v.pass{color:var(--pass)}.v.fail{color:var(--fail)}.v.inconclusive{color:var(--open)}
.scroll{overflow-x:auto;margin:.5rem 0}
table{border-collapse:separate;border-spacing:0;font-size:.88rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.2rem 0 .4rem;color:var(--ink);font-weight:600}
th,td{padding:.25rem .5rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th{border-bottom:2px solid var(--line);vertical-align:bottom}thead th.num{white-space:normal}
tbody tr:nth-child(even){background:var(--stripe)}
tbody tr:target{outline:2px solid var(--link)}
.num{text-align:right;white-space:nowrap}
td small{display:block;color:var(--soft)}
td .why{max-width:26rem}
td:not(.num):not(:has(.v)){min-width:8rem}
.wide{margin:.3rem 0 0}
details{margin:.4rem 0}
summary{cursor:pointer;color:var(--link)}
figure{margin:1.4rem 0 2rem}
svg.plot{display:block;max-width:100%;height:auto;margin:.4rem 0}
svg.plot image{image-rendering:pixelated}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:.6rem 0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
@media (max-width:600px){dl{grid-template-columns:1fr}
/* the labels of a figure stay readable: it scrolls sideways */
svg.plot{min-width:40rem}
/* a table that scrolls sideways keeps the names of its rows in sight, and its caption within the screen */
caption{max-width:calc(100vw - 3rem)}
th:first-child,td:first-child{position:sticky;left:0;background:var(--paper)}
td:first-child:not(.num):not(:has(.v)){min-width:4rem;max-width:12rem;overflow-wrap:break-word}
tbody tr:nth-child(even) td:first-child{background:var(--stripe)}
/* a check is a card with all its numbers */
.checks .wide,.checks thead{display:none}
.checks table,.checks tbody{display:block}
.checks tr{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;padding:.5rem;border-bottom:1px solid var(--line)}
.checks td,.checks td:first-child{position:static;background:none;border:0;padding:0;text-align:left;white-space:normal;overflow-wrap:anywhere}
.checks td:nth-child(3){grid-column:1/-1}
.checks td:nth-child(n+4)::before{display:block;color:var(--soft);font-size:.85em}
.checks td:nth-child(4)::before{content:"estimate"}
.checks td:nth-child(5)::before{content:"theory at this size"}
.checks td:nth-child(6)::before{content:"margin"}
.checks td:nth-child(7)::before{content:"interval"}
.checks td:nth-child(8)::before{content:"detectable"}
.checks td:nth-child(9)::before{content:"replicates"}
.checks td:nth-child(10)::before{content:"control"}}
@media print{:root{--ink:#000;--soft:#444;--paper:#fff;--line:#bbb;--stripe:#f4f4f4;--link:#000;--pass:#00684a;
--fail:#b3261e;--open:#8a5300;--pass-bg:#fff;--fail-bg:#fff;--open-bg:#fff}
html{font-size:10pt}body{max-width:none;padding:0;font-size:1rem}table{font-size:8pt}.wide{display:none}
/* a table of many columns has a sheet of its own, on its side; that of checks fits in small type */
.wide+.scroll table{font-size:6pt}@page wide{size:landscape}h3:has(+.wide),.wide+.scroll,details:has(>.wide){page:wide}
.checks .wide+.scroll{page:auto}.checks table{font-size:6.5pt}
td code{font-size:inherit}td:first-child code{white-space:nowrap}
th,td{padding:.15rem .3rem}td:not(.num):not(:has(.v)){min-width:0}
/* a figure is no higher than its sheet; data of figures and text for programs are left out where they are folded */
svg.plot{max-height:195mm}figure details:not([open]),details:has(>pre.machine):not([open]){display:none}
.scroll{overflow:visible}figure,tr,thead,dl{break-inside:avoid}h2,h3,h4,summary,caption,thead{break-after:avoid}nav{display:none}
/* the summary of claims, in small type */
main:has(.losses),main:has(.losses) :is(table,p,code){font-size:7pt;line-height:1.2;margin:0}main:has(.losses) :is(th,td){padding:.05rem .25rem}
main:has(.losses) h1{font-size:12pt}main:has(.losses) h2{font-size:9pt;margin:.4rem 0 .1rem}main:has(.losses) .scroll{margin:0}
.losses dl{display:block;columns:2;margin:0}.losses dd{margin-bottom:.1rem}
details::details-content{content-visibility:visible;display:block}}
)css";

}  // namespace spiked::reports
