// Data of the oldest commit, which had no tags, blobs or audit log, opened by the current program.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf, type Json } from '../support/pinfold.ts'
import { run, startProcess, tokenOf } from '../support/process.ts'
import { registryClient } from '../support/registry.ts'
import { pushSmall } from './images.ts'
import { copyOfOldest } from './release.ts'

test('data of the oldest commit is migrated to this version, is complete, and can be used', async () => {
  await using copy = await copyOfOldest()
  const migrated = await run(['migrate', ...copy.args], { env: copy.env })
  assert.deepEqual(migrated, { code: 0, stdout: 'the database is up to date\n', stderr: '' })
  await using server = await startProcess(copy, { env: copy.env })
  const operator = clientOf(server.url, await tokenOf(copy))
  const listed = async (kind: string, path: string, client = operator): Promise<Json[]> =>
    (await client.get(`${path}?order_by=name`)).body[kind]

  const groups = await listed('groups', '/iam/v2/groups')
  assert.deepEqual(
    groups.map(({ name, description }) => [name, description]),
    [
      ['acme', 'A shop'],
      ['payments', ''],
    ],
  )
  const [acme, payments] = groups as [Json, Json]
  assert.ok(payments.uid.startsWith(`${acme.uid}/`))
  const [job] = await listed('identities', '/iam/v2/identities')
  assert.deepEqual([job!.name, job!.claimMatch.subject], ['ledger releases', 'repo:acme/ledger:ref:refs/heads/main'])
  const [binding] = (await operator.get('/iam/v2/roleBindings')).body.roleBindings
  assert.deepEqual(
    [binding.identity.name, binding.role.name, binding.group.name],
    [job!.name, 'repo maker', 'payments'],
  )

  const maker = clientOf(server.url, await tokenOf(copy, ['--identity', job!.uid]))
  const made = await maker.post(`/registry/v2/repos/${payments.uid}`, { name: 'till' })
  assert.equal(made.status, 200, made.text)
  const names = (await listed('repos', '/registry/v2/repos', maker)).map(({ name }) => name)
  assert.deepEqual(names, ['ledger', 'till'])

  const registry = registryClient(server.url, await tokenOf(copy, ['--audience', 'registry']))
  await pushSmall(registry, 'acme/payments/ledger', 'ledger', '1.0')
  const { body } = await registry.ok(200, 'GET', 'acme/payments/ledger/tags/list')
  assert.deepEqual(body.tags, ['1.0'])
})
