import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, type DescMessage, type DescMethod, type DescService, type Message } from '@bufbuild/protobuf'
import { SecurityAdvisoryService } from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { RoleBindings } from '#gen/pinfold/iam/v1/role_bindings_pb.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { IdentitiesService } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { RolesService } from '#gen/pinfold/iam/v2/roles_pb.ts'
import { ArtifactsService } from '#gen/pinfold/libraries/v2/artifacts_pb.ts'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { TagsService } from '#gen/pinfold/registry/v2/tags_pb.ts'
import { AdvisoriesService } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { AppError } from '#lib/errors.ts'
import { fieldNamed } from './message-fields.ts'
import { bindQuery } from './query.ts'
import { buildRoutes } from './routes.ts'
import { readRequest, type Transcoded } from './transcode.ts'

const services: DescService[] = [
  AdvisoriesService,
  ArtifactsService,
  GroupsService,
  IdentitiesService,
  ReposService,
  RoleBindings,
  RolesService,
  SecurityAdvisoryService,
  SecurityTokenService,
  TagsService,
]
const routes = buildRoutes(services.flatMap((service) => service.methods).map((desc) => ({ desc })))

type Read = Transcoded & { desc: DescMethod }

function read(request: string, body?: string | Buffer): Read {
  const [httpMethod, target] = request.split(' ') as [string, string]
  const [path, ...search] = target.split('?') as [string, ...string[]]
  const found = routes.match(httpMethod, path)
  assert.ok(found && 'entry' in found, request)
  const bytes = body === undefined ? undefined : Buffer.from(body as string)
  return {
    desc: found.entry.desc,
    ...readRequest(found.entry, found.binding, found.variables, search.join('?'), bytes),
  }
}

function reads(cases: [request: string, init: object, body?: string][]): void {
  for (const [request, init, body] of cases) {
    const { desc, request: message } = read(request, body)
    assert.deepEqual(message, create(desc.input, init as never), request)
  }
}

function violationOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof AppError, `not an AppError: ${error}`)
    assert.equal(error.code, 'INVALID_ARGUMENT')
    return error.message.replace('Invalid argument: ', '')
  }
  return 'accepted'
}

function refuses(cases: [request: string, violation: string, body?: string][]): void {
  for (const [request, violation, body] of cases) {
    assert.equal(
      violationOf(() => read(request, body)),
      violation,
      `${request} ${body}`,
    )
  }
}

test('merges path, body and query into one request', () => {
  reads([
    ['GET /registry/v2/repos/a/b', { uid: 'a/b' }],
    ['POST /registry/v2/repos/a', { parent: 'a', repo: { name: 'web' } }, '{"name":"web"}'],
    ['POST /iam/v2/groups/', { parent: '', group: { name: 'g' } }, '{"name":"g"}'],
    ['POST /iam/v2/groups', { group: {} }, ''],
    ['POST /iam/v2/groups', { group: {} }],
    [
      'PATCH /registry/v2/repos/a/b?updateMask=description,activeTags',
      { repo: { uid: 'a/b', description: 'd' }, updateMask: { paths: ['description', 'active_tags'] } },
      '{"description":"d"}',
    ],
    ['PATCH /registry/v2/repos/a?update_mask=*', { repo: { uid: 'a' }, updateMask: { paths: ['*'] } }, '{}'],
    ['POST /iam/v2/groups/a:requestGroupAccess', { groupUid: 'a' }, '{}'],
    ['DELETE /registry/v2/repos/a', { uid: 'a' }, 'a body that nobody asked for'],
    ['POST /sts/exchange?aud=a&aud=b&identity=x', { aud: ['a', 'b'], identity: 'x' }, 'ignored'],
    [
      'PATCH /iam/v2/identities:updateIdentityMetadata',
      { identityMetadata: { company: 'c' } },
      '{"identityMetadata":{"company":"c"}}',
    ],
    [
      'PATCH /iam/v2/identities:updateIdentityMetadata?updateMask=company',
      { identityMetadata: {}, updateMask: { paths: ['company'] } },
      '{"identity_metadata":{}}',
    ],
  ])
})

test('the body of a method with a list as body is a plain JSON list', () => {
  reads([
    [
      'POST /iam/v1/rolebindings/batch/a',
      { parent: 'a', roleBindings: [{ identity: 'b', role: 'c' }, {}] },
      '[{"identity":"b","role":"c"},{}]',
    ],
    ['POST /iam/v1/rolebindings/batch/a', { parent: 'a' }, '[]'],
  ])
  assert.deepEqual(read('POST /iam/v1/rolebindings/batch/a', '[{"role":"c"}]').bodyKeys, [])
  refuses([
    ['POST /iam/v1/rolebindings/batch/a', 'role_bindings: must be a list'],
    ['POST /iam/v1/rolebindings/batch/a', 'role_bindings: must be a list', '{"roleBindings":[]}'],
    ['POST /iam/v1/rolebindings/batch/a', 'role_bindings[1]: must not be null', '[{},null]'],
    ['POST /iam/v1/rolebindings/batch/a', 'role_bindings[0].role: must be a string', '[{"role":1}]'],
    [
      'POST /iam/v1/rolebindings/batch/a?roleBindings=x',
      'role_bindings: is already set in the path or the body; remove the parameter',
      '[]',
    ],
  ])
})

test('refuses a body that contradicts the path', () => {
  reads([
    ['PATCH /registry/v2/repos/a%2Fb', { repo: { uid: 'a/b' } }, '{"uid":"a/b"}'],
    ['PATCH /registry/v2/repos/a', { repo: { uid: 'a' } }, '{"uid":""}'],
    ['PATCH /registry/v2/repos/a', { repo: { uid: 'a' } }, '{"uid":null}'],
    ['POST /iam/v2/groups/a:requestGroupAccess', { groupUid: 'a' }, '{"groupUid":"a"}'],
  ])
  refuses([
    ['PATCH /registry/v2/repos/a', 'uid: differs from the value in the path', '{"uid":"b"}'],
    ['PATCH /registry/v2/repos', 'uid: differs from the value in the path', '{"uid":"b"}'],
    ['PATCH /registry/v2/repos/a/readme', 'uid: differs from the value in the path', '{"uid":"b"}'],
    ['POST /iam/v2/groups/a:requestGroupAccess', 'group_uid: differs from the value in the path', '{"group_uid":"b"}'],
  ])
})

test('the keys of the body are the fields of the resource, by their contract names', () => {
  const cases: [string, string | undefined, string[] | undefined][] = [
    [
      'PATCH /registry/v2/repos/a',
      '{"activeTags":[],"description":null,"sync_config":{"source":"x"}}',
      ['active_tags', 'description', 'sync_config'],
    ],
    ['PATCH /registry/v2/repos/a', '', []],
    ['PATCH /registry/v2/repos/a', undefined, []],
    ['PATCH /registry/v2/repos/a/readme', '{"content":""}', ['content']],
    [
      'PATCH /iam/v2/identities:updateIdentityMetadata',
      '{"identityMetadata":{"jobTitle":"j"},"updateMask":"company,jobTitle"}',
      ['job_title'],
    ],
    ['PATCH /iam/v2/identities:updateIdentityMetadata', '{"identity_metadata":null}', []],
    ['PATCH /iam/v2/identities:updateIdentityMetadata', '{}', []],
    ['POST /iam/v2/groups/a:requestGroupAccess', '{"groupUid":"a"}', ['group_uid']],
    ['GET /registry/v2/repos', undefined, undefined],
    ['DELETE /registry/v2/repos/a', '{"x":1}', undefined],
  ]
  for (const [request, body, keys] of cases) assert.deepEqual(read(request, body).bodyKeys, keys, request)
})

test('an error in the body names the field relative to the resource', () => {
  refuses([
    ['POST /registry/v2/repos/a', 'body: is not valid JSON: Unexpected end of JSON input', '{"name":'],
    ['POST /registry/v2/repos/a', 'body: must be a JSON object', '[]'],
    ['POST /registry/v2/repos/a', 'body: must be a JSON object', 'null'],
    ['POST /iam/v2/identities/a', 'claim_match.foo: is not a known field', '{"claimMatch":{"foo":1}}'],
    ['POST /registry/v2/repos/a', 'repo: is not a known field', '{"repo":{"name":"x"}}'],
  ])
})

test('reads query parameters in both spellings, with dots for nested fields', () => {
  reads([
    ['GET /registry/v2/repos', {}],
    ['GET /registry/v2/repos?', {}],
    ['GET /registry/v2/repos?&&', {}],
    ['GET /registry/v2/repos?page_size=7&orderBy=name%20desc', { pageSize: 7, orderBy: 'name desc' }],
    ['GET /registry/v2/repos?order_by=name+desc', { orderBy: 'name desc' }],
    ['GET /registry/v2/repos?uidp.descendants_of=a/b', { uidp: { descendantsOf: 'a/b' } }],
    [
      'GET /registry/v2/repos?uidp.descendantsOf=a%2Fb&uidp.ids=x&uidp.ids=y',
      { uidp: { descendantsOf: 'a/b', ids: ['x', 'y'] } },
    ],
    ['GET /registry/v2/repos?uidp%2EinRoot=true', { uidp: { inRoot: true } }],
    ['GET /registry/v2/repos?name=', { name: '' }],
    ['GET /registry/v2/repos?name', { name: '' }],
    ['GET /registry/v2/repos?name=a=b', { name: 'a=b' }],
    ['GET /registry/v2/repos?name=%C3%A9', { name: 'é' }],
    ['GET /registry/v2/repos?skip=-1', { skip: -1 }],
    ['GET /registry/v2/tags?include_dates=false&includeEpochs=true', { includeDates: false, includeEpochs: true }],
    ['GET /registry/v2/tags?updated_since=1970-01-01T00:00:01Z', { updatedSince: { seconds: 1n } }],
    ['GET /registry/v2/tags?updated_since=1970-01-01T01:00:01%2B01:00', { updatedSince: { seconds: 1n } }],
    ['GET /registry/v2/tags?updated_since=1970-01-01T01:00:01+01:00', { updatedSince: { seconds: 1n } }],
    ['GET /iam/v2/identities?relationship_type=RELATIONSHIP_TYPE_STATIC', { relationshipType: 2 }],
    ['GET /iam/v2/identities?relationshipType=2', { relationshipType: 2 }],
    ['GET /libraries/v2/artifacts/count?ecosystems=ECOSYSTEM_JAVA&ecosystems=2', { ecosystems: [1, 2] }],
    ['GET /vulnerabilities/v2/advisories?latest_event_type=0', { latestEventType: 0 }],
    [
      'GET /advisory/v2/images/resolvedVulns?imageRefs=acme/web&image_refs=a/b:1,2.0',
      {
        imageRefs: [
          { repo: 'acme/web', tags: [] },
          { repo: 'a/b', tags: ['1', '2.0'] },
        ],
      },
    ],
  ])
})

test('splits a list parameter at commas only if the contract declares this', () => {
  for (const [names, expected] of [
    ['x,y', ['x', 'y']],
    [',x,,', ['x']],
    ['', []],
  ] as const) {
    const desc = filterWith(true)
    const request = create(desc) as Message & { artifactNames: string[] }
    bindQuery(desc, request, `artifactNames=${names}`, () => false)
    assert.deepEqual(request.artifactNames, expected)
  }
  const desc = filterWith(false)
  const request = create(desc) as Message & { artifactNames: string[] }
  bindQuery(desc, request, 'artifact_names=x,y&artifactNames=', () => false)
  assert.deepEqual(request.artifactNames, ['x,y', ''])
})

/** Filter of advisories whose field artifact_names has or lacks the option, whatever the current contract declares. */
function filterWith(commas: boolean): DescMessage {
  const desc = AdvisoriesService.method.listAdvisories.input
  const field = fieldNamed(desc, 'artifact_names')!
  // Field 50005 of FieldOptions is comma_separated. Extensions are stored as unknown fields.
  const options = {
    ...field.proto.options,
    $unknown: commas ? [{ no: 50005, wireType: 0, data: new Uint8Array([1]) }] : [],
  }
  const proto = Object.assign(Object.create(Object.getPrototypeOf(field.proto)), field.proto, { options })
  const changed = Object.assign(Object.create(Object.getPrototypeOf(field)), field, { proto })
  const fields = desc.fields.map((each) => (each === field ? changed : each))
  return { ...desc, fields }
}

test('an error for an invalid parameter contains its name', () => {
  const integer = 'page_size: must be an integer'
  const form = 'must be <repo>[:<tags>], with commas between tags'
  const kinds = ['CLAIM_MATCH', 'STATIC', 'AWS_IDENTITY', 'SERVICE_PRINCIPAL'].map(
    (kind) => `RELATIONSHIP_TYPE_${kind}`,
  )
  const noKind = `relationship_type: is not a known value of RelationshipType; the known values are ${kinds.join(', ')}`
  refuses([
    ['GET /registry/v2/repos?foo=1', 'foo: is not a known parameter'],
    ['GET /registry/v2/repos?uidp.foo=1', 'uidp.foo: is not a known parameter'],
    ['GET /registry/v2/repos?name.x=1', 'name.x: is not a known parameter'],
    ['GET /registry/v2/repos?uidp.ids.0=1', 'uidp.ids.0: is not a known parameter'],
    ['GET /registry/v2/repos?=1', '"": is not a known parameter'],
    ['GET /registry/v2/repos?.=1', '.: is not a known parameter'],
    ['GET /registry/v2/repos?__proto__.x=1', '__proto__.x: is not a known parameter'],
    ['GET /registry/v2/repos?uidp.__proto__.x=1', 'uidp.__proto__.x: is not a known parameter'],
    ['GET /registry/v2/repos?constructor=1', 'constructor: is not a known parameter'],
    ['GET /registry/v2/repos?$typeName=1', '$typeName: is not a known parameter'],
    [
      'GET /registry/v2/repos?uidp=x',
      'uidp: cannot be set as one parameter; set its fields, such as field.subfield=value',
    ],
    ['GET /advisory/v2/images/resolvedVulns?imageRefs=', `image_refs: ${form}`],
    ['GET /advisory/v2/images/resolvedVulns?imageRefs=:x', `image_refs: ${form}`],
    ['GET /advisory/v2/images/resolvedVulns?imageRefs=a:', `image_refs: ${form}`],
    ['GET /advisory/v2/images/resolvedVulns?imageRefs=a:b,,c', `image_refs: ${form}`],
    ['GET /advisory/v2/images/resolvedVulns?imageRefs.repo=x', 'imageRefs.repo: is not a known parameter'],
    ['GET /registry/v2/tags?updated_since.seconds=1', 'updated_since.seconds: is not a known parameter'],
    ['GET /registry/v2/repos?page_size=1&pageSize=2', 'page_size: must be given only once'],
    ['GET /registry/v2/repos?name=&name=', 'name: must be given only once'],
    ['GET /registry/v2/repos?uidp.in_root=true&uidp.inRoot=true', 'uidp.in_root: must be given only once'],
    ['GET /registry/v2/repos?page_size=', integer],
    ['GET /registry/v2/repos?page_size=x', integer],
    ['GET /registry/v2/repos?page_size=1.5', integer],
    ['GET /registry/v2/repos?page_size=+1', integer],
    ['GET /registry/v2/repos?page_size=2147483648', 'page_size: must be between -2147483648 and 2147483647'],
    ['GET /registry/v2/repos?uidp.in_root=1', 'uidp.in_root: must be true or false'],
    ['GET /registry/v2/repos?uidp.in_root', 'uidp.in_root: must be true or false'],
    ['GET /iam/v2/identities?relationship_type=9', noKind],
    ['GET /iam/v2/identities?relationship_type=', noKind],
    ['GET /registry/v2/repos?name=%', 'name: has invalid percent-encoding'],
    ['GET /registry/v2/repos/a%00b', 'uid: must not contain a NUL character'],
    ['GET /registry/v2/repos?name=%ff', 'name: has invalid percent-encoding'],
    ['GET /registry/v2/repos?%zz=1', 'query: has invalid percent-encoding'],
    ['GET /registry/v2/repos/a?uid=b', 'uid: is already set in the path or the body; remove the parameter'],
    [
      'PATCH /registry/v2/repos/a?repo.name=b',
      'repo: is already set in the path or the body; remove the parameter',
      '{}',
    ],
    ['PATCH /registry/v2/repos/a?name=b', 'name: is not a known parameter', '{}'],
    ['PATCH /registry/v2/repos/a?updateMask=a&update_mask=b', 'update_mask: must be given only once', '{}'],
    ['PATCH /registry/v2/repos/a?updateMask=a,', 'update_mask: has an empty path', '{}'],
    ['POST /iam/v2/groups/a:requestGroupAccess?x=1', 'x: is not a known parameter', '{}'],
    [
      'PATCH /iam/v2/identities:updateIdentityMetadata?updateMask=company',
      'update_mask: is given twice, as a parameter and in the body',
      '{"updateMask":"company"}',
    ],
  ])
})

test('ignores fields outside of the mask', () => {
  const others = '"nosuch":1,"uid":"other","name":5'
  reads([
    [
      'PATCH /registry/v2/repos/a/b?updateMask=description',
      { repo: { uid: 'a/b', description: 'd' }, updateMask: { paths: ['description'] } },
      `{${others},"description":"d"}`,
    ],
    [
      'PATCH /registry/v2/repos/a/b?updateMask=sync_config.source',
      { repo: { uid: 'a/b', syncConfig: { source: 'x' } }, updateMask: { paths: ['sync_config.source'] } },
      `{${others},"syncConfig":{"source":"x","nosuch":1,"expiration":5}}`,
    ],
    [
      'PATCH /registry/v2/repos/a/b?updateMask=nosuch',
      { repo: { uid: 'a/b' }, updateMask: { paths: ['nosuch'] } },
      `{${others}}`,
    ],
    [
      'PATCH /iam/v2/identities:updateIdentityMetadata',
      { identityMetadata: { company: 'c' }, updateMask: { paths: ['company'] } },
      '{"identityMetadata":{"company":"c","jobTitle":5,"nosuch":1},"updateMask":"company"}',
    ],
    [
      'PATCH /iam/v2/identities:updateIdentityMetadata?updateMask=company',
      { identityMetadata: { company: 'c' }, updateMask: { paths: ['company'] } },
      '{"identity_metadata":{"company":"c","jobTitle":5}}',
    ],
  ])
  refuses([
    ['PATCH /registry/v2/repos/a?updateMask=name', 'name: must be a string', `{${others}}`],
    ['PATCH /registry/v2/repos/a?updateMask=*', 'nosuch: is not a known field', `{${others}}`],
    ['PATCH /registry/v2/repos/a', 'nosuch: is not a known field', `{${others}}`],
    ['PATCH /registry/v2/repos/a?updateMask=description', 'body: must be a JSON object', '[]'],
  ])
})

test('lists of version 1 ignore paging parameters of older clients', () => {
  reads([['GET /iam/v1/rolebindings?offset=0&limit=5&page=x', {}]])
  refuses([
    ['GET /iam/v1/rolebindings?offsets=0', 'offsets: is not a known parameter'],
    ['GET /registry/v2/repos?offset=0', 'offset: is not a known parameter'],
    ['GET /registry/v2/repos?limit=5', 'limit: is not a known parameter'],
  ])
})

test('limits the number of parameters, and of values for one list', () => {
  const many = (n: number, name = 'uidp.ids') =>
    `GET /registry/v2/repos?${Array.from({ length: n }, () => `${name}=x`).join('&')}`
  const problemOf = (request: string) => violationOf(() => read(request))
  assert.equal(problemOf(many(1000)), 'accepted')
  assert.equal(problemOf(many(1001)), 'uidp.ids: must be given at most 1000 times')
  assert.equal(problemOf(many(2001)), 'query: has more than 2000 parameters')
  assert.equal(problemOf(`GET /registry/v2/repos?${'&'.repeat(100_000)}`), 'query: has more than 2000 parameters')
})

test('reads random requests, or refuses them with the name of a field', () => {
  const queries = [
    'a=b',
    'uidp.ids=%',
    '%00=1',
    'uidp.=1',
    'uidp..ids=1',
    '\ud800=1',
    'name=\udfff',
    'page_size=９',
    '#',
    '?',
    'updateMask=',
  ]
  const bodies = ['', '{}', '[', '{"__proto__":{"x":1}}', '{"uid":{"a":1}}', '\u0000', '{"a":"\\ud800"}', '"']
  const paths = [
    'GET /registry/v2/repos',
    'PATCH /registry/v2/repos/%00',
    'POST /iam/v2/identities/x',
    'POST /sts/exchange',
  ]
  for (const path of paths) {
    for (const query of queries) for (const body of bodies) assert.ok(violationOf(() => read(`${path}?${query}`, body)))
  }
})
