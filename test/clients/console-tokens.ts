// Push tokens and pull tokens in the console, in a real Chromium. The registry then accepts them.
import type { Page } from 'playwright-core'
import { audit, expect, settled } from '../support/chromium.ts'
import type { Kit } from './console-changes.ts'

export async function checkTokens({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { url } = scene.pinfold
  const path = `/ui/g/${scene.orgName}/~/integrations/tokens`
  /** Status of a sign-in at the registry. */
  const signIn = async (user: string, password: string) => {
    const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    const scope = `repository:${scene.path}:pull`
    const answer = await fetch(`${url}/token?service=${new URL(url).host}&scope=${scope}`, {
      headers: { authorization },
    })
    return answer.status
  }
  const create = async (page: Page, kind: string, name: string) => {
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: `New ${kind} token` }).click()
    await dialog.getByLabel('Name').fill(name)
    await audit(page)
    await dialog.getByRole('button', { name: 'Create token' }).click()
    await dialog.getByText(/^The token was created/).waitFor()
    const [password = '', login = ''] = await dialog.locator('pre code').allInnerTexts()
    const user = login.split(' ')[3]!
    await dialog.getByRole('button', { name: 'Close' }).click()
    await settled(page)
    expect(!(await page.content()).includes(password), 'the password stays')
    return { user, password }
  }

  for (const kind of ['push', 'pull']) {
    await check(`7: a ${kind} token is created, works at the registry, and is revoked`, async () => {
      const { context, page } = await asOperator()
      await goTo(page, path)
      const { user, password } = await create(page, kind, `night ${kind}`)
      expect((await signIn(user, password)) === 200, await signIn(user, password))
      await page.getByRole('button', { name: `Revoke ${kind} token night ${kind}` }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
      await page
        .getByRole('row')
        .filter({ hasText: `night ${kind}` })
        .waitFor({ state: 'detached' })
      expect((await signIn(user, password)) === 401, await signIn(user, password))
      await context.close()
    })
  }
}
