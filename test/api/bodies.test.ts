// Limits on request bodies: size by the allowed callers of the method, and depth and number of members of JSON.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { buildEndpoints } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { restCalls } from '../support/endpoints.ts'
import { assertInvalid } from '../support/expect.ts'
import { type Answer, startPinfold } from '../support/pinfold.ts'

const pinfold = await startPinfold()
after(() => pinfold[Symbol.asyncDispose]())

const padded = (bytes: number) => `{"pad":"${'x'.repeat(bytes - 10)}"}`

/** A method of the API for anonymous callers, with a body. */
const open = buildEndpoints(services)
  .filter(({ method }) => method.access.mode === 'open')
  .flatMap(({ desc }) => restCalls(desc, ''))
  .filter(({ body }) => body !== undefined)

function assertTooLarge({ status, body, text }: Answer, limit: number): void {
  assert.equal(status, 413, text)
  const description = `must be at most ${limit} bytes`
  assert.deepEqual(body.details[1].fieldViolations, [{ field: 'body', description }])
}

test('methods that are open to anonymous callers accept bodies up to 64 KiB, also with a token', async () => {
  assert.ok(open.some(({ path }) => path === '/auth/v1/register'))
  for (const { verb, path } of open) {
    for (const client of [pinfold.anonymous, pinfold.operator]) {
      assertTooLarge(await client.call(verb, path, padded(65_537)), 65_536)
      assert.notEqual((await client.call(verb, path, padded(65_536))).status, 413, path)
    }
  }
})

test('methods that require a token accept bodies up to 4 MiB', async () => {
  const path = '/iam/v2/groups/'
  assertInvalid(await pinfold.operator.call('POST', path, padded(4 * 1024 * 1024)), 'pad')
  assertTooLarge(await pinfold.operator.call('POST', path, padded(4 * 1024 * 1024 + 1)), 4 * 1024 * 1024)
})

test('a smaller limit in the settings also applies to methods for anonymous callers', async () => {
  await using small = await startPinfold({ maxBodyBytes: 1024 })
  assertTooLarge(await small.anonymous.call('POST', '/auth/v1/register', padded(1025)), 1024)
})

test('limits depth and number of members of a body before parsing it', async () => {
  const paths = ['/iam/v2/groups/', '/auth/v1/register']
  for (const path of paths) {
    // Both texts are invalid JSON, so a parser would fail with another error.
    const deep = await pinfold.operator.call('POST', path, '['.repeat(65))
    assertInvalid(deep, 'body')
    assert.match(deep.text, /is nested deeper than 64 levels/)
    const many = await pinfold.operator.call('POST', path, `[${'0,'.repeat(20_001)}`)
    assertInvalid(many, 'body')
    assert.match(many.text, /has more than 20000 members and elements/)
    const allowed = await pinfold.operator.call('POST', path, `[${'0,'.repeat(19_999)}`)
    assertInvalid(allowed, 'body')
    assert.match(allowed.text, /is not valid JSON/)
  }
})

test('imports by the operator accept longer lists', async () => {
  const versions = Array.from({ length: 50_000 }, (_, i) => ({
    version: `1.${i}`,
    releaseTime: '2026-01-02T00:00:00Z',
  }))
  const artifacts = [{ ecosystem: 'NPM', name: '', versions }]
  assertInvalid(await pinfold.operator.post('/control/v1/artifacts:import', { artifacts }), 'artifacts[0].ecosystem')
})
