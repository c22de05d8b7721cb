// Commands for email domains, and the sign-in commands that take an email address.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'

let pinfold: Pinfold
let env: Record<string, string>
let records: string[][] = []
before(async () => {
  pinfold = await startPinfold()
  const acme = await pinfold.seed.group('', { name: 'acme' })
  const { uid } = await pinfold.seed.member(acme.uid, roleUids.owner)
  env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: await pinfold.tokenFor(uid) }
  pinfold.app.dns.resolveTxt = async () => records
})
after(() => pinfold[Symbol.asyncDispose]())

const domains = (...args: string[]) => run(['identity-providers', 'domains', ...args], { env })

test('a domain is created, verified, listed and deleted', async () => {
  const created = await domains('create', 'Acme.Example', '--in', 'acme')
  assert.equal(created.code, 0, created.stderr)
  const [, value] = /(pinfold-verification=[0-9a-f]{32})/.exec(created.stdout)!
  assert.match(created.stdout, /^acme\.example +no +_pinfold-challenge\.acme\.example +pinfold-verification=/m)
  const [, next] = /then run: pinfold (.+)$/m.exec(created.stdout)!
  assert.equal(next, 'identity-providers domains verify acme.example --in acme')
  const missing = await run(next!.split(' '), { env })
  assert.equal(missing.code, 1)
  assert.match(missing.stderr, /the domain was not verified, because DNS has no TXT record/)
  records = [[value!]]
  const verified = await domains('verify', 'ACME.example')
  assert.equal(verified.stdout, 'acme.example is verified: users with such email addresses find your sign-in\n')
  const { items } = JSON.parse((await domains('list', '--in', 'acme', '-o', 'json')).stdout)
  assert.deepEqual([items.length, items[0].verified, items[0].recordValue], [1, true, value])
  assert.match((await domains('list')).stdout, /^acme\.example +\d{4}-\S+Z /m)
  assert.equal((await domains('delete', 'acme.example')).code, 64)
  assert.equal((await domains('delete', 'acme.example', '--yes')).stderr, 'Deleted acme.example\n')
  const gone = await domains('verify', 'acme.example')
  assert.deepEqual([gone.code, /has no email domain acme\.example/.test(gone.stderr)], [1, true])
})
