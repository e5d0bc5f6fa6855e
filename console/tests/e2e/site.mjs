/** Search the built documentation in both languages, and list every request that leaves its server. */
import { launch } from './browser.mjs';

const home = process.env.SITE;
const browser = await launch();
const page = await browser.newPage();
const foreign = [];
page.on('request', (request) => {
  if (!request.url().startsWith(home) && request.url().startsWith('http')) foreign.push(request.url());
});

/** Type a word into the search of a page, and wait until a result shows it underlined. */
async function search(path, word) {
  await page.goto(`${home}/${path}`);
  await page.locator('.md-search__button').first().click();
  await page.keyboard.type(word);
  await page.locator('u', { hasText: word }).first().waitFor({ timeout: 20_000 });
}

await search('index.html', 'peanuts');
await search('zh/index.html', '备份');
await page.goto(`${home}/project/architecture.html`);
await page.locator('div.mermaid').first().waitFor({ timeout: 20_000 });
await page.getByRole('link', { name: '中文' }).first().click();
await page.waitForURL(/zh\//);
await browser.close();
if (foreign.length > 0) throw new Error(`asked of other hosts: ${foreign.join(' ')}`);
