/** The words of the later screens, in Chinese. */
import type { Words } from './en';

export const topics: Words['topics'] = {
  title: '主题',
  says: '都与什么有关，每个主题下有多少记忆。',
  empty: '还没有归入主题的记忆。主题随记忆给出，或从对话中发现。',
  notWhole: (topics) => `只显示 ${topics} 个主题，还有更多。`,
  areas: '主题，面积表示记忆的多少',
  unfold: (name) => `${name} 之下`,
  noneHere: '没有直接归入这个主题的记忆。',
  top: '（最上层）',
  acts: { rename: '重命名', move: '移动', merge: '合并' },
  actSays: {
    rename: '归入其中的记忆保持不变。',
    move: '连同它下面的一切一起移动。',
    merge: '归入它以及它下面的一切都转到另一个主题。',
  },
  targets: { rename: '新名称', move: '移到哪个主题之下', merge: '并入哪个主题' },
};

export const stream: Words['stream'] = {
  title: '记忆流',
  says: '按新近、相似和重要性想起什么，以及由此产生的想法。',
  start: '输入一个焦点：每条记忆都按三个因素得到位置。',
  cue: '焦点',
  factors: { recency: '新近', similarity: '相似', importance: '重要性' },
  picture: (hits) => `${hits} 条记忆按新近和相似排列；下面的表格列出最前面的几条`,
  thoughts: '想法，以及它们由何得出',
  noThoughts: '还没有想法。想法由反思得出，需要聊天模型。',
  depth: (depth) => `第 ${depth} 层`,
};
