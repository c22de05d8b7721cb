import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DescMethod, DescService } from '@bufbuild/protobuf'
import { Auth } from '#gen/pinfold/auth/v1/auth_pb.ts'
import { SubscriptionsService } from '#gen/pinfold/events/v2/subscriptions_pb.ts'
import { Identities } from '#gen/pinfold/iam/v1/identities_pb.ts'
import { RoleBindings } from '#gen/pinfold/iam/v1/role_bindings_pb.ts'
import { AccountAssociationsService } from '#gen/pinfold/iam/v2/account_associations_pb.ts'
import { ExternalGroupRoleMappingsService } from '#gen/pinfold/iam/v2/external_group_role_mappings_pb.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { IdentitiesService } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { IdentityProvidersService } from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import { TermsService } from '#gen/pinfold/iam/v2/terms_pb.ts'
import { ArtifactsService } from '#gen/pinfold/libraries/v2/artifacts_pb.ts'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { PingService } from '#gen/pinfold/ping/v2/ping_pb.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { ImagesService } from '#gen/pinfold/registry/v2/images_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { AppError } from '#lib/errors.ts'
import { buildRoutes } from './routes.ts'

const services: DescService[] = [
  AccountAssociationsService,
  ArtifactsService,
  Auth,
  ExternalGroupRoleMappingsService,
  GroupsService,
  Identities,
  IdentitiesService,
  IdentityProvidersService,
  ImagesService,
  PingService,
  Registry,
  ReposService,
  RoleBindings,
  SecurityTokenService,
  SubscriptionsService,
  TermsService,
]
const routes = buildRoutes(services.flatMap((service) => service.methods).map((desc) => ({ desc })))

/** `GetRepo uid=x`, the allowed methods, or `nothing`. */
function meaning(request: string): string {
  const [httpMethod, path] = request.split(' ') as [string, string]
  const found = routes.match(httpMethod, path)
  if (!found) return 'nothing'
  if ('allowed' in found) return `allowed ${found.allowed.join(' ')}`
  return [found.entry.desc.name, ...found.variables.map(([field, value]) => `${field}=${value}`)].join(' ')
}

const org = 'a'.repeat(40)
const repo = `${org}/${'b'.repeat(16)}`

test('finds the method for a path, with the path variables', () => {
  const cases: [string, string][] = [
    ['GET /registry/v2/repos', 'ListRepos'],
    [`GET /registry/v2/repos/${repo}`, `GetRepo uid=${repo}`],
    [`POST /registry/v2/repos/${org}`, `CreateRepo parent=${org}`],
    [`PATCH /registry/v2/repos/${repo}`, `UpdateRepo repo.uid=${repo}`],
    [`DELETE /registry/v2/repos/${repo}`, `DeleteRepo uid=${repo}`],
    ['GET /ping/v2/ping', 'Ping'],
    ['GET /auth/v1/ok', 'Validate'],
    ['DELETE /auth/v1/delete/x', 'Delete id=x'],
    ['POST /sts/exchange', 'Exchange'],
    ['GET /sts/exchange', 'Exchange'],
    [`POST /iam/v2/terms/${org}`, `AcceptTerms group=${org}`],
    [`GET /iam/v2/terms/${org}`, `ListTermsAcceptances group=${org}`],
  ]
  for (const [request, expected] of cases) assert.equal(meaning(request), expected, request)
})

test('verbs and fixed suffixes have priority over a route with a greedy variable', () => {
  const cases: [string, string][] = [
    [`GET /registry/v2/repos/${repo}/readme`, `GetRepoReadme uid=${repo}`],
    [`PATCH /registry/v2/repos/${repo}/readme`, `UpdateRepoReadme repo_readme.uid=${repo}`],
    [`DELETE /registry/v2/repos/${repo}/readme`, `DeleteRepo uid=${repo}/readme`],
    [`GET /registry/v2/repos/${repo}/digests/sha256:ab/size`, `GetSize repo_uid=${repo} digest=sha256:ab`],
    [
      `GET /registry/v2/repos/${repo}/digests/sha256%3Aab/architectures`,
      `GetArchitectures repo_uid=${repo} digest=sha256:ab`,
    ],
    [`GET /registry/v2/repos/${repo}/digests//size`, `GetRepo uid=${repo}/digests//size`],
    [`GET /registry/v2/repos/${repo}/digests/size`, `GetRepo uid=${repo}/digests/size`],
    ['GET /registry/v2/repos/digests/d/size', 'GetSize repo_uid= digest=d'],
    ['GET /registry/v2/repos/readme', 'GetRepoReadme uid='],
    ['GET /iam/v2/groups:lookupGroup', 'LookupGroup'],
    [`POST /iam/v2/groups/${org}:requestGroupAccess`, `RequestGroupAccess group_uid=${org}`],
    ['POST /iam/v2/groups:requestGroupAccess', 'RequestGroupAccess group_uid='],
    [`GET /iam/v2/groups/${org}:requestGroupAccess`, `GetGroup uid=${org}:requestGroupAccess`],
    [`POST /iam/v2/groups/${org}:other`, `CreateGroup parent=${org}:other`],
    ['PATCH /iam/v2/identities:updateIdentityMetadata', 'UpdateIdentityMetadata'],
    [`POST /iam/v2/identityProviders/${repo}:setScimEnabled`, `SetScimEnabled identity_provider_uid=${repo}`],
    [`POST /iam/v2/identityProviders/${repo}:regenerateScimToken`, `RegenerateScimToken identity_provider_uid=${repo}`],
    ['POST /iam/v2/externalGroupRoleMappings:batchDelete', 'BatchDeleteExternalGroupRoleMappings'],
    [`POST /iam/v2/accountAssociations/${org}:checkAccountAssociation`, `CheckAccountAssociation uid=${org}`],
    ['GET /libraries/v2/artifacts/count', 'GetArtifactCount'],
    ['GET /libraries/v2/artifacts/maven%3Aa%2Fb/versions', 'ListArtifactVersions artifact_id=maven:a/b'],
    ['GET /libraries/v2/artifacts/a/b/versions', 'nothing'],
    ['GET /libraries/v2/artifacts//versions', 'nothing'],
  ]
  for (const [request, expected] of cases) assert.equal(meaning(request), expected, request)
})

test('in version 1 the HTTP method selects the kind of a uid, and fixed path parts have priority over a uid', () => {
  const tag = `${repo}/${'c'.repeat(16)}`
  const cases: [string, string][] = [
    [`POST /registry/v1/tags/${repo}`, `CreateTag repo_id=${repo}`],
    [`PUT /registry/v1/tags/${tag}`, `UpdateTag id=${tag}`],
    [`GET /registry/v1/tags/${tag}/history`, `ListTagHistory parent_id=${tag}`],
    [`GET /registry/v1/repos/${repo}/digest/sha256:ab/rawsbom`, `GetRawSbom repo_id=${repo} digest=sha256:ab`],
    [`GET /registry/v1/repos/${repo}:syncstatus`, `GetSyncStatus repo_id=${repo}`],
    [`GET /registry/v1/repos/${repo}`, 'allowed DELETE POST PUT'],
    [`POST /registry/v1/repos/${repo}/deployment`, `CreateDeployment parent_id=${repo}`],
    [`POST /iam/v1/rolebindings/${org}`, `Create parent=${org}`],
    [`POST /iam/v1/rolebindings/batch/${org}`, `CreateBatch parent=${org}`],
    ['GET /iam/v1/identities/lookup', 'Lookup'],
    ['DELETE /iam/v1/identities/lookup', 'Delete id=lookup'],
  ]
  for (const [request, expected] of cases) assert.equal(meaning(request), expected, request)
})

test('a greedy variable can be empty, but an exact path of the same method has priority', () => {
  const cases: [string, string][] = [
    ['POST /iam/v2/groups', 'CreateGroup parent='],
    ['POST /iam/v2/groups/', 'CreateGroup parent='],
    ['GET /iam/v2/groups', 'ListGroups'],
    ['GET /iam/v2/groups/', 'GetGroup uid='],
    ['DELETE /iam/v2/groups', 'DeleteGroup uid='],
    ['PATCH /iam/v2/groups/', 'UpdateGroup group.uid='],
    ['DELETE /auth/v1/delete/', 'nothing'],
    ['DELETE /auth/v1/delete', 'nothing'],
    ['DELETE /auth/v1/delete/a/b', 'nothing'],
  ]
  for (const [request, expected] of cases) assert.equal(meaning(request), expected, request)
})

test('decodes path variables, including an encoded slash', () => {
  const cases: [string, string][] = [
    [`GET /registry/v2/repos/${repo.replace('/', '%2F')}`, `GetRepo uid=${repo}`],
    [`GET /registry/v2/repos/${repo.replace('/', '%2f')}/readme`, `GetRepoReadme uid=${repo}`],
    ['GET /registry/v2/repos/a+b%20c%C3%A9', 'GetRepo uid=a+b cé'],
    ['GET /registry/v2/repos/a%2Freadme', 'GetRepo uid=a/readme'],
    ['GET /registry/v2/repos//', 'GetRepo uid=/'],
  ]
  for (const [request, expected] of cases) assert.equal(meaning(request), expected, request)
})

test('an error for malformed percent-encoding names the field', () => {
  for (const [request, field] of [
    ['GET /registry/v2/repos/%', 'uid'],
    ['GET /registry/v2/repos/%zz', 'uid'],
    ['PATCH /registry/v2/repos/%ff', 'uid'],
    ['GET /registry/v2/repos/a/digests/%c0%80/size', 'digest'],
  ] as const) {
    assert.throws(
      () => meaning(request),
      (error) =>
        error instanceof AppError && error.message === `Invalid argument: ${field}: has invalid percent-encoding`,
    )
  }
})

test('the preview path segment means v2 only in second place', () => {
  assert.equal(meaning('GET /registry/v2beta1/repos'), 'ListRepos')
  assert.equal(meaning(`GET /registry/v2beta1/repos/${repo}/readme`), `GetRepoReadme uid=${repo}`)
  assert.equal(meaning('GET /registry/v2/repos/v2beta1/x'), 'GetRepo uid=v2beta1/x')
  assert.equal(meaning('GET /v2beta1/v2/repos'), 'nothing')
  assert.equal(meaning('GET /registry/v2beta1'), 'nothing')
})

test('a path for other HTTP methods returns these methods', () => {
  const cases: [string, string][] = [
    ['POST /ping/v2/ping', 'allowed GET'],
    ['HEAD /ping/v2/ping', 'allowed GET'],
    ['PUT /sts/exchange', 'allowed GET POST'],
    ['PUT /registry/v2/repos', 'allowed DELETE GET PATCH POST'],
    ['HEAD /registry/v2/repos/x', 'allowed DELETE GET PATCH POST'],
    ['PUT /iam/v2/groups:lookupGroup', 'allowed GET'],
    ['get /ping/v2/ping', 'allowed GET'],
    ['PATCH /events/v2/subscriptions/x', 'allowed DELETE GET POST'],
    ['GET /auth/v1/delete/x', 'allowed DELETE'],
  ]
  for (const [request, expected] of cases) assert.equal(meaning(request), expected, request)
})

test('unknown paths match nothing', () => {
  const paths = [
    '',
    '/',
    '//',
    '/x',
    '/registry',
    '/registry/v2',
    '/registry/v2/',
    '/registry/v2/reposx',
    '/registry/v2/reposx/y',
  ]
  paths.push(
    '/Registry/v2/repos',
    '/registry//v2/repos',
    '//registry/v2/repos',
    '/registry/v3/repos',
    '/ping/v2/ping/',
    '*',
  )
  paths.push(
    '/__proto__',
    '/constructor/v2/repos',
    '/iam/v2/groups:nothing/x',
    'registry/v2/repos',
    `/${'a/'.repeat(10_000)}`,
  )
  for (const path of paths) assert.equal(meaning(`GET ${path}`), 'nothing', path)
})

// A backtracking matcher would not finish this match.
test('matches a long hostile path in linear time', () => {
  for (const part of ['/', '/digests', ':', '%', '/readme/', '/digests/x']) {
    const path = `/registry/v2/repos/${part.repeat(1_000_000)}!`
    try {
      routes.match('GET', path)
    } catch (error) {
      assert.ok(error instanceof AppError)
    }
  }
})

test('throws at the start for two methods with one path, and for unsupported templates', () => {
  const ping = { desc: PingService.methods[0] as DescMethod }
  assert.throws(() => buildRoutes([ping, ping]), /two methods are bound to GET \/ping\/v2\/ping/)
})
