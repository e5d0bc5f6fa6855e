/** Why this, why not that? */
import { useState } from 'react';
import { useRights } from '../../api/me';
import type { Scope } from '../../parts/address';
import { Detail } from '../../parts/detail';
import { useFilters } from '../../parts/filters';
import { Head } from '../../parts/frame';
import { bounds } from '../../parts/shares';
import { Answer, Empty, Failure } from '../../parts/states';
import { FamilyLegend } from '../../parts/why-bar';
import { useWords } from '../../words';
import { Channels, Reading } from './channels';
import { CueForm } from './cue-form';
import { Hits } from './hits';
import { Kept } from './kept';
import { Others } from './others';
import { type Cue, type Explanation, hitsOf, useExplanation, useReplay } from './queries';
import { Sliders } from './sliders';
import { useWeights } from './use-weights';

export default function Ask({ scope }: { scope: Scope }) {
  const words = useWords();
  const [filters, change] = useFilters();
  const cue: Cue = { text: filters.get('q') ?? '', asOf: filters.get('as_of'), at: filters.get('at') };
  const recall = filters.get('recall');
  const chosen = filters.get('memory');
  const told = useExplanation(scope, cue, recall);
  const open = (memory: string | null) => change({ memory });
  return (
    <div className="ask">
      <Head title={words.ask.title} says={words.ask.says} />
      <CueForm key={JSON.stringify(cue)} scope={scope} cue={cue} change={change} busy={told.isFetching} />
      <div className="ask-columns">
        <Kept scope={scope} recall={recall} change={change} />
        <div className="answer">
          {cue.text === '' && recall === null ? (
            <Empty>{words.ask.start}</Empty>
          ) : (
            <Answer query={told} lines={10}>
              {(data) => <Told key={data.asked_at} scope={scope} cue={cue} recall={recall} told={data} onOpen={open} />}
            </Answer>
          )}
        </div>
      </div>
      {chosen && (
        <div className="drawer">
          <Detail key={chosen} scope={scope} id={chosen} onOpen={open} onClose={() => open(null)} />
        </div>
      )}
    </div>
  );
}

type ToldProps = { scope: Scope; cue: Cue; recall: string | null; told: Explanation; onOpen: (id: string) => void };

function Told({ scope, cue, recall, told, onOpen }: ToldProps) {
  const words = useWords();
  const { writes } = useRights();
  const { weights, later, change, reset } = useWeights();
  const replay = useReplay(scope, cue, recall, later, told);
  const [marked, setMarked] = useState<Record<string, boolean>>({});
  const moved = Object.keys(weights).length > 0;
  const hits = moved ? hitsOf(replay.data ?? told.placings) : hitsOf(told.placings);
  const scale = bounds([...hits, ...told.placings.slice(0, 40)]);
  return (
    <div className="told">
      <section aria-label={words.ask.hits} aria-busy={replay.isFetching}>
        <Reading told={told} />
        <FamilyLegend />
        {replay.error && <Failure error={replay.error} retry={() => void replay.refetch()} />}
        {hits.length === 0 ? (
          <Empty>{told.message || words.ask.noHits}</Empty>
        ) : (
          <Hits
            scope={scope}
            recall={writes ? recall : null}
            hits={hits}
            moved={moved}
            scale={scale}
            marked={marked}
            onMark={(id, useful) => setMarked({ ...marked, [id]: useful })}
            onOpen={onOpen}
          />
        )}
        <Others scope={scope} placings={told.placings} scale={scale} onOpen={onOpen} />
      </section>
      <aside className="weighing">
        <Sliders told={told} weights={weights} onChange={change} onReset={reset} anew={recall === null} />
        <Channels told={told} />
      </aside>
    </div>
  );
}
