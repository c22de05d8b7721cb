// Calls of each method of the contract, over REST and gRPC, by each kind of caller. The expected results come from the contract
// options and the lists of built-in roles, not from the permission code.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { create, createFileRegistry, type DescMethod, getOption, type Message } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { buildEndpoints } from '#api/methods.ts'
import { services } from '#api/services.ts'
import type { Service } from '#app.ts'
import { builtInRoles } from '#domains/iam/access/built-in-roles.ts'
import { capabilities } from '#domains/iam/access/capabilities.ts'
import { iam } from '#gen/pinfold/annotations/annotations_pb.ts'
import { Capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { chunks } from '#lib/chunks.ts'
import { importSamples, sampleAdvisory } from '../support/advisories.ts'
import { bindingsOf, emptyBody, optionalScopeOf, restCalls, scopeFieldOf } from '../support/endpoints.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { seedLibraries } from '../support/libraries.ts'
import { type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { randomFrom } from '../support/random.ts'
import { openGrpc, type RawGrpc } from '../support/raw-grpc.ts'
import { plantTag } from '../support/tags.ts'

const endpoints = buildEndpoints(services)
const methods = endpoints.map(({ desc }) => desc)
const nameOf = (desc: DescMethod) => `${desc.parent.typeName}/${desc.name}`

/** Lists whose requests need more than a scope. Lists inside one resource have separate tests. */
const pathsOfLists: Record<string, string | undefined> = {
  ListArtifacts: '/libraries/v2/artifacts?ecosystems=ECOSYSTEM_PYTHON',
  ListArtifactVersions: undefined,
  'Artifacts.List': '/libraries/v1/artifacts?ecosystems=PYTHON',
  'Artifacts.ListVersions': undefined,
  // A report has an entry for each day for all callers. The tests of the reports check which contents other callers see.
  ListResolvedVulnsReports: undefined,
  // Each caller has a different value.
  ListPendingBindings: undefined,
  ListSessions: undefined,
  ListPushTokens: undefined,
  // Only the operator is allowed.
  ListVulnerabilitySources: undefined,
  ListScanners: undefined,
  // No caller can see anything yet.
  ListEolTags: undefined,
  ListVulnReports: undefined,
  ListVulnCountReports: undefined,
  ListCumulativeVulnCountReports: undefined,
  ListVulnerableImages: undefined,
  ListImagesWithPackage: undefined,
  ListRiskAcceptances: undefined,
  ListVexSigners: undefined,
  ListUpstreams: undefined,
  ListFollows: undefined,
  ListPullRules: undefined,
  ListPullRuleExceptions: undefined,
  ListGates: undefined,
  ListGateExceptions: undefined,
  ListRetentionRules: undefined,
  ListTagRules: undefined,
  ListHolds: undefined,
  ListQuarantined: undefined,
}

/**
 * These methods accept a credential of another kind, or the caller's own uid. Their handlers check this, so the result is the
 * same for each caller.
 */
const decidesItself: Record<string, number> = { Exchange: 3, ExchangeRefreshToken: 3, Register: 7, 'Auth.Delete': 7 }

type Caller = {
  name: string
  token: string | undefined
  /** True if the API accepts the token. */
  valid: boolean
  /** Role of the caller in the organization. `everything` means the operator. */
  role: keyof typeof roleUids | 'everything' | undefined
}

let pinfold: Pinfold
let grpc: RawGrpc
let issuer: FakeIssuer
let callers: Caller[]
/** Uid below the organization without a resource, so that a permitted call changes nothing. */
let group: string

before(async () => {
  issuer = await startIssuer()
  pinfold = await startPinfold({ allowInsecureIssuers: true, allowPrivateAddresses: true })
  grpc = openGrpc(pinfold.port)
  const { seed, tokenFor } = pinfold
  const org = await seed.group()
  const other = await seed.group()
  group = `${org.uid}/0123456789abcdef`
  await plantTag(pinfold, (await seed.repo(org.uid)).uid, 'latest')
  await pinfold.operator.delete(`/registry/v2/repos/${(await seed.repo(org.uid)).uid}`)
  await seed.role(org.uid, ['CAP_REPO_LIST'])
  await seedLibraries(pinfold, 'python', { library: ['1.0'] })
  const provider = await seed.provider(org.uid, issuer.url)
  await seed.mapping(provider.uid, roleUids.viewer)
  await seed.invite(org.uid, roleUids.viewer)
  await seed.association(org.uid)
  await seed.subscription(org.uid)
  const upstream = { name: 'upstream', url: 'https://registry.example.com' }
  await pinfold.operator.post(`/registry/v2/upstreams/${org.uid}`, upstream)
  await pinfold.operator.post(`/registry/v2/retentionPlans/${org.uid}`, {})
  await importSamples(pinfold, org.uid, [sampleAdvisory(randomFrom(1), 1)])

  const member = async (name: 'console_viewer' | 'viewer' | 'editor' | 'owner'): Promise<Caller> => {
    const identity = await seed.member(org.uid, roleUids[name])
    return { name, token: await tokenFor(identity.uid), valid: true, role: name }
  }
  const owner = await seed.member(org.uid, roleUids.owner)
  const stranger = await seed.identity(org.uid)
  const foreigner = await seed.member(other.uid, roleUids.owner)
  const earlier = new Date(Date.now() - 2 * 60 * 60 * 1000)
  const refused = { valid: false, role: undefined }
  callers = [
    { name: 'no token', token: undefined, ...refused },
    { name: 'wrong audience', token: await tokenFor(owner.uid, { audience: 'registry.example.com' }), ...refused },
    { name: 'expired', token: await tokenFor(owner.uid, { now: earlier }), ...refused },
    { name: 'stranger', token: await tokenFor(stranger.uid), valid: true, role: undefined },
    await member('console_viewer'),
    await member('viewer'),
    await member('editor'),
    await member('owner'),
    { name: 'owner of another organization', token: await tokenFor(foreigner.uid), valid: true, role: undefined },
    { name: 'operator', token: pinfold.operator.token, valid: true, role: 'everything' },
  ]
})

after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

/** Services whose requests name no group. Their callers need the capability in any group. */
const heldSomewhere = ['pinfold.platform.events.Identities']

/** Capabilities to change that include a capability to read. */
const includedBy: Record<number, Capability> = {
  [Capability.CAP_AUDIT_LIST]: Capability.CAP_IAM_ROLE_BINDINGS_UPDATE,
  [Capability.CAP_REGISTRY_RULES_LIST]: Capability.CAP_REGISTRY_SETTINGS_UPDATE,
}

/** Expected error code according to the contract, or `through` if the handler runs. */
function expected(desc: DescMethod, caller: Caller): number | 'through' {
  const { mode } = getOption(desc, iam)
  if (mode.case === 'disabled') return 'through'
  if (!caller.valid) return 16
  assert.equal(mode.case, 'enabled')
  const { capabilities: needed, unscoped } = mode.value as { capabilities: number[]; unscoped: boolean }
  if (caller.role === 'everything') return 'through'
  if (unscoped && needed.includes(Capability.CAP_INTERNAL)) return 7
  const isSomewhere = heldSomewhere.includes(desc.parent.typeName)
  if ((unscoped && !optionalScopeOf(desc) && !isSomewhere) || needed.length === 0) return 'through'
  if (isSomewhere && caller.name === 'owner of another organization') return 'through'
  const role = builtInRoles.find(({ name }) => name === caller.role)
  const holds = (number: number) => role?.capabilities.includes(number)
  return needed.every((number) => holds(number) || holds(includedBy[number] ?? number)) ? 'through' : 7
}

/** Compares the response with the contract, and permitted calls with the list of implemented methods. */
function judge(desc: DescMethod, caller: Caller, code: number, context: string): void {
  const wanted = expected(desc, caller)
  if (wanted !== 'through') {
    assert.equal(code, wanted, context)
    return
  }
  const own = decidesItself[desc.name] ?? decidesItself[`${desc.parent.name}.${desc.name}`]
  if (own !== undefined) assert.equal(code, own, context)
  else assert.ok(code !== 7 && code !== 16, `${context}: ${code}`)
  assert.ok(![2, 13, 14].includes(code), `${context} failed: ${code}`)
  const { handler } = endpoints.find((endpoint) => endpoint.desc === desc)!
  assert.equal(code === 12, handler === undefined, `${context}: ${code}`)
}

/** The same request as over REST: the body contains the resource, empty except for its group. */
function grpcRequest(desc: DescMethod): Message {
  const [scope, nested] = scopeFieldOf(desc)
  const { body = '', path = '' } = bindingsOf(desc)[0] ?? {}
  const values = desc.input.fields.flatMap((field) => {
    if (field.name === scope) return [[field.localName, nested ? { [nested]: group } : group]]
    if (new RegExp(`\\{${field.name}[}=]`).test(path)) return [[field.localName, 'a'.repeat(40)]]
    return field.name === body ? [[field.localName, emptyBody(desc, body)]] : []
  })
  return create(desc.input, Object.fromEntries(values))
}

test('REST allows and denies each method for each caller as the contract declares', async () => {
  for (const caller of callers) {
    const client = pinfold.withToken(caller.token as string)
    for (const desc of methods) {
      for (const { verb, path, body } of restCalls(desc, group)) {
        const answer = await client.call(verb, path, body)
        const context = `${verb} ${path} (${desc.name}) by ${caller.name}`
        judge(desc, caller, answer.status === 200 ? 0 : answer.body.code, `${context}: ${answer.text}`)
        if (expected(desc, caller) === 16) assert.equal(answer.status, 401, context)
        if (expected(desc, caller) === 7) assert.equal(answer.status, 403, context)
        if (answer.body.code === 12) assert.equal(answer.status, 501, context)
      }
    }
  }
})

test('gRPC allows and denies each method for each caller as the contract declares', async () => {
  for (const caller of callers) {
    // A connection can have 100 concurrent calls.
    for (const some of chunks(methods, 50)) {
      await Promise.all(
        some.map(async (desc) => {
          const { code, message } = await grpc.call(desc, grpcRequest(desc), { token: caller.token })
          judge(desc, caller, code, `${nameOf(desc)} by ${caller.name}: ${message}`)
        }),
      )
    }
  }
})

test('every list is empty for a caller without rights, and its total is 0', async () => {
  const lists = endpoints.filter(({ desc, handler }) => {
    const { mode } = getOption(desc, iam)
    return handler && desc.name.startsWith('List') && mode.case === 'enabled' && mode.value.unscoped
  })
  assert.ok(lists.length >= 5)
  const [stranger, owner] = ['stranger', 'owner'].map((name) => {
    return pinfold.withToken(callers.find((caller) => caller.name === name)!.token!)
  })
  for (const { desc } of lists) {
    const key = [`${desc.parent.name}.${desc.name}`, desc.name].find((name) => name in pathsOfLists)
    const path = key ? pathsOfLists[key] : restCalls(desc, group)[0]!.path
    if (path === undefined) continue
    const items = desc.output.fields.find((field) => field.fieldKind === 'list')!.jsonName
    const [unseen, seen] = [await stranger!.get(path), await owner!.get(path)]
    assert.equal(unseen.status, 200, unseen.text)
    assert.deepEqual(unseen.body[items] ?? [], [], `${path}: ${unseen.text}`)
    assert.ok(seen.body[items].length > 0, `${path} has nothing that a stranger could have seen`)
    // Lists of version 1 return no total.
    if (!desc.output.field.totalCount) continue
    assert.equal(unseen.body.totalCount, '0', path)
    assert.notEqual(seen.body.totalCount, '0', path)
  }
})

test('methods without a handler are exactly those that the contract marks for a later version', async () => {
  const operator = callers.find(({ name }) => name === 'operator')!
  const answers = await Promise.all(
    methods.map(async (desc) => ({ desc, ...(await grpc.call(desc, grpcRequest(desc), { token: operator.token })) })),
  )
  const refused = answers.filter(({ code }) => code === 12).map(({ desc }) => nameOf(desc))
  const notServed = endpoints.filter(({ handler }) => !handler).map(({ method }) => method.fullName)
  assert.deepEqual(notServed, refused)
  const without = services.flatMap(({ desc, handlers }) => {
    return desc.methods.filter((method) => !(method.localName in handlers)).map(nameOf)
  })
  assert.deepEqual(notServed, without)
  assert.deepEqual(
    endpoints.filter(({ method, handler }) => method.version === 'v2' && !handler).map(({ method }) => method.fullName),
    [],
    'version 2 is served in full',
  )
})

test('each handler belongs to a method of its service', () => {
  for (const { desc, handlers } of services) {
    const known = new Set(desc.methods.map((method) => method.localName))
    assert.deepEqual(
      Object.keys(handlers).filter((name) => !known.has(name)),
      [],
      desc.typeName,
    )
  }
})

test('each method declares its allowed callers, and only names existing capabilities', () => {
  for (const desc of methods) {
    const { mode } = getOption(desc, iam)
    assert.ok(mode.case, nameOf(desc))
    if (mode.case !== 'enabled') continue
    for (const number of mode.value.capabilities) assert.ok(capabilities.has(number), `${nameOf(desc)}: ${number}`)
  }
})

test('methods of one version have unique short names, because metrics use the short name as a label', () => {
  const names = endpoints.map(({ method }) => `${method.version} ${method.name}`)
  assert.equal(new Set(names).size, names.length)
  assert.ok(names.includes('v1 Groups.Create') && names.includes('v1 CreateRepo') && names.includes('v2 CreateRepo'))
})

/**
 * A service with one method. The method declares no callers, or requires a capability on a uid that its request does not contain.
 */
function serviceWithout(what: 'permission' | 'scope'): Service {
  const options = what === 'scope' ? methods.find(({ name }) => name === 'GetRepo')!.proto.options! : undefined
  const proto = create(FileDescriptorProtoSchema, {
    name: 'forgotten.proto',
    package: 'test',
    syntax: 'proto3',
    messageType: [{ name: 'Empty' }],
    service: [
      {
        name: 'Forgotten',
        method: [{ name: 'Do', inputType: '.test.Empty', outputType: '.test.Empty', ...(options ? { options } : {}) }],
      },
    ],
  })
  return {
    desc: createFileRegistry(proto, () => undefined).getService('test.Forgotten') as Service['desc'],
    handlers: {},
  }
}

test('the server does not start if a method does not declare its allowed callers', () => {
  assert.throws(
    () => buildEndpoints([serviceWithout('permission')]),
    /test\.Forgotten\/Do does not declare who may call/,
  )
  assert.throws(() => buildEndpoints([serviceWithout('scope')]), /test\.Forgotten\/Do .* has no iam_scope/)
})

const contract = new URL('../../../shared/contract/contract.json', import.meta.url)

test('each built-in role has at least the capabilities that the contract lists', {
  skip: !existsSync(contract) && 'no contract beside',
}, () => {
  const { roles } = JSON.parse(readFileSync(contract, 'utf8')) as {
    roles: Record<string, { uid: string; capabilities: string[] }>
  }
  const names = (numbers: readonly number[]) => numbers.map((number) => capabilities.get(number)!.name).sort()
  // Existing clients expect further capabilities of these roles; test/api/iam.roles.test.ts checks them all.
  for (const [name, { uid, capabilities: listed }] of Object.entries(roles)) {
    const ours = builtInRoles.find((role) => role.name === name)
    assert.equal(ours?.uid, uid, name)
    const held = names(ours!.capabilities)
    assert.deepEqual(
      listed.filter((capability) => !held.includes(capability)),
      [],
      name,
    )
  }
})
