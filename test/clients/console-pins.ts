// Commands that are copied from the console and run with a client: crane, or else skopeo. Also the history of a mirror.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { sql } from '#db/sql.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { copied, expect } from '../support/chromium.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { cleanEnv } from '../support/process.ts'
import { startUpstream } from '../support/upstream.ts'
import type { Kit } from './console-changes.ts'

const pullers: Record<string, (reference: string, to: string) => string[]> = {
  crane: (reference, to) => ['pull', '--format=oci', reference, to],
  skopeo: (reference, to) => [
    ...['--insecure-policy', 'copy', '--src-tls-verify=false', '--preserve-digests'],
    ...[`docker://${reference}`, `oci:${to}`],
  ],
}

const isInstalled = (name: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, name)))

export async function checkPins(kit: Kit): Promise<void> {
  await checkMirrorHistory(kit)
  await checkPulls(kit)
  await checkBlockedCopy(kit)
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
/** Time in the form of the console: `2 May 2026, 10:00 UTC`. */
function shown(time: string): string {
  const at = new Date(time)
  return `${at.getUTCDate()} ${months[at.getUTCMonth()]} ${at.getUTCFullYear()}, ${time.slice(11, 16)} UTC`
}

async function checkMirrorHistory({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  await check('an update at the upstream of a mirror is shown with the checks around it', async () => {
    await using there = await startUpstream()
    const { app, operator, seed } = scene.pinfold
    // Nobody is to ask the others, which are not on this machine.
    await app.db.tx((tx) => tx.run(sql`DELETE FROM follows`))
    const upstream = ok(
      await operator.post(`/registry/v2/upstreams/${scene.org.uid}`, { name: 'elsewhere', url: there.url }),
    )
    const { uid } = await seed.repo(scene.org.uid, { name: 'followed' })
    there.move('3', 'one')
    ok(await operator.post(`/registry/v2/repos/${uid}/follow`, { upstreamUid: upstream.uid, path: 'team/app' }))
    await runJob(app, followUpstreams)
    there.move('3', 'two')
    ok(await operator.post(`/registry/v2/repos/${uid}/follow:check`))
    await runJob(app, followUpstreams)
    const { records } = ok(await operator.get(`/registry/v2/repos/${uid}/tagHistory?tag=3`))
    const [moved, born] = records as Json[]
    expect(moved?.source === 'SOURCE_UPSTREAM' && moved.checkedBefore < moved.time && born !== undefined, records)
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${scene.org.name}/followed/~/tags/3`)
    const text = await page.innerText('main')
    expect(text.includes(`between ${shown(moved!.checkedBefore)} and ${shown(moved!.time)}`), text)
    expect(text.includes(`${shown(born!.time)} or before`), text)
    await context.close()
  })
}

async function checkPulls({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const client = Object.keys(pullers).find(isInstalled)
  if (!client) {
    console.log('skip: the copied name with digest pulls that image (crane and skopeo are missing)')
    return
  }
  const { pinfold, path, digest, pusher } = scene
  await check(`2: the copied name with digest pulls that image, with ${client}`, async () => {
    const { context, page } = await asOperator()
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: pinfold.url })
    await goTo(page, `/ui/r/${path}/~/tags/stable`)
    const pin = await copied(page, () =>
      page.getByRole('button', { name: 'Copy with digest: stable', exact: true }).click(),
    )
    await context.close()
    expect(pin.endsWith(`@${digest}`), pin)

    const folder = mkdtempSync(join(tmpdir(), 'pinfold-console-pull-'))
    try {
      const token = await pinfold.tokenFor(pusher.uid, { audience: new URL(pinfold.url).host })
      const env = { ...cleanEnv(), ...credentials(folder, new URL(pinfold.url).host, token) }
      const done = await runClient(client, pullers[client]!(pin, join(folder, 'pulled')), env)
      expect(done === '', done)
      const [algorithm, hex] = digest.split(':')
      const manifest = JSON.parse(readFileSync(join(folder, 'pulled', 'blobs', algorithm!, hex!), 'utf8'))
      expect(manifest.layers.length > 0, manifest)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
}

async function checkBlockedCopy({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const { path, digest } = scene
  await check('2: the copy button selects the text if the browser refuses to copy', async () => {
    const { context, page } = await asOperator()
    await goTo(page, `/ui/r/${path}/~/tags/stable`)
    await page.evaluate(`
      navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'))
      document.execCommand = () => false`)
    await page.getByRole('button', { name: 'Copy with digest: stable', exact: true }).click()
    await page.getByRole('alert').getByText('Not copied').waitFor()
    const selected = await page.evaluate<string>(`(() => {
      const { value, selectionStart, selectionEnd } = document.activeElement
      return value.slice(selectionStart, selectionEnd)
    })()`)
    expect(selected.endsWith(`@${digest}`), selected)
    expect((await page.getByText('Copied', { exact: true }).count()) === 0, 'it says that it copied')
    await context.close()
  })
}

/** Credential file in Docker's form, at the path where skopeo looks for it. */
function credentials(folder: string, host: string, token: string): Record<string, string> {
  const auth = Buffer.from(`_token:${token}`).toString('base64')
  mkdirSync(join(folder, 'docker'))
  const file = join(folder, 'docker', 'config.json')
  writeFileSync(file, JSON.stringify({ auths: { [host]: { auth } } }))
  return { DOCKER_CONFIG: join(folder, 'docker'), REGISTRY_AUTH_FILE: file }
}

/**
 * Output of a client that failed. Empty if the client succeeded. The server is in this process, so the wait must not block it.
 */
async function runClient(command: string, args: string[], env: Record<string, string | undefined>): Promise<string> {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve)
  })
  return code === 0 ? '' : `${command} ended with ${code}: ${said.slice(-2000)}`
}
