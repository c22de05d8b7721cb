// A real Chromium for the tests of pages: what its pages complain about and ask for, and axe.
import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

export type Check = (name: string, work: () => Promise<void>) => Promise<void>

/** Counts what holds, and says what does not. With words behind the name of the program only checks that have one of them are run. */
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

/** PINFOLD_TEST_CHROMIUM names the browser. It runs as root on a machine that is set aside for it. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = process.env.PINFOLD_TEST_CHROMIUM || '/usr/bin/chromium'
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
}

export type Opened = { context: BrowserContext; page: Page }
export type Watched = {
  /** What the console of a page has complained about, such as the policy. */
  complaints: string[]
  /** Requests that have left the origin. */
  foreign: string[]
}

/** A person's browser, with nothing kept from anybody else. */
export async function openPage(browser: Browser, url: string, { complaints, foreign }: Watched): Promise<Opened> {
  const context = await browser.newContext()
  context.setDefaultTimeout(30_000)
  const page = await context.newPage()
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

/** No violation of WCAG 2.2 AA, light and dark. The size of targets is new in 2.2, and axe looks at it only when told to. */
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

export const titleOf = (page: Page): Promise<string> => page.getByRole('heading', { level: 1 }).innerText()
