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
  await page.locator('.times button', { hasText: 'Mei studies' }).click();
  await page.locator('.fact-view').getByRole('button', { name: 'End …' }).click();
  await page.locator('dialog').getByRole('button', { name: 'End', exact: true }).click();
  await page.locator('.fact-view .versions', { hasText: 'v2' }).waitFor();
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
