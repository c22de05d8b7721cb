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
}
