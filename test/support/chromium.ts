// Helpers for tests of pages in a real Chromium: console messages and requests of a page, waiting until it is idle, and axe.
import { setTimeout as sleep } from 'node:timers/promises'
import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

export type Check = (name: string, work: () => Promise<void>) => Promise<void>

/**
 * Counts passed checks and prints failed ones. If the command line has words, only checks whose name contains one of them run.
 */
export function createChecks(only = process.argv.slice(2)) {
  const counts = { passed: 0, failed: 0 }
  return {
    counts,
    async check(name: string, work: () => Promise<void>): Promise<void> {
      if (only.length > 0 && !only.some((word) => name.includes(word))) return
      try {
        await work()
        counts.passed++
        console.log(`ok   ${name}`)
      } catch (error) {
        counts.failed++
        console.log(`FAIL ${name}\n${(error as Error).stack}`)
      }
    },
    finish(): void {
      console.log(`${counts.passed} passed, ${counts.failed} failed`)
      process.exitCode = counts.failed > 0 ? 1 : 0
    },
  }
}

export function expect(holds: boolean, seen: unknown): void {
  if (!holds) throw new Error(`saw ${typeof seen === 'string' ? seen : JSON.stringify(seen)}`)
}

const patienceMs = 30_000

/** Repeats a question until the answer is as expected. If it never is, fails with the last answer. */
export async function until<T>(ask: () => Promise<T> | T, holds: (seen: T) => boolean): Promise<T> {
  for (const end = Date.now() + patienceMs; ; await sleep(50)) {
    const seen = await ask()
    if (holds(seen)) return seen
    expect(Date.now() < end, seen)
  }
}

/** Factor by which the browser is slowed down. Above 1, answers of the API are delayed as well. */
export const slowness = Number(process.env.PINFOLD_TEST_SLOW_BROWSER || 1)
const latestMs = 1500

/**
 * Starts the browser that PINFOLD_TEST_CHROMIUM names. It runs without a sandbox, since tests run as root on a separate machine.
 */
export async function launchChromium(): Promise<Browser> {
  const executablePath = process.env.PINFOLD_TEST_CHROMIUM || '/usr/bin/chromium'
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
}

export type Opened = { context: BrowserContext; page: Page }
export type Watched = {
  /** Messages on the browser console of a page, such as violations of the content security policy. */
  complaints: string[]
  /** Requests to other origins. */
  foreign: string[]
}

/** Opens a browser context for one user, separate from all others. */
export async function openPage(browser: Browser, url: string, { complaints, foreign }: Watched): Promise<Opened> {
  const context = await browser.newContext({ timezoneId: 'Asia/Tokyo' })
  context.setDefaultTimeout(30_000)
  await context.addInitScript(countAsked)
  const page = await context.newPage()
  if (slowness > 1) await slowDown(context, page, url)
  page.on('console', (message) => {
    // Console messages of the provider's pages are ignored. So is the message for a page of ours with an error status.
    const isOurs = message.location().url.startsWith(url)
    if (isOurs && message.type() === 'error' && !/status of [45]\d\d/.test(message.text()))
      complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('request', (request) => {
    const { origin } = new URL(request.frame().url() || 'about:blank')
    if (origin === new URL(url).origin && !request.isNavigationRequest() && !request.url().startsWith(`${url}/`)) {
      foreign.push(request.url())
    }
  })
  return { context, page }
}

/** Delays answers by random times, so that races in tests become visible. */
async function slowDown(context: BrowserContext, page: Page, url: string): Promise<void> {
  const session = await context.newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate: slowness })
  await context.route(`${url}/ui/api/**`, async (route) => {
    await sleep(Math.random() * latestMs)
    // The page that sent the request may be closed.
    await route.continue().catch(() => {})
  })
}

/** Runs in each page before its own scripts: counts its requests, and those that are still pending. */
function countAsked(): void {
  const counts = { begun: 0, open: 0 }
  const ask = globalThis.fetch
  const finish = () => void counts.open--
  const isEndless = ({ headers }: Response) => headers.get('content-type')?.startsWith('text/event-stream')
  const counted: typeof fetch = (...asked) => {
    counts.begun++
    counts.open++
    const answered = ask(...asked)
    answered.then((answer) => (isEndless(answer) ? finish() : answer.clone().text().then(finish, finish)), finish)
    return answered
  }
  Object.assign(globalThis, { asked: counts, fetch: counted })
}

/**
 * Runs in a page. True if the page has drawn a screen and no request is pending. A screen is drawn in the task of its answer, and
 * its next requests start one frame later. So this checks twice.
 */
const restsNow = `(async () => {
  const rests = () => asked.open === 0 && document.querySelector('main h1') !== null &&
    document.querySelector('.waiting, [aria-busy=true]') === null
  if (!rests()) return false
  const { begun } = asked
  for (const _ of [1, 2]) await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
  return rests() && asked.begun === begun
})()`

/** Waits until a page has drawn everything, for example after a click. */
export async function settled(page: Page): Promise<void> {
  // If the page navigates to another one, the evaluation fails and is repeated.
  const rests = () => page.evaluate<boolean>(restsNow).catch(() => false)
  await until(rests, Boolean).catch(async () => {
    throw new Error(`${page.url()} does not come to rest: ${await page.innerText('body')}`)
  })
}

/**
 * Presses a button and returns the copied text. The page shows "Copied" for only two seconds, so the wait starts before the
 * press.
 */
export async function copied(page: Page, work: () => Promise<void>): Promise<string> {
  await Promise.all([page.getByText('Copied').first().waitFor(), work()])
  return page.evaluate<string>('navigator.clipboard.readText()')
}

/**
 * Fails if the page violates the Web Content Accessibility Guidelines 2.2, level `AA`, in the light or the dark theme. The rule
 * for target sizes is on, since axe checks it only on request.
 */
export async function audit(
  page: Page,
  during: (theme: 'light' | 'dark') => Promise<void> = async () => {},
): Promise<void> {
  // The title exists before the script of the page has drawn it.
  await page.getByRole('main').getByRole('heading', { level: 1 }).first().waitFor()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.evaluate(axe.source)
    const found = await page.evaluate(async () => {
      const rules = { 'target-size': { enabled: true } }
      const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run({ rules })
      const found = violations.map(({ id, nodes }) => {
        // Short bars of the timeline are smaller than the minimum target size. The table below has a link for each bar.
        const counted = id === 'target-size' ? nodes.filter(({ html }) => !html.startsWith('<g ')) : nodes
        return { id, nodes: counted.map(({ html }) => html) }
      })
      return found.filter(({ nodes }) => nodes.length > 0).map(({ id, nodes }) => `${id}: ${nodes.join(' ')}`)
    })
    await during(colorScheme)
    expect(found.length === 0, { url: page.url(), colorScheme, found })
  }
}

/** Waits for the page with a title. Other pages may come before it. */
export async function titled(page: Page, title: string): Promise<void> {
  await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
  await page.waitForLoadState()
}
