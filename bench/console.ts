// `bin/pinfold-node bench/console.ts`: the console with a repository of a million tags, in the browser that
// PINFOLD_TEST_CHROMIUM names. Defaults: `--tags 1000000 --pages 100`. With nothing else at work on the machine.
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { launchChromium, openPage } from '../test/support/chromium.ts'
import { startPinfold } from '../test/support/pinfold.ts'
import { digestOf } from '../test/support/tags.ts'

const { values } = parseArgs({
  options: { tags: { type: 'string', default: '1000000' }, pages: { type: 'string', default: '100' } },
})
const [tags, pages] = [Number(values.tags), Number(values.pages)]
const perPage = 200
const perImport = 1000

await using pinfold = await startPinfold()
const org = await pinfold.seed.group('', { name: 'bench' })
const repo = await pinfold.seed.repo(org.uid, { name: 'large' })
const began = performance.now()
for (let from = 0; from < tags; from += perImport) await importTags(from, Math.min(perImport, tags - from))
console.log(`${tags} tags in ${Math.round((performance.now() - began) / 1000)} s`)

async function importTags(from: number, count: number): Promise<void> {
  const some = Array.from({ length: count }, (_, k) => {
    const i = from + k
    const time = new Date(Date.parse('2025-01-01T00:00:00.000Z') + i * 1000).toISOString()
    return { name: `build-${String(i).padStart(8, '0')}`, records: [{ time, digest: digestOf(String(i)) }] }
  })
  const answer = await pinfold.operator.post('/control/v1/tagHistory:import', { repoUid: repo.uid, tags: some })
  if (answer.status !== 200) throw new Error(answer.text)
}

const watched = { complaints: [], foreign: [] }
const browser = await launchChromium()
const { page } = await openPage(browser, pinfold.url, watched)
const { code } = (await pinfold.operator.post('/control/v1/consoleCodes')).body
await page.goto(`${pinfold.url}/ui/enter#${code}`)
await page.waitForURL(`${pinfold.url}/ui/`)
await page.waitForLoadState('networkidle')

/** When the largest thing of a page was painted, in milliseconds from when it was asked for. */
const largestPaint = (one: Page): Promise<number> =>
  one.evaluate<number>(`new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime))
    observer.observe({ type: 'largest-contentful-paint', buffered: true })
  })`)

const at = `${pinfold.url}/ui/r/bench/large`
/** Waits for the rows of a page; the numbers are written as people write them. */
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

const paints: number[] = []
for (let round = 0; round < 5; round++) {
  await page.goto(at)
  await shown(1)
  paints.push(await largestPaint(page))
}
const last = Math.ceil(tags / perPage)
const turns: number[] = []
for (let number = 2; number <= Math.min(pages + 1, last); number++) {
  turns.push(
    await timed(async () => {
      await page.getByRole('link', { name: 'Next', exact: true }).first().click()
      await shown(number)
    }),
  )
}
const end = await timed(async () => {
  await page.getByRole('link', { name: 'Last', exact: true }).first().click()
  await shown(last)
})
const nodes = await page.evaluate<number>("document.querySelectorAll('*').length")
const session = await page.context().newCDPSession(page)
await session.send('HeapProfiler.collectGarbage')
const { usedSize } = await session.send('Runtime.getHeapUsage')
await browser.close()

const rank = (some: readonly number[], share: number): number =>
  [...some].sort((a, b) => a - b)[Math.min(some.length - 1, Math.floor(some.length * share))] ?? 0
const rows: [string, string, string][] = [
  ['largest paint, the slowest of 5', `${Math.round(Math.max(...paints))} ms`, '1000 ms'],
  [`next page, p95 of ${turns.length}`, `${Math.round(rank(turns, 0.95))} ms`, '300 ms'],
  ['last page', `${Math.round(end)} ms`, '500 ms'],
  ['nodes', String(nodes), '3000'],
  ['heap', `${(usedSize / 1e6).toFixed(1)} MB`, '50 MB'],
]
console.log('| With a repository of a million tags | measured | at most |\n| --- | --- | --- |')
for (const row of rows) console.log(`| ${row.join(' | ')} |`)
