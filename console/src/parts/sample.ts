/** A sample mind: text of our own in both languages, to have something to try with. */
import type { Schemas } from '../api/client';

export const SAMPLE = { agent: 'sample', user: 'guest' };
type Said = [role: 'user' | 'assistant', content: string];

const SAID: Record<string, Said[]> = {
  'a-garden': [
    ['user', 'I am Noor. I rent a garden by the canal since April, with my neighbour Tomas.'],
    ['assistant', 'Good to meet you, Noor. What grows there?'],
    ['user', 'Beans, kale and three kinds of tomatoes. Tomas keeps bees in the corner by the gate.'],
    ['assistant', 'Do the bees mind you working there?'],
    ['user', 'I keep away: I am allergic to bee stings. We work there on Saturday mornings.'],
    ['assistant', 'Then keep your medicine near the gate.'],
  ],
  'a-trip': [
    ['user', 'In June I take the night train to Vienna for my sister’s wedding.'],
    ['assistant', 'How long do you stay?'],
    ['user', 'Four days. Tomas waters the garden meanwhile, and I owe him a bottle of pear juice.'],
  ],
  'yi-ge-hua-yuan': [
    ['user', '我叫林岚，四月起和邻居老周在河边租了一个菜园。'],
    ['assistant', '你好，林岚。菜园里种了什么？'],
    ['user', '豆角、羽衣甘蓝和三种番茄。老周在门口养了蜜蜂，我对蜂毒过敏，所以离得远远的。'],
    ['assistant', '那就把药放在容易拿到的地方。'],
    ['user', '我们每个星期六上午去菜园。六月我要坐夜车去杭州参加妹妹的婚礼。'],
  ],
};
const EVENTS: [content: string, importance: number, topic: string][] = [
  ['Noor planted the last row of beans before the rain.', 4, 'garden->vegetables'],
  ['A swarm left the hive, and Tomas caught it in a basket.', 7, 'garden->bees'],
  ['The first tomatoes were ripe on the 12th of July.', 6, 'garden->vegetables'],
  ['Noor bought the ticket for the night train to Vienna.', 5, 'travel'],
  ['老周用一只篮子收回了飞走的蜂群。', 7, '菜园->蜜蜂'],
  ['林岚买好了去杭州的夜车票。', 5, '旅行'],
];
const FACTS: [subject: string, predicate: string, object: string][] = [
  ['Noor', 'rents', 'garden by the canal'],
  ['Tomas', 'is a neighbour of', 'Noor'],
  ['Tomas', 'keeps', 'bees'],
  ['Noor', 'is allergic to', 'bee stings'],
  ['Noor', 'travels to', 'Vienna'],
  ['林岚', '过敏', '蜂毒'],
  ['老周', '养', '蜜蜂'],
  ['老周', '邻居', '林岚'],
];

export const sampleMessages = (): [conversation: string, messages: Schemas['MessageBody'][]][] =>
  Object.entries(SAID).map(([name, said]) => [name, said.map(([role, content]) => ({ role, content }))]);

export const sampleMemories = (): Schemas['MemoryBody'][] =>
  EVENTS.map(([content, importance, topic]) => ({ content, importance, topic }));

export const sampleFacts = (): Schemas['FactBody'][] =>
  FACTS.map(([subject, predicate, object]) => ({ subject, predicate, object }));
