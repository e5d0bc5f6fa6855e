/** The link that `recollect up` prints signs in once; then a turn with a chat model shows all that memory does. */
import assert from 'node:assert/strict';
import { checkAccess, settle, shoot, visit } from './browser.mjs';

const { UP_LINK, UP_KEY } = process.env;
const AT = new URL(UP_LINK).origin;

export async function up(browser) {
  const { page, faults } = await visit(browser, {}, AT);
  await page.goto(UP_LINK);
  await page.locator('.side').waitFor();
  await page.getByRole('heading', { name: 'Try' }).waitFor();
  // The secret is in no history of the browser.
  assert.ok(!page.url().includes('link='), page.url());
  await page.reload();
  await page.locator('.side').waitFor();
  await worksOnce(browser);
  await talk(page);
  assert.deepEqual(faults, []);
}

async function worksOnce(browser) {
  const { context, page } = await visit(browser, {}, AT);
  await page.goto(UP_LINK);
  await page.getByLabel('API key').waitFor();
  assert.deepEqual(await context.cookies(), []);
  await context.close();
}

/** Ask of the sample what was said in it: recalled, put into the prompt, answered, stored; and a fact is learned. */
async function talk(page) {
  await page.getByRole('button', { name: 'Fill the sample mind' }).click();
  await page.getByRole('button', { name: /Remove the sample/ }).waitFor();
  await page.getByRole('textbox', { name: 'Say something' }).fill('What must I be careful about in the garden?');
  await page.keyboard.press('Enter');
  await page.locator('.turns .bubble', { hasText: 'Mind the wasps by the shed.' }).waitFor();
  await page.locator('.recalled li').first().waitFor();
  await page.locator('.beside details summary').click();
  await page.locator('.prompt-messages', { hasText: 'What must I be careful about in the garden?' }).waitFor();
  await page.locator('.beside details summary').click();
  await page.locator('.beside .trail', { hasText: 'Mind the wasps by the shed.' }).waitFor();
  await closeTopic(page);
  await page.locator('.beside .trail', { hasText: 'Wasps live by the shed.' }).waitFor();
  await settle(page);
  await shoot(page, 'console-try');
  await checkAccess(page, 'Try with a model');
}

/** End the topic as a program does; the worker of `recollect up` learns from it, and the page shows it by itself. */
async function closeTopic(page) {
  const headers = { Authorization: `Bearer ${UP_KEY}`, 'Content-Type': 'application/json' };
  const scope = { agent: 'sample', user: 'guest' };
  const listed = await fetch(`${AT}/v1/conversations?agent=sample&user=guest&limit=50`, { headers });
  const { conversations } = await listed.json();
  const { id } = conversations.find((each) => each.id.startsWith('try-'));
  const closed = await fetch(`${AT}/v1/conversations/${id}`, {
    method: 'PATCH',
    headers,
    body: JSON.stringify({ ...scope, close_segment: true }),
  });
  assert.equal(closed.status, 200);
  await page.waitForFunction(() => !document.querySelector('.beside[aria-busy="true"]'));
}
