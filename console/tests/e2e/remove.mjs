/** What removes shows first how much goes: a conversation that is deleted, then purged, and a user. */
import assert from 'node:assert/strict';
import { BASE, checkAccess, settle, shoot, signIn, visit } from './browser.mjs';

const AT = `${BASE}/console/a/ada/u/li`;

export async function remove(browser) {
  const { page, faults } = await visit(browser);
  await signIn(page, process.env.RECOLLECT_KEY);
  await deleteConversation(page);
  await purgeConversation(page);
  await eraseUser(page);
  assert.deepEqual(faults, []);
}

const confirm = (page, name) => page.locator('dialog').getByRole('button', { name, exact: true });

/** Count the lines of a dialog, each a number and what it counts. */
async function counted(page) {
  await page.locator('dialog .counts li').first().waitFor();
  return Object.fromEntries(
    (await page.locator('dialog .counts li').allInnerTexts()).map((line) => {
      const [number, ...what] = line.split(' ');
      return [what.join(' '), Number(number)];
    }),
  );
}

async function unfailed(page) {
  await settle(page);
  assert.equal(await page.getByRole('alert').count(), 0);
}

async function deleteConversation(page) {
  await page.goto(`${AT}/conversations?conversation=mountains`);
  await page.getByText('Write what the user asks next').waitFor();
  await page.locator('.said').first().waitFor();
  await unfailed(page);
  await page.getByRole('button', { name: 'Delete …' }).click();
  const goes = await counted(page);
  assert.equal(goes['messages, earlier versions included'], 5);
  assert.ok(goes['memories derived from them'] >= 2);
  await checkAccess(page, 'the dialog of a deletion');
  await confirm(page, 'Delete').click();
  await page.locator('dialog').waitFor({ state: 'detached' });
}

async function purgeConversation(page) {
  await page.goto(`${AT}/conversations?state=deleted&conversation=mountains`);
  await page.getByText('It is deleted.').waitFor();
  await unfailed(page);
  await page.getByRole('button', { name: 'Purge …' }).click();
  const goes = await counted(page);
  assert.equal(goes['messages, earlier versions included'], 5);
  // What rests on other conversations, too, does not go.
  assert.ok(goes['memories that rest on them in part: they are emptied, and derived again'] >= 1);
  await checkAccess(page, 'the dialog of a purge');
  await shoot(page, 'console-purge');
  assert.ok(await confirm(page, 'Purge').isDisabled());
  await page.getByLabel(/To go on, type/).fill('mountains');
  await confirm(page, 'Purge').click();
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.goto(`${BASE}/console/keys`);
  await page.locator('.receipts').getByText('ada / li / mountains').waitFor();
}

async function eraseUser(page) {
  const user = page.locator('dialog').getByLabel('User', { exact: true });
  await page.getByRole('button', { name: 'Erase a user …' }).click();
  await user.fill('nobody');
  await page.getByRole('button', { name: 'Count what goes' }).click();
  await page.locator('dialog').getByText('Unknown user').waitFor();
  await user.fill('mei');
  await page.getByRole('button', { name: 'Count what goes' }).click();
  assert.deepEqual(await counted(page), { 'memories, earlier versions included': 1 });
  await checkAccess(page, 'the dialog of an erasure');
  assert.ok(await confirm(page, 'Erase a user').isDisabled());
  await page.getByLabel(/To go on, type/).fill('mei');
  await confirm(page, 'Erase a user').click();
  await page.locator('.receipts tbody').getByText('mei', { exact: true }).waitFor();
  await page.goto(`${BASE}/console/?search=mei`);
  await page.locator('.scopes').getByText('mei').waitFor({ state: 'detached' });
}
