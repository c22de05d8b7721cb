// Tools of POST /mcp: they have the same rights and effects as calls over REST, and also require mcp.tool.call.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { Capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { eventsOf, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { callTool, modern, rpc, tool, toolError } from '../support/mcp.ts'
import { type Client, type Json, type Pinfold, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { ledgerOf, plantTag } from '../support/tags.ts'

type Scene = Awaited<ReturnType<typeof startScene>>

const toCall = 'mcp.tool.call'
const guarded = 'pinfold.platform.iam.v2.GroupsService/UpdateGroup'
const documents = [{ id: 'terms.v1', label: 'Terms', url: 'https://example.com/terms' }]

let scene: Scene
let pinfold: Pinfold
let org: string
let agent: Client

before(async () => {
  scene = await startScene({ allowInsecureIssuers: true, allowPrivateAddresses: true })
  pinfold = scene.pinfold
  org = scene.org.uid
  agent = await scene.member(roleUids.owner)
})
after(() => pinfold[Symbol.asyncDispose]())

test('a tool returns the same answer as REST', async () => {
  const repo = await pinfold.seed.repo(org)
  assert.deepEqual(
    await tool(agent, 'get_repo', { uid: repo.uid }),
    ok(await agent.get(`/registry/v2/repos/${repo.uid}`)),
  )
  const listed = await tool(agent, 'list_repos', { uidp: { descendantsOf: org }, pageSize: 5, orderBy: 'name desc' })
  assert.deepEqual(
    listed,
    ok(await agent.get(`/registry/v2/repos?uidp.descendantsOf=${org}&page_size=5&order_by=name%20desc`)),
  )
  const changed = await tool(agent, 'update_repo', { repo: { uid: repo.uid, description: 'new' } })
  assert.deepEqual([changed.description, changed.name], ['new', repo.name], 'what is not given stays')
  const masked = { repo: { uid: repo.uid, description: 'newer' }, updateMask: 'createTime' }
  assert.equal((await tool(agent, 'update_repo', masked)).description, 'new')
  assert.deepEqual(await tool(agent, 'delete_repo', { uid: repo.uid }), {})
  assert.equal((await toolError(agent, 'get_repo', { uid: repo.uid })).code, 5)
})

test('a tool requires mcp.tool.call and the capabilities of its method', async () => {
  const repo = (await pinfold.seed.repo(org)).uid
  const [viewer, only, both] = await Promise.all([
    scene.member(roleUids.viewer),
    scene.holding(toCall),
    scene.holding(toCall, 'repo.list'),
  ])
  const denied = [viewer, only, await scene.stranger(), await scene.foreigner()]
  for (const client of denied) {
    for (const version of ['2025-11-25', modern]) {
      const { content, isError } = await callTool(client, 'get_repo', { uid: repo }, version)
      assert.deepEqual([isError, JSON.parse(content[0].text).code], [true, 7])
    }
  }
  assert.equal((await tool(both, 'get_repo', { uid: repo })).uid, repo)
  assert.equal((await toolError(both, 'delete_repo', { uid: repo })).code, 7)
  // A caller without permission does not learn whether the resource exists.
  const missing = `${org}/0123456789abcdef`
  assert.equal((await toolError(viewer, 'get_repo', { uid: missing })).code, 7)
  assert.equal((await toolError(both, 'get_repo', { uid: missing })).code, 5)
})

test('a method without required capability over REST requires mcp.tool.call as a tool', async () => {
  for (const name of ['list_documents', 'list_vulnerability_metadata']) {
    assert.equal((await toolError(await scene.member(roleUids.viewer), name)).code, 7, name)
    assert.equal((await toolError(await scene.stranger(), name)).code, 7, name)
    await tool(await scene.holding(toCall), name)
  }
})

test('lists, creates and grants nothing outside the groups where the caller holds mcp.tool.call', async () => {
  const { seed } = pinfold
  const folder = (await seed.group(org)).uid
  const [inside, outside] = [await seed.repo(folder), await seed.repo(org)]
  const identity = (await seed.identity(org)).uid
  const role = await seed.role(org, [toCall])
  await seed.binding(org, identity, roleUids.editor)
  await seed.binding(folder, identity, role.uid)
  const client = await pinfold.as(identity)

  const seen = await tool(client, 'list_repos', { uidp: { ids: [inside.uid, outside.uid] } })
  assert.deepEqual([seen.repos.map(({ uid }: Json) => uid), seen.totalCount], [[inside.uid], '1'])
  assert.equal((await toolError(client, 'create_repo', { parent: org, repo: { name: 'denied' } })).code, 7)
  await tool(client, 'create_repo', { parent: folder, repo: { name: 'allowed' } })
  // Over REST the same caller is allowed to do both.
  ok(await client.post(`/registry/v2/repos/${org}`, { name: 'over-rest' }))

  const giver = (await seed.identity(org)).uid
  await seed.binding(org, giver, roleUids.owner)
  const narrowed = await pinfold.as(giver, {
    cap: { [folder]: [Capability.CAP_MCP_TOOL_CALL, Capability.CAP_IAM_GROUPS_CREATE] },
  })
  assert.equal((await toolError(narrowed, 'create_group', { parent: org, group: { name: 'above' } })).code, 7)
  await tool(narrowed, 'create_group', { parent: folder, group: { name: 'below' } })
  const without = await pinfold.as(giver, { cap: { [org]: [Capability.CAP_IAM_GROUPS_LIST] } })
  assert.equal((await toolError(without, 'list_groups')).code, 7)
})

test('an error for wrong arguments names the field, and nothing is changed', async () => {
  const long = 'x'.repeat(200)
  for (const [name, args, field] of [
    ['create_repo', { parent: org, repo: { name: 'No!' } }, 'name'],
    ['create_repo', { parent: org, repo: { name: 'fine', nothing: 1 } }, 'repo.nothing'],
    ['create_repo', { repo: { name: 'fine' } }, 'parent'],
    ['create_repo', { parent: 7, repo: {} }, 'parent'],
    ['create_repo', 'text', 'body'],
    ['list_repos', { pageSize: -1 }, 'page_size'],
    ['list_repos', { pageSize: 'many' }, 'page_size'],
    ['list_repos', { [long]: 1 }, `${'x'.repeat(64)}…`],
    ['list_repos', { page_size: 1, pageSize: 1 }, 'page_size'],
    ['list_repos', { pageToken: 'invented' }, 'page_token'],
    ['get_repo', { uid: 'nothing' }, 'uid'],
    ['update_repo', { repo: { uid: org }, updateMask: 'nothing' }, 'update_mask'],
    ['list_artifacts', {}, 'ecosystems'],
  ] as const) {
    const { code, message, details } = await toolError(agent, name, args as Json)
    assert.deepEqual([code, details[1]?.fieldViolations?.[0]?.field], [3, field], `${name} ${JSON.stringify(args)}`)
    assert.match(message, /^Invalid argument: /)
    assert.ok(details[0].metadata.requestId)
  }
})

test('a tool that changes data writes the same events, audit and history as REST', async () => {
  const changes = async (over: (name: string, args: Json) => Promise<Json>) => {
    const before = (await pinfold.app.db.get<{ id: number }>(sql`SELECT coalesce(max(id), 0) AS id FROM audit_log`))!.id
    let repo = ''
    const events = await eventsOf(pinfold, async () => {
      const folder = await over('create_group', { parent: org, group: { name: 'same' } })
      repo = (await over('create_repo', { parent: folder.uid, repo: { name: 'app' } })).uid
      await plantTag(pinfold, repo, 'stable')
      await over('update_repo', { repo: { uid: repo, description: 'said' } })
      await over('delete_repo', { uid: repo })
      const role = await over('create_role', { parent: org, role: { name: 'same', capabilities: ['CAP_REPO_LIST'] } })
      await over('delete_role', { uid: role.uid })
      await over('delete_group', { uid: folder.uid })
    })
    const audit = await pinfold.app.db.all<Json>(sql`
      SELECT type, actor, remote_address AS "remoteAddress", user_agent AS "userAgent", body_type AS "bodyType", body
        FROM audit_log WHERE id > ${before} ORDER BY id`)
    const ledger = await ledgerOf(pinfold, repo)
    assert.deepEqual([events.length >= 8, audit.length >= 4, ledger.length], [true, true, 2])
    const plain = JSON.stringify({ events, audit, ledger: ledger.map(({ time: _, ...row }) => row) })
    return plain.replaceAll(/(?:[0-9a-f]{40})?\/[0-9a-f]{16}/g, 'uid').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')
  }
  const paths: Record<string, (args: Json) => [string, string, Json?]> = {
    create_group: ({ parent, group }) => ['POST', `/iam/v2/groups/${parent}`, group],
    create_repo: ({ parent, repo }) => ['POST', `/registry/v2/repos/${parent}`, repo],
    update_repo: ({ repo: { uid, ...repo } }) => ['PATCH', `/registry/v2/repos/${uid}`, repo],
    delete_repo: ({ uid }) => ['DELETE', `/registry/v2/repos/${uid}`],
    create_role: ({ parent, role }) => ['POST', `/iam/v2/roles/${parent}`, role],
    delete_role: ({ uid }) => ['DELETE', `/iam/v2/roles/${uid}`],
    delete_group: ({ uid }) => ['DELETE', `/iam/v2/groups/${uid}`],
  }
  const overRest = await changes(async (name, args) => ok(await agent.call(...paths[name]!(args))))
  const overTools = await changes((name, args) => tool(agent, name, args))
  assert.equal(overTools, overRest)
})

test('the audit log names the client, and the request log and metrics name the call', async () => {
  const headers = { 'user-agent': 'agent/1.0', 'x-request-id': 'asked-by-an-agent' }
  const params = { name: 'create_group', arguments: { parent: org, group: { name: 'audited' } } }
  await rpc(agent, { method: 'tools/call', params, headers })
  const { auditEntries } = ok(await agent.get(`/events/v2/audit?page_size=1`))
  assert.deepEqual([auditEntries[0].userAgent, auditEntries[0].requestId], ['agent/1.0', 'asked-by-an-agent'])
  const metrics = await pinfold.app.metrics.registry.metrics()
  assert.match(metrics, /pinfold_request_duration_seconds_count\{[^}]*transport="mcp",method="CreateGroup",code="OK"/)
  await toolError(agent, 'get_repo', { uid: `${org}/0000000000000000` })
  assert.match(await pinfold.app.metrics.registry.metrics(), /transport="mcp",method="GetRepo",code="NOT_FOUND"/)
})

test('a tool is refused until the terms are accepted, as over REST', async () => {
  const other = await startScene({ termsDocuments: documents, termsMethods: [guarded] })
  await using _ = other.pinfold
  const owner = await other.member(roleUids.owner)
  const update = { group: { uid: other.org.uid, description: 'new' } }
  const { code, details } = await toolError(owner, 'update_group', update)
  assert.deepEqual([code, details[0].reason, details[1].missing[0].id], [9, 'TERMS_NOT_ACCEPTED', 'terms.v1'])
  await tool(owner, 'accept_terms', { group: other.org.uid, documentIds: ['terms.v1'] })
  assert.equal((await tool(owner, 'update_group', update)).description, 'new')
})

test('results contain no secrets', async () => {
  const made = await tool(agent, 'create_group_invite', {
    parent: org,
    groupInvite: { roleUid: roleUids.viewer, ttl: '3600s' },
  })
  assert.equal(made.code, '')
  assert.ok(made.keyId && made.expirationTime)
  await using issuer = await startIssuer()
  const secret = 'a-very-hidden-word'
  const oidc = { issuer: issuer.url, clientId: 'pinfold', clientSecret: secret }
  const provider = { name: 'provider', defaultRole: roleUids.viewer, oidc }
  const { uid } = await tool(agent, 'create_identity_provider', { parent: org, identityProvider: provider })
  const { content } = await callTool(agent, 'get_identity_provider', { uid })
  assert.doesNotMatch(content[0].text, new RegExp(secret))
  assert.match(content[0].text, /clientId/)
  const wrong = { parent: org, identityProvider: { ...provider, name: 'No!' } }
  assert.doesNotMatch(JSON.stringify(await callTool(agent, 'create_identity_provider', wrong)), new RegExp(secret))
  const { text } = await rpc(agent, { method: 'tools/list' })
  assert.ok(!text.includes(agent.token!))
  const { tools } = JSON.parse(text).result
  const invite = tools.find(({ name }: Json) => name === 'create_group_invite')
  assert.equal(invite.outputSchema.properties.code, undefined)
})

test('an oversized answer is replaced by an error', async () => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 4096 })
  const keys = Array.from({ length: 10 }, (_, i) => ({
    ...publicKey.export({ format: 'jwk' }),
    kid: `${i}`.repeat(500),
  }))
  const folder = (await pinfold.seed.group(org)).uid
  const staticKeys = { issuer: 'https://keys.example.com', subject: 'x', issuerKeys: JSON.stringify({ keys }) }
  for (let i = 0; i < 100; i++) await pinfold.seed.identity(folder, { claimMatch: undefined, staticKeys })
  const uidp = { childrenOf: folder }
  const { code, message } = await toolError(agent, 'list_identities', { uidp, pageSize: 200 })
  assert.equal(code, 8)
  assert.match(message, /smaller page/)
  assert.equal((await tool(agent, 'list_identities', { uidp, pageSize: 2 })).identities.length, 2)
})
