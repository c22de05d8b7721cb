// Page of an image in a real Chromium: its summary, its tabs, filters of findings, and export.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, settled } from '../support/chromium.ts'
import type { Kit } from './console-changes.ts'

export async function checkImages({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const image = `/ui/r/${scene.path}/~/digests/${scene.digest}`

  await check('an image shows its summary first, and each part in a tab with its own address', async () => {
    const { context, page } = await asOperator()
    await goTo(page, image)
    const facts = await page.locator('dl.summary').innerText()
    for (const fact of ['linux/amd64', 'would be denied', 'old-enough']) expect(facts.includes(fact), facts)
    expect((await page.locator('.about').innerText()).includes('stable'), await page.innerText('main'))
    const parts = page.getByRole('navigation', { name: 'Sections' }).getByRole('link')
    for (const name of await parts.allInnerTexts()) {
      await parts.filter({ hasText: name }).click()
      await settled(page)
      expect(page.url().includes('?tab='), page.url())
      expect((await page.getByRole('alert').count()) === 0, { name, text: await page.innerText('main') })
    }
    await context.close()
  })

  await check('findings of an image are filtered in the address, and exported as CSV', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `${image}?q=curl`)
    await page.getByText(/^No finding matches the filters/).waitFor()
    await page.getByRole('link', { name: 'Clear filters' }).click()
    await page.getByRole('row').filter({ hasText: 'CVE-2024-7777' }).waitFor()
    await page.getByLabel('Findings').selectOption({ label: 'with a fix' })
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByRole('row').filter({ hasText: '1.3.2-r0' }).waitFor()
    expect(page.url().includes('only=fixable'), page.url())
    const folder = mkdtempSync(join(tmpdir(), 'pinfold-export-'))
    try {
      const saving = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Export as CSV' }).click()
      const file = join(folder, 'findings.csv')
      await (await saving).saveAs(file)
      const [head, row] = readFileSync(file, 'utf8').split('\r\n')
      expect(head!.startsWith('vulnerability,title,severity,score') && row!.startsWith('CVE-2024-7777,'), { head, row })
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    await context.close()
  })

  await check(
    'folders open as a tree, and an organization with repositories only in folders is not empty',
    async () => {
      const { context, page } = await asOperator()
      await goTo(page, `/ui/g/${scene.orgName}/~/repositories`)
      const list = page.getByRole('table', { name: 'Folders and repositories' })
      const folder = list.getByRole('row').filter({ hasText: 'payments' })
      expect(/\d+ repositories/.test(await folder.innerText()), await folder.innerText())
      expect((await page.getByText('There are no repositories here').count()) === 0, await page.innerText('main'))
      await page.getByRole('button', { name: 'Open payments' }).click()
      const repo = list.getByRole('row').filter({ has: page.getByRole('link', { name: 'ledger', exact: true }) })
      await repo.getByRole('link', { name: /1 high/ }).waitFor()
      expect(new URL(page.url()).searchParams.get('open') === 'payments', page.url())
      await page.reload()
      await repo.waitFor()
      await page.getByLabel('Part of the name').fill('edge')
      await page.getByRole('button', { name: 'Find', exact: true }).click()
      await page.getByRole('link', { name: 'payments/ledger', exact: true }).or(page.getByText('has “edge”')).waitFor()
      await context.close()
    },
  )

  await check('the tags of a repository show the facts of their images', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}`)
    const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'stable', exact: true }) })
    await row.getByRole('link', { name: /1 high/ }).waitFor()
    const text = await row.innerText()
    expect(text.includes('linux/amd64') && / B|kB/.test(text), text)
    await page.route(/imageSummaries/, (asked) => asked.fulfill({ status: 503, body: '{}' }))
    await page.reload()
    await page.getByRole('alert').waitFor()
    await row.waitFor()
    await context.close()
  })

  await check(
    'the overview shows images by severity, dry run and failures, and a slow panel delays no other',
    async () => {
      const { context, page } = await asOperator()
      const held = Promise.withResolvers<void>()
      await page.route(/imageOverview/, (asked) => held.promise.then(() => asked.continue()))
      await page.goto(`${scene.pinfold.url}/ui/g/${scene.orgName}`)
      const panel = (name: string) =>
        page.locator('section.panel').filter({ has: page.getByRole('heading', { name, exact: true }) })
      await panel('Policies in dry run').getByText('old-enough').waitFor()
      await panel('Storage').getByText('used').waitFor()
      held.resolve()
      const images = panel('Images by worst severity')
      await images.getByRole('link', { name: 'payments/ledger:stable' }).click()
      await page.locator('dl.summary').waitFor()
      await context.close()
    },
  )
}
