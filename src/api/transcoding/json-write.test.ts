import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import {
  clone,
  create,
  type DescFile,
  type DescMessage,
  equals,
  fromBinary,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf'
import { DurationSchema, EmptySchema, type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { FollowSchema } from '#gen/pinfold/control/registry/v1/follows_pb.ts'
import { AccountAssociationSchema } from '#gen/pinfold/iam/v2/account_associations_pb.ts'
import { GroupInviteSchema } from '#gen/pinfold/iam/v2/group_invites_pb.ts'
import { GroupSchema } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { IdentitySchema, UpdateIdentityMetadataRequestSchema } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { RoleSchema } from '#gen/pinfold/iam/v2/roles_pb.ts'
import { CustomOverlaySchema, ListReposResponseSchema, RepoSchema } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { TagSchema } from '#gen/pinfold/registry/v2/tags_pb.ts'
import { AdvisoryEventSchema } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { timestamp } from '#lib/timestamp.ts'
import { readJson } from './json-read.ts'
import { eventText, jsonText } from './json-write.ts'

const parsed = (desc: DescMessage, init: object): unknown => JSON.parse(jsonText(desc, create(desc, init as never)))
const times = { createTime: timestamp('2026-08-01T12:00:00.000Z'), updateTime: timestamp('2026-08-02T12:00:00.120Z') }
const emptyRepo = { uid: '', name: '', description: '', bundles: [], aliases: [], activeTags: [] }

test('shows plain fields of a resource even if empty, and omits unset messages', () => {
  assert.equal(
    jsonText(RepoSchema, create(RepoSchema)),
    '{"uid":"","name":"","description":"","bundles":[],"aliases":[],"activeTags":[]}',
  )
  assert.deepEqual(parsed(TagSchema, { name: 'latest', ...times }), {
    uid: '',
    name: 'latest',
    digest: '',
    deprecated: false,
    bundles: [],
    createTime: '2026-08-01T12:00:00.000Z',
    updateTime: '2026-08-02T12:00:00.120Z',
  })
  assert.deepEqual(parsed(RepoSchema, { catalogTier: 2, syncConfig: { source: 's' } }), {
    ...emptyRepo,
    catalogTier: 'CATALOG_TIER_BASE',
    syncConfig: { source: 's', uniqueTags: false, google: '', amazon: '', azure: '', gracePeriod: false },
  })
  assert.equal(jsonText(EmptySchema, create(EmptySchema)), '{}')
})

test('writes the zero value of an enum if it has a meaning, and omits it if it means unset', () => {
  const follow = parsed(FollowSchema, {}) as Record<string, unknown>
  assert.deepEqual([follow.state, 'history' in follow, 'mode' in follow], ['STATE_WAITING', false, false])
})

test('always writes all fields of a list response', () => {
  assert.deepEqual(parsed(ListReposResponseSchema, { totalCount: 0n }), {
    repos: [],
    nextPageToken: '',
    totalCount: '0',
    skipped: 0,
  })
  assert.deepEqual(parsed(ListReposResponseSchema, { repos: [{}, {}], totalCount: 2n ** 53n + 1n, skipped: 7 }), {
    repos: [emptyRepo, emptyRepo],
    nextPageToken: '',
    totalCount: '9007199254740993',
    skipped: 7,
  })
})

test('writes the selected member of a oneof even if empty', () => {
  const claimMatch = { iss: { case: 'issuer', value: '' }, sub: { case: 'subjectPattern', value: '.*' } }
  const identity = parsed(IdentitySchema, { relationship: { case: 'claimMatch', value: claimMatch } }) as {
    claimMatch: object
  }
  assert.deepEqual(identity.claimMatch, { issuer: '', subjectPattern: '.*', claims: {}, claimPatterns: {} })
  const principal = parsed(IdentitySchema, { relationship: { case: 'servicePrincipal', value: 2 } })
  assert.equal((principal as { servicePrincipal: string }).servicePrincipal, 'SERVICE_PRINCIPAL_INGESTER')
})

test('writes an unknown enum number as a number', () => {
  assert.deepEqual((parsed(RoleSchema, { capabilities: [0, 1605, 9999] }) as { capabilities: unknown }).capabilities, [
    'CAP_UNKNOWN',
    'CAP_REPO_LIST',
    9999,
  ])
})

test('writes bytes, durations, masks and map keys in their JSON forms', () => {
  const event = parsed(AdvisoryEventSchema, { findings: new Uint8Array([251, 255, 1]) }) as { findings: string }
  assert.equal(event.findings, '+/8B')
  const durations: [bigint, number, string][] = [
    [3600n, 0, '3600s'],
    [1n, 500_000_000, '1.5s'],
    [0n, 0, '0s'],
    [-1n, -500_000_000, '-1.5s'],
    [0n, -1, '-0.000000001s'],
  ]
  for (const [seconds, nanos, text] of durations) {
    const invite = parsed(GroupInviteSchema, { ttl: create(DurationSchema, { seconds, nanos }) }) as { ttl: string }
    assert.equal(invite.ttl, text)
  }
  assert.deepEqual(parsed(UpdateIdentityMetadataRequestSchema, { updateMask: { paths: ['job_title', 'a_b.c_d'] } }), {
    updateMask: 'jobTitle,aB.cD',
  })
  const github = { appInstallations: { '-7': { installations: [{ installationId: 5n, name: 'x' }] } } }
  assert.deepEqual((parsed(AccountAssociationSchema, { github }) as { github: object }).github, {
    appInstallations: { '-7': { installations: [{ installationId: '5', name: 'x' }] } },
  })
  assert.deepEqual(
    (parsed(GroupSchema, { resourceLimits: { 'a"b': 1, é: 2 } }) as { resourceLimits: object }).resourceLimits,
    {
      'a"b': 1,
      é: 2,
    },
  )
})

test('writes a timestamp from a client with exactly three decimal places', () => {
  for (const [seconds, nanos, text] of [
    [1785578400n, 123_456_789, '2026-08-01T10:00:00.123Z'],
    [0n, 0, '1970-01-01T00:00:00.000Z'],
  ] as const) {
    const tag = parsed(TagSchema, { updateTime: create(TimestampSchema, { seconds, nanos }) }) as { updateTime: string }
    assert.equal(tag.updateTime, text)
  }
})

test('the binary format treats an ISO timestamp as a protobuf timestamp', () => {
  for (const iso of ['1969-12-31T23:59:59.001Z', '2026-08-01T12:34:56.789Z', '0001-01-01T00:00:00.000Z']) {
    const message: Timestamp = timestamp(iso)
    const { seconds, nanos } = message
    assert.deepEqual(
      fromBinary(TimestampSchema, toBinary(TimestampSchema, message)),
      create(TimestampSchema, { seconds, nanos }),
    )

    const tag = create(TagSchema, { createTime: message })
    assert.equal(tag.createTime, message)
    const copy = fromBinary(TagSchema, toBinary(TagSchema, tag))
    assert.equal(jsonText(TagSchema, copy), jsonText(TagSchema, tag))
    assert.ok(equals(TagSchema, copy, tag))
    assert.ok(equals(TagSchema, clone(TagSchema, tag), tag))
  }
})

test('writes each string so that it can be read back unchanged', () => {
  const strings = [
    '',
    '"',
    '\\',
    '\u0000\u001f\u007f',
    'a\nb',
    'é',
    '😀',
    '\u2028',
    '</script>',
    'x'.repeat(1000),
    '\ud83d\ude00"',
  ]
  for (const text of strings) {
    const repo = parsed(RepoSchema, { name: text, aliases: [text, text] }) as { name: string; aliases: string[] }
    assert.deepEqual([repo.name, repo.aliases], [text, [text, text]])
    const overlay = parsed(CustomOverlaySchema, { environment: { [`k${text}`]: text } }) as { environment: object }
    assert.deepEqual(overlay.environment, { [`k${text}`]: text })
  }
  assert.ok(jsonText(RepoSchema, create(RepoSchema, { name: '\ud800' })).includes('"\\ud800"'))
})

test('event bodies use the names of the contract', () => {
  const repo = create(RepoSchema, {
    uid: 'u',
    activeTags: ['a'],
    syncConfig: { source: 's' },
    createTime: times.createTime,
  })
  assert.equal(
    eventText(RepoSchema, repo),
    '{"uid":"u","name":"","description":"","bundles":[],"aliases":[],"active_tags":["a"],' +
      '"sync_config":{"source":"s","unique_tags":false,"google":"","amazon":"","azure":"","grace_period":false},' +
      '"create_time":"2026-08-01T12:00:00.000Z"}',
  )
})

test('reads written messages back unchanged', () => {
  const identity = create(IdentitySchema, {
    uid: 'u',
    name: 'n',
    relationship: {
      case: 'claimMatch',
      value: { iss: { case: 'issuer', value: 'i' }, claims: { a: 'b', constructor: 'c' } },
    },
    createTime: create(TimestampSchema, { seconds: 1n, nanos: 5_000_000 }),
  })
  assert.deepEqual(readJson(IdentitySchema, JSON.parse(jsonText(IdentitySchema, identity))), identity)
  assert.deepEqual(readJson(IdentitySchema, JSON.parse(eventText(IdentitySchema, identity))), identity)

  const overlay = readJson(CustomOverlaySchema, JSON.parse('{"environment":{"__proto__":"x"}}'))
  assert.ok(jsonText(CustomOverlaySchema, overlay).includes('"environment":{"__proto__":"x"}'))
})

test('the contract contains only types that the reader and writer support', async () => {
  const scalars = new Set([
    ScalarType.STRING,
    ScalarType.BOOL,
    ScalarType.INT32,
    ScalarType.UINT32,
    ScalarType.INT64,
    ScalarType.BYTES,
    ScalarType.DOUBLE,
  ])
  const wellKnown = ['Timestamp', 'Duration', 'FieldMask', 'Value'].map((name) => `google.protobuf.${name}`)
  const root = new URL('../../../gen/pinfold/', import.meta.url)
  for (const path of readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('_pb.ts'),
  )) {
    const exports = Object.values((await import(new URL(path, root).href)) as Record<string, { kind?: string }>)
    const files = exports.filter((value): value is DescFile => value.kind === 'file')
    const messages = (descs: readonly DescMessage[]): DescMessage[] =>
      descs.flatMap((desc) => [desc, ...messages(desc.nestedMessages)])
    for (const field of files.flatMap((file) => messages(file.messages)).flatMap((desc) => desc.fields)) {
      if (field.scalar) assert.ok(scalars.has(field.scalar), String(field))
      const typeName = field.message?.typeName ?? ''
      if (typeName.startsWith('google.')) assert.ok(wellKnown.includes(typeName), String(field))
    }
  }
})
