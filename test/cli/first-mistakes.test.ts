// Mistakes of new users before a server runs; docs/first-hour.md lists all of them.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { mayOthersRun, serveInForeignFolder, startStrictPostgres } from '../reference/first-hour-more.ts'
import { createStorage, freeAddress, run, runProcess, startInProcess, startProcess } from '../support/process.ts'
import { registryClient } from '../support/registry.ts'

test('distinguishes a wrong database password from an unavailable database', async () => {
  const strict = await startStrictPostgres()
  const database = `postgres://pinfold:very-wrong@127.0.0.1:${strict.port}/pinfold`
  const env = { PINFOLD_MASTER_KEY: 'a'.repeat(64) }
  const { code, stdout, stderr } = await runProcess(['serve', '--database', database], { env })
  strict.close()
  assert.deepEqual([code, stdout], [78, ''], stderr)
  assert.match(stderr, /refused the connection: password authentication failed.*\n.*check the user and the password/)
  assert.ok(!stderr.includes('very-wrong'))
})

test('names a data folder of another user, and the user who must own it', async (t) => {
  if (!mayOthersRun()) return t.skip('another user cannot run the program where it is here')
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-test-'))
  try {
    const { code, stderr } = await serveInForeignFolder(join(folder, 'data'), {})
    assert.equal(code, 1)
    assert.match(stderr, /data cannot be written: EACCES; make the user of the server its owner \(uid \d+\)/)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a server without a URL warns once if clients use another host name', async () => {
  await using storage = await createStorage()
  for (const [args, times] of [
    [[], 1],
    [['--url', 'http://registry.example.com'], 0],
  ] as const) {
    const listen = await freeAddress()
    await using server = await startProcess(storage, { args, listen })
    const client = registryClient(`http://${listen}`, undefined)
    for (let i = 0; i < 3; i++) await client.call('GET', '', { headers: { host: 'a.example.com' } })
    server.kill('SIGTERM')
    await server.exited
    const lines = server.output.stderr.split('\n').filter((line) => line.includes('clients use an unknown host name'))
    assert.equal(lines.length, times)
    if (times > 0) assert.match(lines[0]!, /"host":"a\.example\.com".*"setting":"PINFOLD_URL"/)
  }
})

test('error messages include the next step', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const { url } = server
  const here = async (args: string[], env: Record<string, string> = {}) => {
    const as = env.PINFOLD_TOKEN || args[0] === 'migrate' ? [] : storage.args
    return run([...args, ...as], { env: { ...storage.env, PINFOLD_API: url, ...env } })
  }
  assert.equal((await here(['orgs', 'create', 'acme'])).code, 0)
  assert.equal((await here(['repos', 'create', 'acme/app'])).code, 0)
  const away = `http://${await freeAddress()}`
  const key = { PINFOLD_MASTER_KEY: 'a'.repeat(64) }
  const database = 'postgres://127.0.0.1:1/none'
  const answers: [args: string[], env: Record<string, string>, code: number, says: RegExp][] = [
    [['images', 'list'], { PINFOLD_TOKEN: 'x' }, 77, /set PINFOLD_TOKEN to a token of this server/],
    [['images', 'list'], { PINFOLD_API: away, PINFOLD_TOKEN: 'x' }, 69, /check that the server runs/],
    [['migrate', '--database', database], key, 69, /unavailable.*; check that it runs, and that the URL/],
    [
      ['orgs', 'delete', 'acme', '--yes'],
      {},
      1,
      /still has repositories[\s\S]*delete its content first; to list it: .*pinfold repos list --in acme/,
    ],
    [['orgs', 'delete', '', '--yes'], {}, 64, /the name of the organization is empty/],
    [['tags', 'digest', 'app:1.0'], {}, 64, /give ORG\/NAME or ORG\/FOLDER\/NAME, such as acme\/app/],
    [['image', 'list'], {}, 64, /unknown command 'image'[\s\S]*Did you mean images/],
  ]
  for (const [args, env, wanted, says] of answers) {
    const { code, stdout, stderr } = await here(args, env)
    assert.deepEqual([code, stdout], [wanted, ''], `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, says)
  }
})
