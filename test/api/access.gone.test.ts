// Tokens are valid for up to an hour, also if their identity is deleted meanwhile. The deletion must end them.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { openStream } from '../support/event-stream.ts'
import { assertError, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { roleUids } from '../support/pinfold.ts'
import { eventually } from '../support/receiver.ts'
import { startScene } from '../support/scene.ts'

const { pinfold, operator, org } = await startScene(
  { deliver: true, allowOrganizationCreation: true },
  { name: 'acme' },
)
const registry = new URL(pinfold.url).host
await pinfold.seed.repo(org.uid, { name: 'app' })
after(() => pinfold[Symbol.asyncDispose]())

const kinds = {
  person: async () => {
    const { uid } = await pinfold.seed.person()
    await pinfold.seed.binding(org.uid, uid, roleUids.editor)
    return uid
  },
  workload: async () => (await pinfold.seed.member(org.uid, roleUids.editor)).uid as string,
}

for (const [kind, make] of Object.entries(kinds)) {
  test(`each entry point refuses tokens of a deleted ${kind}`, async () => {
    const uid = await make()
    const api = await pinfold.as(uid)
    const login = await pinfold.as(uid, { audience: registry })
    const trade = () => login.get(`/token?service=${registry}&scope=repository:acme/app:pull`)
    const pull = pinfold.withToken(ok(await trade()).token)
    const path = '/v2/acme/app/tags/list'
    for (const client of [login, pull]) ok(await client.get(path))
    // A new stream starts after the latest event with a position, so the test waits until each event has one.
    const unplaced = () => pinfold.app.db.all(sql`SELECT id FROM events_outbox WHERE position = 0`)
    await eventually(unplaced, (rows) => rows.length === 0)
    using stream = await openStream(pinfold.url, api.token, { query: `group=${org.uid}` })
    using grpc = grpcClientOf(pinfold, GroupsService, api.token)
    await grpc.getGroup({ uid: org.uid })

    ok(await operator.delete(`/iam/v2/identities/${uid}`))
    const assertGone = async () => {
      const answers = [
        await api.get(`/iam/v2/groups/${org.uid}`),
        await api.get('/iam/v2/groups'),
        await api.get('/auth/v1/ok'),
        await api.post('/iam/v2/groups/', { name: `of ${kind}` }),
      ]
      for (const answer of answers) assertError(answer, 401, 16, 'UNAUTHENTICATED')
      await assert.rejects(grpc.getGroup({ uid: org.uid }), { code: 16 })
      for (const answer of [await login.get(path), await pull.get(path), await trade()]) {
        assert.equal(answer.status, 401, answer.text)
        assert.equal(answer.body.errors[0].code, 'UNAUTHORIZED')
        assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer realm=/)
      }
    }
    await assertGone()
    // These streams do not get the first event after the deletion.
    assert.equal(await stream.ended, true)
    assert.equal(stream.ending()?.code, 16)
    assert.deepEqual(stream.events, [])

    if (kind !== 'person') return
    // A person can have bindings before creating an account, and after deleting it.
    await pinfold.seed.binding(org.uid, uid, roleUids.editor)
    await assertGone()
  })
}
