// The protocol of POST /mcp: messages, revisions, headers and refusals. mcp.tools.test.ts tests the tools.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { getOption } from '@bufbuild/protobuf'
import { buildEndpoints } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { tool } from '#gen/pinfold/annotations/annotations_pb.ts'
import { version as release } from '#version.ts'
import { meta, modern, rpc } from '../support/mcp.ts'
import { type Answer, type Client, type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { connectRaw, takeResponse } from '../support/raw-http.ts'

let pinfold: Pinfold
let operator: Client

before(async () => {
  pinfold = await startPinfold({ hosts: ['tools.example.com'], maxBodyBytes: 64 * 1024 })
  operator = pinfold.operator
})
after(() => pinfold[Symbol.asyncDispose]())

const post = (body: unknown, headers: Record<string, string> = {}) => operator.call('POST', '/mcp', body, headers)
const inModern = { 'mcp-protocol-version': modern, 'mcp-method': 'tools/list' }
const list = { jsonrpc: '2.0', id: 7, method: 'tools/list', params: { _meta: meta } }

function assertRefused(answer: Answer, http: number, code: number, id: unknown = undefined): void {
  assert.equal(answer.status, http, answer.text.slice(0, 500))
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.deepEqual([answer.body.jsonrpc, answer.body.error.code, answer.body.id], ['2.0', code, id], answer.text)
  assert.ok(answer.body.error.message.length > 0)
}

test('the server and an older client negotiate a revision with initialize', async () => {
  const agreed: Record<string, string> = {
    '2025-11-25': '2025-11-25',
    '2025-06-18': '2025-06-18',
    '2025-03-26': '2025-11-25',
    '2099-01-01': '2025-11-25',
  }
  for (const [asked, answered] of Object.entries(agreed)) {
    const params = { protocolVersion: asked, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    const answer = await post({ jsonrpc: '2.0', id: 'one', method: 'initialize', params })
    assert.equal(answer.status, 200)
    const { instructions, ...result } = answer.body.result
    assert.match(instructions, /uid/)
    const serverInfo = { name: 'pinfold', title: 'Pinfold', version: release }
    assert.deepEqual(result, { protocolVersion: answered, capabilities: { tools: {} }, serverInfo })
    assert.equal(answer.body.id, 'one')
    assert.equal(answer.headers.get('mcp-session-id'), null)
  }
  const initialized = await post({ jsonrpc: '2.0', method: 'notifications/initialized' })
  assert.deepEqual([initialized.status, initialized.text], [202, ''])
  assert.deepEqual((await rpc(operator, { method: 'ping' })).body, { jsonrpc: '2.0', id: 1, result: {} })
})

test('a client of the newest revision sends its information with each request', async () => {
  const { body } = await rpc(operator, { method: 'server/discover', version: modern })
  const { supportedVersions, capabilities, resultType, ttlMs, cacheScope, _meta } = body.result
  assert.deepEqual(supportedVersions, [modern, '2025-11-25', '2025-06-18'])
  assert.deepEqual([capabilities, resultType, cacheScope], [{ tools: {} }, 'complete', 'public'])
  assert.ok(ttlMs > 0)
  assert.equal(_meta['io.modelcontextprotocol/serverInfo'].version, release)
  const called = await rpc(operator, { method: 'tools/call', params: { name: 'list_groups' }, version: modern })
  assert.deepEqual([called.body.result.resultType, called.body.result.isError], ['complete', false])
})

test('the tools are the methods of version 2 that the contract does not hide, with hints from the contract', async () => {
  const [older, newer] = await Promise.all(
    ['2025-11-25', modern].map(async (version) => (await rpc(operator, { method: 'tools/list', version })).body.result),
  )
  assert.deepEqual(Object.keys(older), ['tools'])
  assert.deepEqual([newer.resultType, newer.cacheScope, newer.ttlMs > 0], ['complete', 'public', true])
  assert.deepEqual(older.tools, newer.tools)

  const offered = buildEndpoints(services).filter(
    ({ method, desc }) => /\.v2\./.test(method.fullName) && !getOption(desc, tool).hidden,
  )
  const snake = (name: string) => name.replace(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase()
  assert.deepEqual(older.tools.map(({ name }: Json) => name).sort(), offered.map(({ desc }) => snake(desc.name)).sort())
  const hints = Object.fromEntries(older.tools.map(({ name, annotations }: Json) => [name, annotations]))
  const hint = (readOnlyHint: boolean, destructiveHint: boolean, idempotentHint: boolean, openWorldHint = false) => {
    return { readOnlyHint, destructiveHint, idempotentHint, openWorldHint }
  }
  assert.deepEqual(hints.list_repos, hint(true, false, true))
  assert.deepEqual(hints.create_repo, hint(false, false, false))
  assert.deepEqual(hints.update_repo, hint(false, false, true))
  assert.deepEqual(hints.delete_repo, hint(false, true, true))
  assert.deepEqual(hints.accept_terms, hint(false, true, true, true), 'what the contract leaves open is the worse')
  for (const { name, title, description, inputSchema, outputSchema } of older.tools) {
    assert.match(name, /^[a-z_]{1,64}$/)
    assert.ok(title.length > 0 && description.length > 0, name)
    assert.deepEqual(
      [inputSchema.type, inputSchema.additionalProperties, outputSchema.type],
      ['object', false, 'object'],
    )
  }
})

test('input schemas leave out output-only fields, and require the uid of a resource to update', async () => {
  const { tools } = (await rpc(operator, { method: 'tools/list' })).body.result
  const schemaOf = (name: string): Json => tools.find((one: Json) => one.name === name).inputSchema
  const made = schemaOf('create_repo')
  assert.deepEqual(made.required, ['parent', 'repo'])
  assert.deepEqual(made.properties.repo.required, ['name'])
  const [create, update] = [made.properties.repo.properties, schemaOf('update_repo').properties.repo]
  assert.deepEqual([create.uid, create.createTime, create.name.type], [undefined, undefined, 'string'])
  assert.deepEqual([update.required, update.properties.uid.type], [['uid'], 'string'])
  assert.deepEqual(schemaOf('update_repo').properties.updateMask.type, 'string')
  assert.equal(schemaOf('list_repos').properties.uidp.properties.ids.type, 'array')
})

test('a client without a valid token gets the URL of the issuer', async () => {
  const path = '/.well-known/oauth-protected-resource/mcp'
  const challenge = `resource_metadata="${pinfold.url}${path}"`
  for (const [client, said] of [
    [pinfold.anonymous, `Bearer ${challenge}`],
    [pinfold.withToken('no.good.token'), `Bearer error="invalid_token", ${challenge}`],
    [
      await pinfold.as('0'.repeat(40), { audience: 'https://elsewhere.example.com' }),
      `Bearer error="invalid_token", ${challenge}`,
    ],
  ] as const) {
    const answer = await client.call('POST', '/mcp', list, inModern)
    assertRefused(answer, 401, 16)
    assert.equal(answer.headers.get('www-authenticate'), said)
    assert.equal(answer.body.error.data.details[0].reason, 'UNAUTHENTICATED')
  }
  const { body } = await pinfold.anonymous.get(path)
  assert.deepEqual([body.resource, body.authorization_servers], [`${pinfold.url}/mcp`, [pinfold.url]])
  const whole = await pinfold.anonymous.get('/.well-known/oauth-protected-resource')
  assert.equal(whole.body.resource, pinfold.url)
})

test('returns 405 for methods other than POST', async () => {
  for (const method of ['GET', 'DELETE', 'PUT', 'PATCH', 'OPTIONS']) {
    for (const client of [operator, pinfold.anonymous]) {
      const answer = await client.call(method, '/mcp')
      assertRefused(answer, 405, -32600)
      assert.equal(answer.headers.get('allow'), 'POST')
    }
  }
})

test('refuses a page of another origin before its token is verified', async () => {
  const ask = { method: 'tools/list' }
  const { port } = new URL(pinfold.url)
  const others = [
    'https://evil.example.com',
    'null',
    `http://evil.example.com:${port}`,
    `http://team.127.0.0.1:${port}`,
    `https://127.0.0.1:${port}`,
    'http://127.0.0.1:1',
    `${pinfold.url}/`,
    'http://below.tools.example.com',
    '',
  ]
  for (const origin of others) {
    for (const client of [operator, pinfold.anonymous]) {
      assertRefused(await rpc(client, { ...ask, headers: { origin } }), 403, -32600)
    }
  }
  for (const origin of [pinfold.url, `http://localhost:${port}`, 'http://tools.example.com']) {
    assert.equal((await rpc(operator, { ...ask, headers: { origin } })).status, 200, origin)
  }
})

test('refuses a body that is not exactly one message', async () => {
  assertRefused(await post('{"jsonrpc"'), 400, -32700)
  assertRefused(await post(''), 400, -32700)
  assertRefused(await post('{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}'), 400, -32600)
  assertRefused(await post([list, list]), 400, -32600)
  assertRefused(await post([]), 400, -32600)
  for (const body of ['null', '1', '"text"']) assertRefused(await post(body), 400, -32600)
  assertRefused(await post({ ...list, jsonrpc: '1.0' }), 400, -32600, 7)
  for (const id of [null, {}, 1.5, 'x'.repeat(1001)]) assertRefused(await post({ ...list, id }), 400, -32600)
  for (const more of [{ method: 7 }, { method: undefined }, { params: [] }, { params: 'x' }]) {
    assertRefused(await post({ ...list, ...more }), 400, -32600, 7)
  }
  assertRefused(await post({ jsonrpc: '2.0', id: 7, result: {} }), 400, -32600, 7)
  assertRefused(await post({ ...list, params: { pad: 'x'.repeat(64 * 1024) } }), 413, -32600)
  const deep = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_groups","arguments":${'['.repeat(9000)}${']'.repeat(9000)}}}`
  assertRefused(await post(deep), 400, -32600)
  const many = { ...list, params: { pad: Array.from({ length: 20_001 }, () => 1) } }
  assertRefused(await post(many), 400, -32600)
})

test('refuses an unknown revision and names the supported ones', async () => {
  for (const version of ['2024-11-05', '2025-03-26', '2099-01-01', 'x'.repeat(5000)]) {
    const answer = await rpc(operator, { method: 'tools/list', version })
    assertRefused(answer, 400, -32022, 1)
    const { supported, requested } = answer.body.error.data
    assert.deepEqual([supported, requested], [[modern, '2025-11-25', '2025-06-18'], version.slice(0, 64)])
  }
  const inBody = { ...list, params: { _meta: { ...meta, 'io.modelcontextprotocol/protocolVersion': 7 } } }
  assertRefused(await post(inBody, inModern), 400, -32022, 7)
  assert.equal((await post({ ...list, params: {} })).status, 200, 'curl need not say a revision')
})

test('refuses headers that contradict the message', async () => {
  assert.equal((await post(list, inModern)).status, 200)
  const call = { ...list, method: 'tools/call', params: { name: 'list_groups', _meta: meta } }
  const calling = { ...inModern, 'mcp-method': 'tools/call' }
  for (const [body, headers] of [
    [list, {}],
    [list, { 'mcp-protocol-version': modern }],
    [list, { ...inModern, 'mcp-protocol-version': '2025-11-25' }],
    [list, { ...inModern, 'mcp-method': 'tools/call' }],
    [list, { ...inModern, 'mcp-method': 'TOOLS/LIST' }],
    [call, calling],
    [call, { ...calling, 'mcp-name': 'list_repos' }],
    [call, { ...calling, 'mcp-name': `=?base64?${Buffer.from('list_repos').toString('base64')}?=` }],
  ] as const) {
    assertRefused(await post(body, headers), 400, -32020, 7)
  }
  for (const name of ['list_groups', `=?base64?${Buffer.from('list_groups').toString('base64')}?=`]) {
    assert.equal((await post(call, { ...calling, 'mcp-name': name })).status, 200)
  }
  for (const without of Object.keys(meta)) {
    const less = { ...list, params: { _meta: { ...meta, [without]: undefined } } }
    assertRefused(await post(less, inModern), 400, -32602, 7)
  }
})

test('returns protocol errors for unknown methods and tools', async () => {
  for (const method of ['resources/list', 'prompts/list', 'logging/setLevel', 'server/discover', 'nothing']) {
    assertRefused(await rpc(operator, { method }), 200, -32601, 1)
  }
  for (const method of ['initialize', 'ping', 'resources/list']) {
    if (method !== 'initialize') assertRefused(await rpc(operator, { method, version: modern }), 404, -32601, 1)
  }
  for (const name of [
    'nothing',
    'ListRepos',
    'create_tag',
    'ping',
    'who_am_i',
    'exchange',
    { toString: 1, valueOf: 1 },
    '__proto__',
    7,
    undefined,
  ]) {
    const answer = await rpc(operator, { method: 'tools/call', params: { name } })
    assertRefused(answer, 200, -32602, 1)
    assert.match(answer.body.error.message, /^Unknown tool/)
  }
  assertRefused(await rpc(operator, { method: 'tools/list', params: { cursor: 'more' } }), 200, -32602, 1)
})

test('answers in time if a message is never completed', async () => {
  await using server = await startPinfold({ requestTimeoutMs: 300 })
  using raw = await connectRaw(server.port)
  raw.write(
    `POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\nauthorization: Bearer ${server.operator.token}\r\n\r\n{"js`,
  )
  const { status } = await takeResponse(raw)
  assert.ok(status === 504 || status === 408)
})
