/** The words of the later screens, in English. */
export const topics = {
  title: 'Topics',
  says: 'What it is about, and how much is filed under each topic.',
  empty: 'Nothing is filed yet. Topics come with a memory, or are found in conversations.',
  notWhole: (topics: number) => `Only ${topics} topics are shown; there are more.`,
  areas: 'Topics as areas of their memories',
  unfold: (name: string) => `Below ${name}`,
  noneHere: 'Nothing is filed under this topic itself.',
  top: '(at the top)',
  acts: { rename: 'Rename', move: 'Move', merge: 'Merge' },
  actSays: {
    rename: 'What is filed under it stays there.',
    move: 'It goes with all that is below it.',
    merge: 'All that is filed under it, and below it, goes to the other topic.',
  },
  targets: { rename: 'New name', move: 'Below which topic', merge: 'Into which topic' },
};

export const stream = {
  title: 'Stream',
  says: 'What comes to mind by recency, similarity and importance, and the thoughts that grew from it.',
  start: 'Type a focal point: every memory gets its place by the three factors.',
  cue: 'Focal point',
  factors: { recency: 'Recency', similarity: 'Similarity', importance: 'Importance' },
  picture: (hits: number) => `${hits} memories by recency and similarity; the table below has the first of them`,
  thoughts: 'Thoughts, and what they were made from',
  noThoughts: 'No thoughts yet. They come by reflection, with a chat model.',
  depth: (depth: number) => `depth ${depth}`,
};
