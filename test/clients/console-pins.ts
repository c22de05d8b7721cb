// What is copied from the console, given to a client that pulls images: crane, or skopeo where that is all there is.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { copied, expect } from '../support/chromium.ts'
import { cleanEnv } from '../support/process.ts'
import type { Kit } from './console-changes.ts'

const pullers: Record<string, (reference: string, to: string) => string[]> = {
  crane: (reference, to) => ['pull', '--format=oci', reference, to],
  skopeo: (reference, to) => [
    ...['--insecure-policy', 'copy', '--src-tls-verify=false', '--preserve-digests'],
    ...[`docker://${reference}`, `oci:${to}`],
  ],
}

const isThere = (name: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, name)))

export async function checkPins({ check, scene, asOperator, goTo }: Kit): Promise<void> {
  const client = Object.keys(pullers).find(isThere)
  if (!client) {
    console.log('skip a pin that is copied pulls that image: there is neither crane nor skopeo')
    return
  }
  const { pinfold, path, digest, pusher } = scene
  await check(`2: a pin that is copied pulls that image, with ${client}`, async () => {
    const { context, page } = await asOperator()
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: pinfold.url })
    await goTo(page, `/ui/r/${path}/~/tags/stable`)
    const pin = await copied(page, () => page.getByRole('button', { name: 'Copy pin of stable', exact: true }).click())
    await context.close()
    expect(pin.endsWith(`@${digest}`), pin)

    const folder = mkdtempSync(join(tmpdir(), 'pinfold-console-pull-'))
    try {
      const token = await pinfold.tokenFor(pusher.uid, { audience: new URL(pinfold.url).host })
      const env = { ...cleanEnv(), ...credentials(folder, new URL(pinfold.url).host, token) }
      const done = await pulled(client, pullers[client]!(pin, join(folder, 'pulled')), env)
      expect(done === '', done)
      const [algorithm, hex] = digest.split(':')
      const manifest = JSON.parse(readFileSync(join(folder, 'pulled', 'blobs', algorithm!, hex!), 'utf8'))
      expect(manifest.layers.length > 0, manifest)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
}

/** The credential of a client, as Docker keeps it and as skopeo looks for it. */
function credentials(folder: string, host: string, token: string): Record<string, string> {
  const auth = Buffer.from(`_token:${token}`).toString('base64')
  mkdirSync(join(folder, 'docker'))
  const file = join(folder, 'docker', 'config.json')
  writeFileSync(file, JSON.stringify({ auths: { [host]: { auth } } }))
  return { DOCKER_CONFIG: join(folder, 'docker'), REGISTRY_AUTH_FILE: file }
}

/** What a client that did not come to its end has said; empty when it did. The server is this process, so it must not be waited for. */
async function pulled(command: string, args: string[], env: Record<string, string | undefined>): Promise<string> {
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve)
  })
  return code === 0 ? '' : `${command} ended with ${code}: ${said.slice(-2000)}`
}
