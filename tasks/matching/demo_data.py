"""The embedded demo data: questions that mean the same or not, graded sentences, and cases of which one is closer.

Everything is made of the templates below by a seed; nothing is copied from a data set.
"""

import random
from pathlib import Path

from tasks.common.files import atomic_writer, write_json_lines

# Several ways to ask the same of a product.
INTENTS = (
    ("怎么申请{0}", "我想办理{0}，要什么手续", "开通{0}的步骤是什么", "请问{0}在哪里申请"),
    ("怎么注销{0}", "我不想用{0}了，如何取消", "{0}能不能关掉", "请帮我把{0}停用"),
    ("{0}的利率是多少", "{0}一年要付多少利息", "请问{0}怎么计息", "用{0}利息高不高"),
    ("{0}的额度怎么提高", "我的{0}额度太低了，想多一点", "如何增加{0}的额度", "{0}可以提额吗"),
    ("{0}忘记密码怎么办", "{0}的密码想不起来了", "如何重置{0}的密码", "{0}密码丢了怎么找回"),
    ("{0}逾期了会怎样", "没有按时还{0}有什么后果", "{0}晚还几天要紧吗", "{0}过期不还会罚款吗"),
    ("{0}的账单在哪里看", "怎么查{0}的账单", "我想看上个月{0}的明细", "{0}花了多少钱在哪儿查"),
)
PRODUCTS = ("信用卡", "储蓄卡", "房贷", "车贷", "消费贷", "备用金", "校园卡", "亲情卡", "公积金贷款", "商户贷")
# A graded sentence has one part of each row; the grade of two sentences is the number of parts that they share.
SENTENCE = (
    ("昨天", "今天早上", "上个星期", "周末"),
    ("小王", "老师", "我妹妹", "那位司机"),
    ("在公园", "在图书馆", "在车站", "在家里"),
    ("和朋友", "一个人", "跟邻居"),
    ("下棋", "看书", "唱歌", "吃饭", "等人"),
)
# A case has one fact of each row; each fact is told in one of two ways.
FACTS = (
    (("因做生意缺钱", "因生意周转需要资金"), ("因购房需要", "为买房子"), ("为孩子治病", "因子女住院")),
    (("借款三万元", "借到人民币叁万元"), ("借款十万元", "借到人民币拾万元"), ("借款五十万元", "借到人民币伍拾万元")),
    (("约定月息二分", "说好每月利息百分之二"), ("没有约定利息", "双方未谈利息"), ("约定年息一成", "说好年利百分之十")),
    (("由其兄担保", "其兄签字作保证人"), ("以房屋抵押", "用一套房子作抵押"), ("没有担保", "未提供任何担保")),
    (("到期后分文未还", "期满一直没有归还"), ("只还了利息", "仅支付过利息"), ("还了一半", "已归还半数")),
    (("有借条为证", "出具了借条"), ("以银行转账交付", "款项通过银行转入"), ("以现金交付", "当面给付现金")),
)
SURNAMES = "王李张刘陈杨赵黄周吴"
SIZES = {"train": 600, "dev": 150}
NUM_TRIPLES = 240


def pair(random):
    """(question, question, "0" or "1"): half mean the same; the others differ in product or in what is asked."""
    (first, second), product = random.sample(range(len(INTENTS)), 2), random.choice(PRODUCTS)
    one, other = random.sample(INTENTS[first], 2)
    if random.random() < 0.5:
        return one.format(product), other.format(product), "1"
    if random.random() < 0.5:
        return one.format(product), random.choice(INTENTS[second]).format(product), "0"
    return one.format(product), other.format(random.choice([p for p in PRODUCTS if p != product])), "0"


def graded_pair(random):
    """(sentence, sentence, grade from 0 to 5)."""
    one = [random.choice(parts) for parts in SENTENCE]
    shared = random.sample(range(len(SENTENCE)), random.randint(0, len(SENTENCE)))
    other = [
        part if place in shared else random.choice([p for p in parts if p != part])
        for place, (part, parts) in enumerate(zip(one, SENTENCE))
    ]
    return "".join(one), "".join(other), str(len(shared))


def triples(random, count):
    """Cases A, B and C without a label: B shares four or five of the six facts of A, C one or two."""
    records = []
    while len(records) < count:
        facts = [random.randrange(len(row)) for row in FACTS]
        case = _case(random, facts)
        for _ in range(2):  # each A has two triples, as there are several of a document in published data
            closer, farther = (_changed(random, facts, random.randint(*range_)) for range_ in ((1, 2), (4, 5)))
            records.append({"A": case, "B": _case(random, closer), "C": _case(random, farther)})
    return records[:count]


def _changed(random, facts, count):
    changed = random.sample(range(len(FACTS)), count)
    return [
        random.choice([f for f in range(len(row)) if f != fact]) if place in changed else fact
        for place, (fact, row) in enumerate(zip(facts, FACTS))
    ]


def _case(random, facts):
    lender, borrower = random.sample(SURNAMES, 2)
    told = "，".join(random.choice(row[fact]) for fact, row in zip(facts, FACTS))
    return f"原告{lender}某。\n\n原告{lender}某诉称，被告{borrower}某{told}。请求判令被告{borrower}某偿还借款。"


def write_demo_data(folder, seed=0):
    """Write ``pairs_train.tsv``, ``pairs_dev.tsv``, ``grades_train.tsv``, ``grades_dev.tsv`` and ``triples.jsonl``.

    Args:
        folder: an existing folder.
        seed: another seed gives other texts.

    Returns:
        The paths, in this order.
    """
    folder, paths = Path(folder), []
    for kind, make in (("pairs", pair), ("grades", graded_pair)):
        for split, size in SIZES.items():
            draw = random.Random(f"{seed} {kind} {split}")
            paths.append(folder / f"{kind}_{split}.tsv")
            with atomic_writer(paths[-1]) as file:
                file.writelines("\t".join(make(draw)) + "\n" for _ in range(size))
    paths.append(folder / "triples.jsonl")
    write_json_lines(paths[-1], triples(random.Random(f"{seed} triples"), NUM_TRIPLES))
    return paths
