/** Chromium without a screen, and what is watched while it walks: faults, requests to others, violations of axe. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--use-angle=swiftshader',
  '--enable-unsafe-swiftshader',
];
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
export const BASE = process.env.RECOLLECT_URL;
export const SHOTS = process.env.SHOTS ?? '';

export const launch = () =>
  chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args: FLAGS });

/** A page in a profile of its own, with everything that goes wrong in it. */
export async function visit(browser, options = {}, origin = BASE) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, locale: 'en-US', ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const faults = [];
  page.on('console', (message) => {
    // A refused request is told by the browser, too; what it means is tested where it is made.
    const refused = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !refused) faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith('data:'))
      faults.push(`asked ${request.url()}`);
  });
  return { context, page, faults };
}

export async function signIn(page, key, address = '/console/') {
  await page.goto(`${BASE}${address}`);
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('.side').waitFor();
}

/** No violation of WCAG 2.2 A and AA. */
export async function checkAccess(page, name) {
  await settle(page);
  await page.evaluate(AXE);
  const found = await page.evaluate(
    (runOnly) => globalThis.axe.run(document, { runOnly, resultTypes: ['violations'] }),
    RULES,
  );
  const told = found.violations.map(
    (each) => `${each.id}: ${each.nodes[0].html.slice(0, 200)} ${each.nodes[0].failureSummary}`,
  );
  assert.deepEqual(told, [], `axe on ${name}`);
}

/** Wait until nothing loads any more. */
export async function settle(page) {
  await page.waitForFunction(() => !document.querySelector('.loading, [aria-busy="true"]'));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

export async function shoot(page, name) {
  if (!SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await settle(page);
  await page.waitForTimeout(300);
  await page.screenshot({ path: `${SHOTS}/${name}.png` });
}
