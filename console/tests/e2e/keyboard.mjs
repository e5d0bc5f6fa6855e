/** Everything by the keyboard alone: sign in, walk, choose, ask, move a weight, open and leave a dialog. */
import assert from 'node:assert/strict';
import { BASE, settle, visit } from './browser.mjs';

/** Press Tab until an element has the focus. */
async function tabTo(page, what, most = 80) {
  for (let presses = 0; presses < most; presses += 1) {
    if (await page.evaluate(what)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`the keyboard does not reach ${what}`);
}

const focused = (selector) => `document.activeElement?.matches(${JSON.stringify(selector)}) ?? false`;
const named = (text) => `document.activeElement?.textContent.trim() === ${JSON.stringify(text)}`;

export async function keyboard(browser) {
  const { page, faults } = await visit(browser);
  await page.goto(`${BASE}/console/`);
  await tabTo(page, focused('input[type=password]'));
  await page.keyboard.type(process.env.RECOLLECT_KEY);
  await page.keyboard.press('Enter');
  await page.locator('.scopes tbody tr').first().waitFor();
  await tabTo(page, focused('.skip'));
  await tabTo(page, named('ada')); // the newest scope comes first
  await page.keyboard.press('Enter');
  await page.locator('.timeline .row').first().waitFor();
  await tabTo(page, focused('.timeline'));
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp']) await page.keyboard.press(key);
  await page.locator('.detail .whole').waitFor();
  await tabTo(page, named('Forget …'));
  await page.keyboard.press('Enter');
  await page.locator('dialog .preview li').first().waitFor();
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  await askByKeys(page);
  assert.deepEqual(faults, []);
}

async function askByKeys(page) {
  await page.goto(`${BASE}/console/a/ada/u/li/ask`);
  await page.getByLabel('What reminds the agent').waitFor();
  await tabTo(page, focused('.cue input[type=search]'));
  await page.keyboard.type('Who climbs with Li?');
  await page.keyboard.press('Enter');
  await page.locator('.hits > li').first().waitFor();
  await tabTo(page, focused('.slider input'), 120);
  await page.keyboard.press('Home');
  await page.locator('.slider .changed').first().waitFor();
  await settle(page);
  await page.waitForURL(/weights=/);
}
