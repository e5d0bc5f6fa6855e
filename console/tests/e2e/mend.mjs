/** What a person mends: a weight, a memory, a fact, an entity; and forgetting, with its preview. */
import assert from 'node:assert/strict';
import { BASE, checkAccess, settle, shoot, signIn, visit } from './browser.mjs';

const AT = `${BASE}/console/a/ada/u/li`;

export async function mend(browser) {
  const { page, faults } = await visit(browser);
  await signIn(page, process.env.RECOLLECT_KEY);
  await moveSlider(page);
  await correctMemory(page);
  await correctFact(page);
  await mergeEntities(page);
  await moveTopics(page);
  await makeAndRevokeKey(page);
  await forget(page);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  assert.deepEqual(faults, []);
}

const order = (page) => page.locator('.hits > li .content').allInnerTexts();

/** A slider ranks the kept recall again, live; the address keeps the weights. */
async function moveSlider(page) {
  await page.goto(`${AT}/ask`);
  await page.getByLabel('What reminds the agent').fill('Who climbs with Li in the mountains?');
  await page.getByRole('button', { name: 'Recall', exact: true }).click();
  await page.locator('.hits > li').first().waitFor();
  await page.waitForURL(/recall=/);
  await settle(page);
  const before = await order(page);
  const replayed = page.waitForResponse((answer) => answer.url().includes('/replay') && answer.ok());
  await page.getByRole('slider', { name: 'vector' }).fill('0');
  await replayed;
  await page.getByRole('slider', { name: 'text' }).fill('6');
  await page.locator('.moved').first().waitFor();
  await settle(page);
  await shoot(page, 'console-ask-replayed');
  assert.notDeepEqual(await order(page), before);
  await page.waitForURL(/weights=text%3A6%2Cvector%3A0/);
  await page.getByRole('button', { name: 'As they were' }).click();
  await page.waitForFunction(() => !document.querySelector('.moved'));
  assert.deepEqual(await order(page), before);
}

async function correctMemory(page) {
  await page.goto(`${AT}/mind?words=bicycle&kind=event`);
  await page.locator('.timeline .row', { hasText: 'red bicycle' }).first().click();
  await page.getByRole('button', { name: 'Correct …' }).click();
  await page.getByLabel('What is right').fill('Li bought a green bicycle at the flea market.');
  await checkAccess(page, 'the dialog of a correction');
  await page.locator('dialog').getByRole('button', { name: 'Correct', exact: true }).click();
  await page.locator('.detail .whole', { hasText: 'green bicycle' }).waitFor();
  await page.locator('.detail', { hasText: 'Versions' }).getByText('red bicycle').waitFor();
}

async function correctFact(page) {
  await page.goto(`${AT}/knowledge?search=Mei`);
  await page.locator('.side-list').getByText('Mei', { exact: true }).click();
  await page.locator('.times button', { hasText: 'Mei likes dill' }).click();
  await page.locator('.fact-view').getByRole('button', { name: 'Correct …' }).click();
  await page.getByLabel('Of whom or what').fill('parsley');
  await page.locator('dialog').getByRole('button', { name: 'Correct', exact: true }).click();
  await page.locator('.times button', { hasText: 'Mei likes parsley' }).waitFor();
  await page.locator('.times th.gone', { hasText: 'Mei likes dill' }).waitFor();
  await forgetWrongFact(page);
  await page.locator('.times button', { hasText: 'Mei studies' }).click();
  await page.locator('.fact-view').getByRole('button', { name: 'End …' }).click();
  await page.locator('dialog').getByRole('button', { name: 'End', exact: true }).click();
  await page.locator('.fact-view .versions', { hasText: 'v2' }).waitFor();
}

/** What was never so is forgotten, after a preview; the right fact takes its time. */
async function forgetWrongFact(page) {
  await page.locator('.times button', { hasText: 'Mei writes about' }).click();
  await page.locator('.fact-view').getByRole('button', { name: 'Correct …' }).click();
  await page.getByLabel('It was never so').check();
  await page.getByLabel('Of whom or what').fill('warm water corals');
  await page.locator('dialog .preview').getByText('Mei writes about cold water corals').waitFor();
  await checkAccess(page, 'the dialog of a fact that was never so');
  await page.locator('dialog').getByRole('button', { name: 'Correct', exact: true }).click();
  await page.locator('.times button', { hasText: 'Mei writes about warm water corals' }).waitFor();
  await page.locator('.times button', { hasText: 'cold water corals' }).waitFor({ state: 'detached' });
}

async function mergeEntities(page) {
  await page.goto(`${AT}/knowledge?search=Mei`);
  await page.locator('.side-list').getByText('Mei', { exact: true }).click();
  await page.getByRole('button', { name: 'Merge …' }).click();
  await page.getByLabel('Find the other one').fill('Mei Lin');
  await page.locator('.choices').getByText('Mei Lin', { exact: true }).click();
  await checkAccess(page, 'the dialog of a merge');
  await page.locator('dialog').getByRole('button', { name: 'Merge', exact: true }).click();
  await page.locator('.times button', { hasText: 'lent a book to' }).waitFor();
  await page.locator('.entity-head', { hasText: 'Mei Lin' }).waitFor();
}

async function moveTopics(page) {
  await page.goto(`${AT}/topics?topic=${encodeURIComponent('life->nature')}`);
  await page.getByRole('button', { name: 'Rename …' }).click();
  await page.getByLabel('New name').fill('the north');
  await page.locator('dialog').getByRole('button', { name: 'Rename', exact: true }).click();
  await page.getByRole('heading', { name: 'life › the north' }).waitFor();
  await page.getByRole('button', { name: 'Move …' }).click();
  await page.getByLabel('Below which topic').selectOption({ label: 'life › home' });
  await page.locator('dialog').getByRole('button', { name: 'Move', exact: true }).click();
  await page.getByRole('heading', { name: 'life › home › the north' }).waitFor();
  await page.getByRole('button', { name: 'Merge …' }).click();
  await page.getByLabel('Into which topic').selectOption({ label: 'life › sport' });
  await page.locator('dialog').getByRole('button', { name: 'Merge', exact: true }).click();
  await page.getByRole('heading', { name: 'life › sport' }).waitFor();
  await page.locator('.known .trail', { hasText: 'northern lights' }).waitFor();
}

async function makeAndRevokeKey(page) {
  await page.goto(`${BASE}/console/keys`);
  await page.getByRole('button', { name: 'Make a key …' }).click();
  await page.getByLabel('Name').fill('a phone');
  await page.getByLabel('Only this agent').fill('ada');
  await page.getByLabel('Only this user').fill('li');
  await page.getByLabel('Expires after hours').fill('2');
  await checkAccess(page, 'the dialog of a new key');
  await page.locator('dialog').getByRole('button', { name: 'Make a key', exact: true }).click();
  assert.match(await page.locator('dialog pre').textContent(), /^rec_/);
  await page.getByRole('button', { name: 'Done' }).click();
  const row = page.locator('.keys tr', { hasText: 'a phone' });
  await row.getByText('ada / li').waitFor();
  await row.getByRole('button', { name: 'Revoke …' }).click();
  await page
    .locator('dialog')
    .getByLabel(/To go on, type/)
    .fill('a phone');
  await page.locator('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await row.getByText('revoked').waitFor();
}

/** The preview lists what goes; then just that is gone. */
async function forget(page) {
  await page.goto(`${AT}/mind?words=allergic&kind=message`);
  await page.locator('.timeline .row', { hasText: 'allergic to peanuts' }).first().click();
  await page.getByRole('button', { name: 'Forget …' }).click();
  const preview = page.locator('dialog .preview');
  await preview.getByText('Whoever cooks for Li').waitFor();
  await checkAccess(page, 'the preview of forgetting');
  await shoot(page, 'console-forget');
  await page
    .locator('dialog')
    .getByRole('button', { name: /^Forget \d+ memories$/ })
    .click();
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.goto(`${AT}/mind?words=cooks&kind=thought`);
  await page.getByText('No memory passes these filters.').waitFor();
}
