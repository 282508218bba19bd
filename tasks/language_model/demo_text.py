"""Generated Chinese sentences for trying the language model without any data: not language, but with order in it."""

import numpy as np

_PEOPLE = "张王李赵陈刘周吴"
_PLACES = ("学校", "公园", "车站", "医院", "书店", "市场")
_THINGS = ("苹果", "报纸", "电脑", "雨伞", "茶杯", "地图")
_TIMES = ("早上", "中午", "下午", "晚上")
_SENTENCES = (
    "{time}，小{who}从{place}去{other}，路上买了{thing}。",
    "小{who}{time}在{place}等小{friend}，手里拿着{thing}。",
    "{thing}是小{who}的，小{friend}{time}把{thing}送到{place}。",
    "小{friend}问小{who}：“{thing}在{place}还是在{other}？”小{who}说：“在{other}。”",
)


def demo_documents(count=150, sentences=8, seed=0):
    """``count`` short documents, each about two people who keep their names throughout."""
    random = np.random.default_rng(seed)
    documents = []
    for _ in range(count):
        who, friend = random.choice(list(_PEOPLE), 2, replace=False)
        lines = []
        for _ in range(sentences):
            place, other = random.choice(_PLACES, 2, replace=False)
            thing, time = random.choice(_THINGS), random.choice(_TIMES)
            sentence = str(random.choice(_SENTENCES))
            lines.append(sentence.format(who=who, friend=friend, place=place, other=other, thing=thing, time=time))
        documents.append("".join(lines))
    return documents
