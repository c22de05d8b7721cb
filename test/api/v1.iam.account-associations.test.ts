// Version 1 of account associations: named by their group, with lists in full and a PUT that replaces.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  AccountAssociationsCheckRequest_AccountType,
  GroupAccountAssociations,
} from '#gen/pinfold/iam/v1/account_associations_pb.ts'
import { assertDenied, assertInvalid, assertTaken, eventsOf, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/iam/v1/account_associations'
const { pinfold, org, ...scene } = await startScene()
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
const grpc = grpcClientOf(pinfold, GroupAccountAssociations, owner.token)
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

const amazon = { account: '123456789012' }
// The project number contains letters, because users enter such values to try things out.
const google = { projectId: 'example-project', projectNumber: 'qwertyuiop' }
const github = { appInstallations: { 7: { installations: [{ installationId: '9007199254740993', name: 'acme' }] } } }
const azure = { tenantId: 'tenant', clientIds: { ingester: 'client' } }
/** One cloud setting of each kind, for a group. */
const blocksOf = async (group: string): Promise<Json> => {
  const { uid: ingester } = await pinfold.seed.identity(group, { claimMatch: undefined, servicePrincipal: 2 })
  return { amazon, google, github, azure, pinfold: { serviceBindings: { INGESTER: ingester } } }
}
const folder = async (): Promise<string> => (await pinfold.seed.group(org.uid)).uid
const create = (group: string, body: Json = {}) => owner.post(`${path}/${group}`, { name: 'one', ...body })
const put = (group: string, body: Json) => owner.call('PUT', `${path}/${group}`, { name: 'one', ...body })
const list = async (query: string, client: Client = owner): Promise<Json[]> =>
  ok(await client.get(`${path}?${query}`)).items

test('an association created in either version is the same in the other', async () => {
  const group = await folder()
  const blocks = await blocksOf(group)
  const made = ok(await create(group, { description: 'text', ...blocks }))
  assert.deepEqual({ ...made, ...blocks, group, description: 'text' }, made)
  const newer = ok(await owner.get(`/iam/v2/accountAssociations/${group}`))
  assert.deepEqual({ ...newer, ...blocks, uid: group }, newer)
  assert.deepEqual(await list(`group=${group}`), [made])
  assertTaken(await create(group), 'iam.pinfold.dev/AccountAssociation', group)

  const { uid } = await pinfold.seed.association(await folder(), { name: 'newer', amazon })
  const [listed] = (await grpc.list({ name: 'newer' })).items
  assert.deepEqual([listed!.group, listed!.amazon?.account], [uid, amazon.account])
})

test('a PUT clears the cloud settings that it omits', async () => {
  const group = await folder()
  const blocks = await blocksOf(group)
  ok(await create(group, { description: 'text', ...blocks }))
  for (const [kept, block] of Object.entries(blocks)) {
    const after = ok(await put(group, { [kept]: block }))
    const shown = Object.keys(blocks).filter((name) => (after[name] ?? null) !== null)
    assert.deepEqual([after.description, shown], ['', [kept]])
    assert.deepEqual(after[kept], block)
    ok(await put(group, blocks))
  }
  assertInvalid(await put(group, { amazon: { account: '1' } }), 'amazon.account')
  assertInvalid(await put(group, { google: { projectId: 'p', projectNumber: '1/2' } }), 'google.project_number')
  await assert.rejects(grpc.update({ group: `${org.uid}/0123456789abcdef`, name: 'none' }), { code: 5 })
})

test('returns an empty list for a group without an association and for an invisible group', async () => {
  const group = await folder()
  for (const query of [`group=${group}`, 'group=x', 'name=none']) assert.deepEqual(await list(query), [], query)
  ok(await create(group, { name: 'hidden' }))
  for (const query of [`group=${group}`, 'name=hidden']) assert.deepEqual(await list(query, stranger), [], query)
  assertDenied(await stranger.delete(`${path}/${group}`))
})

test('a check names missing fields, and the supported clouds', async () => {
  const group = await folder()
  ok(await create(group, { google }))
  const check = (accountType: string) => owner.post(`${path}/${group}:check`, { accountType })
  const answer = ok(await check('AMAZON'))
  assert.deepEqual([answer.ready, answer.reason], ['NotReady', 'NOT_CONFIGURED'])
  assertInvalid(await check('UNKNOWN'), 'account_type')
  const accountType = AccountAssociationsCheckRequest_AccountType.AZURE
  assert.equal((await grpc.check({ group, accountType })).reason, 'NOT_CONFIGURED')
  await assert.rejects(grpc.check({ group: await folder(), accountType }), { code: 5 })
})

test('events have the format of the called version, and deletion events are empty', async () => {
  const group = await folder()
  const events = await eventsOf(pinfold, async () => {
    await grpc.create({ group, name: 'told', amazon })
    await grpc.update({ group, name: 'told' })
    await owner.patch(`/iam/v2/accountAssociations/${group}`, { description: 'three' })
    assert.equal((await owner.delete(`${path}/${group}`)).text, '')
    await grpc.delete({ group })
  })
  const type = (verb: string) => `dev.pinfold.api.iam.account_associations.${verb}.v1`
  assert.deepEqual(
    events.map((event) => [event.type, event.subject, event.group, event.bodyType]),
    [
      [type('created'), group, group, 'pinfold.platform.iam.AccountAssociations'],
      [type('updated'), group, group, 'pinfold.platform.iam.AccountAssociations'],
      [type('updated'), group, group, 'pinfold.platform.iam.v2.AccountAssociation'],
      [type('deleted'), group, group, 'pinfold.platform.iam.DeleteAccountAssociationsRequest'],
    ],
  )
  assert.deepEqual([events[0]!.body.group, events[0]!.body.amazon], [group, amazon])
  assert.equal(events[3]!.body, null)
})
