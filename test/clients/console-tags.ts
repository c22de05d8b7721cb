// Restores of tags in the console, in a real Chromium.
import { audit, expect, settled } from '../support/chromium.ts'
import { pushLayers } from '../support/images.ts'
import { registryClient } from '../support/registry.ts'
import { apkLayer } from '../support/scanning.ts'
import type { Kit } from './console-changes.ts'

export async function checkTags(kit: Kit): Promise<void> {
  await checkRestore(kit)
  await checkPull(kit)
}

/** Repository with three images, which its tag `stable` had one after the other. */
async function pushReleases({ scene }: Kit): Promise<{ path: string; uid: string; digests: string[] }> {
  const { pinfold, pusher, folder, orgName } = scene
  const token = await pinfold.tokenFor(pusher.uid, { audience: new URL(pinfold.url).host })
  const client = registryClient(`http://127.0.0.1:${pinfold.port}`, token)
  const { uid } = await pinfold.seed.repo(folder.uid, { name: 'releases' })
  const path = `${orgName}/payments/releases`
  const digests: string[] = []
  for (const musl of ['1.2.4-r0', '1.2.5-r0', '1.2.5-r1']) {
    const layer = apkLayer('alpine', '3.20.0', [`musl ${musl}`])
    digests.push((await pushLayers(client, path, [layer], 'stable')).digest)
  }
  return { path, uid, digests }
}

async function checkRestore(kit: Kit): Promise<void> {
  const { check, scene, asOperator, goTo } = kit
  await check('a former digest is restored with a reason, unless the tag was updated meanwhile', async () => {
    const { path, uid, digests } = await pushReleases(kit)
    const [first, second, third] = digests
    const { operator } = scene.pinfold
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${path}/~/tags/stable`)
    const rows = page.getByRole('table', { name: 'Tag updates' }).locator('tbody tr')
    const dialog = page.getByRole('dialog')
    // The current digest has no such button.
    expect(
      (await rows
        .first()
        .getByRole('button', { name: /^Restore/ })
        .count()) === 0,
      await rows.first().innerText(),
    )
    await rows.last().getByRole('link').first().click()
    await page.getByRole('link', { name: 'Compare with now' }).waitFor()
    await page.getByRole('button', { name: 'Restore this digest…' }).click()
    await dialog.getByText(`Changes ${third!.slice(7, 15)} (current) to ${first!.slice(7, 15)}.`).waitFor()
    await settled(page)
    await audit(page)

    await operator.post(`/registry/v2/tags/${uid}`, { name: 'stable', digest: second })
    await dialog.getByLabel('Reason').fill('The release fails its health check')
    await dialog.getByRole('button', { name: 'Restore digest' }).click()
    await dialog.getByText(/^Not restored\. operator updated stable/).waitFor()
    await dialog.getByText(`Changes ${second!.slice(7, 15)} (current) to ${first!.slice(7, 15)}.`).waitFor()
    await dialog.getByRole('button', { name: 'Restore digest' }).click()
    await dialog.waitFor({ state: 'detached' })
    await rows.first().getByText('The release fails its health check').waitFor()
    await rows.first().getByText('restored').waitFor()
    const { records } = (await operator.get(`/registry/v2/repos/${uid}/tagHistory?tag=stable`)).body
    expect(records[0].digest === first && records[0].previousDigest === second, records[0])
    await context.close()
  })
}

async function checkPull({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('the pull commands name a tag and its digest, with the login and the pinned form first', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.path}?view=pull`)
    await page.getByLabel('Tag', { exact: true }).selectOption('v1')
    const [pinned, tagged] = [`${scene.path}@${scene.older}`, `${scene.path}:v1`]
    for (const client of ['Docker', 'Podman', 'crane', 'containerd', 'Kubernetes']) {
      await page.getByRole('button', { name: client, exact: true }).click()
      const text = await page.locator('main pre code').innerText()
      const isInOrder = client === 'Kubernetes' || text.indexOf(pinned) < text.indexOf(tagged)
      expect(text.includes(pinned) && isInOrder && /login|docker-registry/.test(text), text)
    }
    await context.close()
  })
}
