/** Write the licences of all that is shipped to assets/licenses.txt. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plugin } from 'vite';

/** The folder of the package that a module belongs to. */
function packageOf(module: string): string | null {
  const path = module.split('?')[0]?.replace(/^\0/, '') ?? '';
  if (!path.includes('node_modules/')) return null;
  let folder = dirname(path);
  while (folder.includes('node_modules')) {
    const about = join(folder, 'package.json');
    if (existsSync(about) && JSON.parse(readFileSync(about, 'utf8')).version) return folder;
    folder = dirname(folder);
  }
  return null;
}

function notice(folder: string): string {
  const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder)
    .filter((name) => /^(licen[cs]e|unlicense)/i.test(name))
    .sort()[0];
  const text = file ? readFileSync(join(folder, file), 'utf8').trim() : 'Its package carries no text of the licence.';
  return `${about.name} ${about.version} (${about.license})\n\n${text}\n`;
}

export function licenses(): Plugin {
  return {
    name: 'licenses',
    apply: 'build',
    generateBundle(_options, bundle) {
      const folders = new Set<string>();
      for (const chunk of Object.values(bundle))
        for (const module of chunk.type === 'chunk' ? Object.keys(chunk.modules) : []) {
          const folder = packageOf(module);
          if (folder) folders.add(folder);
        }
      const source = [...folders]
        .map(notice)
        .sort()
        .join(`\n${'-'.repeat(80)}\n\n`);
      this.emitFile({ type: 'asset', fileName: 'assets/licenses.txt', source });
    },
  };
}
