// `bin/pinfold-node bench/console.ts`: the console with a repository of a million tags, in the browser that PINFOLD_TEST_CHROMIUM
// names. Defaults: `--tags 1000000 --pages 100`. Run nothing else on the machine. With `--data FOLDER`, the tags are created once
// in this folder and reused by later runs.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { indexTags } from '#domains/registry/tags/index-tags.job.ts'
import { runJob } from '../test/support/background-jobs.ts'
import { launchChromium, openPage } from '../test/support/chromium.ts'
import { startPinfold } from '../test/support/pinfold.ts'
import { seedTags } from './seed-tags.ts'

const { values } = parseArgs({
  options: {
    tags: { type: 'string', default: '1000000' },
    pages: { type: 'string', default: '100' },
    data: { type: 'string', default: '' },
  },
})
const pages = Number(values.pages)
const perPage = 50

const kept = mkdtempSync(join(tmpdir(), 'pinfold-tags-'))
process.once('exit', () => rmSync(kept, { recursive: true, force: true }))
const data = values.data || kept
if (!existsSync(join(data, 'pinfold.db'))) {
  const began = performance.now()
  await seedTags(data, Number(values.tags))
  console.log(`${values.tags} tags in ${Math.round((performance.now() - began) / 1000)} s`)
}
await using pinfold = await startPinfold({ data })
await runJob(pinfold.app, indexTags)
const tags = Number((await pinfold.operator.get('/registry/v2/tags?pageSize=1')).body.totalCount)

const watched = { complaints: [], foreign: [] }
const browser = await launchChromium()
const { page } = await openPage(browser, pinfold.url, watched)
const { code } = (await pinfold.operator.post('/control/v1/consoleCodes')).body
await page.goto(`${pinfold.url}/ui/enter#${code}`)
await page.waitForURL(`${pinfold.url}/ui/**`)
await page.waitForLoadState('networkidle')

/** Milliseconds from the request of a page until its largest element was painted. */
const largestPaint = (one: Page): Promise<number> =>
  one.evaluate<number>(`new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime))
    observer.observe({ type: 'largest-contentful-paint', buffered: true })
  })`)

const at = `${pinfold.url}/ui/r/bench/large`
/** Waits for the rows of a page. Numbers in the text have separators. */
const shown = (number: number) => {
  const [from, to] = [(number - 1) * perPage + 1, Math.min(number * perPage, tags)]
  const text = [from, to, tags].map((one) => new Intl.NumberFormat('en').format(one))
  return page.getByText(`Rows ${text[0]} to ${text[1]} of ${text[2]}`).first().waitFor()
}
const timed = async (work: () => Promise<void>): Promise<number> => {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** Milliseconds from a click on a page link until the rows of the other page are painted. */
const turned = (label: string): Promise<number> =>
  page.evaluate<number>(`new Promise((resolve) => {
    const firstRow = () => document.querySelector('main tbody th')?.textContent
    const before = firstRow()
    const changes = new MutationObserver(() => {
      if (firstRow() === undefined || firstRow() === before) return
      changes.disconnect()
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)))
    })
    changes.observe(document.body, { subtree: true, childList: true, characterData: true })
    const began = performance.now()
    ;[...document.querySelectorAll('nav.pages a')].find(({ textContent }) => textContent === ${JSON.stringify(label)}).click()
  })`)

const paints: number[] = []
for (let round = 0; round < 5; round++) {
  await page.goto(at)
  await shown(1)
  paints.push(await largestPaint(page))
}
const last = Math.ceil(tags / perPage)
const turns: number[] = []
for (let number = 2; number <= Math.min(pages + 1, last); number++) {
  turns.push(await turned('Next'))
  await shown(number)
}
const end = await turned('Last')
await shown(last)
const nodes = await page.evaluate<number>("document.querySelectorAll('*').length")
const found = await timed(async () => {
  const name = `build-${String(tags - 1).padStart(8, '0')}`
  await page.getByLabel('Part of the tag name').fill(name.slice(3))
  await page.keyboard.press('Enter')
  await page.getByRole('rowheader', { name }).waitFor()
})
const session = await page.context().newCDPSession(page)
await session.send('HeapProfiler.collectGarbage')
const { usedSize } = await session.send('Runtime.getHeapUsage')
await browser.close()

const rank = (some: readonly number[], share: number): number =>
  [...some].sort((a, b) => a - b)[Math.min(some.length - 1, Math.floor(some.length * share))] ?? 0
const rows: [string, string, string][] = [
  ['largest paint, the slowest of 5', `${Math.round(Math.max(...paints))} ms`, '1000 ms'],
  [`next page, p95 of ${turns.length}`, `${Math.round(rank(turns, 0.95))} ms`, '300 ms'],
  ['the last tag by a part of its name', `${Math.round(found)} ms`, ''],
  ['last page', `${Math.round(end)} ms`, '500 ms'],
  ['nodes', String(nodes), '3000'],
  ['heap', `${(usedSize / 1e6).toFixed(1)} MB`, '50 MB'],
]
console.log('| With a repository of a million tags | measured | at most |\n| --- | --- | --- |')
for (const row of rows) console.log(`| ${row.join(' | ')} |`)
