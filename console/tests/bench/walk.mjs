/** Open every screen of a large scope, and print what each cost: calls, bytes, time to content, longest task. */
import { BASE, launch, settle, signIn, visit } from '../e2e/browser.mjs';

const { AGENT, USER_NAME, TALK, RECOLLECT_KEY } = process.env;
const AT = `${BASE}/console/a/${AGENT}/u/${USER_NAME}`;
/** Where a screen is, and what counts as its first content. */
const SCREENS = {
  home: [`${BASE}/console/`, '.scopes tbody tr'],
  mind: [`${AT}/mind`, '.timeline .row'],
  ask: [`${AT}/ask?q=${encodeURIComponent('Which parcel came by way of the harbour?')}`, '.hits > li'],
  conversations: [`${AT}/conversations?conversation=${TALK}&q=parcel`, '.said'],
  knowledge: [`${AT}/knowledge?search=Carrier`, '.times button'],
  topics: [`${AT}/topics`, '.treemap text'],
  stream: [`${AT}/stream?q=harbour`, '.point'],
  try: [`${AT}/try`, '.beside'],
  jobs: [`${BASE}/console/jobs`, '.jobs tbody tr, .jobs p'],
  keys: [`${BASE}/console/keys`, '.keys tbody tr'],
};
const CATEGORIES = ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'];

/** The longest task of a page's main thread, in milliseconds of its processor time. */
function longestTask(trace) {
  const { traceEvents } = JSON.parse(trace.toString());
  const main = new Set(
    traceEvents
      .filter((each) => each.name === 'thread_name' && each.args.name === 'CrRendererMain')
      .map((each) => `${each.pid}-${each.tid}`),
  );
  const tasks = traceEvents.filter(
    (each) => each.ph === 'X' && each.name.endsWith('RunTask') && main.has(`${each.pid}-${each.tid}`),
  );
  return Math.max(0, ...tasks.map((each) => each.tdur ?? each.dur)) / 1000;
}

/** The time of the first frame that shows something; asked for in the page, as a question from outside comes late. */
const firstFrame = (selector) =>
  new Promise((done) => {
    const look = () => {
      const seen = document.querySelector(selector)?.getBoundingClientRect();
      if (seen?.width && seen.height) done(performance.now());
      else requestAnimationFrame(look);
    };
    look();
  });

async function open(browser, page, name, [address, selector]) {
  await page.goto('about:blank');
  await browser.startTracing(page, { categories: CATEGORIES });
  await page.goto(address, { waitUntil: 'commit' });
  const content = await page.evaluate(firstFrame, selector);
  await settle(page);
  const trace = await browser.stopTracing();
  const calls = await page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .filter((each) => each.name.includes('/v1/'))
      .map((each) => ({ bytes: each.decodedBodySize, end: each.responseEnd })),
  );
  const before = calls.filter((call) => call.end <= content).map((call) => call.end);
  return {
    screen: name,
    calls: calls.length,
    bytes: Math.max(0, ...calls.map((call) => call.bytes)),
    opened_ms: content,
    content_ms: content - Math.max(0, ...before),
    task_ms: longestTask(trace),
  };
}

const browser = await launch();
const { page } = await visit(browser);
page.setDefaultTimeout(120_000);
await signIn(page, RECOLLECT_KEY);
const seen = [];
for (const [name, screen] of Object.entries(SCREENS)) seen.push(await open(browser, page, name, screen));
await browser.close();
console.log(JSON.stringify(seen));
