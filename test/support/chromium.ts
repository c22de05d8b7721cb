// Tests of pages with a real Chromium: console messages and requests of a page, its idle state, and axe.
import { setTimeout as sleep } from 'node:timers/promises'
import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

export type Check = (name: string, work: () => Promise<void>) => Promise<void>

/**
 * Counts checks that pass, and prints those that fail. Words after the name of the program select the checks with one of them.
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

/** Asks again until the answer holds. Fails with the last answer if it never does. */
export async function until<T>(ask: () => Promise<T> | T, holds: (seen: T) => boolean): Promise<T> {
  for (const end = Date.now() + patienceMs; ; await sleep(50)) {
    const seen = await ask()
    if (holds(seen)) return seen
    expect(Date.now() < end, seen)
  }
}

/** Factor by which the browser is slowed down. Above 1, answers of the API are late as well. */
export const slowness = Number(process.env.PINFOLD_TEST_SLOW_BROWSER || 1)
const latestMs = 1500

/** PINFOLD_TEST_CHROMIUM names the browser. It runs as root on a machine that is set aside for it. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = process.env.PINFOLD_TEST_CHROMIUM || '/usr/bin/chromium'
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
}

export type Opened = { context: BrowserContext; page: Page }
export type Watched = {
  /** Messages of the console of a page, such as violations of the content policy. */
  complaints: string[]
  /** Requests that have left the origin. */
  foreign: string[]
}

/** Opens a browser context of a person, separate from all others. */
export async function openPage(browser: Browser, url: string, { complaints, foreign }: Watched): Promise<Opened> {
  const context = await browser.newContext()
  context.setDefaultTimeout(30_000)
  await context.addInitScript(countAsked)
  const page = await context.newPage()
  if (slowness > 1) await slowDown(context, page, url)
  page.on('console', (message) => {
    // The provider has pages too, and a page of ours that answers with an error is a line as well.
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

/** Makes races of the tests show: nothing is there as soon as it usually is, nor in the usual order. */
async function slowDown(context: BrowserContext, page: Page, url: string): Promise<void> {
  const session = await context.newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate: slowness })
  await context.route(`${url}/ui/api/**`, async (route) => {
    await sleep(Math.random() * latestMs)
    // The page that asked may be closed.
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
 * Runs in a page: true if it has drawn a screen and waits for nothing. An answer is drawn in the same task, and requests that
 * follow from it come a frame later, so it checks twice.
 */
const restsNow = `(async () => {
  const rests = () => asked.open === 0 && document.querySelector('main h1') !== null &&
    document.querySelector('.waiting, [aria-busy=true]') === null
  if (!rests()) return false
  const { begun } = asked
  for (const _ of [1, 2]) await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
  return rests() && asked.begun === begun
})()`

/** Waits until a page of ours shows all that it will, also after something was pressed. */
export async function settled(page: Page): Promise<void> {
  // A page that gives way to another one answers nothing.
  const rests = () => page.evaluate<boolean>(restsNow).catch(() => false)
  await until(rests, Boolean).catch(async () => {
    throw new Error(`${page.url()} does not come to rest: ${await page.innerText('body')}`)
  })
}

/**
 * Returns the text that pressing something copies. The page shows "Copied" for two seconds only, so the wait begins before the
 * press.
 */
export async function copied(page: Page, work: () => Promise<void>): Promise<string> {
  await Promise.all([page.getByText('Copied').first().waitFor(), work()])
  return page.evaluate<string>('navigator.clipboard.readText()')
}

/**
 * Fails if the page violates the Web Content Accessibility Guidelines 2.2, level `AA`, in the light or the dark theme. The rule
 * for the size of targets is new in 2.2, and axe checks it only on request.
 */
export async function audit(
  page: Page,
  during: (theme: 'light' | 'dark') => Promise<void> = async () => {},
): Promise<void> {
  // A page is there before its script has drawn it.
  await page.getByRole('main').getByRole('heading', { level: 1 }).first().waitFor()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.evaluate(axe.source)
    const found = await page.evaluate(async () => {
      const rules = { 'target-size': { enabled: true } }
      const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run({ rules })
      const found = violations.map(({ id, nodes }) => {
        // The bars of a drawing are as long as they are; its table has a link for each.
        const counted = id === 'target-size' ? nodes.filter(({ html }) => !html.startsWith('<g ')) : nodes
        return { id, nodes: counted.map(({ html }) => html) }
      })
      return found.filter(({ nodes }) => nodes.length > 0).map(({ id, nodes }) => `${id}: ${nodes.join(' ')}`)
    })
    await during(colorScheme)
    expect(found.length === 0, { url: page.url(), colorScheme, found })
  }
}

/** Waits for the page with a title, also through other pages. */
export async function titled(page: Page, title: string): Promise<void> {
  await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
  await page.waitForLoadState()
}
