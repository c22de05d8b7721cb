// More tasks of console users, in a real Chromium: proofs, deletion plans, policies in dry run, and keys of the timeline.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Download, Page } from 'playwright-core'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { expect, settled } from '../support/chromium.ts'
import { runProcess } from '../support/process.ts'
import type { Kit } from './console-changes.ts'

const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).click()
const rowOf = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })

export async function checkJobs(kit: Kit): Promise<void> {
  await checkProofs(kit)
  await checkPlans(kit)
  await checkDryRunPolicies(kit)
  await checkTimeline(kit)
  await checkCopies(kit)
}

async function saveDownload(
  page: Page,
  folder: string,
  work: () => Promise<void>,
): Promise<{ name: string; file: string }> {
  const [download] = await Promise.all([page.waitForEvent('download') as Promise<Download>, work()])
  const file = join(folder, download.suggestedFilename())
  await download.saveAs(file)
  return { name: download.suggestedFilename(), file }
}

async function checkProofs({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('a proof is downloaded from the pages of a tag and a digest, and verifies', async () => {
    const { context, page } = await asOperator()
    const folder = mkdtempSync(join(tmpdir(), 'pinfold-console-proof-'))
    try {
      await goTo(page, `/ui/r/${scene.path}/~/tags/stable?at=${scene.lastTuesday}`)
      await page.getByText('Proof', { exact: true }).click()
      const proof = await saveDownload(page, folder, () => press(page, /^Download proof of stable/))
      const policy = await saveDownload(page, folder, () => press(page, 'Download keys'))
      const command = await page.getByText(/^pinfold tags verify /).innerText()
      expect(command.includes(proof.name) && command.includes(policy.name), command)
      // The command on the page, with the real paths of the files.
      const args = command.split(' ').slice(1)
      const files: Record<string, string> = { [proof.name]: proof.file, [policy.name]: policy.file }
      const checked = await runProcess(
        args.map((one) => files[one] ?? one),
        { env: {} },
      )
      expect(checked.code === 0, checked)
      const wrong = args.map((one) => (one.startsWith(new URL(scene.pinfold.url).host) ? otherDigest(one) : one))
      const refused = await runProcess(
        wrong.map((one) => files[one] ?? one),
        { env: {} },
      )
      expect(refused.code !== 0, refused)

      await goTo(page, `/ui/r/${scene.path}/~/digests/${scene.digestThen}`)
      const again = await saveDownload(page, folder, () => press(page, /^Download proof of stable/))
      expect(readFileSync(again.file, 'utf8') === readFileSync(proof.file, 'utf8'), 'it is another proof')

      const body = 'the transparency log does not have this entry yet; try again in a second\n'
      await page.route(/\/proof\?/, (route) => route.fulfill({ status: 503, contentType: 'text/plain', body }))
      await press(page, /^Download proof of stable/)
      await page.getByRole('alert').filter({ hasText: 'does not have this entry yet' }).waitFor()
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    await context.close()
  })
}

const otherDigest = (reference: string): string => reference.replace(/@.*$/, `@sha256:${'0'.repeat(64)}`)

async function checkPlans({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator, app } = scene.pinfold
  await check('a deletion plan is created, opened, and applied after the name is typed', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.orgName}/payments/worker?view=promises`)
    // The console polls this list. Each answer is delayed for longer than the time between two polls.
    await page.route(/\/retentionPlans\?/, (asked) => sleep(2000).then(() => asked.continue().catch(() => {})))
    await press(page, 'Create plan')
    const making = rowOf(page, 'being created')
    await making.waitFor()
    await runJob(app, sweepRetention)
    // The new state replaces the old one in the row of the plan.
    await making.waitFor({ state: 'detached' })
    const ready = rowOf(page, 'ready for review')
    await ready.waitFor()
    await page.unroute(/\/retentionPlans\?/)
    expect((await ready.getByText(/^1 manifest of/).count()) === 2, await ready.innerText())
    await ready.getByRole('link').click()
    await settled(page)
    const planned = page.getByRole('table', { name: 'Planned deletions' }).locator('tbody tr')
    expect((await planned.count()) === 2, await page.innerText('main'))
    expect((await planned.filter({ hasText: 'dry run: will not be deleted' }).count()) === 1, 'not told apart')

    await press(page, /^Apply the deletion plan of/)
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/Type worker/).fill('something-else')
    await dialog.getByRole('button', { name: 'Apply' }).click()
    await settled(page)
    const uid = new URL(page.url()).searchParams.get('plan')!
    const stateOf = async () => (await operator.get(`/registry/v2/retentionPlans/${uid}`)).body.state
    expect((await stateOf()) === 'READY', await stateOf())
    await dialog.getByLabel(/Type worker/).fill('worker')
    await dialog.getByRole('button', { name: 'Apply' }).click()
    await dialog.waitFor({ state: 'detached' })
    await runJob(app, sweepRetention)
    await rowOf(page, 'applied').filter({ hasText: '1 deleted, 0 skipped' }).waitFor()
    expect((await stateOf()) === 'APPLIED', await stateOf())
    await planned.filter({ hasText: 'deleted' }).first().waitFor()
    await context.close()
  })
}

async function checkDryRunPolicies({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { operator } = scene.pinfold
  await check('tags that policies in dry run would deny are listed, until an exemption allows the digest', async () => {
    const { context, page } = await asOperator()
    const path = `/ui/r/${scene.path}?view=gates`
    const tried = page.getByRole('table', {
      name: 'Recently updated tags that admission policies deny, or would deny',
    })
    const ofStable = tried.getByRole('row').filter({ hasText: 'stable' }).filter({ hasText: 'old-enough' })
    await goTo(page, path)
    await ofStable.filter({ hasText: 'would be denied' }).waitFor()

    await page.getByText('New exemption').click()
    await page.getByLabel('Digest', { exact: true }).fill(scene.digest)
    await page.getByLabel('Reason').fill('looked at by hand')
    await page.getByLabel('Expires (UTC)').fill(new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 16))
    await press(page, 'Create exemption')
    const made = rowOf(page, 'looked at by hand')
    await made.waitFor()
    const listed = async () => {
      const { body } = await operator.get(`/registry/v2/gateExceptions?scopeUid=${scene.repo.uid}`)
      return body.gateExceptions.filter(({ reason }: { reason: string }) => reason === 'looked at by hand')
    }
    expect((await listed()).length === 1, await listed())
    await goTo(page, `/ui/r/${scene.path}/~/digests/${scene.digest}?tab=retention`)
    const says = page.getByRole('table', { name: 'Results of admission policies' }).getByRole('row')
    await says.filter({ hasText: 'old-enough' }).filter({ hasText: 'allowed by an exemption' }).waitFor()
    await goTo(page, path)
    await tried.waitFor()
    expect((await ofStable.count()) === 0, await tried.innerText())

    await made.getByRole('button', { name: /^Revoke/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await made.waitFor({ state: 'detached' })
    expect((await listed()).length === 0, await listed())
    await goTo(page, path)
    await ofStable.waitFor()
    await context.close()
  })
}

async function checkTimeline({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('arrow keys move through the labeled bars of the timeline, and Enter selects one', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}/~/tags/stable`)
    const bars = page.getByRole('group', { name: /^Timeline/ }).getByRole('button')
    expect((await bars.count()) === 3, await bars.count())
    const stops = async () => Promise.all((await bars.all()).map((bar) => bar.getAttribute('tabindex')))
    expect((await stops()).join() === '-1,-1,0', await stops())
    const label = () => page.evaluate<string>("document.activeElement?.getAttribute('aria-label')")
    await bars.last().focus()
    await page.keyboard.press('ArrowLeft')
    const middle = await label()
    expect(middle.startsWith(scene.digestThen.slice(7, 15)) && middle.includes('updated'), middle)
    expect((await stops()).join() === '-1,0,-1', await stops())
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowLeft')
    expect((await label()) === (await bars.first().getAttribute('aria-label')), await label())
    await page.keyboard.press('End')
    expect((await label()).endsWith(', now'), await label())
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('Enter')
    const status = page.getByRole('status').filter({ hasText: /^Digest on/ })
    await status.waitFor()
    expect((await status.locator('code').first().getAttribute('title')) === scene.digestThen, await status.innerText())
    expect((await bars.nth(1).getAttribute('aria-pressed')) === 'true', 'what was chosen is not told')
    expect((await label()) === middle, 'the focus is lost')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('Shift+Enter')
    await page.getByRole('heading', { name: /^Changes from [0-9a-f]{8} to/ }).waitFor()
    await context.close()
  })
}

async function checkCopies({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('a copy is listed at its repository, at its source, and at the group', async () => {
    const { context, page } = await asOperator()
    const source = page.getByRole('link', { name: scene.path, exact: true })
    await goTo(page, `/ui/r/${scene.orgName}/payments/copy?view=mirror`)
    await page.getByText('Copy of').waitFor()
    await source.first().waitFor()
    for (const path of [`/ui/r/${scene.path}?view=mirror`, `/ui/g/${scene.orgName}/~/mirrors`]) {
      await goTo(page, path)
      const row = page.getByRole('table', { name: 'Copies within this registry' }).getByRole('row')
      await row.filter({ hasText: `${scene.orgName}/payments/copy` }).waitFor()
    }
    await context.close()
  })
}
