/** Everything remembered, newest first. */
import type { Scope } from '../../parts/address';
import { Detail } from '../../parts/detail';
import { useFilters } from '../../parts/filters';
import { Head } from '../../parts/frame';
import { useWords } from '../../words';
import { Days } from './days';
import { FilterBar } from './filter-bar';
import { Timeline } from './timeline';

export default function Mind({ scope }: { scope: Scope }) {
  const words = useWords();
  const [filters, change] = useFilters();
  const chosen = filters.get('memory');
  const open = (memory: string | null) => change({ memory });
  return (
    <div className="mind">
      <Head title={words.mind.title} says={words.mind.says}>
        <Days scope={scope} filters={filters} change={change} />
      </Head>
      <FilterBar filters={filters} change={change} />
      <div className={chosen ? 'split' : ''}>
        <Timeline scope={scope} filters={filters} chosen={chosen} onChoose={open} />
        {chosen && <Detail key={chosen} scope={scope} id={chosen} onOpen={open} onClose={() => open(null)} />}
      </div>
    </div>
  );
}
