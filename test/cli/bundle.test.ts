// The bundle and the executable: what works only because the build puts files, threads and processes into them.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { writeBundle } from '../../scripts/bundle/bundle.ts'
import { writeExecutable } from '../../scripts/bundle/executable.ts'
import { openBrowser } from '../support/browser.ts'
import { alpine, pushLayers } from '../support/images.ts'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, runProcess, startProcess, tokenOf } from '../support/process.ts'
import { eventually } from '../support/receiver.ts'
import { reflectionOf } from '../support/reflection.ts'
import { registryClient } from '../support/registry.ts'

const folder = mkdtempSync(join(tmpdir(), 'pinfold-bundle-'))
const forms = [
  { form: 'the bundle', command: join(folder, 'bundle/bin/pinfold') },
  { form: 'the executable', command: join(folder, 'pinfold') },
]
before(async () => {
  await writeBundle(join(folder, 'bundle'))
  await writeExecutable(folder)
})
after(() => rmSync(folder, { recursive: true }))

for (const { form, command } of forms) {
  test(`${form} starts without a warning`, async () => {
    const { code, stderr, stdout } = await runProcess(['--version'], { command })
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/)
  })

  test(`${form} serves the console, documents, gRPC, images with their contents, and backups`, async () => {
    await using storage = await createStorage({ isEmpty: true })
    await using server = await startProcess(storage, { command })
    const pages: Record<string, string> = {
      '/docs': 'Pinfold',
      '/docs/errors': 'error',
      '/openapi.json': '"openapi":',
      '/openapi-v1.json': '"openapi":',
    }
    for (const [path, text] of Object.entries(pages)) {
      const answer = await fetch(server.url + path)
      assert.equal(answer.status, 200, path)
      assert.ok((await answer.text()).includes(text), path)
    }
    const link = (await runProcess(['server', 'console', ...storage.args], { command, env: storage.env })).stdout
    const page = await openBrowser().submit(`${server.url}/ui/enter`, { code: new URL(link.trim()).hash.slice(1) })
    const [, script] = /<script type="module" src="([^"]+)"/.exec(page.text) ?? []
    assert.equal((await fetch(new URL(script!, server.url))).status, 200)
    const reflection = reflectionOf(Number(new URL(server.url).port))
    assert.ok((await reflection.services()).includes('grpc.health.v1.Health'))
    assert.ok((await reflection.files('pinfold.platform.registry.v2.ReposService')).length > 0)

    const token = await tokenOf(storage)
    const api = clientOf(server.url, token)
    const { body: org } = await api.post('/iam/v2/groups/', { name: 'acme' })
    await api.post(`/registry/v2/repos/${org.uid}`, { name: 'app' })
    const client = registryClient(server.url, await tokenOf(storage, ['--audience', 'registry']))
    await pushLayers(client, 'acme/app', [alpine('alpine-3.10')], '1')
    const env = { PINFOLD_API: server.url, PINFOLD_TOKEN: token }
    const packages = () => runProcess(['packages', 'list', 'acme/app:1'], { command, env })
    await eventually(packages, ({ code, stdout }) => code === 0 && stdout.includes('\nmusl-utils '))

    const backup = await runProcess(['server', 'backup', '--to', join(storage.data, 'copy'), ...storage.args], {
      ...{ command, env: storage.env },
    })
    assert.equal(backup.code, 0, backup.stderr)
    server.kill('SIGTERM')
    assert.deepEqual(await server.exited, { code: 0, signal: null })
    assert.equal(server.output.stderr, '')
  })
}

test('a link to the executable with the name of a credential helper runs it', async () => {
  const link = join(folder, 'docker-credential-pinfold')
  symlinkSync(join(folder, 'pinfold'), link)
  const { code, stdout } = await runProcess(['list'], { command: link, env: { HOME: folder } })
  assert.deepEqual([code, stdout.trim()], [0, '{}'])
  const provider = join(folder, 'kubelet-credential-provider')
  symlinkSync(join(folder, 'pinfold'), provider)
  const answered = await runProcess([], { command: provider, env: { HOME: folder }, input: '{}' })
  assert.match(answered.stderr, /CredentialProviderRequest/)
})

test('the bundle has a license or a source for each package in it', () => {
  const notices = readFileSync(join(folder, 'bundle/THIRD-PARTY-NOTICES'), 'utf8')
  const [, ...parts] = notices.split(`\n${'='.repeat(80)}\n`).map((part) => part.trim())
  assert.ok(parts.some((part) => part.startsWith('@bufbuild/protobuf ')))
  for (const part of parts)
    assert.match(part, /^\S+ \S+ \(.+\)\n\n(?:The package has no license file\.\n|[\s\S]{10})/, part)
})

test('two builds of the executable are equal', async () => {
  const again = join(folder, 'again')
  await writeExecutable(again)
  const digestOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')
  assert.equal(digestOf(join(again, 'pinfold')), digestOf(join(folder, 'pinfold')))
})
