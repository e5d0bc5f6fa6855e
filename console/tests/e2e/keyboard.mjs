/** Everything by the keyboard alone: sign in, walk, ask, correct, end, merge, forget, rename and move, sign out. */
import assert from 'node:assert/strict';
import { BASE, settle, visit } from './browser.mjs';

/** A scope of its own, as everything is really done. */
const OWN = `${BASE}/console/a/kay/u/li`;

/** Press Tab until an element has the focus. */
async function tabTo(page, what, most = 80) {
  for (let presses = 0; presses < most; presses += 1) {
    if (await page.evaluate(what)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`the keyboard does not reach ${what}`);
}

const focused = (selector) => `Boolean(document.activeElement?.matches(${JSON.stringify(selector)}))`;
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
  await mendMemories(page);
  await mendFacts(page);
  await mendTopics(page);
  await press(page, named('Sign out'));
  await page.getByLabel('API key').waitFor();
  assert.deepEqual(faults, []);
}

/** Reach an element and press it. */
async function press(page, what) {
  await tabTo(page, what, 200);
  await page.keyboard.press('Enter');
}

/** Write over what a field holds. */
async function write(page, what, text) {
  await tabTo(page, what);
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(text);
}

const within = (selector, text) =>
  `${focused(selector)} && document.activeElement.textContent.includes(${JSON.stringify(text)})`;
const labelled = (text) =>
  `document.activeElement?.labels?.[0]?.textContent.includes(${JSON.stringify(text)}) ?? false`;

/** Choose the one event in which a word occurs. */
async function choose(page, word) {
  await page.goto(`${OWN}/mind?words=${word}&kind=event`);
  await page.locator('.timeline .row').first().waitFor();
  await tabTo(page, focused('.timeline'));
  await page.keyboard.press('ArrowDown');
}

async function mendMemories(page) {
  await choose(page, 'bicycle');
  await press(page, named('Correct …'));
  await write(page, labelled('What is right'), 'Li bought a green bicycle at the flea market.');
  await press(page, named('Correct'));
  await page.locator('.detail .whole', { hasText: 'green bicycle' }).waitFor();
  await choose(page, 'landlord');
  await press(page, named('Forget …'));
  await page.locator('dialog .preview li').first().waitFor();
  await press(page, `${focused('dialog .danger')} && !document.activeElement.disabled`);
  await page.getByText('No memory passes these filters.').waitFor();
}

async function mendFacts(page) {
  await page.goto(`${OWN}/knowledge?search=Mei`);
  await page.locator('.side-list li').first().waitFor();
  await press(
    page,
    `${focused('.side-list li button')} && document.activeElement.querySelector('bdi').textContent === 'Mei'`,
  );
  await page.locator('.times button').first().waitFor();
  await press(page, within('.times button', 'Mei likes dill'));
  await page.locator('.fact-view .versions').waitFor();
  await press(page, named('Correct …'));
  await write(page, labelled('Of whom or what'), 'parsley');
  await press(page, named('Correct'));
  await page.locator('.times button', { hasText: 'Mei likes parsley' }).waitFor();
  await press(page, within('.times button', 'Mei studies'));
  await page.locator('.fact-view', { hasText: 'Mei studies' }).waitFor();
  await press(page, named('End …'));
  await press(page, named('End'));
  await page.locator('.fact-view .versions', { hasText: 'v2' }).waitFor();
  await press(page, named('Merge …'));
  await write(page, labelled('Find the other one'), 'Mei Lin');
  await page.locator('.choices').getByText('Mei Lin', { exact: true }).waitFor();
  await tabTo(page, focused('.choices input'));
  await page.keyboard.press('Space');
  await press(page, named('Merge'));
  await page.locator('.entity-head', { hasText: 'Mei Lin' }).waitFor();
}

async function mendTopics(page) {
  await page.goto(`${OWN}/topics`);
  await page.locator('.topic-tree li').first().waitFor();
  await press(page, within('.topic-tree .plain', 'nature'));
  await page.getByRole('heading', { name: 'life › nature' }).waitFor();
  await press(page, named('Rename …'));
  await write(page, labelled('New name'), 'the north');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'life › the north' }).waitFor();
  await press(page, named('Move …'));
  await tabTo(page, focused('dialog select'));
  for (let presses = 0; presses < 20; presses += 1) {
    if (await page.evaluate(() => document.activeElement.value === 'life->home')) break;
    await page.keyboard.press('ArrowDown');
  }
  await press(page, named('Move'));
  await page.getByRole('heading', { name: 'life › home › the north' }).waitFor();
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
