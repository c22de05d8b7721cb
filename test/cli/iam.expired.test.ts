import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ok } from '../support/expect.ts'
import { type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'

test('deletes expired identities of a group, and nothing else', async () => {
  let time = Date.now()
  await using pinfold = await startPinfold({ clock: () => new Date(time) })
  const { operator, seed, url } = pinfold
  const org = await seed.group('', { name: 'acme' })
  const team = await seed.group(org.uid, { name: 'team' })
  const other = await seed.group('', { name: 'other' })
  const keys = (expirationTime: string) => {
    const issuerKeys = JSON.stringify({ keys: [{ kty: 'EC', crv: 'P-256', kid: 'a', alg: 'ES256', ...point }] })
    return { claimMatch: undefined, staticKeys: { issuer: 'ci', subject: 'ci', issuerKeys, expirationTime } }
  }
  const made = (group: string, name: string, time: string) => seed.identity(group, { name, ...keys(time) })
  await made(org.uid, 'good', new Date(time + 300 * 86_400_000).toISOString())
  // By the server clock, no other identity has expired. By the clock of the command, identities that expire in 2020 have.
  time = Date.parse('2020-01-01T00:00:00Z')
  await made(org.uid, 'over', '2020-06-01T00:00:00Z')
  await made(team.uid, 'over in team', '2020-06-01T00:00:00Z')
  await seed.identity(org.uid, { name: 'for ever' })
  await made(other.uid, 'elsewhere', '2020-06-01T00:00:00Z')
  await seed.invite(org.uid, roleUids.viewer)

  const command = (...args: string[]) => run(args, { env: { PINFOLD_API: url, PINFOLD_TOKEN: operator.token! } })
  const names = async () =>
    ok(await operator.get('/iam/v2/identities'))
      .identities.map((one: Json) => one.name)
      .sort()
  const asked = await command('identities', 'delete', '--expired', '--in', 'acme')
  assert.deepEqual([asked.code, asked.stdout], [64, ''])
  assert.match(asked.stderr, /would delete 2 expired identities/)
  assert.equal((await names()).length, 5)
  const done = await command('identities', 'delete', '--expired', '--in', 'acme', '--yes')
  assert.deepEqual(done, { code: 0, stdout: '', stderr: 'Deleted 2 expired identities\n' })
  assert.deepEqual(await names(), ['elsewhere', 'for ever', 'good'])
  const again = await command('identities', 'delete', '--expired', '--in', 'acme')
  assert.deepEqual([again.code, again.stderr], [0, 'Deleted 0 expired identities\n'])
  const invites = await command('invitations', 'delete', '--expired', '--in', 'acme', '--yes')
  assert.deepEqual([invites.code, invites.stderr], [0, 'Deleted 1 expired invitations\n'])
  assert.deepEqual(ok(await operator.get('/iam/v2/groupInvites')).groupInvites, [])

  assert.equal((await command('identities', 'delete')).code, 64)
  assert.equal((await command('identities', 'delete', 'good', '--expired')).code, 64)
  assert.equal((await command('identities', 'delete', 'good', '--in', 'acme', '--yes')).code, 64)
  assert.equal((await command('identities', 'delete', 'good', '--yes')).code, 0)
})

/** A point of the elliptic curve. */
const point = {
  x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
  y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
}
