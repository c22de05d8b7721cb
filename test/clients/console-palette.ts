// Checks of the command palette and of the page of search results.
import type { Page } from 'playwright-core'
import { indexNames } from '#domains/search/index-names.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { audit, type Check, expect, type Opened, settled } from '../support/chromium.ts'
import type { ConsoleScene } from '../support/console-scene.ts'

type Kit = {
  check: Check
  scene: ConsoleScene
  asOperator: () => Promise<Opened>
  asViewer: () => Promise<Opened>
  goTo: (page: Page, path: string) => Promise<void>
  picture: (page: Page, name: string) => Promise<void>
}

const field = (page: Page) => page.getByRole('combobox', { name: 'Search and actions' })
const options = (page: Page) => page.getByRole('listbox').getByRole('option')

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press('ControlOrMeta+k')
  await field(page).waitFor()
}

export async function checkPalette(kit: Kit): Promise<void> {
  await runJob(kit.scene.pinfold.app, indexNames)
  await checkKeyboard(kit)
  await checkResults(kit)
}

async function checkKeyboard({ check, scene, asOperator, asViewer, goTo, picture }: Kit): Promise<void> {
  await check('palette: suggestions while typing, keys, limits and recent pages', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/audit`)
    await goTo(page, `/ui/r/${scene.path}`)
    await openPalette(page)
    const recent = page.getByRole('group', { name: 'Recent pages' }).getByRole('option')
    expect((await recent.first().innerText()).includes('Audit log'), await recent.allInnerTexts())
    await picture(page, 'palette-start')

    await page.keyboard.type('ledg')
    const repositories = page.getByRole('group', { name: 'Repositories' }).getByRole('option')
    await repositories.filter({ hasText: 'payments/ledger' }).waitFor()
    await page
      .getByRole('status')
      .filter({ hasText: /results?$/ })
      .waitFor()
    const active = () => page.locator('[role=option][aria-selected=true]')
    expect((await active().count()) === 1, await options(page).allInnerTexts())
    const named = await field(page).getAttribute('aria-activedescendant')
    expect((await active().getAttribute('id')) === named, named)
    const first = await active().innerText()
    await page.keyboard.press('ArrowDown')
    expect((await active().innerText()) !== first, first)
    await page.keyboard.press('ArrowUp')
    await audit(page)
    await picture(page, 'palette-results')

    await page.keyboard.press('Tab')
    await page.getByRole('button', { name: 'Repositories. Search all kinds' }).waitFor()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.press('Backspace')
    await page.keyboard.press('Backspace')
    await page.getByRole('button', { name: /Search all kinds$/ }).waitFor({ state: 'detached' })
    await page.keyboard.press('Backspace')
    await page.getByRole('button', { name: /Search everywhere$/ }).waitFor({ state: 'detached' })
    await page.keyboard.type('ledger')
    await page
      .getByRole('status')
      .filter({ hasText: /results?$/ })
      .waitFor()
    await repositories.filter({ hasText: scene.path }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/ui/r/${scene.path}`)
    await field(page).waitFor({ state: 'detached' })
    await context.close()
  })

  await check('palette: actions need permission', async () => {
    const operator = await asOperator()
    await goTo(operator.page, `/ui/g/${scene.orgName}`)
    await openPalette(operator.page)
    await operator.page.getByRole('option', { name: /^Invite people/ }).waitFor()
    await operator.context.close()
    const { context, page } = await asViewer()
    await goTo(page, `/ui/g/${scene.orgName}`)
    await openPalette(page)
    await page.getByRole('option', { name: /^Go to Repositories/ }).waitFor()
    expect((await page.getByRole('option', { name: /^Invite people/ }).count()) === 0, 'an action without permission')
    await context.close()
  })
}

async function checkResults({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('a search for a part of a name lists all kinds, and one kind on request', async () => {
    const { context, page } = await asOperator()
    await goTo(page, '/ui/search?q=ledg')
    const table = page.getByRole('table', { name: 'Search results' })
    await table.getByRole('link', { name: scene.path, exact: true }).waitFor()
    await page.getByRole('link', { name: 'Vulnerabilities', exact: true }).last().click()
    await settled(page)
    await page.getByText('Nothing that you can see has “ledg” in its name.').waitFor()
    await goTo(page, '/ui/package?name=zlib')
    await page.getByRole('table', { name: 'Images with the package zlib' }).waitFor()
    await context.close()
  })

  await check('a search for a vulnerability shows one warning about unscanned images', async () => {
    const { context, page } = await asOperator()
    const coverage = { state: 'NOT_SCANNED', summary: '2 images were not scanned' }
    const image = {
      ...{ repoUid: scene.repo.uid, digest: scene.digest, tags: ['stable'], moreTags: false, severity: 'HIGH' },
      ...{ state: 'AFFECTED', purls: ['pkg:apk/alpine/zlib@1.3.1-r0'] },
    }
    const body = JSON.stringify({ images: [image], unknownImages: 2, coverage })
    await page.route(/vulnerableImages\?/, (route) => route.fulfill({ contentType: 'application/json', body }))
    await goTo(page, '/ui/search?q=CVE-2024-7777')
    await page.getByRole('table', { name: 'Images with this vulnerability' }).waitFor()
    const text = await page.innerText('main')
    expect(text.split('2 images').length === 2, text)
    await context.close()
  })
}
