// A server in a separate network, as in a container, with a data folder that others can read.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { openDb } from '#db/open.ts'
import { sql } from '#db/sql.ts'
import { onPostgres } from '../support/pinfold.ts'
import { createStorage, run, startInProcess, startProcess } from '../support/process.ts'

const mayPart = spawnSync('unshare', ['-n', 'ip', 'link', 'set', 'lo', 'up']).status === 0
const skip = onPostgres
  ? 'there is no data folder'
  : mayPart
    ? false
    : 'this machine gives nobody a network of their own'

/** Data about the server in the data folder. */
async function factsOf(data: string): Promise<Record<string, string>> {
  const db = await openDb({ database: '', file: join(data, 'pinfold.db') })
  try {
    const rows = await db.all<{ name: string; value: string }>(sql`SELECT name, value FROM facts`)
    return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
  } finally {
    await db.close()
  }
}

/** Starts another program at the address of the server in this network. */
async function startBystander() {
  const heard: string[] = []
  const server = createServer((req, res) => {
    heard.push(String(req.headers.authorization))
    res.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    heard,
    port: (server.address() as AddressInfo).port,
    [Symbol.dispose]: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

test('never sends the operator token to another server at the same address in a different network', {
  skip,
}, async () => {
  await using storage = await createStorage()
  using bystander = await startBystander()
  const lead = ['unshare', '-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']
  await using _server = await startProcess(storage, { lead, listen: `127.0.0.1:${bystander.port}` })
  const organizations = ['orgs', 'list', ...storage.args]
  for (const args of [
    organizations,
    ['server', 'quotas', 'list', ...storage.args],
    ['server', 'gc', '--dry-run', ...storage.args],
  ]) {
    const { code, stdout, stderr } = await run(args, { env: storage.env })
    assert.deepEqual([code, stdout], [69, ''], args.join(' '))
    assert.match(stderr, /runs in another network than this command, such as in a container/)
    assert.match(stderr, /docker exec CONTAINER pinfold/)
  }
  assert.deepEqual(bystander.heard, [])
  // With PINFOLD_API, the command connects to the given URL in any case.
  const named = await run(organizations, { env: { ...storage.env, PINFOLD_API: `http://127.0.0.1:${bystander.port}` } })
  assert.equal(named.code, 0, named.stderr)
  assert.equal(bystander.heard.length, 1)
})

test('finds a server in its own network by its folder, also a version that did not store its network', {
  skip: onPostgres,
}, async () => {
  await using storage = await createStorage()
  await using _server = await startInProcess(storage)
  const organizations = ['orgs', 'list', ...storage.args]
  assert.equal((await run(organizations)).code, 0)
  assert.match(
    (await factsOf(storage.data)).local_network ?? '',
    process.platform === 'linux' ? /^[0-9a-f-]{36} net:\[\d+\]$/ : /^$/,
  )
  const db = await openDb({ database: '', file: join(storage.data, 'pinfold.db') })
  try {
    await db.tx((tx) => tx.run(sql`DELETE FROM facts WHERE name = 'local_network'`))
  } finally {
    await db.close()
  }
  assert.equal((await run(organizations)).code, 0)
})
