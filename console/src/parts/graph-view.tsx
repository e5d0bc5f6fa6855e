/** The graph, drawn by WebGL; the same facts stand below it as a table, for those who cannot see or use it. */
import Graph from 'graphology';
import forceAtlas2 from 'graphology-layout-forceatlas2';
import { useEffect, useRef, useState } from 'react';
import Sigma from 'sigma';
import { useWords } from '../words';
import { type Around, label, layGraph } from './graph-layout';

type Props = { around: Around; onChoose: (id: string) => void };
const SIZES = [16, 10, 7, 6];
/** A canvas knows no custom properties that hold two colours, so that an element is asked what they come to. */
function colours(box: HTMLElement): (name: string) => string {
  const probe = document.createElement('i');
  box.append(probe);
  const known = new Map<string, string>();
  return (name) => {
    if (!known.has(name)) {
      probe.style.color = `var(--${name})`;
      known.set(name, getComputedStyle(probe).color);
    }
    return known.get(name) ?? 'gray';
  };
}

function build(around: Around, colour: (name: string) => string): Graph {
  const { nodes, edges } = layGraph(around);
  const graph = new Graph({ multi: true, type: 'directed' });
  for (const node of nodes) {
    const size = SIZES[Math.min(node.depth, SIZES.length - 1)];
    graph.addNode(node.id, { label: label(node.name), x: node.x, y: node.y, size, color: colour(`type-${node.type}`) });
  }
  for (const edge of edges)
    graph.addEdgeWithKey(edge.id, edge.from, edge.to, { label: edge.name, size: 1.4, color: colour('edge') });
  const settings = { ...forceAtlas2.inferSettings(graph), gravity: 1.2, scalingRatio: 24, adjustSizes: true };
  if (graph.order > 2) forceAtlas2.assign(graph, { iterations: Math.min(300, 20_000 / graph.order), settings });
  // The box is wider than high.
  graph.forEachNode((node, data) => graph.setNodeAttribute(node, 'x', data.x * 1.9));
  return graph;
}

function draw(box: HTMLElement, around: Around, choose: (id: string) => void): Sigma {
  const colour = colours(box);
  const sigma = new Sigma(build(around, colour), box, {
    renderEdgeLabels: around.relations.length <= 60,
    defaultEdgeType: 'arrow',
    labelFont: 'system-ui',
    edgeLabelFont: 'system-ui',
    labelColor: { color: colour('ink') },
    edgeLabelColor: { color: colour('soft') },
    labelSize: 13,
    edgeLabelSize: 11,
    labelRenderedSizeThreshold: 0,
    labelDensity: 3,
    labelGridCellSize: 50,
    stagePadding: 100,
    allowInvalidContainer: true,
    // The box that sigma draws behind a hovered name is white in the dark, too.
    defaultDrawNodeHover: () => undefined,
  });
  sigma.on('clickNode', ({ node }) => choose(node));
  sigma.on('enterNode', () => box.classList.add('over'));
  sigma.on('leaveNode', () => box.classList.remove('over'));
  return sigma;
}

export default function GraphView({ around, onChoose }: Props) {
  const words = useWords();
  const box = useRef<HTMLDivElement>(null);
  const choose = useRef(onChoose);
  choose.current = onChoose;
  const [failed, setFailed] = useState(false);
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const again = () => setTheme((times) => times + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    const watch = new MutationObserver(again);
    watch.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    system.addEventListener('change', again);
    return () => {
      watch.disconnect();
      system.removeEventListener('change', again);
    };
  }, []);
  useEffect(() => {
    if (!box.current) return;
    try {
      const sigma = draw(box.current, around, (id) => choose.current(id));
      return () => sigma.kill();
    } catch {
      setFailed(true);
      return;
    }
  }, [around, theme]);
  if (failed) return <p className="soft small">{words.knowledge.noWebGl}</p>;
  return <div ref={box} className="graph" data-testid="graph" aria-hidden="true" />;
}
