import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, type DescMethod, type Message } from '@bufbuild/protobuf'
import type { FieldMask } from '@bufbuild/protobuf/wkt'
import { IdentitiesService } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { IdentityProvidersService } from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import { RoleBindingsService } from '#gen/pinfold/iam/v2/role_bindings_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { AppError } from '#lib/errors.ts'
import { resolveMask, resourceFieldOf } from './field-mask.ts'
import { readWhole } from './transcode.ts'

const { updateRepo, updateRepoReadme, createRepo, getRepo, listRepos } = ReposService.method
const { updateIdentity, updateIdentityMetadata } = IdentitiesService.method
const { updateIdentityProvider } = IdentityProvidersService.method
const { updateRoleBinding } = RoleBindingsService.method

function resolved(method: DescMethod, init: object, bodyKeys?: string[]): string[] {
  const request = create(method.input, init as never) as Message & { updateMask: FieldMask }
  resolveMask(method, request, bodyKeys)
  return request.updateMask.paths
}

const masked = (method: DescMethod, ...paths: string[]) => resolved(method, { updateMask: { paths } })

function violationOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof AppError, `not an AppError: ${error}`)
    return error.message.replace('Invalid argument: ', '')
  }
  return 'accepted'
}

test('converts mask paths to the field names of the contract', () => {
  const cases: [DescMethod, string[], string[]][] = [
    [updateRepo, ['description'], ['description']],
    [updateRepo, ['activeTags', 'catalog_tier'], ['active_tags', 'catalog_tier']],
    [updateRepo, ['activeTags', 'active_tags', 'activeTags'], ['active_tags']],
    [updateRepo, ['sync_config.source'], ['sync_config.source']],
    [updateRepo, ['syncConfig.gracePeriod', 'syncConfig.source'], ['sync_config.source']],
    [updateRepo, ['custom_overlay.contents.packages'], ['custom_overlay.contents.packages']],
    [updateRepo, ['custom_overlay.environment'], ['custom_overlay.environment']],
    [updateIdentityProvider, ['oidc.clientSecret'], ['oidc.client_secret']],
    [updateIdentityProvider, ['oidc.correlation_rule'], ['oidc.correlation_rule']],
    [updateIdentity, ['claim_match.issuer'], ['claim_match.issuer']],
    [updateRepoReadme, ['content'], ['content']],
    [updateIdentityMetadata, ['job_title'], ['job_title']],
  ]
  for (const [method, given, expected] of cases) assert.deepEqual(masked(method, ...given), expected, String(given))
})

test('a mask in the request has priority over the fields in the body', () => {
  const request = { repo: { name: 'n', description: 'd' }, updateMask: { paths: ['description'] } }
  assert.deepEqual(resolved(updateRepo, request, ['name', 'description']), ['description'])
})

test('ignores output-only paths and the uid, even if no path is left', () => {
  assert.deepEqual(masked(updateRepo, 'uid', 'createTime', 'name', 'update_time'), ['name'])
  assert.deepEqual(masked(updateRepo, 'uid'), [])
  assert.deepEqual(masked(updateRoleBinding, 'identity', 'identity.name', 'role_uid'), ['role_uid'])
  assert.deepEqual(masked(updateIdentityProvider, 'scim.etag'), [])
})

test('removes a mask path below another path', () => {
  assert.deepEqual(masked(updateRepo, 'sync_config.source', 'sync_config', 'syncConfig.google'), ['sync_config'])
  assert.deepEqual(masked(updateRepo, 'custom_overlay.contents.packages', 'customOverlay.contents', 'name'), [
    'custom_overlay.contents',
    'name',
  ])
})

test('refuses an unknown path', () => {
  for (const path of [
    'foo',
    'Name',
    '',
    '.',
    'name.',
    '.name',
    'name.x',
    'repo.name',
    'sync_config.foo',
    'sync_config.*',
    'bundles.0',
    'custom_overlay.environment.PATH',
    'custom_overlay.accounts.users.name',
    'create_time.seconds',
    'create_time.foo',
    'relationship',
    '__proto__',
    'constructor',
    'toString.call',
    '\ud800',
  ]) {
    const violation = violationOf(() => masked(updateRepo, 'name', path))
    assert.match(violation, /^update_mask: .+ is not a known field$/, path)
    assert.ok(violation.isWellFormed())
  }
  const long = violationOf(() => masked(updateRepo, 'a.'.repeat(100_000)))
  assert.ok(long.length < 200)
})

test('a star selects each field that a client can set and change', () => {
  assert.deepEqual(masked(updateRepo, '*'), [
    'description',
    'catalog_tier',
    'bundles',
    'aliases',
    'active_tags',
    'sync_config',
    'custom_overlay',
  ])
  assert.deepEqual(masked(updateRepoReadme, '*'), ['content'])
  assert.deepEqual(masked(updateIdentityMetadata, '*', '*'), ['company', 'job_title'])
  assert.deepEqual(masked(updateIdentity, '*'), ['name', 'description', 'company'])
  const identity = { relationship: { case: 'claimMatch', value: {} } }
  const request = { identity, updateMask: { paths: ['*'] } }
  assert.deepEqual(resolved(updateIdentity, request, []), ['name', 'description', 'company', 'claim_match'])
})

test('refuses a star together with other paths', () => {
  assert.equal(
    violationOf(() => masked(updateRepo, '*', 'name')),
    'update_mask: must not combine * with other paths',
  )
})

test('REST: without a mask, changes the fields in the body', () => {
  const repo = { name: '', description: 'd', syncConfig: {} }
  assert.deepEqual(resolved(updateRepo, { repo }, ['name', 'description', 'sync_config', 'uid', 'create_time']), [
    'name',
    'description',
    'sync_config',
  ])
  assert.deepEqual(resolved(updateRepo, { repo }, []), [])
  assert.deepEqual(resolved(updateRepo, { repo, updateMask: { paths: [] } }, ['name']), ['name'])
})

test('gRPC: without a mask, changes the fields that are not empty', () => {
  const repo = {
    uid: 'u',
    name: '',
    description: 'd',
    bundles: ['a'],
    aliases: [],
    catalogTier: 0,
    syncConfig: {},
    createTime: {},
  }
  assert.deepEqual(resolved(updateRepo, { repo }), ['description', 'bundles', 'sync_config'])
  assert.deepEqual(resolved(updateRepo, {}), [])
  const identity = { name: 'n', relationship: { case: 'servicePrincipal', value: 0 } }
  assert.deepEqual(resolved(updateIdentity, { identity }), ['name', 'service_principal'])
})

test('changes only the selected member of a oneof', () => {
  const identity = { relationship: { case: 'staticKeys', value: {} } }
  assert.deepEqual(resolved(updateIdentity, { identity }, ['claim_match', 'static_keys']), ['static_keys'])
  const both = { identity, updateMask: { paths: ['claim_match', 'static_keys'] } }
  assert.deepEqual(resolved(updateIdentity, both), ['static_keys'])
  const other = { identity, updateMask: { paths: ['claim_match'] } }
  assert.deepEqual(resolved(updateIdentity, other), ['claim_match'])

  const claimMatch = { iss: { case: 'issuerPattern', value: '.*' } }
  const paths = ['claim_match.issuer', 'claim_match.issuer_pattern']
  const nested = { identity: { relationship: { case: 'claimMatch', value: claimMatch } }, updateMask: { paths } }
  assert.deepEqual(resolved(updateIdentity, nested), ['claim_match.issuer_pattern'])
})

test('leaves requests that are not updates unchanged', () => {
  for (const method of [getRepo, listRepos, createRepo]) {
    const request = create(method.input)
    resolveMask(method, request, ['name'])
    assert.deepEqual(request, create(method.input))
    assert.equal(resourceFieldOf(method.input), undefined)
  }
})

test('resolves a mask of 100,000 paths to its fields', () => {
  const paths = Array.from(
    { length: 100_000 },
    (_, i) => ['name', 'sync_config.source', 'custom_overlay.contents'][i % 3]!,
  )
  assert.equal(masked(updateRepo, ...paths).length, 3)
})

test('a mask in JSON has at most 1,000 paths of 1,000 characters', () => {
  const read = (updateMask: string) => readWhole(updateRepo.input, { updateMask })
  assert.equal(
    violationOf(() => read(Array(1000).fill('name').join())),
    'accepted',
  )
  assert.equal(
    violationOf(() => read(Array(1001).fill('name').join())),
    'update_mask: has more than 1000 paths',
  )
  const long = violationOf(() => read('N'.repeat(1001)))
  assert.equal(long, 'update_mask: has a path longer than 1000 characters')
})

test('treats a too long path over gRPC as unknown without splitting it', (t) => {
  const split = t.mock.method(String.prototype, 'split')
  const message = violationOf(() => masked(updateRepo, 'name'.padEnd(5000, '.')))
  assert.equal(split.mock.callCount(), 0)
  assert.match(message, /^update_mask: name\.+… is not a known field$/)
})
