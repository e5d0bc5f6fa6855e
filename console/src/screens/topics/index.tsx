/** What it is about: the tree of topics, and how much is filed under each. */
import { useQuery } from '@tanstack/react-query';
import { api, take } from '../../api/client';
import type { Scope } from '../../parts/address';
import { Detail } from '../../parts/detail';
import { useFilters } from '../../parts/filters';
import { Head } from '../../parts/frame';
import { Answer, Empty } from '../../parts/states';
import { growTopics } from '../../parts/topic-tree';
import { useWords } from '../../words';
import { Acts } from './acts';
import { Linked } from './linked';
import { Tree } from './tree';
import { Treemap } from './treemap';

const MOST = 1000;

export default function Topics({ scope }: { scope: Scope }) {
  const words = useWords();
  const [filters, change] = useFilters();
  const chosen = filters.get('topic');
  const memory = filters.get('memory');
  const open = (id: string | null) => change({ memory: id });
  const choose = (topic: string | null) => change({ topic, memory: null });
  const topics = useQuery({
    queryKey: ['topics', scope],
    queryFn: ({ signal }) => take(api.GET('/v1/topics', { params: { query: { ...scope, limit: MOST } }, signal })),
  });
  return (
    <div className="topics">
      <Head title={words.topics.title} says={words.topics.says} />
      <Answer query={topics}>
        {(data) => {
          if (data.topics.length === 0)
            return (
              <Empty call={`POST /v1/memories\n${JSON.stringify({ ...scope, content: '…', topic: 'life->sport' })}`}>
                {words.topics.empty}
              </Empty>
            );
          const roots = growTopics(data.topics);
          const topic = data.topics.find((each) => each.path === chosen);
          return (
            <div className="with-list">
              <Tree roots={roots} chosen={chosen} onChoose={choose} />
              <div className="known">
                {!data.whole && <p className="soft small">{words.topics.notWhole(MOST)}</p>}
                <Treemap roots={roots} chosen={chosen} onChoose={choose} />
                {topic && (
                  <section className="card">
                    <Acts key={topic.path} scope={scope} topic={topic} topics={data.topics} onMoved={choose} />
                    <Linked scope={scope} path={topic.path} onOpen={open} />
                  </section>
                )}
              </div>
            </div>
          );
        }}
      </Answer>
      {memory && (
        <div className="drawer">
          <Detail key={memory} scope={scope} id={memory} onOpen={open} onClose={() => open(null)} />
        </div>
      )}
    </div>
  );
}
