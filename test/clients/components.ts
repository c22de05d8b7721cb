// The components of the console in a real Chromium: pictures at three widths and in two themes, axe, and the keys of each
// component. PINFOLD_TEST_CHROMIUM names the browser. Pictures are kept in build/console-components.
import { mkdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { componentsPath, serveComponents } from '../../scripts/components.ts'
import { audit, createChecks, expect, launchChromium, openPage, until } from '../support/chromium.ts'

const shots = fileURLToPath(new URL('../../build/console-components', import.meta.url))
rmSync(shots, { recursive: true, force: true })
mkdirSync(shots, { recursive: true })

const checks = createChecks()
const { check } = checks
const watched = { complaints: [] as string[], foreign: [] as string[] }
const { url, server } = await serveComponents()
const browser = await launchChromium()

async function opened(width = 1440): Promise<Page> {
  const { page } = await openPage(browser, url, watched)
  await page.setViewportSize({ width, height: 900 })
  await page.goto(url + componentsPath)
  await page.getByRole('heading', { level: 1 }).waitFor()
  return page
}

const focused = (page: Page) =>
  page.evaluate<string>('document.activeElement?.textContent || document.activeElement?.id')

for (const width of [1440, 768, 390]) {
  await check(`components at ${width} pixels have no accessibility violation, and fit`, async () => {
    const page = await opened(width)
    await audit(page, async (theme) => {
      await page.screenshot({ path: `${shots}/components-${width}-${theme}.png`, fullPage: true })
    })
    const wide = await page.evaluate<number>('document.scrollingElement.scrollWidth')
    expect(wide <= width, { wide })
    await page.context().close()
  })
}

await check('a menu opens with its first item focused, and arrow keys move through its items', async () => {
  const page = await opened()
  const button = page.getByRole('button', { name: 'Actions', exact: true })
  await button.focus()
  await page.keyboard.press('Enter')
  await until(
    () => focused(page),
    (text) => text === 'Copy pinned reference',
  )
  await page.screenshot({ path: `${shots}/menu.png` })
  await audit(page)
  await page.keyboard.press('ArrowDown')
  expect((await focused(page)) === 'Settings', await focused(page))
  await page.keyboard.press('End')
  expect((await focused(page)) === 'Delete tag', await focused(page))
  await page.keyboard.press('ArrowDown')
  expect((await focused(page)) === 'Copy pinned reference', await focused(page))
  await page.keyboard.press('Escape')
  expect((await focused(page)) === 'Actions', await focused(page))
  await page.context().close()
})

await check('a picker finds an option by a part of its name, and Enter chooses it', async () => {
  const page = await opened()
  const field = page.getByRole('combobox', { name: 'Folder', exact: true })
  await field.focus()
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type('serv')
  const options = page.getByRole('listbox', { name: 'Folder', exact: true }).getByRole('option')
  expect((await options.allInnerTexts()).join().startsWith('platform/observability'), await options.allInnerTexts())
  expect(
    (await field.getAttribute('aria-activedescendant')) === (await options.first().getAttribute('id')),
    'not active',
  )
  await page.screenshot({ path: `${shots}/picker.png` })
  await audit(page)
  await page.keyboard.press('Enter')
  expect((await field.inputValue()) === 'platform/observability', await field.inputValue())
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Escape')
  expect((await field.inputValue()) === 'platform/observability', await field.inputValue())
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type('nothing')
  await page.getByText('No name contains “nothing”.').waitFor()
  await page.context().close()
})

await check('a dialog keeps the focus, closes on Escape, and returns the focus', async () => {
  const page = await opened(390)
  const button = page.getByRole('button', { name: 'Delete repository', exact: true }).last()
  await button.focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Delete repository payments/reports?' })
  await dialog.waitFor()
  expect(await page.evaluate<boolean>("document.activeElement.tagName === 'INPUT'"), 'the field is not focused')
  await page.waitForTimeout(300)
  await page.screenshot({ path: `${shots}/dialog-390.png` })
  await audit(page)
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  expect((await focused(page)) === 'Delete repository', await focused(page))
  await page.context().close()
})

await check('tabs, choices, radio buttons and sorted columns work with the keyboard', async () => {
  const page = await opened()
  const choice = page.getByRole('button', { name: '90 days' })
  await choice.focus()
  await page.keyboard.press('Enter')
  expect((await choice.getAttribute('aria-pressed')) === 'true', 'not chosen')
  await page.getByRole('radio', { name: /^Developer/ }).focus()
  await page.keyboard.press('ArrowDown')
  expect(await page.getByRole('radio', { name: /^Admin/ }).isChecked(), 'not checked')
  await page.getByRole('button', { name: 'Podman' }).press('Enter')
  await page.getByText('podman pull').waitFor()
  const updated = page.getByRole('columnheader', { name: /^Updated$/ })
  expect((await updated.getAttribute('aria-sort')) === 'descending', await updated.getAttribute('aria-sort'))
  await page.context().close()
})

await check('a disabled button has a reason, and does nothing', async () => {
  const page = await opened()
  const button = page.getByRole('button', { name: /^Invite members/ })
  await button.focus()
  await page.keyboard.press('Enter')
  expect((await button.getAttribute('title')) === 'Only owners can invite members', 'without a reason')
  await page.context().close()
})

await check('a message is announced and disappears', async () => {
  const page = await opened()
  await page.getByRole('button', { name: 'Show a message' }).press('Enter')
  const message = page.getByRole('status').getByText('Policy saved.')
  await message.waitFor()
  await message.waitFor({ state: 'detached' })
  await page.context().close()
})

await check('no component has reported an error', async () => {
  expect(watched.complaints.length === 0, watched.complaints)
})
await browser.close()
server.close()
checks.finish()
