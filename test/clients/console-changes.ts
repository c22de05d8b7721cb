// Changes made on the screens of the console, in a real Chromium. The API then shows whether each change was stored.
import type { Page } from 'playwright-core'
import { type Check, expect, type Opened, settled } from '../support/chromium.ts'
import type { ConsoleScene } from '../support/console-scene.ts'

export type Kit = {
  check: Check
  scene: ConsoleScene
  /** Browser in which the operator is signed in. */
  asOperator: () => Promise<Opened>
  /** Opens an address of the console, and waits until everything is loaded. */
  goTo: (page: Page, path: string) => Promise<void>
}

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).click()
const rowOf = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })

export async function checkChanges(kit: Kit): Promise<void> {
  await checkRetention(kit)
  await checkQuarantine(kit)
  await checkCooldown(kit)
  await checkAdmission(kit)
  await checkMirrors(kit)
  await checkDeletions(kit)
  await checkTags(kit)
  await checkProviders(kit)
}

async function checkRetention({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator } = scene.pinfold
  const rulesOf = async () => {
    const path = `/registry/v2/retentionRules?scopeUid=${scene.folder.uid}`
    return (await operator.get(path)).body.retentionRules.filter((one: { name: string }) => one.name === 'made here')
  }
  await check('a retention policy is created, edited and deleted in a group', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/payments/~/promises`)
    await page.getByText('New retention policy').click()
    await page.getByLabel('Name', { exact: true }).first().fill('made here')
    // The patterns match no tag. Retention dates would stay after the rule is deleted, and the checks below need manifests that
    // can be deleted.
    await page.getByLabel('Tags (one per line)').first().fill('frozen-.*')
    await page.getByLabel(/^Days to keep a digest/).fill('30')
    await page.getByRole('button', { name: 'Create', exact: true }).first().click()
    await rowOf(page, 'made here').waitFor()
    const [rule] = await rulesOf()
    expect(rule.keepDaysAfter === 30 && rule.mode === 'DRY_RUN', rule)

    await press(page, 'Edit made here')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('State').selectOption('ENFORCE')
    await dialog.getByRole('button', { name: 'Edit' }).click()
    // The row has a selection field. One of its choices has the same text as the state that the check waits for.
    await dialog.waitFor({ state: 'detached' })
    await rowOf(page, 'made here').filter({ hasText: 'enforced' }).waitFor()
    expect((await rulesOf())[0].mode === 'ENFORCE' && (await rulesOf())[0].keepDaysAfter === 30, await rulesOf())

    await press(page, 'Delete made here')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await rowOf(page, 'made here').waitFor({ state: 'detached' })
    await settled(page)
    expect((await rulesOf()).length === 0, await rulesOf())
    await context.close()
  })

  await check('a repository shows a policy of a group above, without controls', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}?view=promises`)
    const above = rowOf(page, 'releases')
    await above.waitFor()
    expect((await above.innerText()).includes(`inherited from ${scene.orgName}`), await above.innerText())
    expect((await above.getByRole('button').count()) === 0, await above.innerText())
    await context.close()
  })

  await check('a digest shows its legal hold until the hold is released', async () => {
    const { context, page } = await asOperator()
    const digestPage = `/ui/r/${scene.path}/~/digests/${scene.older}?tab=retention`
    await goTo(page, `/ui/r/${scene.path}?view=promises`)
    await page.getByText('New legal hold').click()
    await page.getByLabel(/current and former digests of these tags/).fill('v2')
    await page.getByLabel('Reason').first().fill('an audit')
    await press(page, 'Hold')
    await rowOf(page, 'an audit').waitFor()
    await goTo(page, `/ui/r/${scene.path}/~/digests/${scene.digest}?tab=retention`)
    await page.getByText('A legal hold keeps this digest.').waitFor()
    await goTo(page, digestPage)
    await page.getByText('A legal hold keeps this digest.').waitFor()
    await goTo(page, `/ui/r/${scene.path}?view=promises`)
    await press(page, 'Release v2')
    await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click()
    await rowOf(page, 'an audit').waitFor({ state: 'detached' })
    await goTo(page, `/ui/r/${scene.path}/~/digests/${scene.digest}?tab=retention`)
    expect((await page.getByText('A legal hold keeps this digest.').count()) === 0, await page.innerText('main'))

    const { body } = await operator.get(`/registry/v2/tags?uidp.descendantsOf=${scene.folder.uid}&name=weekly`)
    await goTo(page, `/ui/r/${scene.orgName}/payments/worker/~/digests/${body.tags[0].digest}?tab=retention`)
    await page.getByText(/^Nothing prevents the deletion of this digest/).waitFor()
    await page.getByText(/because these tags point to it: weekly$/).waitFor()
    expect((await page.getByText('There is no end date.').count()) === 0, await page.innerText('main'))
    await context.close()
  })
}

async function checkQuarantine({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator } = scene.pinfold
  await check('a digest is quarantined from its page, and released on the retention page', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}/~/digests/${scene.older}?tab=retention`)
    await press(page, /^Quarantine [0-9a-f]{8}/)
    await page.getByRole('dialog').getByLabel('Reason').fill('found to be bad')
    await page.getByRole('dialog').getByRole('button', { name: 'Quarantine' }).click()
    const row = rowOf(page, 'found to be bad')
    await row.waitFor()
    const listed = async () => {
      const { body } = await operator.get(`/registry/v2/quarantined?scopeUid=${scene.repo.uid}`)
      return body.quarantined.filter(({ digest }: { digest: string }) => digest === scene.older)
    }
    expect((await listed()).length === 1, await listed())
    await row.getByRole('button', { name: /^Release/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click()
    await row.waitFor({ state: 'detached' })
    expect((await listed()).length === 0, await listed())
    await context.close()
  })
}

async function checkCooldown({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('a cooldown policy and an exemption are created, and an error names its field', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}?view=pulls`)
    await page.getByText('New cooldown policy').click()
    await page.getByLabel('Name', { exact: true }).fill('nodes')
    await page.getByLabel(/all identities in and below the group/).fill(scene.folder.uid)
    await page.getByLabel('Minimum age').fill('soon')
    await press(page, 'Create')
    await page.getByRole('alert').filter({ hasText: 'minAge' }).waitFor()
    await page.getByLabel('Minimum age').fill('3d')
    await press(page, 'Create')
    await rowOf(page, 'nodes').filter({ hasText: '3d' }).waitFor()
    const tried = async () => {
      await goTo(page, `/ui/r/${scene.path}?view=pulls`)
      const table = page.getByRole('table', { name: 'Recently updated tags that are too young' })
      await table.or(page.getByText(/^All of the last .* are old enough for every policy\.$/)).waitFor()
      const rows = await table.locator('tbody tr').allInnerTexts()
      return rows.filter((text) => text.startsWith('stable') && text.includes('nodes'))
    }
    const held = await tried()
    expect(held.length === 1, held)

    await page.getByText('New exemption').click()
    const { operator } = scene.pinfold
    const { chosen } = (await operator.get(`/registry/v2/repos/${scene.repo.uid}/resolvedTags/stable`)).body
    await page.getByLabel('Digest', { exact: true }).fill(chosen.digest)
    await page.getByLabel('Reason').fill('mends a hole')
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16)
    await page.getByLabel('Expires (UTC)').fill(tomorrow)
    await press(page, 'Create exemption')
    await rowOf(page, 'mends a hole').waitFor()
    const listed = await operator.get(`/registry/v2/pullRuleExceptions?scopeUid=${scene.repo.uid}`)
    const found = listed.body.pullRuleExceptions.find((one: { reason: string }) => one.reason === 'mends a hole')
    expect(found.expireTime.startsWith(tomorrow), listed.body)
    const left = await tried()
    expect(left.length === 0, left)
    await context.close()
  })
}

async function checkAdmission({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator } = scene.pinfold
  const gatesOf = async () => {
    const { body } = await operator.get(`/registry/v2/gates?scopeUid=${scene.repo.uid}`)
    return body.gates.filter(({ name }: { name: string }) => name === 'mended')
  }
  await check('an admission policy is created, changed to another kind, and deleted', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}?view=gates`)
    const above = rowOf(page, 'no-fixable')
    await above.waitFor()
    expect((await above.getByRole('button').count()) === 0, 'a gate from above can be changed')
    await page.getByText('New admission policy', { exact: true }).click()
    await page.getByLabel('Name', { exact: true }).fill('mended')
    await page
      .getByRole('region', { name: 'If enforced now' })
      .getByText(/^Would deny/)
      .waitFor()
    await page.getByLabel('Minimum severity of vulnerabilities').selectOption('HIGH')
    expect((await page.getByLabel('Minimum age in days').count()) === 0, 'a field of another kind is shown')
    await page.getByLabel('Only vulnerabilities with a fix').check()
    await press(page, 'Start dry run')
    await rowOf(page, 'mended').filter({ hasText: 'vulnerabilities: high or higher, with a fix' }).waitFor()
    const [gate] = await gatesOf()
    expect(gate.mode === 'DRY_RUN' && gate.vulnerabilities.onlyFixable, gate)
    await press(page, 'Edit mended')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/^digests that are too young/).check()
    await dialog.getByLabel('Minimum age in days').fill('5')
    await dialog.getByRole('button', { name: 'Save as dry run' }).click()
    await rowOf(page, 'mended').filter({ hasText: 'younger than 5 days' }).waitFor()
    const [changed] = await gatesOf()
    expect(changed.cooldown.minAgeDays === 5 && changed.vulnerabilities === undefined, changed)
    await press(page, 'Enforce “mended”?')
    await dialog.getByText(/^Would deny/).waitFor()
    await dialog.getByRole('button', { name: 'Enforce policy' }).click()
    await rowOf(page, 'mended').filter({ hasText: 'enforced' }).waitFor()
    expect((await gatesOf())[0].mode === 'ENFORCE', await gatesOf())
    await press(page, 'Delete mended')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await rowOf(page, 'mended').waitFor({ state: 'detached' })
    expect((await gatesOf()).length === 0, await gatesOf())
    await context.close()
  })
}

async function checkMirrors({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator, seed } = scene.pinfold
  await check('a repository becomes a mirror, is checked, and stops mirroring', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/mirrors`)
    await page.getByText('New upstream registry').click()
    await page.getByLabel('Name', { exact: true }).fill('quiet')
    await page.getByLabel('Registry URL').fill('https://quiet.example.com')
    await page.getByLabel('User name').fill('somebody')
    await page.getByLabel('Password or token').fill(scene.secrets[0]!)
    await page.getByLabel(/^Create a mirror when/).check()
    await press(page, 'Create')
    await rowOf(page, 'quiet').filter({ hasText: 'with a password' }).waitFor()
    expect(!(await page.content()).includes(scene.secrets[0]!), 'the password is on the page')
    const { upstreams } = (await operator.get('/registry/v2/upstreams?name=quiet')).body
    expect(upstreams[0].makeRepos === true, upstreams)

    const { uid } = await seed.repo(scene.folder.uid, { name: 'busybox' })
    const at = `/registry/v2/repos/${uid}/follow`
    await goTo(page, `/ui/r/${scene.orgName}/payments/busybox?view=mirror`)
    await page.getByText('This repository is not a mirror').waitFor()
    await page.getByText('New mirror').click()
    await page
      .getByLabel('Upstream registry', { exact: true })
      .selectOption({ label: 'quiet (https://quiet.example.com)' })
    await page.getByLabel('Path at the upstream').fill('library/busybox')
    await page.getByLabel(/^Check interval in minutes/).fill('90')
    await press(page, 'Save mirror')
    await page.getByText('not requested yet').waitFor()
    await press(page, 'Check now')
    await settled(page)
    const follow = (await operator.get(at)).body
    expect(follow.path === 'library/busybox' && follow.interval === '5400s', follow)
    await press(page, 'Stop mirroring library/busybox')
    await page.getByRole('dialog').getByRole('button', { name: 'Stop mirroring' }).click()
    await page.getByText('This repository is not a mirror').waitFor()
    expect((await operator.get(at)).status === 404, (await operator.get(at)).body)
    await context.close()
  })
}

async function checkDeletions({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator, seed } = scene.pinfold
  await check('a repository is deleted after its name is typed, and then its empty group', async () => {
    const { context, page } = await asOperator()
    const folder = await seed.group(scene.org.uid, { name: 'short-lived' })
    const repo = await seed.repo(folder.uid, { name: 'gone-soon' })
    const groupPage = `/ui/g/${scene.orgName}/short-lived/~/settings`
    await goTo(page, groupPage)
    await page.getByText('Repositories: 1').waitFor()
    expect((await page.getByRole('button', { name: /^Delete/ }).count()) === 0, await page.innerText('main'))

    await goTo(page, `/ui/r/${scene.orgName}/short-lived/gone-soon?view=settings`)
    await press(page, /^Delete repository/)
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/Type gone-soon/).fill('something-else')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await settled(page)
    expect((await operator.get(`/registry/v2/repos/${repo.uid}`)).status === 200, 'deleted without its name')
    await dialog.getByLabel(/Type gone-soon/).fill('gone-soon')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.waitForURL(`${scene.pinfold.url}/ui/g/${scene.orgName}/short-lived`)
    expect((await operator.get(`/registry/v2/repos/${repo.uid}`)).status === 404, 'not deleted')

    await goTo(page, groupPage)
    await press(page, /^Delete group/)
    await dialog.getByLabel(/Type short-lived/).fill('short-lived')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.waitForURL(`${scene.pinfold.url}/ui/g/${scene.orgName}`)
    expect((await operator.get(`/iam/v2/groups/${folder.uid}`)).status === 404, 'not deleted')
    await context.close()
  })

  await check('the deletion of a retained repository is refused with the reason', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}?view=settings`)
    await press(page, /^Delete repository/)
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/Type ledger/).fill('ledger')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByRole('alert').waitFor()
    expect((await operator.get(`/registry/v2/repos/${scene.repo.uid}`)).status === 200, 'deleted')
    await context.close()
  })
}

async function checkTags({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator } = scene.pinfold
  await check('a view shows the digest of the API, under a name that can be pulled', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}/~/tags/stable`)
    await page.getByLabel('Minimum age').fill('1h')
    await press(page, 'Show view')
    await page.getByRole('table', { name: 'Skipped digests' }).waitFor()
    const path = `/registry/v2/repos/${scene.repo.uid}/resolvedTags/stable?minAge=1h`
    const { chosen, reason, skipped } = (await operator.get(path)).body
    expect(reason === 'young' || reason === 'gone' || chosen !== undefined, { chosen, reason })
    const rows = page.getByRole('table', { name: 'Skipped digests' }).locator('tbody tr')
    expect((await rows.count()) === skipped.length, { skipped, rows: await rows.allInnerTexts() })
    const name = `${new URL(scene.pinfold.url).host}/min-1h/${scene.path}:stable`
    await page.getByText(name, { exact: true }).waitFor()
    await context.close()
  })

  await check('a digest lists its referrers and pulls', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}/~/digests/${scene.digest}?tab=referrers`)
    const referrers = page.getByRole('table', { name: 'Referrers' }).locator('tbody tr')
    expect((await referrers.allInnerTexts()).join().includes('application/spdx+json'), await page.innerText('main'))
    await page.getByRole('link', { name: 'Pulls', exact: true }).click()
    await settled(page)
    const pulls = page.getByRole('table', { name: 'Pulls' }).locator('tbody tr')
    expect((await pulls.count()) >= 1, await page.innerText('main'))
    await context.close()
  })

  await check('each update shows vulnerabilities added and removed, or that they are unknown', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}/~/tags/gone`)
    const moved = page.getByRole('table', { name: 'Tag updates' }).getByRole('row').filter({ hasText: 'updated' })
    const query = `baseDigest=${scene.older}`
    const path = `/registry/v2/repos/${scene.repo.uid}/digests/${scene.digest}/comparison?${query}`
    const { found, resolved } = (await operator.get(path)).body
    const delta = found.length + resolved.length === 0 ? /no change|unknown/ : `+${found.length} −${resolved.length}`
    await moved.filter({ hasText: delta }).waitFor()
    await goTo(page, `/ui/r/${scene.path}/~/tags/stable`)
    await page.getByRole('row').filter({ hasText: 'import' }).filter({ hasText: 'unknown' }).first().waitFor()
    await context.close()
  })
}

async function checkProviders({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator } = scene.pinfold
  const path = `/iam/v2/identityProviders/${scene.idp.uid}`
  await check('an identity provider is edited without its secret, and gets a group mapping', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/people`)
    await press(page, `Edit ${scene.idp.name}`)
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Claim with the groups of a user').fill('teams')
    await dialog.getByLabel('Role at the first sign-in').selectOption({ label: 'editor' })
    await dialog.getByRole('button', { name: 'Edit' }).click()
    await dialog.waitFor({ state: 'detached' })
    const { body } = await operator.get(path)
    expect(body.oidc.groupsClaim === 'teams' && body.oidc.clientId === scene.oidc.clientId, body)
    // Sign-in still works, so the stored secret was not changed.
    scene.somebody()
    expect((await scene.open()).get('error') === null, 'the provider does not let anybody in any more')

    await page.getByText('New group mapping').click()
    await page.getByLabel('Group at the provider').fill('on-call')
    await page.getByLabel('Role', { exact: true }).last().selectOption({ label: 'viewer' })
    await page.getByRole('button', { name: 'Create', exact: true }).first().click()
    await rowOf(page, 'on-call').filter({ hasText: 'viewer' }).waitFor()
    await press(page, 'Delete the mapping of group on-call')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await rowOf(page, 'on-call').waitFor({ state: 'detached' })
    const before = { defaultRole: scene.idp.defaultRole, oidc: { groupsClaim: 'groups' } }
    await operator.patch(`${path}?updateMask=default_role,oidc.groups_claim`, before)
    await context.close()
  })

  await check('an identity provider is created with a default role', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/g/${scene.orgName}/~/people`)
    await page.getByText('New identity provider', { exact: true }).click()
    const form = page.locator('details', { hasText: 'New identity provider' }).last()
    await form.getByLabel('Name', { exact: true }).fill('second')
    await form.getByLabel('Issuer').fill(scene.company.url)
    await form.getByLabel('Client ID').fill('another')
    await form.getByLabel('Client secret').fill(scene.secrets[0]!)
    await form.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'second' }).waitFor()
    const { body } = await operator.get('/iam/v2/identityProviders?name=second')
    const [made] = body.identityProviders
    expect(made.defaultRole !== '' && made.oidc.additionalScopes.join() === 'email,profile', made)
    await operator.delete(`/iam/v2/identityProviders/${made.uid}`)
    await context.close()
  })
}
