import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, type DescMessage, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import { DescriptorProtoSchema, DurationSchema, EmptySchema, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { Capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { RecordSeveritySchema } from '#gen/pinfold/control/scanning/v1/sources_pb.ts'
import { AccountAssociationSchema } from '#gen/pinfold/iam/v2/account_associations_pb.ts'
import { GroupInviteSchema } from '#gen/pinfold/iam/v2/group_invites_pb.ts'
import { GroupSchema } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { IdentitySchema, UpdateIdentityMetadataRequestSchema } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { BatchCreateRoleBindingsRequestSchema } from '#gen/pinfold/iam/v2/role_bindings_pb.ts'
import { RoleSchema } from '#gen/pinfold/iam/v2/roles_pb.ts'
import { CustomOverlaySchema, ListReposRequestSchema, RepoSchema } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { ListTagsRequestSchema } from '#gen/pinfold/registry/v2/tags_pb.ts'
import { AdvisoryEventSchema } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { AppError } from '#lib/errors.ts'
import { parseBody, readJson } from './json-read.ts'
import { jsonText } from './json-write.ts'

function violationOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof AppError, `not an AppError: ${error}`)
    assert.equal(error.code, 'INVALID_ARGUMENT')
    const [detail] = error.details
    assert.equal(detail?.type, 'BadRequest')
    const [{ field, description }] = detail.fieldViolations as [{ field: string; description: string }]
    return `${field} ${description}`
  }
  return 'accepted'
}

/** Test cases are JSON text, so that `__proto__` is an ordinary member. */
function refused(desc: DescMessage, cases: [json: string, violation: string][]): void {
  for (const [json, violation] of cases) {
    assert.equal(
      violationOf(() => readJson(desc, JSON.parse(json))),
      violation,
      json,
    )
  }
}

function accepted(desc: DescMessage, cases: [json: string, init: object][]): void {
  for (const [json, init] of cases) {
    const message = readJson(desc, JSON.parse(json))
    assert.deepEqual(message, create(desc, init as never), json)
    assert.deepEqual(fromBinary(desc, toBinary(desc, message)), message, json)
  }
}

test('reads both spellings of a field name, and leaves absent and null fields unset', () => {
  accepted(RepoSchema, [
    ['{}', {}],
    ['{"name":"web","description":null,"bundles":null,"syncConfig":null}', { name: 'web' }],
    ['{"catalogTier":"CATALOG_TIER_BASE","active_tags":["a","b"]}', { catalogTier: 2, activeTags: ['a', 'b'] }],
    ['{"sync_config":{"uniqueTags":true,"source":"s"}}', { syncConfig: { uniqueTags: true, source: 's' } }],
    ['{"name":"é😀"}', { name: 'é😀' }],
  ])
  accepted(ListReposRequestSchema, [
    ['{"name":""}', { name: '' }],
    ['{"name":null}', {}],
  ])
  accepted(EmptySchema, [['{}', {}]])
})

test('an error for an unknown member contains its path', () => {
  refused(IdentitySchema, [
    ['{"foo":1}', 'foo is not a known field'],
    ['{"claim_match":{"foo":1}}', 'claim_match.foo is not a known field'],
    ['{"claimMatch":{"fooBar":1}}', 'claim_match.fooBar is not a known field'],
    ['{"Name":"x"}', 'Name is not a known field'],
    ['{"":1}', '"" is not a known field'],
    ['{"__proto__":{}}', '__proto__ is not a known field'],
    ['{"constructor":{"prototype":{}}}', 'constructor is not a known field'],
    ['{"toString":null}', 'toString is not a known field'],
    ['{"$typeName":"x"}', '$typeName is not a known field'],
    ['{"relationship":{"case":"claimMatch"}}', 'relationship is not a known field'],
    ['{"\\ud800":1}', '\ufffd is not a known field'],
    [`{"${'a'.repeat(100)}":1}`, `${'a'.repeat(64)}… is not a known field`],
  ])
  refused(BatchCreateRoleBindingsRequestSchema, [
    ['{"requests":[{},{"bar":1}]}', 'requests[1].bar is not a known field'],
    ['{"requests":[{"roleBinding":{"identity":{"x":1}}}]}', 'requests[0].role_binding.identity.x is not a known field'],
  ])
  refused(EmptySchema, [['{"x":1}', 'x is not a known field']])
  assert.equal(
    violationOf(() => readJson(RepoSchema, { x: 1 }, 'repo')),
    'repo.x is not a known field',
  )
})

test('refuses a field that is set in both spellings', () => {
  refused(RepoSchema, [
    ['{"activeTags":[],"active_tags":[]}', 'active_tags is given twice, in snake_case and in camelCase'],
    ['{"activeTags":null,"active_tags":null}', 'active_tags is given twice, in snake_case and in camelCase'],
    ['{"syncConfig":{"graceperiod":1}}', 'sync_config.graceperiod is not a known field'],
  ])
})

test('accepts only one member of a oneof', () => {
  accepted(IdentitySchema, [
    [
      '{"claimMatch":{"issuer":"i","subjectPattern":".*"}}',
      {
        relationship: {
          case: 'claimMatch',
          value: { iss: { case: 'issuer', value: 'i' }, sub: { case: 'subjectPattern', value: '.*' } },
        },
      },
    ],
    [
      '{"claimMatch":{"issuer":""}}',
      { relationship: { case: 'claimMatch', value: { iss: { case: 'issuer', value: '' } } } },
    ],
    ['{"claimMatch":null,"servicePrincipal":2}', { relationship: { case: 'servicePrincipal', value: 2 } }],
  ])
  refused(IdentitySchema, [
    ['{"claimMatch":{},"staticKeys":{}}', 'static_keys cannot be combined with claim_match; send only one of them'],
    [
      '{"claimMatch":{"issuer":"a","issuer_pattern":"b"}}',
      'claim_match.issuer_pattern cannot be combined with issuer; send only one of them',
    ],
  ])
})

test('accepts only exact integers in range', () => {
  accepted(ListReposRequestSchema, [
    ['{"pageSize":2147483647}', { pageSize: 2147483647 }],
    ['{"pageSize":-2147483648}', { pageSize: -2147483648 }],
    ['{"pageSize":"7"}', { pageSize: 7 }],
    ['{"pageSize":1e2}', { pageSize: 100 }],
    ['{"pageSize":-0}', { pageSize: 0 }],
  ])
  const range = 'page_size must be between -2147483648 and 2147483647'
  refused(ListReposRequestSchema, [
    ['{"pageSize":2147483648}', range],
    ['{"pageSize":1e300}', range],
    ['{"pageSize":"-2147483649"}', range],
    ['{"pageSize":"99999999999999999999"}', range],
    ['{"pageSize":1e999}', 'page_size must be an integer'],
    ['{"pageSize":"999999999999999999999"}', 'page_size must be an integer'],
    ['{"pageSize":1.5}', 'page_size must be an integer'],
    ['{"pageSize":"1.0"}', 'page_size must be an integer'],
    ['{"pageSize":"0x10"}', 'page_size must be an integer'],
    ['{"pageSize":"NaN"}', 'page_size must be an integer'],
    ['{"pageSize":""}', 'page_size must be an integer'],
    ['{"pageSize":" 1"}', 'page_size must be an integer'],
    ['{"pageSize":true}', 'page_size must be an integer'],
    ['{"pageSize":[1]}', 'page_size must be an integer'],
    ['{"pageSize":{}}', 'page_size must be an integer'],
  ])
  const installation = (id: string) =>
    `{"github":{"appInstallations":{"7":{"installations":[{"installationId":${id}}]}}}}`
  const at = 'github.app_installations["7"].installations[0].installation_id'
  const value = (installationId: bigint) => ({
    github: { appInstallations: { 7: { installations: [{ installationId }] } } },
  })
  accepted(AccountAssociationSchema, [
    [installation('"9223372036854775807"'), value(2n ** 63n - 1n)],
    [installation('"-9223372036854775808"'), value(-(2n ** 63n))],
    [installation('9007199254740991'), value(9007199254740991n)],
  ])
  refused(AccountAssociationSchema, [
    [installation('9007199254740993'), `${at} must be sent as a string, because JSON numbers lose digits above 2^53`],
    [installation('"9223372036854775808"'), `${at} must be between -9223372036854775808 and 9223372036854775807`],
  ])
})

test('accepts only the declared type for strings, booleans, lists and messages', () => {
  refused(RepoSchema, [
    ['{"name":1}', 'name must be a string'],
    ['{"name":{}}', 'name must be a string'],
    ['{"name":"\\ud800"}', 'name must be valid Unicode (it has an unpaired surrogate)'],
    ['{"bundles":"a"}', 'bundles must be a list'],
    ['{"bundles":{"0":"a"}}', 'bundles must be a list'],
    ['{"bundles":["a",null]}', 'bundles[1] must not be null'],
    ['{"bundles":["a",["b"]]}', 'bundles[1] must be a string'],
    ['{"syncConfig":[]}', 'sync_config must be a JSON object'],
    ['{"syncConfig":"x"}', 'sync_config must be a JSON object'],
    ['{"syncConfig":{"uniqueTags":1}}', 'sync_config.unique_tags must be true or false'],
    ['{"syncConfig":{"uniqueTags":"true"}}', 'sync_config.unique_tags must be true or false'],
    ['[]', 'body must be a JSON object'],
    ['null', 'body must be a JSON object'],
    ['"x"', 'body must be a JSON object'],
    ['1', 'body must be a JSON object'],
  ])
})

test('reads enums by name or number, and capabilities also by dotted name', () => {
  accepted(RepoSchema, [
    ['{"catalogTier":"CATALOG_TIER_AI"}', { catalogTier: 4 }],
    ['{"catalogTier":4}', { catalogTier: 4 }],
    ['{"catalogTier":0}', { catalogTier: 0 }],
  ])
  const tiers = ['APPLICATION', 'BASE', 'FIPS', 'AI', 'DEVTOOLS', 'COMMERCIAL'].map((tier) => `CATALOG_TIER_${tier}`)
  for (const json of ['99', '-1', '1.5', '"AI"', '"4"', '""', 'true', '[]', '"__proto__"', '"constructor"', '1e999']) {
    refused(RepoSchema, [
      [
        `{"catalogTier":${json}}`,
        `catalog_tier is not a known value of CatalogTier; the known values are ${tiers.join(', ')}`,
      ],
    ])
  }
  const { CAP_REPO_LIST, CAP_IAM_GROUPS_CREATE } = Capability
  accepted(RoleSchema, [
    [
      '{"capabilities":["repo.list",101,"CAP_REPO_LIST"]}',
      { capabilities: [CAP_REPO_LIST, CAP_IAM_GROUPS_CREATE, CAP_REPO_LIST] },
    ],
  ])
  refused(RoleSchema, [
    ['{"capabilities":["repo.list","repo.fly"]}', 'capabilities[1] is not a known value of Capability'],
  ])
})

test('reads bytes as base64 in either alphabet, with or without padding', () => {
  const findings = new Uint8Array([251, 255, 254, 1])
  for (const text of ['+//+AQ==', '-__-AQ==', '+//+AQ', '-__-AQ']) {
    accepted(AdvisoryEventSchema, [[`{"findings":"${text}"}`, { findings }]])
  }
  accepted(AdvisoryEventSchema, [['{"findings":""}', {}]])
  for (const json of [
    '"a"',
    '"ab=c"',
    '"ab="',
    '"abcd="',
    '"abc=="',
    '"ab==="',
    '"====" ',
    '"a b"',
    '"é"',
    '1',
    'true',
    '["ab"]',
    '{}',
  ]) {
    refused(AdvisoryEventSchema, [[`{"findings":${json}}`, 'findings must be base64']])
  }
})

test('reads timestamps, durations and masks from text', () => {
  const updatedSince = create(TimestampSchema, { seconds: 1785578400n, nanos: 123456789 })
  accepted(ListTagsRequestSchema, [['{"updatedSince":"2026-08-01T12:00:00.123456789+02:00"}', { updatedSince }]])
  for (const json of ['"yesterday"', '"0000-01-01T00:00:00Z"', '"10000-01-01T00:00:00Z"']) {
    const expected = 'updated_since must be an RFC 3339 timestamp, such as 2026-08-01T12:00:00Z'
    refused(ListTagsRequestSchema, [[`{"updatedSince":${json}}`, expected]])
  }
  refused(ListTagsRequestSchema, [['{"updatedSince":{"seconds":1}}', 'updated_since must be a string']])

  const durations: [string, bigint, number][] = [
    ['3600s', 3600n, 0],
    ['1.5s', 1n, 500_000_000],
    ['-1.5s', -1n, -500_000_000],
    ['-0.000000001s', 0n, -1],
    ['-0s', 0n, 0],
    ['315576000000s', 315576000000n, 0],
  ]
  for (const [text, seconds, nanos] of durations) {
    accepted(GroupInviteSchema, [[`{"ttl":"${text}"}`, { ttl: create(DurationSchema, { seconds, nanos }) }]])
  }
  for (const text of [
    '',
    's',
    '1',
    '1m',
    '.5s',
    '1.s',
    '1.0000000001s',
    '+1s',
    '1e3s',
    '315576000001s',
    '9999999999999s',
  ]) {
    const expected = 'ttl must be a duration in seconds, such as 3600s or 1.5s'
    refused(GroupInviteSchema, [[`{"ttl":"${text}"}`, expected]])
  }

  accepted(UpdateIdentityMetadataRequestSchema, [
    [
      '{"updateMask":"jobTitle, company,oidc.client_secret"}',
      { updateMask: { paths: ['job_title', 'company', 'oidc.client_secret'] } },
    ],
    ['{"update_mask":""}', { updateMask: { paths: [] } }],
  ])
  refused(UpdateIdentityMetadataRequestSchema, [
    ['{"updateMask":"a,,b"}', 'update_mask has an empty path'],
    ['{"updateMask":["a"]}', 'update_mask must be a string'],
  ])
})

test('checks map keys, and hostile keys do not reach a prototype', () => {
  accepted(GroupSchema, [['{"resourceLimits":{"repositories":5}}', { resourceLimits: { repositories: 5 } }]])
  refused(GroupSchema, [
    ['{"resourceLimits":{"a":null}}', 'resource_limits["a"] must not be null'],
    ['{"resourceLimits":{"a":"x"}}', 'resource_limits["a"] must be an integer'],
    ['{"resourceLimits":[]}', 'resource_limits must be a JSON object'],
    [
      '{"resourceLimits":{"\\udfff":1}}',
      'resource_limits["\ufffd"] must be valid Unicode (it has an unpaired surrogate)',
    ],
  ])
  for (const key of ['a', '07', '-0', '1.0', '', '1e3', ' 1']) {
    const at = `github.app_installations["${key === '' ? '""' : key}"]`
    const violation = violationOf(() =>
      readJson(AccountAssociationSchema, { github: { appInstallations: { [key]: {} } } }),
    )
    assert.ok(violation.startsWith(`${at} must`), violation)
  }

  const json = '{"environment":{"__proto__":"polluted","constructor":"c","toString":"t"}}'
  const { environment } = readJson(CustomOverlaySchema, JSON.parse(json)) as Message & { environment: object }
  assert.deepEqual(Object.entries(environment), [
    ['__proto__', 'polluted'],
    ['constructor', 'c'],
    ['toString', 't'],
  ])
  assert.equal(Object.getPrototypeOf(environment), Object.prototype)
  assert.equal(({} as Record<string, unknown>).polluted, undefined)
})

test('limits nesting', () => {
  const nested = (depth: number): object => (depth === 1 ? {} : { nestedType: [nested(depth - 1)] })
  assert.equal(
    violationOf(() => readJson(DescriptorProtoSchema, nested(64))),
    'accepted',
  )
  assert.match(
    violationOf(() => readJson(DescriptorProtoSchema, nested(65))),
    /nested_type\[0\] is nested too deeply$/,
  )
  assert.match(
    violationOf(() => readJson(DescriptorProtoSchema, nested(5000))),
    / is nested too deeply$/,
  )
})

test('reads a body as UTF-8 JSON, and an empty body as an empty object', () => {
  assert.deepEqual(parseBody(Buffer.alloc(0)), {})
  assert.deepEqual(parseBody(Buffer.from('{"a":[1,null,"é"]}')), { a: [1, null, 'é'] })
  const bad: [Buffer | string, RegExp][] = [
    [Buffer.from([0x22, 0xff, 0x22]), /^body is not valid JSON: not UTF-8$/],
    [Buffer.from([0xed, 0xa0, 0x80]), /^body is not valid JSON: not UTF-8$/],
    ['{', /^body is not valid JSON: Expected property name/],
    [' ', /^body is not valid JSON: Unexpected end/],
    ['name=web', /^body is not valid JSON: /],
    ['{"a":NaN}', /^body is not valid JSON: /],
    ['['.repeat(200_000), /^body is not valid JSON: /],
  ]
  for (const [body, violation] of bad)
    assert.match(
      violationOf(() => parseBody(Buffer.from(body as string))),
      violation,
    )
})

test('refuses a body in which an object has the same member twice', () => {
  const refused = (body: string) => violationOf(() => parseBody(Buffer.from(body)))
  assert.equal(refused('{"a":1,"a":2}'), 'body is ambiguous: the member "a" occurs twice')
  assert.equal(refused('{"a":[{"b":{"c":1,"\\u0063":1}}]}'), 'body is ambiguous: the member "c" occurs twice')
  assert.equal(refused('{"__proto__":1,"__proto__":1}'), 'body is ambiguous: the member "__proto__" occurs twice')
  for (const body of ['{"a":{"a":[{"a":1},{"a":1}]}}', '{"a,b":"{\\"","c":[ ],"d":{ }}', '[1,[2,3],{}]', '""'])
    assert.deepEqual(parseBody(Buffer.from(body)), JSON.parse(body))
})

test('an error about a malformed body does not quote it', () => {
  for (const body of ['{"client_secret":hunter2}', '{"a":"hunter2" x}', '"hunter2\n"', 'hunter2', '{"a":😀hunter2}']) {
    assert.doesNotMatch(
      violationOf(() => parseBody(Buffer.from(body))),
      /hunter2/,
    )
  }
})

test('reads random JSON, or refuses it with the name of a field', () => {
  const scalars = [null, true, 0, -1, 1.5, '', 'x', '2026-08-01T12:00:00Z', '1s', 'a,b', '\ud800', 'CAP_REPO_LIST']
  const names = [
    'name',
    'claimMatch',
    'claim_match',
    'issuer',
    'claims',
    'createTime',
    '__proto__',
    'constructor',
    'uid',
  ]
  let seed = 7
  const random = (n: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return Math.floor((seed / 2147483648) * n)
  }
  const make = (depth: number): unknown => {
    const kind = depth > 4 ? 0 : random(4)
    if (kind < 2) return scalars[random(scalars.length)]
    if (kind === 2) return Array.from({ length: random(3) }, () => make(depth + 1))
    return Object.fromEntries(Array.from({ length: random(4) }, () => [names[random(names.length)]!, make(depth + 1)]))
  }
  for (let i = 0; i < 5000; i++) assert.ok(violationOf(() => readJson(IdentitySchema, make(0))).length > 0)
})

test('reads and writes decimal numbers exactly, and accepts no other type for them', () => {
  accepted(RecordSeveritySchema, [
    ['{"score":9.8}', { score: 9.8 }],
    ['{"score":0}', { score: 0 }],
    ['{"score":"7.5"}', { score: 7.5 }],
  ])
  assert.equal(
    jsonText(RecordSeveritySchema, create(RecordSeveritySchema, { score: 9.8 })).includes('"score":9.8'),
    true,
  )
  refused(RecordSeveritySchema, [
    ['{"score":"high"}', 'score must be a number'],
    ['{"score":true}', 'score must be a number'],
    ['{"score":1e999}', 'score must be a number'],
    ['{"score":"NaN"}', 'score must be a number'],
  ])
})
