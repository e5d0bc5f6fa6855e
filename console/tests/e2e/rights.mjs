/** What a key may not do is not offered; what it may not see is not shown. */
import assert from 'node:assert/strict';
import { BASE, settle, signIn, visit } from './browser.mjs';

const AT = `${BASE}/console/a/ada/u/li`;

export async function rights(browser) {
  await readOnly(browser);
  await bound(browser);
  await administrator(browser);
}

async function readOnly(browser) {
  const { page, faults } = await visit(browser);
  await signIn(page, process.env.READ_KEY);
  await page.getByText('read only').waitFor();
  await page.goto(`${AT}/mind?kind=event`);
  await page.locator('.timeline .row').first().click();
  await page.locator('.detail .facts-of').waitFor();
  assert.equal(await page.locator('.detail .actions').count(), 0);
  // Sliders ask anew, as nothing may be kept.
  await page.goto(`${AT}/ask?q=${encodeURIComponent('Who climbs with Li in the mountains?')}`);
  await page.locator('.hits > li').first().waitFor();
  await page.getByText('the cue is asked again').waitFor();
  assert.equal(await page.getByLabel('useful').count(), 0);
  await page.getByRole('slider', { name: 'vector' }).fill('0');
  await page.getByRole('slider', { name: 'text' }).fill('6');
  await page.locator('.moved').first().waitFor();
  await page.goto(`${AT}/conversations?conversation=moving-house`);
  await page.locator('.said').first().waitFor();
  assert.equal(await page.getByRole('button', { name: 'Archive …' }).count(), 0);
  await page.goto(`${AT}/knowledge`);
  await page.locator('.times tbody tr button').first().click();
  await page.locator('.fact-view .versions').waitFor();
  for (const name of ['Merge …', 'Correct …', 'End …'])
    assert.equal(await page.getByRole('button', { name }).count(), 0, name);
  assert.deepEqual(faults, []);
}

async function bound(browser) {
  const { page, faults } = await visit(browser);
  await signIn(page, process.env.BOUND_KEY);
  await page.waitForURL(`${AT}/mind`);
  await page.locator('.timeline .row').first().waitFor();
  assert.equal(await page.getByRole('link', { name: 'Home' }).count(), 0);
  await page.goto(`${BASE}/console/a/evil/u/-/mind`);
  await page.getByText('This key may not do that.').first().waitFor();
  await settle(page);
  assert.equal(await page.locator('.timeline').count(), 0);
  assert.deepEqual(faults, []);
}

async function administrator(browser) {
  const { page, faults } = await visit(browser);
  await signIn(page, process.env.ADMIN_KEY);
  await page.goto(`${AT}/mind`);
  await page.getByText('may not read memories').waitFor();
  await page.getByRole('link', { name: 'Keys and receipts' }).click();
  await page.locator('.keys tbody tr').first().waitFor();
  assert.equal(await page.locator('.timeline').count(), 0);
  assert.deepEqual(faults, []);
}
