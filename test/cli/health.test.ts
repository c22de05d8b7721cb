import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createStorage, freeAddress, run, startInProcess } from '../support/process.ts'

test('health exits with 0 for a ready server, also for one that listens on all addresses', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const { host, port } = new URL(server.url)
  for (const listen of [host, `0.0.0.0:${port}`]) {
    const { code, stdout } = await run(['health'], { env: { PINFOLD_LISTEN: listen } })
    assert.equal(code, 0)
    assert.equal(stdout, 'ready\n')
  }
})

test('health reports if no server listens at the address', async () => {
  const listen = await freeAddress()
  const { code, stderr } = await run(['health', '--listen', listen])
  assert.equal(code, 69)
  assert.match(stderr, /no server answers on port \d+: ECONNREFUSED/)
})
