// Trusted signers in the console, in a real Chromium: a signer is trusted, shown with the findings that its statements hide, and
// revoked.
import type { Page } from 'playwright-core'
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { envelopeOf, type Keys, keysOf, pemOf, pushAttestations, statementAbout } from '../support/attest.ts'
import { runJob } from '../support/background-jobs.ts'
import { audit, expect, type Opened } from '../support/chromium.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { registryClient } from '../support/registry.ts'
import { said, vex } from '../support/signers.ts'
import type { Kit } from './console-changes.ts'

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const rowOf = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })
const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString().slice(0, 16)

export async function checkSigners(kit: Kit, asViewer: () => Promise<Opened>): Promise<void> {
  await checkTrust(kit)
  await checkScopes(kit, asViewer)
}

async function trust(page: Page, name: string, pem: string): Promise<void> {
  await page.getByLabel('Name', { exact: true }).fill(name)
  await page.getByLabel('Public key (PEM)').fill(pem)
  await page.locator('details[open]').getByLabel('Expires (UTC)').fill(tomorrow())
  await press(page, 'Trust signer')
}

const privatePem = ({ privateKey }: Keys): string => privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

async function checkTrust({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { app, operator, seed, port, url, tokenFor } = scene.pinfold
  const listed = async (): Promise<Json[]> => {
    const { body } = await operator.get(`/registry/v2/vexSigners?scopeUid=${scene.repo.uid}`)
    return body.vexSigners.filter(({ name }: Json) => name === 'the builders')
  }
  await check('VEX statements of a trusted signer hide a finding, until the trust is revoked', async () => {
    const { uid } = await seed.member(scene.org.uid, roleUids.owner)
    const client = registryClient(`http://127.0.0.1:${port}`, await tokenFor(uid, { audience: new URL(url).host }))
    const keys = keysOf.rsa!()
    const document = vex([said('CVE-2024-7777', 'not_affected', [], { justification: 'component_not_present' })])
    const envelope = envelopeOf(statementAbout(scene.digest, document), [keys])
    await pushAttestations(client, scene.path, scene.digest, [envelope])
    await runJob(app, readReports)

    const { context, page } = await asOperator()
    const digestPage = `/ui/r/${scene.path}/~/digests/${scene.digest}`
    const finding = rowOf(page, 'CVE-2024-7777')
    await goTo(page, digestPage)
    await finding.filter({ hasNotText: 'ignored' }).filter({ hasText: 'VEX statement by Acme: not_affected' }).waitFor()

    await goTo(page, `/ui/r/${scene.path}?view=risks`)
    await page.getByText('New trusted signer').click()
    const sent: string[] = []
    page.on('request', (asked) => void sent.push(asked.postData() ?? ''))
    await trust(page, 'the builders', privatePem(keys))
    await page.getByRole('alert').filter({ hasText: 'This is a private key. It was not sent' }).waitFor()
    expect(sent.every((body) => !body.includes('PRIVATE')) && (await listed()).length === 0, 'the private key was sent')
    await trust(page, 'the builders', 'no key')
    await page.getByRole('alert').filter({ hasText: 'publicKey' }).waitFor()
    await trust(page, 'the builders', pemOf(keys))
    const row = rowOf(page, 'the builders')
    await row.filter({ hasText: 'RSA' }).filter({ hasText: 'Operator' }).filter({ hasText: 'here' }).waitFor()
    const [signer] = await listed()
    const fingerprint = await row.locator('code').first().getAttribute('title')
    expect(fingerprint === `sha256:${signer!.fingerprint}` && signer!.expireTime.startsWith(tomorrow()), signer)
    await audit(page)

    await runJob(app, readReports)
    await goTo(page, digestPage)
    await finding
      .filter({ hasText: 'ignored' })
      .filter({ hasText: 'signed by the builders: Acme: not_affected, component_not_present' })
      .filter({ hasText: 'VEX statement by Acme: not_affected' })
      .waitFor()
    await audit(page)

    await goTo(page, `/ui/r/${scene.path}?view=risks`)
    await press(page, 'Revoke the builders')
    const dialog = page.getByRole('dialog')
    await dialog.getByText(/count again immediately/).waitFor()
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await row.waitFor({ state: 'detached' })
    expect((await listed()).length === 0, await listed())
    await page.getByRole('link', { name: 'Show ended entries too' }).click()
    await row.filter({ hasText: 'ended' }).waitFor()
    expect((await row.getByRole('button').count()) === 0, await row.innerText())
    await goTo(page, digestPage)
    await finding.filter({ hasNotText: 'ignored' }).waitFor()
    await context.close()
  })

  await check('a risk accepted for a package is ignored until the acceptance is revoked', async () => {
    const { context, page } = await asOperator()
    const finding = rowOf(page, 'CVE-2024-7777')
    await goTo(page, `/ui/r/${scene.path}?view=risks`)
    await page.getByText('New accepted risk').click()
    await page.getByLabel('Vulnerability', { exact: true }).fill('CVE-2024-7777')
    await page.getByLabel('Only in this package').fill('pkg:apk/alpine/zlib')
    await page.locator('details[open]').getByLabel('Reason').fill('not reachable')
    await page.locator('details[open]').getByLabel('Expires (UTC)').fill(tomorrow())
    await press(page, 'Accept risk')
    await rowOf(page, 'not reachable').filter({ hasText: 'pkg:apk/alpine/zlib' }).waitFor()
    await goTo(page, `/ui/r/${scene.path}/~/digests/${scene.digest}`)
    await finding.filter({ hasText: 'ignored' }).filter({ hasText: 'not reachable' }).waitFor()
    await goTo(page, `/ui/r/${scene.path}?view=risks`)
    await press(page, 'Revoke CVE-2024-7777')
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await rowOf(page, 'not reachable').waitFor({ state: 'detached' })
    await goTo(page, `/ui/r/${scene.path}/~/digests/${scene.digest}`)
    await finding.filter({ hasNotText: 'ignored' }).waitFor()
    await context.close()
  })
}

async function checkScopes({ check, scene, asOperator, goTo }: Kit, asViewer: () => Promise<Opened>): Promise<void> {
  await check(
    'a signer trusted in a group above is shown with its scope, and a viewer sees signers without controls',
    async () => {
      const [above, here] = ['the ecdsa key', 'the ed25519 key']
      const whole = await asOperator()
      await goTo(whole.page, `/ui/r/${scene.path}?view=risks`)
      await rowOf(whole.page, here)
        .getByRole('button', { name: `Revoke ${here}` })
        .waitFor()
      await rowOf(whole.page, above)
        .filter({ hasText: `inherited from ${scene.orgName}` })
        .waitFor()
      expect((await rowOf(whole.page, above).getByRole('button').count()) === 0, 'one from above can be ended here')
      await whole.context.close()

      const { context, page } = await asViewer()
      await goTo(page, `/ui/r/${scene.path}?view=risks`)
      await rowOf(page, here).filter({ hasText: 'Ed25519' }).waitFor()
      await rowOf(page, above).filter({ hasText: 'ECDSA P-256' }).filter({ hasText: 'inherited from' }).waitFor()
      expect((await page.locator('.content button, .content summary').count()) === 0, await page.innerText('main'))
      await context.close()
    },
  )
}
