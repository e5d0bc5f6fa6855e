"""Words without a topic: stop words and fillers."""

from __future__ import annotations

STOP_WORDS = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "did", "do", "does", "for", "had", "has"),
        *("have", "he", "her", "his", "if", "in", "into", "is", "it", "no", "not", "of", "on", "or", "she"),
        *(
            "such",
            "that",
            "the",
            "their",
            "then",
            "there",
            "these",
            "they",
            "this",
            "to",
            "was",
            "will",
            "with",
        ),
        *("aren", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven", "isn", "ll", "re", "s"),
        *("shouldn", "t", "ve", "wasn", "weren", "won", "wouldn"),
    )
)
"""English words dropped from memories and cues; the last two lines are the remains of "don't", "isn't" and similar
words. "I", "my", "you" and "your" stay: they distinguish the user's turns from the assistant's, which matters in long
chats."""

QUESTION_WORDS = frozenset(
    (
        *("what", "when", "where", "who", "whom", "whose", "which", "why", "how", "whether"),
        *("can", "could", "should", "would", "many", "much", "kind", "type", "sort"),
    )
)
"""English words dropped from cues only: a memory may be about a band called "The Who"."""

STOP_CHARACTERS = frozenset("的了是在和与也都就而及着或吗呢吧啊")
"""Characters dropped as single terms; pairs with them stay."""

QUESTION_PHRASES = (
    *("为什么", "什么时候", "什么", "哪里", "哪儿", "哪个", "哪些", "哪", "多少", "怎么样", "怎样", "怎么"),
    *("如何", "何时", "何地", "请问", "谁", "几(?![乎何])", "吗", "呢"),
)
"""Chinese patterns removed from a cue before it is split, the longest first."""


_ENGLISH = """
i me my mine myself you your yours yourself we us our ours he him his she her hers they them their its it this
that these those here there who whom whose which what when where why how someone something anyone anything
everyone everything nobody nothing one ones other others another each every both either neither some any all
most many much more less few several such same own lot lots bit couple kind sort thing things stuff way ways
part am is are was were be been being do does did done doing have has had having will would can could shall
should may might must ought need needs needed want wants wanted let lets get gets got getting gotten go goes
going gone went come comes came coming make makes made making take takes took taken taking give gives gave
given giving put puts keep keeps kept say says said saying tell tells told telling ask asks asked asking think
thinks thought thinking know knows knew known knowing feel feels felt feeling seem seems seemed look looks
looked looking see sees saw seen seeing find finds found finding try tries tried trying use uses used using
like likes liked love loves loved hate hates hated prefer prefers enjoy enjoys enjoyed hope hopes hoped guess
mean means meant happen happens happened start starts started begin begins began stop stops stopped work works
worked call calls called help helps helped show shows showed talk talks talked talking hear heard believe
remember forget sound sounds decide decided decides chose choose chosen become became bring brought buy bought
meet met stay stayed turn turned set sat mind wish wonder wondering suggest plan planning plans planned move
moved moving join joined live lives lived living write writing wrote visit visited play plays played playing
run ran eat ate eating leave left learn learned send sent sell sold a an the and or but nor so if then than as
at by for from in into of off on onto out over to up down with without within about above across after again
against along among around because before behind below beside between beyond during except inside near outside
since through throughout toward towards under until unlike upon via while although though whether not no yes
yeah yep nope ok okay well just also too very really quite rather pretty almost always never ever often
sometimes usually already still yet only even maybe perhaps probably definitely actually basically certainly
finally however instead anyway otherwise soon later now once twice back away together alone else enough
especially exactly good great nice bad better best worse worst new old big small little long short high low
different sure right wrong fine happy sorry glad amazing awesome wonderful lovely cool fun interesting
important possible hi hello hey thanks thank please welcome congratulations wow oh ah hmm haha lol bye today
yesterday tomorrow tonight morning afternoon evening night day days week weeks weekend month months year years
hour hours minute minutes moment time times ago last next first second third recently lately monday tuesday
wednesday thursday friday saturday sunday january february march april june july august september october
november december zero two three four five six seven eight nine ten hundred thousand s t m d re ve ll don didn
doesn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain
"""
_CHINESE = """
我们 你们 他们 她们 它们 咱们 自己 大家 别人 对方 这个 那个 这些 那些 这样 那样 这么 那么 这里 那里 这种 那种
这次 那次 这是 那是 其他 其实 什么 怎么 怎样 哪里 哪个 为什么 多少 谁 我 你 您 他 她 它 这 那 哪 某 今天 昨天
明天 后天 前天 今晚 昨晚 今早 早上 上午 中午 下午 晚上 白天 周末 平时 现在 刚才 刚刚 以前 以后 之前 之后 最近
当时 后来 将来 已经 曾经 正在 马上 立刻 终于 总是 经常 常常 有时 有时候 时候 一直 一天 整天 天天 每天 每次
第一次 一次 一下 一点 一些 一个 一种 一家 一套 一本 一起 一样 一定 一切 那天 前几天 下半年 几天 几个 两个 一 几
两 每 第 因为 所以 但是 不过 可是 然后 而且 或者 还是 如果 虽然 即使 只要 只有 除了 关于 对于 由于 为了 通过
根据 以及 并且 非常 特别 十分 比较 更加 有点 有些 真的 确实 可能 也许 大概 应该 必须 可以 能够 不能 不会 不要
不用 没有 没什么 不太 不是 就是 都是 也是 还有 还要 还没 只是 只能 那家 附近 完全 直接 居然 竟然 原来 果然 反正
毕竟 无论 挺 很 太 更 最 越来越 都 也 还 又 再 就 才 只 却 并 而 且 或 若 与 和 跟 及 的 得 了 着 吗 呢 吧 啊
呀 哦 嗯 嘛 哈 哈哈 是 在 有 没 不 被 把 让 给 从 向 往 于 觉得 感觉 认为 知道 希望 喜欢 想要 想起 打算 准备
决定 开始 继续 需要 看到 看看 看来 看起来 听说 听起来 说明 告诉 见到 发现 变成 成为 进行 使用 出来 出去 起来
下来 过来 回来 回去 去 做 很好 不错 太好 真好 很大 很多 好多 好久 谢谢 你好 您好 再见 恭喜
加油 对不起 没关系 祝你 当然 好的
"""
ENGLISH_FILLERS = frozenset(_ENGLISH.split())
CHINESE_FILLERS = frozenset(_CHINESE.split())
"""Removed before Chinese is split, the longest first."""
LOOSE_FRONT, LOOSE_END = (
    "到会要能想说看来对吃买用叫当比像但因如所可好出起回连过地写",
    "来上下里后时个们起出好点些次对过地要想",
)
"""Characters that remain next to removed fillers, but are too common in words to be removed there."""
TITLES = frozenset({"dr", "mr", "mrs", "ms", "prof", "st"})
"""Abbreviations before names; the period after them does not end a sentence."""
NAME_JOINTS = frozenset({"of", "the", "de", "la", "van", "von", "der"})
"""Small words that may occur inside a name."""
