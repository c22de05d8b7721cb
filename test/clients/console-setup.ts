// Checks of the setup page of the operator.
import { audit, expect, settled } from '../support/chromium.ts'
import type { Kit } from './console-changes.ts'

export async function checkSetup({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('setup: check marks show the state, and an organization is created on the page', async () => {
    const { context, page } = await asOperator()
    const step = (name: RegExp) => page.getByRole('listitem').filter({ has: page.getByRole('heading', { name }) })
    await goTo(page, '/ui/setup')
    for (const name of [
      /^Create an organization \(done\)/,
      /^Let people sign in \(done\)/,
      /^Push the first image \(done\)/,
    ]) {
      await step(name).waitFor()
    }
    await step(/^Turn on vulnerability data \(done\)/).waitFor()
    await page.getByText('The setup is complete.').waitFor()

    const empty = (member: string) => JSON.stringify({ [member]: [], nextPageToken: '', totalCount: '0' })
    const contentType = 'application/json'
    let isNew = true
    for (const [path, member] of [
      ['iam/v2/groups', 'groups'],
      ['iam/v2/identityProviders', 'identityProviders'],
      ['registry/v2/tags', 'tags'],
    ] as const) {
      await page.route(new RegExp(`/ui/api/${path}\\?`), (route) =>
        isNew || member === 'tags' ? route.fulfill({ contentType, body: empty(member) }) : route.continue(),
      )
    }
    await page.route(/vulnerabilitySources/, (route) =>
      route.fulfill({ contentType, body: '{"sources":[],"needed":[]}' }),
    )
    await goTo(page, '/ui/setup')
    await page.getByText('0 of 4 steps done').or(page.getByText('1 of 4 steps done')).waitFor()
    await step(/^Turn on vulnerability data \(to do\)/)
      .getByText('pinfold vulnerabilities sync')
      .waitFor()
    await audit(page)

    isNew = false
    const name = `first-${Date.now()}`
    await page.getByLabel('Name of the organization').fill(name)
    await page.getByRole('button', { name: 'Create organization' }).click()
    await step(/^Create an organization \(done\)/).waitFor()
    await step(/^Push the first image \(to do\)/)
      .getByText(/docker push/)
      .waitFor()
    await settled(page)
    const { body } = await scene.pinfold.operator.get(`/iam/v2/groups?name=${name}`)
    expect(body.groups.length === 1, body)
    await context.close()
  })
}
