// The ten recipes of docs/reference/console.md in a real Chromium, with the keyboard only: Tab and other keys reach everything.
import type { Locator, Page } from 'playwright-core'
import { copied, expect, settled } from '../support/chromium.ts'
import { roleUids } from '../support/pinfold.ts'
import type { Kit } from './console-changes.ts'

const mostTabs = 300
const rowOf = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })

/** Runs in the page. */
const isFocused = (one: unknown): boolean =>
  one === (globalThis as unknown as { document: { activeElement: unknown } }).document.activeElement

/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, wanted: Locator): Promise<void> {
  await wanted.waitFor()
  for (let i = 0; i < mostTabs; i++) {
    if (await wanted.evaluate(isFocused)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`${wanted} is not reached with ${mostTabs} tabs`)
}

async function use(page: Page, wanted: Locator): Promise<void> {
  await tabTo(page, wanted)
  await page.keyboard.press('Enter')
}

async function type(page: Page, wanted: Locator, text: string): Promise<void> {
  await tabTo(page, wanted)
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type(text)
}

/** Moves the focus to the search box with its key. */
async function search(page: Page, text: string): Promise<void> {
  await page.locator('h1').focus()
  await page.keyboard.press('ControlOrMeta+k')
  await page.getByRole('combobox', { name: 'Search and actions' }).waitFor()
  await page.keyboard.type(text)
  await page.keyboard.press('Enter')
}

export async function checkRecipes(kit: Kit): Promise<void> {
  await checkTagsAndDigests(kit)
  await checkAccess(kit)
  await checkBuildsAndEvents(kit)
}

async function checkTagsAndDigests({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check(
    '6, recipes 1 to 5 by keyboard: a tag at a time, tags of a digest, search, copy, comparison',
    async () => {
      const { context, page } = await asOperator()
      await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: scene.pinfold.url })
      await search(page, `${scene.path}:stable`)
      const bars = page.getByRole('group', { name: /^Timeline/ }).getByRole('button')
      await tabTo(page, bars.last())
      await page.keyboard.press('ArrowLeft')
      await page.keyboard.press('Enter')
      const status = page.getByRole('status').filter({ hasText: /^Digest on/ })
      await status.waitFor()
      await page.locator('h1').focus()
      const pin = await copied(page, () =>
        use(page, page.getByRole('button', { name: 'Copy with digest: stable', exact: true })),
      )
      expect(pin.endsWith(`${scene.path}@${scene.digestThen}`), pin)

      await search(page, `${scene.path}@${scene.digest}`)
      await use(page, page.getByRole('link', { name: 'History', exact: true }))
      const ever = page.getByRole('table', { name: 'Current and former tags' })
      await ever.getByRole('row').filter({ hasText: 'gone' }).filter({ hasText: 'deleted' }).waitFor()

      await search(page, `${scene.orgName}/payments/many`)
      await type(page, page.getByLabel('Part of the tag name'), 'ild-44')
      await page.keyboard.press('Enter')
      await page.getByText('build-449').waitFor()
      await settled(page)
      await page.locator('h1').focus()
      await page.keyboard.press('j')
      await copied(page, () => page.keyboard.press('c'))

      await search(page, 'CVE-2024-7777')
      await page
        .getByRole('table', { name: /Images/ })
        .getByText(scene.path)
        .first()
        .waitFor()
      await goTo(page, `/ui/r/${scene.path}/~/tags/gone`)
      await use(page, page.getByRole('link', { name: /^Compare/ }).first())
      await page.getByRole('heading', { name: /^Changes from [0-9a-f]{8} to/ }).waitFor()
      await context.close()
    },
  )
}

async function checkAccess({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('6, recipes 6, 7 and 10 by keyboard: explanation, access and audit log', async () => {
    const viewer = await scene.pinfold.seed.member(scene.org.uid, roleUids.viewer)
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/payments`)
    const main = page.getByRole('main')
    await use(page, main.getByRole('link', { name: 'Members', exact: true }))
    await use(page, main.getByRole('link', { name: 'Explain access', exact: true }))
    await type(page, page.getByRole('combobox', { name: 'Person or service account' }), viewer.name)
    await page.keyboard.press('Enter')
    await tabTo(page, page.getByLabel('Action'))
    // The fourth choice: permission to delete tags.
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown')
    await use(page, page.getByRole('button', { name: 'Explain', exact: true }))
    await page.getByText(/^Not allowed:/).waitFor()
    await page.getByText('Roles with this permission:').waitFor()
    expect(new URL(page.url()).searchParams.get('capability') === 'CAP_TAG_DELETE', page.url())

    await page.locator('h1').focus()
    await use(page, main.getByRole('link', { name: 'Service accounts', exact: true }))
    await rowOf(page, `inherited from ${scene.orgName}`).first().waitFor()

    await page.locator('h1').focus()
    await use(page, main.getByRole('link', { name: 'Audit log', exact: true }))
    await goTo(page, `/ui/g/${scene.orgName}/~/audit?type=${encodeURIComponent(bindingMade)}`)
    const made = page.locator('.log details').filter({ hasText: ' the role ' })
    await made.first().waitFor()
    const { body } = await scene.pinfold.operator.get(
      `/events/v2/audit?uidp.descendantsOf=${scene.org.uid}&type=${encodeURIComponent(bindingMade)}`,
    )
    expect((await made.count()) === Number(body.totalCount), { shown: await made.count(), total: body.totalCount })
    await context.close()
  })
}

const bindingMade = 'dev.pinfold.api.iam.rolebindings.created.v1'

async function checkBuildsAndEvents({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator } = scene.pinfold
  await check('6, recipes 8 and 9 by keyboard: keyless CI, and redelivery of a failed event', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/keyless`)
    await type(page, page.getByLabel(/^Repository URL/), 'https://github.com/acme/keys')
    await use(page, page.getByRole('button', { name: 'Preview' }))
    await use(page, page.getByRole('button', { name: 'Create' }))
    await page.getByText('id-token: write').waitFor()

    await goTo(page, `/ui/g/${scene.orgName}/~/events`)
    const { uid } = (await operator.get(`/events/v2/subscriptions?uidp.childrenOf=${scene.org.uid}`)).body
      .subscriptions[0]
    const waiting = async () => Number((await operator.get(`/events/v2/subscriptions/${uid}/settings`)).body.waiting)
    const before = await waiting()
    // The last choice: deliveries that were given up.
    await tabTo(page, page.getByLabel('Delivery status'))
    await page.keyboard.press('End')
    const list = page.getByRole('region', { name: /^Deliveries to/ }).locator('tbody')
    await list.getByRole('row').filter({ hasNotText: 'failed' }).first().waitFor({ state: 'detached' })
    await use(page, list.getByRole('button', { name: /^Redeliver/ }).first())
    await page.getByText(`${before + 1} waiting`).waitFor()
    expect((await waiting()) === before + 1, { before, now: await waiting() })
    await context.close()
  })
}
