/** Walk through the console with a real browser and a real server: each part on its own, and how long it took. */
import { launch } from './browser.mjs';
import { enter } from './enter.mjs';
import { hostile } from './hostile.mjs';
import { keyboard } from './keyboard.mjs';
import { mend } from './mend.mjs';
import { remove } from './remove.mjs';
import { rights } from './rights.mjs';
import { screens } from './screens.mjs';
import { up } from './up.mjs';

const PARTS = { enter, screens, keyboard, rights, hostile, mend, remove, up };
/** PARTS="up keyboard" walks these alone. */
const only = (process.env.PARTS ?? '').split(' ').filter(Boolean);
const browser = await launch();
let failed = 0;
for (const [name, part] of Object.entries(PARTS)) {
  if (only.length > 0 && !only.includes(name)) continue;
  const began = Date.now();
  try {
    await part(browser);
    console.log(`ok     ${name} ${((Date.now() - began) / 1000).toFixed(1)} s`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}\n${error.stack}`);
    const [page] = browser.contexts().at(-1)?.pages() ?? [];
    await page?.screenshot({ path: `/tmp/console-${name}.png` }).catch(() => undefined);
  }
  for (const context of browser.contexts()) await context.close();
}
await browser.close();
process.exit(failed ? 1 : 0);
