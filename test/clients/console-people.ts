// Roles, invitations, reviews, sessions and appearance in the console, in a real Chromium.

import type { Page } from 'playwright-core'
import { indexNames } from '#domains/search/index-names.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { audit, expect, type Opened, settled } from '../support/chromium.ts'
import { seedLibraries } from '../support/libraries.ts'
import { roleUids } from '../support/pinfold.ts'
import type { Kit } from './console-changes.ts'

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).first().click()
const rowOf = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })

export async function checkPeople(kit: Kit, asViewer: () => Promise<Opened>): Promise<void> {
  await checkNoAccess(kit, asViewer)
  await checkRoles(kit)
  await checkSecrets(kit)
  await checkAdvisories(kit)
  await checkChoices(kit)
}

async function checkNoAccess({ check, scene, goTo }: Kit, asViewer: () => Promise<Opened>): Promise<void> {
  const { operator, seed } = scene.pinfold
  await check('7: a member sees whom to ask for access, and nothing of other organizations', async () => {
    const owner = await seed.person({ name: 'Ada Lovelace', email: 'ada@acme.example' })
    await operator.post(`/iam/v2/roleBindings/${scene.org.uid}`, { identityUid: owner.uid, roleUid: roleUids.owner })
    const other = await seed.group('', { name: 'initech' })
    const hidden = await seed.repo(other.uid, { name: 'app' })
    const { context, page } = await asViewer()
    for (const path of ['g/acme.example/secret', 'r/acme.example/secret/app', 'r/acme.example/app/~/tags/stable']) {
      await goTo(page, `/ui/${path}`)
      await page.getByText('Ada Lovelace (ada@acme.example)').waitFor()
      await page.getByRole('button', { name: 'Copy a request for access' }).waitFor()
    }
    await audit(page)
    const texts: string[] = []
    for (const path of [`initech/${hidden.name}`, 'initech/nothing', 'nobody/app']) {
      await goTo(page, `/ui/r/${path}`)
      texts.push(await page.locator('.empty').innerText())
    }
    expect(new Set(texts).size === 1 && texts[0]!.startsWith('This address has no page.'), texts)
    await context.close()
  })
}

async function checkRoles({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator, seed } = scene.pinfold
  await check('a search finds an identity, which gets a role in its group and loses it', async () => {
    const { uid, name } = await seed.identity(scene.org.uid, { name: 'the night shift' })
    await runJob(scene.pinfold.app, indexNames)
    const { context, page } = await asOperator()
    await page.getByRole('searchbox').first().fill(name)
    await page.keyboard.press('Enter')
    await rowOf(page, 'member').getByRole('link', { name }).click()
    await page.getByText(/^Only the roles of/).waitFor()
    expect(new URL(page.url()).searchParams.get('identity') === uid, page.url())

    await goTo(page, `/ui/g/${scene.orgName}/~/members/service-accounts`)
    const row = rowOf(page, name)
    await row.getByText('no role').waitFor()
    await press(page, 'Add member')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('combobox', { name: 'Person or service account' }).fill('night sh')
    await page.keyboard.press('Enter')
    await dialog.getByRole('radio', { name: /^viewer/ }).check()
    await dialog.getByRole('button', { name: 'Add member' }).click()
    await row.getByText('viewer').waitFor()
    const bindings = async () => (await operator.get(`/iam/v2/roleBindings?identity=${uid}`)).body.roleBindings
    expect((await bindings()).length === 1, await bindings())

    await press(page, `Change the roles of ${name}`)
    await dialog.getByLabel(`Role in ${scene.orgName}`).selectOption({ label: 'registry.pull' })
    await dialog.getByRole('button', { name: 'Save roles' }).click()
    // The dialog, which is in the row, lists the role too.
    await dialog.waitFor({ state: 'hidden' })
    await row.getByText('registry.pull').waitFor()
    expect((await bindings())[0].role.name === 'registry.pull', await bindings())

    await press(page, `Remove ${name}`)
    await dialog.getByText(`Removes these roles: registry.pull in ${scene.orgName}.`).waitFor()
    await audit(page)
    await dialog.getByRole('button', { name: 'Delete service account' }).click()
    await row.waitFor({ state: 'detached' })
    await settled(page)
    expect((await bindings()).length === 0, await bindings())
    await context.close()
  })

  await check('a person ends another session of theirs, and it ends at once', async () => {
    const [mine, other] = [await asOperator(), await asOperator()]
    const asked = await other.context.request.get(`${scene.pinfold.url}/ui/api/control/v1/sessions?pageSize=200`)
    const { createTime } = (await asked.json()).sessions.find(({ current }: { current: boolean }) => current)
    await goTo(mine.page, '/ui/account')
    await press(mine.page, `End session of ${createTime}`)
    await mine.page.getByRole('button', { name: `End session of ${createTime}` }).waitFor({ state: 'detached' })
    await other.page.goto(`${scene.pinfold.url}/ui/account`)
    expect(new URL(other.page.url()).pathname.startsWith('/ui/signin'), other.page.url())
    await goTo(mine.page, '/ui/account')
    expect((await mine.page.getByText('this session').count()) === 1, await mine.page.innerText('main'))
    await mine.context.close()
    await other.context.close()
  })
}

async function checkSecrets({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('7: the code of an invitation and the secret of a webhook are shown only once', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/people`)
    await press(page, 'Invite members')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Email addresses').fill('night@acme.example')
    await dialog.getByRole('button', { name: 'Create invitation links' }).click()
    const code = await dialog.locator('pre code').innerText()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await rowOf(page, 'night@acme.example').waitFor()

    await goTo(page, `/ui/g/${scene.orgName}/~/events`)
    expect(code.length >= 16 && !(await page.content()).includes(code), 'the code stays')
    await page.getByText('New webhook').click()
    await page.getByLabel('Endpoint URL').fill('https://hooks.example.com/night')
    await press(page, 'Create')
    const one = page.getByRole('region', { name: 'https://hooks.example.com/night', exact: true })
    await one.getByRole('button', { name: 'Rotate secret' }).click()
    const secret = await one.locator('.notice.good code').innerText()
    expect(secret.startsWith('whsec_'), 'no secret is shown')

    const answers: Promise<string>[] = []
    page.on('response', (answer) => void answers.push(answer.text().catch(() => '')))
    for (const path of ['events', 'people']) {
      await goTo(page, `/ui/g/${scene.orgName}/~/${path}`)
      const text = (await page.content()) + (await Promise.all(answers)).join('')
      expect(!text.includes(code) && !text.includes(secret), `a secret on ${path}`)
    }
    await press(page, /^Revoke the invitation to .* for night@acme\.example$/)
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await rowOf(page, 'night@acme.example').waitFor({ state: 'detached' })
    await goTo(page, `/ui/g/${scene.orgName}/~/events`)
    await press(page, 'Delete webhook https://hooks.example.com/night')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await one.waitFor({ state: 'detached' })
    await context.close()
  })
}

async function checkAdvisories({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { pinfold } = scene
  await check('a reviewer approves an event of an advisory', async () => {
    const { context, page } = await asOperator()
    await goTo(page, '/ui/advisories?review=REVIEW_STATE_PENDING')
    await page.getByRole('link', { name: 'CGA-2222-3333-4444' }).click()
    await press(page, 'Approve')
    await rowOf(page, 'affected').filter({ hasText: 'approved' }).waitFor()
    const { body } = await pinfold.operator.get(`/vulnerabilities/v2/advisories/${scene.advisory}`)
    expect(body.events[0].reviewState === 'REVIEW_STATE_APPROVED', body)
    await goTo(page, '/ui/advisories?review=REVIEW_STATE_PENDING')
    expect((await page.getByRole('link', { name: 'CGA-2222-3333-4444' }).count()) === 0, await page.innerText('main'))
    await context.close()
  })

  await check('a part of the name finds a library, and its versions have an address', async () => {
    await seedLibraries(pinfold, 'python', { 'night-watch': ['1.0', '1.1'], flask: ['3.0'] })
    const { context, page } = await asOperator()
    await goTo(page, '/ui/libraries')
    await page.getByLabel('Part of the name').fill('watch')
    await press(page, 'Find')
    await settled(page)
    expect((await page.getByRole('link', { name: 'flask' }).count()) === 0, await page.innerText('main'))
    await page.getByRole('link', { name: 'night-watch' }).click()
    const versions = page.getByRole('table', { name: 'Versions of night-watch' }).locator('tbody tr')
    await versions.nth(1).waitFor()
    await page.reload()
    await versions.nth(1).waitFor()
    expect((await versions.count()) === 2, await versions.allInnerTexts())
    await context.close()
  })
}

async function checkChoices({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('6: the choices of time zone, theme and keyboard shortcuts are kept', async () => {
    const { context, page } = await asOperator()
    const path = `/ui/r/${scene.path}?order=name+asc`
    await goTo(page, path)
    const time = page.locator('main time').first()
    // The text is relative, and the tooltip has the exact time.
    const exact = async () => (await time.getAttribute('title')) ?? ''
    expect((await exact()).endsWith(' UTC'), await exact())
    const choose = async (name: string) => {
      await page.getByRole('button', { name: /^Account menu/ }).click()
      await press(page, name)
    }
    await choose('Local time')
    await page.getByText('Local times', { exact: true }).waitFor()
    await choose('Dark')
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByLabel('Use keyboard shortcuts').uncheck()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await goTo(page, path)
    await time.waitFor()
    expect((await exact()).endsWith(' GMT+9'), await exact())
    const root = await page.evaluate<[string, string]>(
      '[document.documentElement.dataset.theme, getComputedStyle(document.documentElement).colorScheme]',
    )
    expect(root.join() === 'dark,dark', root)
    const inTable = () => page.evaluate<boolean>("document.activeElement.closest('tbody') !== null")
    await page.locator('h1').focus()
    await page.keyboard.press('j')
    expect(!(await inTable()), 'a single key still is a shortcut')
    await choose('Keyboard shortcuts')
    await page.getByRole('dialog').getByLabel('Use keyboard shortcuts').check()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.locator('h1').focus()
    await page.keyboard.press('j')
    expect(await inTable(), 'the key does nothing any more')
    await context.close()
  })
}
