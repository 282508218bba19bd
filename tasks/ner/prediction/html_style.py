"""The style sheet of :mod:`tasks.ner.prediction.html`.

A type sets ``--c``, its colour as "red green blue", ``--ink`` on it and ``--edge``; a mark sets ``--h``, the boxes
stacked in it. Types and scores are generated content: they are not in the way of searching or copying the text.
"""

STYLE = """\
:root { color-scheme: light dark; --paper: #ffffff; --text: #1b1e24; --quiet: #626a76; --rule: #e3e6ea; --tint: .13 }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181d; --text: #e6e8eb; --quiet: #9aa3af; --rule: #2c3038; --tint: .26 }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 60rem; padding: 0 1.25rem 4rem; background: var(--paper); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans CJK SC", "Noto Sans SC", "PingFang SC",
  "Microsoft YaHei", sans-serif }
header { position: sticky; top: 0; z-index: 1; padding: 1.25rem 0 .75rem; background: var(--paper);
  border-bottom: 1px solid var(--rule) }
h1 { margin: 0; font-size: 1.15rem; font-weight: 600; overflow-wrap: anywhere }
header p { margin: .15rem 0 .6rem; color: var(--quiet); font-size: .85rem }
ul { display: flex; flex-wrap: wrap; gap: .35rem .9rem; max-height: 30vh; margin: 0; padding: 0; overflow-y: auto;
  list-style: none; font-size: .85rem; color: var(--quiet); font-variant-numeric: tabular-nums }
.name { padding: .1em .55em; border-radius: .3em; background: rgb(var(--c)); color: var(--ink); font-weight: 500 }
section { display: flex; gap: 1rem; border-bottom: 1px solid var(--rule); scroll-margin-top: 9rem;
  content-visibility: auto; contain-intrinsic-height: auto 4rem }
section a { flex: none; width: 2.5rem; padding-top: .95rem; color: var(--quiet); font-size: .75rem; text-align: right;
  text-decoration: none; font-variant-numeric: tabular-nums }
section a:target { color: var(--text); font-weight: 700 }
section p { flex: 1; min-width: 0; min-height: 2.1em; margin: .6rem 0; padding-right: .8rem;
  font-size: 1.0625rem; white-space: pre-wrap;
  overflow-wrap: anywhere; line-height: calc(2.1em + var(--lines, 0) * .62em) }
mark { --h: 0; margin: 0 .1em; padding: calc(.16em + var(--h) * .27em) .22em; border: var(--edge) rgb(var(--c));
  border-radius: .35em; background: rgb(var(--c) / var(--tint)); color: inherit;
  -webkit-box-decoration-break: clone; box-decoration-break: clone }
mark::after { content: "\\2060" attr(data-type) " " attr(data-score); margin-left: .35em; padding: .12em .4em;
  border-radius: .3em; background: rgb(var(--c)); color: var(--ink); font-size: .65em; font-weight: 500;
  vertical-align: .12em; white-space: nowrap; font-variant-numeric: tabular-nums }
mark.goes-on-right { border-right-style: dashed; border-top-right-radius: 0; border-bottom-right-radius: 0 }
mark.goes-on-left { border-left-style: dashed; border-top-left-radius: 0; border-bottom-left-radius: 0 }
mark.goes-on-right::after { content: "\\2060" attr(data-type) " \\2192" }
mark.goes-on-left::after { content: "\\2060\\2192  " attr(data-type) " " attr(data-score) }
mark.goes-on-left.goes-on-right::after { content: "\\2060\\2192  " attr(data-type) " \\2192" }
@media (max-width: 36rem) {
  body { padding: 0 .75rem 2rem }
  header { position: static }
  section { gap: .5rem; scroll-margin-top: 0 }
  section a { width: 1.5rem }
}
@media print { header { position: static } section { break-inside: avoid } mark, .name { print-color-adjust: exact } }
"""
