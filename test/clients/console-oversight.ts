// The audit log in Chromium: sentences, filters in the address, details and export.
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { type Check, expect, type Opened } from '../support/chromium.ts'
import type { ConsoleScene } from '../support/console-scene.ts'

type Kit = {
  check: Check
  scene: ConsoleScene
  asOperator: () => Promise<Opened>
  goTo: (page: Page, path: string) => Promise<void>
}

export async function checkOversight({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('audit log: sentences with names, filters in the address, details and export', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/audit`)
    const sentences = page.locator('.log .sentence')
    await sentences
      .filter({ hasText: /granted .+ the role .+ in / })
      .first()
      .waitFor()
    const shown = await page.getByRole('main').innerText()
    expect(!/[0-9a-f]{40}/.test(shown), 'a uid is visible')

    const all = await page.locator('.log-head').getByRole('status').innerText()
    await page.getByRole('combobox', { name: 'Action' }).fill('folder created')
    await page.keyboard.press('Enter')
    await page.waitForURL(/type=dev\.pinfold\.api\.iam\.group\.created\.v1/)
    await sentences.filter({ hasNotText: ' created ' }).first().waitFor({ state: 'detached' })
    expect((await page.locator('.log-head').getByRole('status').innerText()) !== all, all)
    await page.getByLabel('Time', { exact: true }).selectOption('1')
    await page.waitForURL(/days=1/)
    await page.reload()
    await sentences.first().waitFor()

    await page.locator('.log summary').first().click()
    await page.getByText('dev.pinfold.api.iam.group.created.v1').waitFor()
    await page.getByRole('link', { name: 'changes of this resource' }).click()
    await page.waitForURL(/subject=/)

    await goTo(page, `/ui/g/${scene.orgName}/~/audit`)
    await page.getByRole('button', { name: 'Export' }).click()
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV', exact: true }).click(),
    ])
    const lines = readFileSync(await file.path(), 'utf8')
      .trimEnd()
      .split('\r\n')
    expect(lines[0]!.startsWith('time,actor,action,sentence,') && lines.length > 5, lines.slice(0, 2))
    await context.close()
  })

  await check('integrations: attempts of a delivery, and a connection test of an identity provider', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/integrations/webhooks`)
    await page
      .getByRole('button', { name: /^Attempts to deliver the event of/ })
      .first()
      .click()
    const attempts = page.getByRole('dialog').getByRole('table', { name: 'Attempts' })
    await attempts.getByRole('row').filter({ hasText: ' ms' }).first().waitFor()
    await page.keyboard.press('Escape')

    await goTo(page, `/ui/g/${scene.orgName}/~/members/invitations`)
    await page.getByRole('button', { name: 'Test connection' }).first().click()
    await page.getByText(/^The server can read the configuration/).waitFor()

    await goTo(page, '/ui/organizations')
    await page.getByRole('link', { name: 'Data sources' }).click()
    await page.getByRole('main').getByText('pinfold vulnerabilities sync').waitFor()
    await context.close()
  })
}
