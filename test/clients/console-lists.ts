// Lists of more than one page, and states of screens, in a real Chromium: second pages, late deliveries, slow loading, and parts
// that cannot be read.
import type { Page, Route } from 'playwright-core'
import { findSettings } from '#domains/events/delivery/deliveries.store.ts'
import { claimQueue, findQueue, releaseQueue } from '#domains/events/routing/queues.store.ts'
import { route, routeEverything } from '#domains/events/routing/routing.ts'
import { audit, expect, settled, until } from '../support/chromium.ts'
import type { Kit } from './console-changes.ts'

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).first().click()

/** Must run before the plan of the scene is applied. */
export async function checkLists(kit: Kit): Promise<void> {
  await checkPages(kit)
  await checkStates(kit)
}

export async function checkEvents(kit: Kit): Promise<void> {
  await checkCatchUp(kit)
  await checkLive(kit)
}

/** Checks that all regions of the page have names, and that no two have the same name. */
async function namesOfRegions(page: Page): Promise<string[]> {
  const names = await page.evaluate<string[]>(`[...document.querySelectorAll('main [role=region]')].map((one) =>
    document.getElementById(one.getAttribute('aria-labelledby')).textContent)`)
  expect(names.every((name) => name !== '') && new Set(names).size === names.length, names)
  return names
}

async function checkPages({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator, seed } = scene.pinfold
  await check('6: each further page of a list has its own name and gets the focus', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.orgName}/payments/many?view=history`)
    const rows = page.locator('main tbody tr')
    expect((await rows.count()) === 100, await rows.count())
    for (const shown of [200, 300]) {
      await press(page, 'Show older')
      await rows.nth(shown - 1).waitFor()
      await settled(page)
      const focused = await page.evaluate<string>("document.activeElement.querySelector('caption')?.textContent")
      expect(focused === `Tag history, page ${shown / 100}`, { focused })
    }
    expect(
      (await namesOfRegions(page)).join() === 'Tag history,Tag history, page 2,Tag history, page 3',
      await namesOfRegions(page),
    )
    await audit(page)
    await context.close()
  })

  await check('6: second pages of lists have no accessibility violation', async () => {
    const beside = await seed.group(scene.org.uid, { name: 'beside' })
    const repo = await seed.repo(beside.uid, { name: 'alpine' })
    const [follow] = (await operator.get(`/registry/v2/follows/${scene.org.uid}`)).body.follows
    const { upstreamUid, path, tags, interval } = follow
    const followed = await operator.post(`/registry/v2/repos/${repo.uid}/follow`, { upstreamUid, path, tags, interval })
    expect(followed.status === 200, followed.text)
    const [{ uid }] = (await operator.get(`/events/v2/subscriptions?uidp.childrenOf=${scene.org.uid}`)).body
      .subscriptions
    await operator.post(`/events/v2/subscriptions/${uid}:sendTest`, {})
    // Another subscription with the same name.
    const twin = await seed.subscription(scene.org.uid)
    await using _ = {
      [Symbol.asyncDispose]: async () => void (await operator.delete(`/events/v2/subscriptions/${twin.uid}`)),
    }
    await scene.pinfold.point(twin.uid, 'https://127.0.0.1:1/hook')

    const { context, page } = await asOperator()
    await page.route(/\/ui\/api\/.*pageSize=/, (asked) =>
      asked.continue({
        url: asked
          .request()
          .url()
          .replace(/pageSize=\d+/, 'pageSize=1'),
      }),
    )
    const of: [screen: string, path: string, list: string][] = [
      ['folders of a group', `/ui/g/${scene.orgName}/~/repositories`, 'Folders and repositories'],
      ['tag updates', `/ui/r/${scene.path}/~/tags/stable`, 'Tag updates'],
      ['tags', `/ui/r/${scene.path}/~/digests/${scene.digest}?tab=history`, 'Current and former tags'],
      ['packages', `/ui/r/${scene.path}/~/digests/${scene.digest}?tab=packages`, 'Packages'],
      ['plan', `/ui/r/${scene.orgName}/payments/worker?view=promises&plan=${scene.plan}`, 'Planned deletions'],
      ['mirrors', `/ui/g/${scene.orgName}/~/mirrors`, 'Mirrors'],
    ]
    for (const [screen, path, list] of of) {
      await goTo(page, path)
      await pressAll(page)
      const names = await namesOfRegions(page)
      expect(names.includes(list) && names.includes(`${list}, page 2`), { screen, names })
      await audit(page)
    }
    await page.unroute(/\/ui\/api\/.*pageSize=/)
    await page.route(/\/deliveries\?.*pageSize=/, (asked) =>
      asked.continue({
        url: asked
          .request()
          .url()
          .replace(/pageSize=\d+/, 'pageSize=1'),
      }),
    )
    await goTo(page, `/ui/g/${scene.orgName}/~/events`)
    await pressAll(page)
    const names = await namesOfRegions(page)
    expect(
      names.some((name) => /^Deliveries to https:\/\/127\.0\.0\.1:1\/hook.*, page 2$/.test(name)),
      names,
    )
    const sections = await page.evaluate<string[]>(
      "[...document.querySelectorAll('main section')].map((one) => one.ariaLabel)",
    )
    expect(sections.length === 2 && new Set(sections).size === 2, sections)
    await audit(page)
    await context.close()
  })
}

/** Presses the button for more until it is gone, at most twelve times. */
async function pressAll(page: Page): Promise<void> {
  const more = page.getByRole('button', { name: /^Show (?:more|older)(?: folders)?$/ })
  const regions = page.locator('main [role=region]')
  for (let i = 0; i < 12 && (await more.count()) > 0; i++) {
    const before = await regions.count()
    await more.first().click()
    await regions.nth(before).waitFor()
    await settled(page)
  }
}

async function checkCatchUp({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator, app } = scene.pinfold
  await check('a webhook that is behind shows since when, and how to catch up', async () => {
    const [{ uid }] = (await operator.get(`/events/v2/subscriptions?uidp.childrenOf=${scene.org.uid}`)).body
      .subscriptions
    for (const description of ['Keeps all the books', 'Keeps the books']) {
      await operator.patch(`/registry/v2/repos/${scene.repo.uid}`, { description })
    }
    while ((await app.db.tx((tx) => route(app, tx, '', ''))).isMore) {
      // Routes the next batch of events.
    }
    const { behindTime } = (await operator.get(`/events/v2/subscriptions/${uid}/settings`)).body
    expect(Date.parse(behindTime) <= Date.now(), { behindTime })
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/events`)
    const note = page.locator('.notice').filter({ hasText: 'Deliveries have been delayed since' })
    expect((await note.locator('time').getAttribute('datetime')) === behindTime, { behindTime })
    await note.getByText('No action is needed.').waitFor()
    await press(page, 'Pause')
    await note.getByText('To send them, resume the webhook.').waitFor()
    await audit(page)
    await press(page, 'Resume')
    await note.getByText('No action is needed.').waitFor()

    await waitUntilCaughtUp(scene, uid)
    const waiting = async () => Number((await operator.get(`/events/v2/subscriptions/${uid}/settings`)).body.waiting)
    const before = await waiting()
    await press(page, /^Redeliver a time range to/)
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('From (UTC)').fill(new Date(Date.now() - 86_400_000).toISOString().slice(0, 16))
    await dialog.getByRole('button', { name: 'Redeliver a time range' }).click()
    const said = await page.getByRole('status').filter({ hasText: 'will be sent again' }).innerText()
    await note.waitFor({ state: 'detached' })
    const sent = Number(said.replaceAll(',', '').match(/\d+/)![0])
    expect(sent > 0 && (await waiting()) === before + sent, { said, before, after: await waiting() })
    await sendInParts(page)
    await context.close()
  })
}

/** If the queue is too small for all deliveries, the page offers a button until the rest is queued. */
async function sendInParts(page: Page): Promise<void> {
  const bodies: Record<string, string>[] = []
  const full = { code: 9, message: '10000 deliveries wait already', details: [] }
  const answers = [
    { status: 200, json: { eventCount: '7', nextPageToken: 'here' } },
    { status: 400, json: full },
    { status: 200, json: { eventCount: '5', nextPageToken: '' } },
  ]
  await page.route('**/*:replay', async (route) => {
    bodies.push(route.request().postDataJSON())
    await route.fulfill(answers[bodies.length - 1]!)
  })
  await press(page, /^Redeliver a time range to/)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('From (UTC)').fill('2026-01-01T00:00')
  await dialog.getByRole('button', { name: 'Redeliver a time range' }).click()
  await page.getByText('7 events will be sent again.').waitFor()
  await audit(page)
  await press(page, 'Send the rest')
  await page.getByText('12 events will be sent again.').waitFor()
  await page.getByRole('button', { name: 'Send the rest' }).waitFor({ state: 'detached' })
  expect(new Set(bodies.map(({ endTime }) => endTime)).size === 1, { bodies })
  expect(bodies.map(({ pageToken }) => pageToken).join() === ',here,here', { bodies })
  await page.unroute('**/*:replay')
}

/** This server sends no deliveries, so the test marks all events as tried. */
async function waitUntilCaughtUp({ pinfold: { app } }: Kit['scene'], uid: string): Promise<void> {
  const { id } = (await findSettings(app.db, uid))!.subscriber
  await app.db.tx(async (tx) => {
    const { generation } = (await claimQueue(tx, (await findQueue(tx, id))!, 'by-hand'))!
    await releaseQueue(tx, { subscription: id, generation, isDone: true }, 'by-hand', undefined)
  })
}

async function checkLive({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { app, seed } = scene.pinfold
  await check('live events are shown until they are stopped', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/events`)
    const stream = page.waitForResponse(/\/ui\/api\/events\/v2\/stream/)
    await page.getByRole('button', { name: 'Show live events', exact: true }).click()
    expect((await stream).status() === 200, (await stream).status())
    await page.getByText('No events have happened since you opened this view.').waitFor()
    const repo = await seed.repo(scene.folder.uid, { name: 'seen-live' })
    const row = page.getByRole('table', { name: 'Live events' }).getByRole('row').filter({ hasText: repo.uid })
    // This server sends no deliveries, so the test itself gives the events their positions.
    await app.db.tx((tx) => routeEverything(app, tx, app.clock().toISOString()))
    app.events.routed.notify()
    await row.filter({ hasText: 'repo.created' }).waitFor()
    await page.getByRole('button', { name: 'Stop live events', exact: true }).click()
    await row.waitFor({ state: 'detached' })
    await context.close()
  })
}

const away = {
  status: 503,
  contentType: 'application/json',
  body: JSON.stringify({ code: 14, message: 'away', details: [{ reason: 'UNAVAILABLE' }] }),
}

const slowScreens = (scene: Kit['scene']) => [
  '/ui/',
  `/ui/r/${scene.path}`,
  `/ui/r/${scene.path}/~/tags/stable`,
  `/ui/r/${scene.path}/~/digests/${scene.digest}`,
  `/ui/g/${scene.orgName}/~/events`,
]

async function checkStates({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('6: a slow screen shows an accessible loading state', async () => {
    const { context, page } = await asOperator()
    let held: Route[] = []
    await page.route(/\/ui\/api\/(?:registry|events|iam)\//, (asked) => void held.push(asked))
    for (const path of slowScreens(scene)) {
      await page.goto(scene.pinfold.url + path)
      await page.getByRole('status').filter({ hasText: 'Loading' }).first().waitFor()
      await audit(page)
      await until(
        () => held.length,
        (seen) => seen > 0,
      )
      // The page has aborted some of these requests.
      await Promise.all(held.map((asked) => asked.fulfill(away).catch(() => {})))
      held = []
    }
    await context.close()
  })

  await check('a missing permission is shown only after the permissions are known', async () => {
    const { context, page } = await asOperator()
    const held = Promise.withResolvers<void>()
    await page.route(/\/ui\/api\/auth\/v1\/ok/, (asked) => held.promise.then(() => asked.continue()))
    await page.goto(`${scene.pinfold.url}/ui/g/${scene.orgName}/~/people`)
    await page.getByRole('heading', { name: 'Invitations', exact: true }).waitFor()
    expect((await page.getByText(/^You do not have permission to see/).count()) === 0, await page.innerText('main'))
    held.resolve()
    await page.getByText('Invite members').waitFor()
    await context.close()
  })

  await check('a part that cannot be read shows its error, and the other parts are shown', async () => {
    const { context, page } = await asOperator()
    await page.route(/\/findings/, (asked) => asked.fulfill(away), { times: 1 })
    await goTo(page, `/ui/r/${scene.path}/~/digests/${scene.digest}`)
    await page.getByRole('definition').filter({ hasText: 'linux/amd64' }).waitFor()
    expect((await page.getByRole('alert').count()) === 1, await page.innerText('main'))
    await audit(page)
    await page.getByRole('alert').getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('table', { name: 'Vulnerabilities' }).waitFor()
    expect((await page.getByRole('alert').count()) === 0, await page.innerText('main'))
    await context.close()
  })
}
