// Faults that users have reported of other web consoles, tried on ours in a real Chromium.
import type { Page } from 'playwright-core'
import { movedPath } from '../../console/src/app/paths.ts'
import { expect, type Opened, settled, until } from '../support/chromium.ts'
import { consoleScreens } from '../support/console-scene.ts'
import type { Kit } from './console-changes.ts'

type Enter = { asViewer: () => Promise<Opened>; enterAsViewer: (page: Page) => Promise<void> }

export async function checkReports(kit: Kit, enter: Enter): Promise<void> {
  await checkClipboard(kit)
  await checkSessions(kit, enter)
  await checkLists(kit)
  await checkMarkup(kit)
  await checkAddresses(kit)
  await checkBrowsers(kit, enter)
}

const main = (page: Page) => page.locator('main')

async function checkClipboard({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('reported: the copy button works without the clipboard API, as over plain HTTP', async () => {
    const { context, page } = await asOperator()
    await page.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    await goTo(page, `/ui/r/${scene.path}/~/tags/stable`)
    const button = main(page).getByRole('button', { name: /^Copy/ }).first()
    const text = await button.getAttribute('title')
    await button.click()
    await page.getByText('Copied').first().waitFor()
    await page.getByRole('searchbox').first().focus()
    await page.keyboard.press('Control+V')
    expect((await page.locator('#q').inputValue()) === text && text !== '', { text })
    await context.close()
  })
}

const signedOut = {
  status: 401,
  contentType: 'application/json',
  body: JSON.stringify({ code: 16, message: 'the session has ended', details: [{ reason: 'UNAUTHENTICATED' }] }),
}

async function checkSessions(
  { check, scene, asOperator, goTo }: Kit,
  { asViewer, enterAsViewer }: Enter,
): Promise<void> {
  await check(
    'reported: after the session has ended, each screen links to the sign-in and shows no empty list',
    async () => {
      const { context, page } = await asOperator()
      await page.route('**/ui/api/**', (route) => route.fulfill(signedOut))
      for (const { name, path } of consoleScreens(scene)) {
        await goTo(page, path)
        const link = page.getByRole('link', { name: 'Sign in again and return here' }).first()
        const href = new URL((await link.getAttribute('href'))!, scene.pinfold.url)
        const [former = '', query] = path.split('?')
        const now = [movedPath(former) ?? former, ...(query === undefined ? [] : [query])].join('?')
        expect(href.searchParams.get('return') === now.replaceAll(/%[0-9a-f]{2}/gi, (one) => one.toUpperCase()), {
          name,
          path,
          href,
        })
        const said = await main(page).locator('.notice:not(.bad), .empty').allInnerTexts()
        expect(
          said.every((one) => !/^(?:There are no|No |You have no)/.test(one)),
          { name, said },
        )
      }
      await context.close()
    },
  )

  await check('reported: a tab of one user does not act as another user who signed in with a second tab', async () => {
    const { context, page } = await asViewer()
    await goTo(page, '/ui/account')
    const second = await context.newPage()
    // As after a sign-out, here and at the provider.
    await context.clearCookies()
    await enterAsViewer(second)
    await page.getByRole('link', { name: 'Repositories', exact: true }).click()
    await settled(page)
    await page.getByRole('alert').filter({ hasText: 'another user has signed in with this browser' }).first().waitFor()
    await page.reload()
    await settled(page)
    expect((await page.getByRole('alert').count()) === 0, await page.innerText('main'))
    await context.close()
  })
}

async function checkLists({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const many = `/ui/r/${scene.orgName}/payments/many`
  await check(
    'reported: a page after the last one links to the last page, and does not claim an empty list',
    async () => {
      const { context, page } = await asOperator()
      for (const path of [
        many,
        `/ui/g/${scene.orgName}/payments`,
        '/ui/advisories',
        `/ui/g/${scene.orgName}/~/audit`,
      ]) {
        await goTo(page, `${path}?page=99`)
        const text = await page.innerText('main')
        expect(text.includes('The list has no page 99.') && !/docker push|pinfold .* import/.test(text), { path, text })
        await page.getByRole('link', { name: /^Show the (?:first|last) page$/ }).click()
        await settled(page)
        expect((await main(page).locator('tbody tr, .log details').count()) > 0, {
          path,
          text: await page.innerText('main'),
        })
      }
      await context.close()
    },
  )

  await check('reported: the back button restores a search and its results', async () => {
    const { context, page } = await asOperator()
    await goTo(page, many)
    await page.getByLabel('Part of the tag name').fill('build-44')
    await page.getByRole('button', { name: 'Find', exact: true }).click()
    await page.getByRole('link', { name: 'build-449' }).click()
    await page.getByRole('heading', { name: 'Timeline' }).waitFor()
    await page.goBack()
    await settled(page)
    expect((await page.getByLabel('Part of the tag name').inputValue()) === 'build-44', 'the search is lost')
    const names = await main(page).locator('tbody th').allInnerTexts()
    expect(names.length === 11 && names.every((one) => one.includes('build-44')), names)
    await context.close()
  })

  await check('reported: a slow answer to an earlier search does not replace the later result', async () => {
    const { context, page } = await asOperator()
    const held = Promise.withResolvers<void>()
    await page.route(/prefix=build-1|build-1&/, async (route) => {
      await held.promise
      await route.continue().catch(() => {})
    })
    await goTo(page, many)
    const search = async (text: string) => {
      await page.getByLabel('Part of the tag name').fill(text)
      await page.getByLabel('Part of the tag name').press('Enter')
    }
    await search('build-1')
    await search('build-44')
    await page.getByRole('link', { name: 'build-449' }).waitFor()
    held.resolve()
    await settled(page)
    const names = await main(page).locator('tbody th').allInnerTexts()
    expect(names.length === 11 && names.every((one) => one.includes('build-44')), names)
    await context.close()
  })

  await check('reported: a form that is saved late keeps what somebody else has changed in other fields', async () => {
    const { operator } = scene.pinfold
    const rule = { name: 'shared', belowGroup: scene.folder.uid, minAge: '2d', mode: 'OBSERVE' }
    const { uid } = (await operator.post(`/registry/v2/pullRules/${scene.folder.uid}`, rule)).body
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/payments/~/pulls`)
    await page.getByRole('button', { name: 'Edit shared' }).click()
    const dialog = page.getByRole('dialog')
    await operator.patch(`/registry/v2/pullRules/${uid}`, { minAge: '9d' })
    await dialog.getByLabel('Name', { exact: true }).fill('renamed')
    await dialog.getByRole('button', { name: 'Edit' }).click()
    await dialog.waitFor({ state: 'detached' })
    const { body } = await operator.get(`/registry/v2/pullRules/${uid}`)
    expect(body.name === 'renamed' && body.minAge === '9d', body)
    await operator.delete(`/registry/v2/pullRules/${uid}`)
    await context.close()
  })

  await check('reported: a deleted tag leaves the list and its count without a reload', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `${many}?order=name+desc`)
    const rows = async () =>
      main(page)
        .getByText(/^Rows 1 to \d+ of \d+$/)
        .first()
        .innerText()
    const before = Number((await rows()).split(' ').at(-1))
    await page.getByRole('button', { name: 'Delete tag build-99', exact: true }).click()
    await page.getByRole('dialog').getByRole('textbox').fill('build-99')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('link', { name: 'build-99', exact: true }).waitFor({ state: 'detached' })
    await settled(page)
    expect((await rows()).endsWith(` of ${before - 1}`), { before, now: await rows() })
    await context.close()
  })

  await check('reported: a double click on a submit button sends one request', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/people`)
    let sent = 0
    page.on('request', (one) => {
      if (one.method() === 'POST' && one.url().includes('groupInvites')) sent++
    })
    await page.getByRole('button', { name: 'Invite members' }).click()
    await page.getByRole('button', { name: 'Create invitation links' }).dblclick()
    await until(
      () => sent,
      (seen) => seen > 0,
    )
    await settled(page)
    expect(sent === 1, { sent })
    await context.close()
  })
}

const hostile = `"><img src=x onerror="globalThis.hit=1"><script>globalThis.hit=1</script>`

async function checkMarkup({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('reported: markup in descriptions, readme files, searches and addresses is shown as text', async () => {
    const { operator, seed } = scene.pinfold
    const folder = await seed.group(scene.org.uid, { name: 'markup', description: hostile })
    const repo = await seed.repo(folder.uid, { name: 'app', description: hostile })
    const content = `[a link](javascript:globalThis.hit=1) [b](data:text/html,x) ${hostile}\n\n<a href="javascript:1">c</a>`
    await operator.patch(`/registry/v2/repos/${repo.uid}/readme`, { content })
    const { context, page } = await asOperator()
    const encoded = encodeURIComponent(hostile)
    for (const path of [
      ...[`/ui/g/${scene.orgName}/markup`, `/ui/g/${scene.orgName}`, `/ui/g/${scene.orgName}/~/repositories`],
      `/ui/r/${scene.orgName}/markup/app?view=readme`,
      ...[`/ui/search?q=${encoded}`, `/ui/g/${encoded}`, `/ui/r/${scene.path}/~/tags/${encoded}`, `/ui/${encoded}`],
    ]) {
      await goTo(page, path)
      const seen = await page.evaluate<unknown[]>(
        '[globalThis.hit, document.querySelectorAll(\'main img, main script, main [href^="javascript:"], main [href^="data:"]\').length]',
      )
      expect(JSON.stringify(seen) === '[null,0]', { path, seen })
    }
    await context.close()
  })
}

async function checkAddresses({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('reported: percent signs, plus signs and broken encodings in an address show a screen', async () => {
    const { context, page } = await asOperator()
    for (const path of [
      ...['/ui/search?q=0%25', '/ui/search?q=0%', '/ui/search?q=1%2B2', `/ui/r/${scene.path}/~/tags/50%25`],
      ...['/ui/r/%E0%A4%A', '/ui/g/100%', `/ui/r/${scene.path}/~/digests/sha256%3Axyz`, `/ui/r/${scene.path}?page=-1`],
      ...[`/ui/r/${scene.path}?order=%00`, `/ui/r/${scene.path}?page=1e99`, '/ui/r/', '/ui/r//~//'],
    ]) {
      await goTo(page, path)
      const text = await page.innerText('main')
      expect(text.trim().length > 10 && !text.includes('because of a bug'), { path, text })
    }
    await context.close()
  })

  await check('reported: after the sign-in, the browser returns only to pages of the server', async () => {
    const { context, page } = await asOperator()
    await context.clearCookies()
    const { url } = scene.pinfold
    for (const to of [
      '//evil.example.com/',
      'https://evil.example.com',
      '/\\evil.example.com',
      'javascript:alert(1)',
    ]) {
      scene.somebody()
      await context.clearCookies()
      await page.goto(`${url}/ui/signin?org=${scene.orgName}&return=${encodeURIComponent(to)}`)
      await page.getByRole('link', { name: /of acme\.example$/ }).click()
      await page.waitForURL(`${url}/ui/**`)
      expect(new URL(page.url()).origin === url, page.url())
    }
    await context.close()
  })
}

async function checkBrowsers({ check, asOperator, goTo }: Kit, { asViewer }: Enter): Promise<void> {
  await check('reported: the console works if the browser refuses local storage', async () => {
    const { context, page } = await asOperator()
    await page.addInitScript(
      "Object.defineProperty(globalThis, 'localStorage', { get() { throw new DOMException('denied', 'SecurityError') } })",
    )
    await goTo(page, '/ui/g/')
    await page.getByRole('button', { name: /^Account menu/ }).click()
    await page.getByRole('button', { name: 'Local time', exact: true }).click()
    const time = main(page).locator('time').first()
    await until(
      () => time.innerText(),
      (text) => text.endsWith(' GMT+9'),
    )
    await context.close()
  })

  await check(
    'reported: a user without access is told so, and an organization that does not exist looks the same',
    async () => {
      const { context, page } = await asViewer()
      const texts: string[] = []
      for (const name of ['no-such-org', 'other-org']) {
        await goTo(page, `/ui/g/${name}`)
        texts.push((await page.innerText('main')).replaceAll(name, 'ORG'))
      }
      expect(texts[0] === texts[1] && /This address has no page/.test(texts[0]!), texts)
      await context.close()
    },
  )
}
