"""What the command line says, in the language of the locale: one table, and one lookup by the English words."""

from __future__ import annotations

import os
from collections.abc import Mapping

LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The first of these variables that is set names the language, as everywhere on Unix."""
GREETING = """[bold]Recollect is up[/bold] at {url}  (documentation: {url}/docs)
embedder: {embedder}
{key}
For programs: export RECOLLECT_URL={url} RECOLLECT_KEY=rec_...
Try, in another terminal:
  recollect remember --agent ada --user li "Li is allergic to peanuts."
  recollect recall --agent ada --user li "What must Li not eat?"
Stop with Ctrl-C."""
CHINESE: Mapping[str, str] = {
    GREETING: """[bold]Recollect 已启动[/bold]：{url}  （文档：{url}/docs）
向量模型：{embedder}
{key}
给程序用：export RECOLLECT_URL={url} RECOLLECT_KEY=rec_...
另开一个终端试试：
  recollect remember --agent ada --user li "小李对花生过敏。"
  recollect recall --agent ada --user li "小李不能吃什么？"
按 Ctrl-C 停止。""",
    "See it in a browser (this link works once, for ten minutes): {address}": (
        "在浏览器中查看（此链接十分钟内有效，只能用一次）：{address}"
    ),
    "API key (shown this once): [bold]{secret}[/bold]": "API key（只显示这一次）：[bold]{secret}[/bold]",
    "An API key exists already. Make another: recollect admin keys create NAME": (
        "已经有 API key。要再建一个：recollect admin keys create NAME"
    ),
    "starting Recollect": "正在启动 Recollect",
    "starting PostgreSQL": "正在启动 PostgreSQL",
    "connecting to PostgreSQL": "正在连接 PostgreSQL",
    "bringing the schema up to date": "正在更新数据库结构",
    "loading the embedder": "正在加载向量模型",
    "ready": "就绪",
    "Stopping; what runs is finished first. Ctrl-C again ends it at once.": (
        "正在停止，先完成进行中的工作；再按一次 Ctrl-C 立即结束。"
    ),
    "Stopped before it was ready.": "尚未就绪，已停止。",
    "Stopped.": "已停止。",
    "The data stays in {folder}.": "数据保留在 {folder}。",
    "There are more: --after {cursor}": "还有更多：--after {cursor}",
    "none (recall by words only)": "无（只按字词召回）",
    "nothing found": "没有找到",
    "nothing known": "还没有事实",
    "nobody known": "还没有实体",
    "nothing to show": "没有可显示的内容",
    "no topics yet": "还没有主题",
    "no path found": "没有找到路径",
    "nothing was said yet": "还没有说过什么",
    "nothing was purged": "没有清除过什么",
    "kept as {id}": "已保存为 {id}",
    "{tokens} of {budget} tokens by {tokenizer}": "{tokens} / {budget} 个 token，按 {tokenizer} 计",
    "There are more than {limit}.": "不止 {limit} 条。",
    "{count} questions found nothing they expect among ten hits; the worst first:": (
        "有 {count} 个问题在前十条中没有找到预期的记忆，最差的在前："
    ),
    "Nothing to reflect on yet.": "还没有可以反思的内容。",
    "No new insights.": "得出的想法以前都有过。",
    "No job waits, runs or has failed.": "没有等待、运行或失败的任务。",
    "{count} jobs wait to be tried again.": "{count} 个任务等待重试。",
    "No model was asked.": "没有问过模型。",
    "No topic has ended yet.": "还没有结束的话题。",
    "Nothing is due.": "没有到期的会话。",
    "dropped": "已删除",
    "revoked": "已吊销",
    "{count} memories are back.": "{count} 条记忆已恢复。",
    "{count} memories would fade.": "将有 {count} 条记忆淡出。",
    "{count} memories have faded.": "{count} 条记忆已淡出。",
    "Delete them for good?": "确定要永久删除吗？",
    "{count} memories would be forgotten.": "将忘掉 {count} 条记忆。",
    "{count} memories are forgotten.": "已忘掉 {count} 条记忆。",
    "Follow on with --since {cursor}": "从这里继续：--since {cursor}",
    "{counts} would go out of sight.": "将隐藏：{counts}。",
    "{counts} would be erased.": "将清除：{counts}。",
    "{count} memories exported.": "已导出 {count} 条记忆。",
    "{count} memories imported; `recollect up` or `recollect worker` makes vectors that they lack.": (
        "已导入 {count} 条记忆；缺少的向量由 `recollect up` 或 `recollect worker` 补上。"
    ),
    "Erase {conversation} for good?": "确定要彻底清除 {conversation} 吗？",
    "The database is up to date.": "数据库已是最新。",
    "/history: show the thread; /leaves: list branches; /quit: exit. Anything else is sent as a message.": (
        "/history 显示对话，/leaves 显示各分支的末尾，/quit 结束；其他输入都算发言。"
    ),
    "No chat model is configured (RECOLLECT_CHAT_URL): type the answer yourself, or leave the line empty.": (
        "没有配置聊天模型（RECOLLECT_CHAT_URL）：请自己输入回答，或者留空。"
    ),
}


def translate(text: str, **values: object) -> str:
    """Return a text in the language of the locale, or in English if it has no translation; fill in the values."""
    return (CHINESE.get(text, text) if speaks_chinese() else text).format(**values)


def speaks_chinese() -> bool:
    """Return whether the locale is a Chinese one."""
    return next((value for name in LOCALE if (value := os.environ.get(name))), "").lower().startswith("zh")
