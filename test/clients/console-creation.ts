// Creation of organizations, folders, repositories and custom roles in the console, in a real Chromium.
import type { Page } from 'playwright-core'
import { audit, expect } from '../support/chromium.ts'
import type { Kit } from './console-changes.ts'

export async function checkCreation({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator } = scene.pinfold
  const create = async (page: Page, button: string, submit: string, name: string) => {
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: button }).click()
    await dialog.getByLabel('Name').fill(name)
    await dialog.getByRole('button', { name: submit }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.waitForURL(new RegExp(`/${name}$`))
  }

  await check('an organization, a folder and a repository are created, each inside the former', async () => {
    const { context, page } = await asOperator()
    await goTo(page, '/ui/organizations')
    await create(page, 'Create organization', 'Create organization', 'globex')
    await page.getByRole('link', { name: 'Repositories', exact: true }).first().click()
    await create(page, 'New folder', 'Create folder', 'team')
    await create(page, 'New repository', 'Create repository', 'intranet')
    await page.getByText(/^There are no tags yet/).waitFor()
    const { body } = await operator.get('/registry/v2/repos?name=intranet')
    expect(body.repos.length === 1 && page.url().endsWith('/ui/r/globex/team/intranet'), page.url())
    await context.close()
  })

  await check('a custom role is created from another role, changed, and deleted', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/members/roles`)
    const [dialog, row] = [page.getByRole('dialog'), page.getByRole('row').filter({ hasText: 'night watch' })]
    const roleOf = async () => (await operator.get('/iam/v2/roles?name=night%20watch')).body.roles[0]
    await page.getByRole('button', { name: 'New role' }).click()
    await dialog.getByLabel('Name').fill('night watch')
    await dialog.getByLabel('Start with the permissions of').selectOption({ label: 'registry.pull' })
    await dialog.getByRole('checkbox', { name: 'tag.delete' }).check()
    await audit(page)
    await dialog.getByRole('button', { name: 'Create role' }).click()
    await row.waitFor()
    const made = await roleOf()
    expect(made.capabilities.includes('CAP_TAG_DELETE') && made.capabilities.includes('CAP_MANIFEST_LIST'), made)
    await page.getByRole('button', { name: 'Edit role night watch' }).click()
    await dialog.getByRole('checkbox', { name: 'tag.delete' }).uncheck()
    await dialog.getByRole('button', { name: 'Save role' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(!(await roleOf()).capabilities.includes('CAP_TAG_DELETE'), await roleOf())
    await page.getByRole('button', { name: 'Delete role night watch' }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await row.waitFor({ state: 'detached' })
    await context.close()
  })
}
