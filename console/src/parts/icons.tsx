/** Icons of our own, drawn by lines; they say nothing that words beside them do not say. */
const PATHS = {
  home: 'M3 9.5 10 4l7 5.5V16a1 1 0 0 1-1 1h-4v-5H8v5H4a1 1 0 0 1-1-1z',
  try: 'M6.500 4.500v11l9-5.500z',
  mind: 'M4 5h12M4 10h12M4 15h7',
  ask: 'M9 3.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M13 13l4 4',
  conversations: 'M4 4h12v9H9l-4 3.5V13H4z',
  knowledge:
    'M5 6.5a1.5 1.5 0 1 0 0-.1M15 5.5a1.5 1.5 0 1 0 0-.1M10 15.5a1.5 1.5 0 1 0 0-.1M6.5 6h7M6 8l3.5 6M14.5 7 11 14',
  topics: 'M4 4h12v12H4zM4 10h12M10 10v6',
  stream: 'M4 16V4M4 16h12M7 12.5h.01M9.500 9h.01M12 11h.01M13.500 6h.01',
  jobs: 'M10 3.500a6.500 6.500 0 1 0 6.500 6.500M10 6.500V10l2.500 2M14 3.500h3v3',
  keys: 'M7 8.500a3.500 3.500 0 1 0 0 .1M10.400 9H17v3M14 9v2.500',
  out: 'M12 4H5v12h7M9 10h8M14 7l3 3-3 3',
  language: 'M3 6h9M7.5 4v2M4 13c3-1 5.500-3.500 6-7M5 8.500c1 2 3 3.500 5 4M10.500 17l3-8 3 8M11.500 14.500h4',
  theme: 'M10 3.500a6.500 6.500 0 1 0 6.500 7.500A5 5 0 0 1 10 3.500',
  pin: 'M8 3h5l-.5 5 2 2.500H6L8 8zM10.300 10.500V17',
  close: 'M5 5l10 10M15 5 5 15',
  right: 'M8 5l5 5-5 5',
  copy: 'M7 7h9v9H7zM4 13V4h9',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
