import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { registryClient, startRegistry } from '../support/registry.ts'

test('commands create and delete a push token, and the tag history shows its use', async () => {
  await using registry = await startRegistry()
  const { org, seed, url } = registry
  const { uid } = await seed.person({ name: 'ada' })
  await seed.binding(org.uid, uid, roleUids.owner)
  const token = await registry.tokenFor(uid)
  const command = (...args: string[]) => run(args, { env: { PINFOLD_API: url, PINFOLD_TOKEN: token } })
  const pushToken = (...args: string[]) => command('tokens', 'push', ...args)

  const made = await pushToken('create', 'laptop', '--in', 'acme', '--push', '--ttl', '12h')
  assert.equal(made.code, 0, made.stderr)
  const [, user] = /^user +(pt-\w{8})$/m.exec(made.stdout)!
  const [, secret] = /^password +(pinfold_pt_\w{36})$/m.exec(made.stdout)!
  assert.match(made.stderr, new RegExp(`docker login --username ${user} ${new URL(url).host}`))
  assert.ok(!made.stderr.includes(secret!))

  const authorization = `Basic ${Buffer.from(`${user}:${secret}`).toString('base64')}`
  const scope = '/token?scope=repository:acme/app:pull,push'
  const given = ok(await registry.anonymous.call('GET', scope, undefined, { authorization }))
  await registryClient(`http://127.0.0.1:${registry.port}`, given.token).pushImage('acme/app', 'v1')
  const operator = { PINFOLD_API: url, PINFOLD_TOKEN: registry.operator.token! }
  const history = await run(['tags', 'history', 'acme/app:v1'], { env: operator })
  assert.match(history.stdout, / oci ada, push token$/m)

  const listed = await pushToken('list')
  assert.match(listed.stdout, new RegExp(`^USER .*\n${user} +laptop +push +acme +\\S+Z +\\S+Z from 127.0.0.1$`, 'm'))
  const cut = await pushToken('create', 'cron', '--repo', 'acme/app', '-o', 'json')
  const json = JSON.parse(cut.stdout) as Json
  assert.deepEqual([json.name, json.push, json.repos.length, json.group], ['cron', false, 1, org.uid])
  assert.match(json.password, /^pinfold_pt_/)
  const { items } = JSON.parse((await pushToken('list', '--in', 'acme', '-o', 'json')).stdout) as Json
  assert.deepEqual(items.map((one: Json) => one.name).sort(), ['cron', 'laptop'])
  assert.ok(!JSON.stringify(items).includes('pinfold_pt_'))

  const lines = (await pushToken('create', 'job', '--in', 'acme', '-o', 'env')).stdout
  assert.match(lines, /^export PINFOLD_OCI_IDENTITY_ID='pt-\w{8}'\nexport PINFOLD_OCI_TOKEN='pinfold_pt_\w{36}'\n$/)

  assert.deepEqual(await pushToken('delete', user!), { code: 0, stdout: '', stderr: '' })
  assert.equal((await pushToken('delete', json.user, '--in', 'acme')).code, 0)
  const gone = await pushToken('delete', user!)
  assert.equal(gone.code, 1)
  assert.match(gone.stderr, /no push token .* was found: .*\n.*pinfold tokens push list/)
  assert.equal((await pushToken('create', 'x', '--in', 'acme', '--ttl', '366d')).code, 64)
  assert.equal((await pushToken('create', 'x', '--in', 'acme', '--ttl', 'soon')).code, 64)
  assert.equal((await pushToken('create', 'x', '--in', 'nowhere')).code, 64)
})
