/** Sign in, wrong and right; the key is nowhere afterwards; sign out. */
import assert from 'node:assert/strict';
import { BASE, checkAccess, signIn, visit } from './browser.mjs';

const KEY = process.env.RECOLLECT_KEY;

export async function enter(browser) {
  const { context, page, faults } = await visit(browser);
  await page.goto(`${BASE}/console/a/ada/u/li/mind?kind=fact`);
  await page.getByLabel('API key').fill('rec_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('unknown, revoked or expired').waitFor();
  await checkAccess(page, 'sign-in');
  await page.emulateMedia({ colorScheme: 'dark' });
  await checkAccess(page, 'sign-in, dark');
  await page.getByLabel('API key').fill(KEY);
  await page.getByRole('button', { name: 'Sign in' }).click();
  // The address is kept over the sign-in.
  await page.getByRole('heading', { name: 'Mind' }).waitFor();
  assert.match(page.url(), /mind\?kind=fact$/);
  await holdsNoKey(context, page);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  assert.equal((await context.cookies()).length, 0);
  assert.equal(await page.evaluate(() => fetch('../v1/key').then((answer) => answer.status)), 401);
  await signIn(page, KEY);
  await survivesUpdate(page);
  assert.deepEqual(faults, []);
}

async function holdsNoKey(context, page) {
  const [cookie, ...others] = await context.cookies();
  assert.equal(others.length, 0);
  assert.deepEqual([cookie.httpOnly, cookie.secure, cookie.sameSite], [true, true, 'Strict']);
  assert.ok(!cookie.value.includes(KEY));
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.ok(!kept.includes('rec_') && !kept.includes('recollect_console'), kept);
  // What a foreign page could send at most is the cookie, never the header.
  const forged = await page.evaluate(() =>
    fetch(new URL('../v1/key', document.baseURI)).then((answer) => answer.status),
  );
  assert.equal(forged, 403);
}

/** A tab from before an update finds its files gone: it loads itself anew instead of staying white. */
async function survivesUpdate(page) {
  const missing = /assets\/knowledge-.*\.js/;
  await page.goto(`${BASE}/console/a/ada/u/li/mind`);
  await page.getByRole('heading', { name: 'Mind' }).waitFor();
  // Once: the page asks for the file a second time when it has loaded itself.
  await page.route(missing, (route) => route.fulfill({ status: 404, body: '{}' }), { times: 1 });
  const again = page.waitForEvent('load');
  await page.getByRole('link', { name: 'Knowledge' }).click();
  await again;
  await page.getByRole('heading', { name: 'Knowledge' }).waitFor();
}
