/** Contents and names that would like to be code: nothing runs, nobody else is asked, nothing leaves its box. */
import assert from 'node:assert/strict';
import { BASE, checkAccess, settle, signIn, visit } from './browser.mjs';

export async function hostile(browser) {
  const { page, faults } = await visit(browser);
  await signIn(page, process.env.RECOLLECT_KEY);
  await page.goto(`${BASE}/console/?search=evil`);
  await page.getByRole('link', { name: 'evil' }).click();
  await page.locator('.timeline .row').nth(4).waitFor();
  await harmless(page, 'mind');
  await page.locator('.timeline .row', { hasText: 'AAAA' }).first().click();
  await page.locator('.detail .whole').waitFor();
  await harmless(page, 'a memory of great length');
  const at = page.url().split('/mind')[0];
  await page.goto(`${at}/ask?q=peanuts`);
  await page.locator('.hits > li').first().waitFor();
  await harmless(page, 'ask');
  await page.goto(`${at}/conversations?conversation=evil&q=peanuts`);
  await page.locator('.said').first().waitFor();
  await harmless(page, 'conversations');
  await page.goto(`${at}/knowledge`);
  await page.locator('.times tbody tr').first().waitFor();
  await harmless(page, 'knowledge');
  await page.goto(`${at}/topics`);
  await page.locator('.treemap').waitFor();
  await harmless(page, 'topics');
  await page.goto(`${at}/stream?q=peanuts`);
  await page.locator('.point').first().waitFor();
  await harmless(page, 'stream');
  await page.goto(`${BASE}/console/jobs`);
  await page.locator('.jobs tbody tr').first().waitFor();
  await harmless(page, 'jobs');
  assert.deepEqual(faults, []);
}

async function harmless(page, name) {
  await settle(page);
  await checkAccess(page, `${name}, hostile`);
  const seen = await page.evaluate(() => ({
    pwned: window.pwned,
    strange: document.querySelectorAll('main img, main iframe, main script, main object, main a[href^="javascript"]')
      .length,
    links: [...document.querySelectorAll('main a')].filter((link) => !link.href.startsWith(document.baseURI)).length,
    beyond: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  }));
  assert.deepEqual(seen, { pwned: undefined, strange: 0, links: 0, beyond: 0 }, name);
}
