"""Our own glosses for the most common Chinese words, because a dictionary's first senses mislead.

A common word has many senses, and a dictionary does not list the most common first. Function words have no meaning
alone, so they have no gloss.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_SILENT = """
的 了 着 过 地 得 吗 呢 吧 啊 呀 嘛 哦 哈 嗯 么 把 被 将 之 其 所 以 而 且 则 并 即 就 便 于 与 和 及 或 个 们 等等
起来 出来 下来 下去 一下 这样 那样 这么 那么 就是 还是 然后 于是 而且 并且 以及 是的 本 件 条 张 台 座 套 份 名 度
"""
_GLOSSED = """
我 I; 我们 we; 咱们 we; 你 you; 您 you; 你们 you; 他 he; 她 she; 它 it; 他们 they; 她们 they; 它们 they; 自己 self;
大家 everybody; 别人 others; 谁 who; 什么 what; 哪 which; 哪里 where; 哪儿 where; 怎么 how; 怎样 how; 多少 how many;
几 how many; 为什么 why; 这 this; 这个 this; 这些 these; 这里 here; 这儿 here; 那 that; 那个 that; 那些 those;
那里 there; 那儿 there; 是 is; 不是 is not; 有 have; 没 not; 没有 not have; 不 not; 别 do not; 无 without; 在 at;
到 to; 从 from; 向 toward; 往 toward; 对 toward; 给 give; 跟 with; 为 for; 为了 for; 关于 about; 比 than; 让 let;
叫 call; 使 make; 用 use; 除了 except; 会 will; 能 can; 可以 can; 可能 maybe; 应该 should; 要 want; 想 want;
想要 want; 需要 need; 必须 must; 得到 get; 打算 plan; 说 say; 讲 tell; 告诉 tell; 问 ask; 回答 answer; 听 listen;
看 look; 看到 see; 看见 see; 见 meet; 见面 meet; 读 read; 写 write; 学 learn; 学习 study; 教 teach; 知道 know;
认识 know; 觉得 feel; 感觉 feel; 认为 think; 记得 remember; 忘 forget; 忘记 forget; 喜欢 like; 爱 love; 怕 fear;
希望 hope; 帮 help; 帮助 help; 笑 laugh; 哭 cry; 气 angry; 生气 angry; 开心 happy; 难过 sad; 来 come; 去 go; 走 walk;
跑 run; 回 return; 回家 go home; 进 enter; 出 go out; 上 on; 下 under; 坐 sit; 站 stand; 躺 lie; 爬 climb; 做 do;
作 do; 干 do; 弄 do; 搞 do; 打 play; 玩 play; 开 open; 关 close; 开始 begin; 结束 end; 停 stop; 变 change; 换 change;
吃 eat; 喝 drink; 睡 sleep; 睡觉 sleep; 起床 get up; 穿 wear; 戴 wear; 洗 wash; 住 live; 等 wait; 找 look for;
找到 find; 丢 lose; 买 buy; 卖 sell; 送 give; 借 borrow; 还 still; 拿 take; 带 bring; 放 put; 收 receive; 发 send;
寄 mail; 拍 photograph; 修 repair; 唱 sing; 画 paint; 跳 jump; 踢 kick; 骑 ride; 死 die; 生 born; 长 long; 病 ill;
疼 pain; 痛 pain; 累 tired; 饿 hungry; 渴 thirsty; 人 people; 男人 man; 女人 woman; 男 male; 女 female; 孩子 child;
爸 father; 爸爸 father; 妈 mother; 妈妈 mother; 家 home; 家人 family; 事 matter; 事情 matter; 东西 thing; 话 words;
钱 money; 书 book; 车 car; 水 water; 饭 meal; 菜 dish; 茶 tea; 花 flower; 店 shop; 手 hand; 头 head; 心 heart;
脚 foot; 眼 eye; 身体 body; 面 noodles; 球 ball; 信 letter; 门 door; 路 road; 城市 city; 地方 place; 天 day; 日 day;
号 day; 月 month; 年 year; 周 week; 星期 week; 点 o'clock; 分 minute; 时 when; 时候 when; 时间 time; 现在 now;
今天 today; 明天 tomorrow; 昨天 yesterday; 以前 before; 以后 after; 前 before; 后 after; 之前 before; 之后 after;
刚 just now; 已经 already; 里 in; 内 inside; 中 in; 外 outside; 旁边 beside; 左 left; 右 right; 东 east; 西 west;
南 south; 北 north; 市 city; 省 province; 区 district; 好 good; 坏 bad; 大 big; 小 small; 多 many; 少 few; 高 high;
低 low; 老 old; 新 new; 快 fast; 慢 slow; 早 early; 晚 late; 远 far; 近 near; 难 difficult; 容易 easy; 贵 expensive;
便宜 cheap; 冷 cold; 热 hot; 美 beautiful; 重 heavy; 轻 light; 真 really; 很 very; 太 too; 非常 very; 最 most;
更 more; 都 all; 也 also; 又 again; 再 again; 才 only; 只 only; 一起 together; 一些 some; 有些 some; 每 every;
次 times; 种 kind; 些 some; 位 person; 因为 because; 所以 so; 但 but; 但是 but; 不过 but; 如果 if; 虽然 although;
常 often; 经常 often
"""
OWN: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_SILENT.split(), ""),
        **{word: gloss for word, _, gloss in (each.strip().partition(" ") for each in _GLOSSED.split(";"))},
    }
)
