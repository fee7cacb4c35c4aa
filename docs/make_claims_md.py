#!/usr/bin/env python3
"""Writes docs/claims.md from docs/claims.json. With --check: exits 1 if claims.md is out of date."""
import collections
import json
import pathlib
import sys

DOCS = pathlib.Path(__file__).resolve().parent
VERDICTS = {
    "TRUE": ("成立", "holds as stated<br>按原话成立"),
    "IMPRECISE": ("不精确", "holds only in a limit or under an unstated condition<br>只在极限或未写明的条件下成立"),
    "WRONG": ("有误", "a false number, direction or inference, or the notes contradict themselves<br>数字、方向或推理有错，或前后矛盾"),
    "UNDERSPECIFIED": ("未说清", "cannot be decided as written; what can be said is supplied<br>原话无法判定，补上能说的部分"),
}
CHAPTERS = {
    "ch00": "front and back matter / 卷首与取材说明", "ch01": "overview / 总览",
    "ch02": "data parallel / 数据并行", "ch03": "all-reduce / AllReduce",
    "ch04": "pipeline parallel / 流水线并行", "ch05": "tensor parallel / 张量并行",
    "ch06": "expert parallel / 专家并行", "ch07": "ZeRO", "ch08": "selection / 选型"}
INTRO = """\
# What the notes say, and what is right / 笔记的说法与正确说法

<!-- Written by make_claims_md.py from claims.json: change claims.json, then run it again. -->

This ledger lists what the course notes claim, {total} statements in our own words, each with a verdict and what is right.
"Shown in" names the chapter whose program prints the row: what is expected, what it measured, the verdict. The {doc} marked
`doc` are about the notes, the field or its tools, not about a run, and are shown only here. Derivation, formula, small
case and source of each stand in `claims.json`.

本清单列出课程笔记的 {total} 条说法（用我们自己的话转述），每条附结论和正确说法。“验证于”一栏是打印该条的章节程序：期望值、实测值、结论。
标 `doc` 的 {doc} 条说的是笔记本身、行业现状或工具，不是一次运行能测的，只列在这里。每条的推导、公式、小例子和出处见 `claims.json`。

| verdict / 结论 | meaning / 含义 | how many / 条数 |
|---|---|---:|
"""
HEADER = """
| id | where / 位置 | the notes say / 笔记的说法 | verdict / 结论 | what is right / 正确说法 | shown in / 验证于 |
|---|---|---|---|---|---|
"""

def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |\n"

def render(claims):
    count = collections.Counter(c["verdict"] for c in claims)
    text = INTRO.format(total=len(claims), doc=sum(c["shown_in"] == "doc" for c in claims))
    text += "".join(row(f"{v}<br>{zh}", meaning, count[v]) for v, (zh, meaning) in VERDICTS.items())
    for chapter, title in CHAPTERS.items():
        text += f"\n## {chapter}: {title}\n{HEADER}"
        text += "".join(row(c["id"], c["anchor"], f"{c['claim']}<br>{c['claim_zh']}",
                            f"{c['verdict']}<br>{VERDICTS[c['verdict']][0]}",
                            f"{c['right']}<br>{c['right_zh']}", c["shown_in"])
                        for c in claims if c["chapter"] == chapter)
    return text

target, text = DOCS / "claims.md", render(json.loads((DOCS / "claims.json").read_text("utf-8")))
if "--check" not in sys.argv[1:]:
    target.write_text(text, "utf-8")
elif not target.exists() or target.read_text("utf-8") != text:
    sys.exit("docs/claims.md is out of date: run docs/make_claims_md.py")
