import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { domainOf, sources as files, type Import, importsOf, reaches, root } from './layers.ts'

const all = files.flatMap(importsOf)

/** Files of a domain without one of the four roles. Other domains may import the files in `shared` too. */
const ruleFiles: Record<string, readonly string[]> = {
  shared: [
    'events/subscriptions/audience.ts',
    'outbox/emit-registry.ts',
    'outbox/emit.ts',

    'events/refusals/refusal-log.ts',
    'events/stream/feed.ts',
    'iam/access/built-in-roles.ts',
    'iam/access/capabilities.ts',
    'iam/roles/grants.ts',
    'iam/groups/list-nodes.ts',
    'iam/groups/list-scope.ts',
    'iam/access/requirements.ts',
    'iam/access/rights.ts',
    'iam/identities/claims.ts',
    'iam/identities/last-seen.ts',
    'iam/identities/people.ts',
    'iam/push-tokens/live-push-tokens.ts',
    'iam/identities/token-checks.ts',
    'iam/sign-in/live-sessions.ts',
    'iam/terms/terms-gate.ts',
    'registry/manifests/manifest-cache.ts',
    'registry/manifests/manifest-document.ts',
    'policy/retention/content-rules-cache.ts',
    'registry/tags/tag-cache.ts',
    'registry/usage/digest-usage.ts',
    'policy/views/view-cache.ts',
  ],
  own: [
    'events/delivery/attempt.ts',
    'events/delivery/backlog.ts',
    'events/delivery/cloud-event.ts',
    'events/delivery/coalesced.ts',
    'events/delivery/deliver.ts',
    'events/delivery/subject-queues.ts',
    'events/delivery/queue-reader.ts',
    'events/delivery/results.ts',
    'events/routing/routing.ts',
    'events/delivery/sink-queue.ts',
    'events/subscriptions/secrets.ts',
    'events/routing/type-patterns.ts',

    'iam/accounts/accounts-on-the-wire.ts',
    'iam/identities/relationships-on-the-wire.ts',
    'iam/identities/relationships.ts',
    'iam/identities/service-principals.ts',
    'iam/identity-providers/identity-providers-on-the-wire.ts',
    'iam/identity-providers/provider-discovery.ts',
    'iam/invites/invite-code.ts',
    'iam/repeats/repeats.ts',
    'libraries/catalog-scopes.ts',
    'libraries/ecosystems.ts',
    'registry/blobs/collect-blobs.ts',
    'mirrors/follows/tag-patterns.ts',
    'registry/images/read-image.ts',
    'registry/manifests/manifest-json.ts',
    'ledger/proofs/checkpoint-guard.ts',
    'ledger/proofs/sequencing.ts',
    'ledger/proofs/tile-cache.ts',
    'ledger/proofs/witnessing.ts',
    'registry/repos/overlays.ts',
    'registry/repos/readme.ts',
    'advisories/advisories/advisory-checks.ts',
    'advisories/reports/affected.ts',
  ],
}

/** Row of the import table for a file, such as `rule` for the rule files of a domain. */
function roomOf(path: string): string {
  if (path.startsWith('gen/')) return 'gen'
  const parts = path.split('/')
  if (parts[1] !== 'domains') return parts.length === 2 ? path : parts[1]!
  const name = parts.at(-1)!
  if (name === 'domain.ts' || name === 'domains.ts' || name === 'resources.ts') return name.slice(0, -'.ts'.length)
  // The types of hooks count as models.
  if (name === 'hooks.ts') return 'model'
  if (name === 'parts.ts' || name === 'open-parts.ts') return 'parts'
  return /\.(model|store|service|v1|v2|control|job|hooks)\.ts$/.exec(name)?.[1] ?? 'rule'
}

const sameDomain = (one: Import): boolean => domainOf(one.from) === domainOf(one.to)
const ruleOf = (path: string): string => path.slice('src/domains/'.length)
const isRule = (one: Import): boolean =>
  ruleFiles.shared!.includes(ruleOf(one.to)) || (sameDomain(one) && ruleFiles.own!.includes(ruleOf(one.to)))

/** Any file outside of lib and the models may import the types of the application, of a query, of a lease and of a job. */
const typesOfGround = ['sql', 'leases'].map((one) => `src/db/${one}.ts`)
const typesBeside = ['caller', 'domain', 'job', 'hooks'].map((one) => `src/${one}.ts`)
const everywhere = (one: Import): boolean =>
  one.to === 'src/app.ts' || (one.typeOnly && [...typesOfGround, ...typesBeside].includes(one.to))

/**
 * Packages of the contract whose messages a file may create, by the role of the file. Messages of our own packages may contain
 * messages of version 2.
 */
const packages: Record<string, RegExp> = {
  v1: /^gen\/pinfold\/[a-z]+\/v1\//,
  v2: /^gen\/pinfold\/[a-z]+\/v2\//,
  control: /^gen\/pinfold\/(?:control\/[a-z]+\/v1|[a-z]+\/v2)\/|^gen\/pinfold\/registry\/events_pb\.ts$/,
}
const ofVersion = (one: Import): boolean => packages[roomOf(one.from)]!.test(one.to)

/** Model that the settings import, to check placeholders in host paths. */
const viewsModel = 'src/domains/policy/views/views.model.ts'

/** Modules that open a database. Only commands may import them. */
const openers = ['open-database', 'open-issuer'].map((one) => `src/${one}.ts`)

const allowed: Record<string, (one: Import, to: string) => boolean> = {
  lib: (_, to) => to === 'lib',
  versions: (_, to) => to === 'versions' || to === 'lib',
  sources: (one, to) =>
    ['sources', 'versions', 'lib'].includes(to) || one.to === 'src/domains/scanning/records/records.model.ts',
  contents: (_, to) => ['contents', 'versions', 'lib'].includes(to),
  db: (_, to) => to === 'db' || to === 'lib',
  model: (one, to) =>
    ['lib', 'versions'].includes(to) || (to === 'contents' && one.typeOnly) || (to === 'model' && reaches(one)),
  store: (one, to) => to === 'lib' || to === 'db' || (['model', 'store'].includes(to) && reaches(one)),
  service: (one, to) =>
    ['lib', 'blobs', 'contents', 'versions', 'sources'].includes(to) ||
    (reaches(one) && ['model', 'store', 'service'].includes(to)) ||
    isRule(one),
  v1: (one, to) =>
    to === 'lib' || ofVersion(one) || (reaches(one) && (['service', 'model', 'v1'].includes(to) || isRule(one))),
  v2: (one, to) =>
    to === 'lib' || ofVersion(one) || (reaches(one) && (['service', 'model', 'v2'].includes(to) || isRule(one))),
  job: (one, to) => to === 'lib' || (reaches(one) && ['model', 'store', 'service'].includes(to)) || isRule(one),
  parts: (one, to) => to === 'lib' || (reaches(one) && ['model', 'service', 'parts'].includes(to)) || isRule(one),
  hooks: (one, to) => to === 'lib' || (reaches(one) && ['model', 'store', 'service'].includes(to)) || isRule(one),
  control: (one, to) =>
    to === 'lib' ||
    ofVersion(one) ||
    (reaches(one) && (['service', 'model', 'v2', 'control'].includes(to) || isRule(one))),
  resources: (one, to) => to === 'lib' || (to === 'model' && reaches(one)),
  domain: (one, to) =>
    ['gen', 'lib'].includes(to) ||
    (sameDomain(one) && ['v1', 'v2', 'control', 'job', 'resources', 'hooks', 'parts'].includes(to)),
  domains: (_, to) => to === 'domain',
  config: (one, to) => ['config', 'lib'].includes(to) || ['src/blobs/s3/bucket.ts', viewsModel].includes(one.to),
  maintenance: (one, to) =>
    ['maintenance', 'blobs', 'db', 'lib', 'service', 'store', 'model'].includes(to) || one.to.split('/').length === 2,
  tracing: (_, to) => to === 'tracing',
  edge: (one, to) => ['edge', 'issuer', 'lib', 'tracing'].includes(to) || one.to === 'src/domains/iam/access/rights.ts',
  api: (one, to) => {
    if (['api', 'edge', 'lib', 'gen', 'domains', 'issuer'].includes(to)) return true
    const doors = [
      'src/downloads/entry-point.ts',
      'src/ledger/entry-point.ts',
      'src/oci/entry-point.ts',
      'src/scim/entry-point.ts',
    ]
    if (doors.includes(one.to)) return one.from === 'src/api/server.ts'
    // Names of entry points are needed before the entry points are created.
    if (['src/oci/errors.ts', 'src/scim/errors.ts'].includes(one.to)) return one.from === 'src/api/port/waiting.ts'
    return one.to === 'src/db/unavailable.ts' && ['src/api/errors.ts', 'src/api/documents.ts'].includes(one.from)
  },
  issuer: (one, to) => {
    if (['issuer', 'lib', 'gen'].includes(to)) return true
    return domainOf(one.to) === 'iam' && (to === 'service' || isRule(one)) && !/\.(?:model|store|v\d)\.ts$/.test(one.to)
  },
  blobs: (_, to) => to === 'blobs' || to === 'lib',
  oci: (one, to) => {
    if (['oci', 'edge', 'blobs', 'issuer', 'lib'].includes(to)) return true
    if (one.to === 'src/db/unavailable.ts') return one.from === 'src/oci/errors.ts'
    const domain = domainOf(one.to)
    if (['registry', 'policy', 'mirrors'].includes(domain)) return ['service', 'model'].includes(to) || isRule(one)
    return (
      ['iam', 'outbox', 'events'].includes(domain) &&
      (to === 'service' || isRule(one)) &&
      !/\.(?:model|store|v\d)\.ts$/.test(one.to)
    )
  },
  scim: (one, to) => {
    if (['scim', 'edge', 'lib'].includes(to)) return true
    if (one.to === 'src/db/unavailable.ts') return one.from === 'src/scim/errors.ts'
    return domainOf(one.to) === 'iam' && ['service', 'model'].includes(to)
  },
  ledger: (one, to) => {
    if (['ledger', 'edge', 'issuer', 'lib'].includes(to)) return true
    if (one.to === 'src/db/unavailable.ts') return one.from === 'src/ledger/errors.ts'
    if (one.to === 'src/domains/iam/access/capabilities.ts') return true
    return ['registry', 'ledger'].includes(domainOf(one.to)) && ['service', 'model'].includes(to)
  },
  downloads: (one, to) => {
    if (['downloads', 'edge', 'lib'].includes(to)) return true
    if (one.to === 'src/db/unavailable.ts') return one.from === 'src/downloads/entry-point.ts'
    return domainOf(one.to) === 'scanning' && ['service', 'model'].includes(to)
  },
  clouds: (_, to) => ['clouds', 'lib'].includes(to),
  cli: (one, to) => {
    if (
      ['cli', 'config', 'lib', 'versions', 'sources', 'src/config.ts', 'src/create-app.ts', 'src/workers.ts'].includes(
        to,
      )
    )
      return true
    if (to === 'gen') return one.typeOnly
    if (one.from === 'src/cli/iam/identities-check.ts') return one.to === 'src/domains/iam/identities/token-checks.ts'
    const operators = one.from.startsWith('src/cli/server/') || one.from === 'src/cli/framework/operator.ts'
    return operators && (['api', 'issuer', 'db', 'service', 'maintenance'].includes(to) || openers.includes(to))
  },
}

test('every import is allowed by the import table', () => {
  const broken = all.filter((one) => {
    const from = roomOf(one.from)
    const to = roomOf(one.to)
    // Files in src/ itself connect all folders. A rule file of a domain, such as rights.ts, has the row of the services.
    if (from.startsWith('src/')) return false
    const rule = from === 'rule' ? allowed.service! : allowed[from]!
    const readsContract = ['outbox/emit.ts', 'iam/access/capabilities.ts', 'iam/identities/service-principals.ts']
    if (readsContract.includes(ruleOf(one.from)) && to === 'gen') return false
    return !everywhere(one) && !rule(one, to)
  })
  assert.deepEqual(
    broken.map((one) => `${one.from} -> ${one.to}`),
    [],
  )
})

test('every file of a domain has a role, or is listed as a rule file', () => {
  const rules = files.filter((file) => roomOf(file) === 'rule').map(ruleOf)
  assert.deepEqual(rules.sort(), Object.values(ruleFiles).flat().sort())
})

test('no source folder has more than 25 files', () => {
  const folders = Map.groupBy(globSync('src/**/*.ts', { cwd: root }), dirname)
  const full = [...folders].filter(([folder, own]) => own.length > 25 && !folder.endsWith('/migrations'))
  assert.deepEqual(
    full.map(([folder]) => folder),
    [],
  )
})

test('only one file compiles regular expressions of users', () => {
  const importing = files.filter((file) => /from 're2js'/.test(readFileSync(join(root, file), 'utf8')))
  assert.deepEqual(importing, ['src/lib/patterns/patterns.ts'])
})

test('imports are relative within a folder of src, and start with # between folders', () => {
  const wrong = all.filter((one) => {
    const crossing = (path: string) =>
      path
        .split('/')
        .slice(0, path.startsWith('src/domains/') ? 3 : 2)
        .join('/')
    const [from, to] = [crossing(one.from), crossing(one.to)]
    if (one.to.startsWith('gen/')) return !one.specifier.startsWith('#')
    if (one.from.split('/').length === 2) return !one.specifier.startsWith('.') && one.to.split('/').length === 2
    if (one.to.split('/').length === 2) return false
    return (from === to) !== one.specifier.startsWith('.')
  })
  assert.deepEqual(
    wrong.map((one) => `${one.from}: ${one.specifier}`),
    [],
  )
})

test('finds a forbidden import', () => {
  const refused = (from: string, to: string) => {
    const planted: Import = { from: `src/domains/${from}`, to, typeOnly: false, specifier: to }
    return !allowed[roomOf(planted.from)]!(planted, roomOf(planted.to))
  }
  const [older, newer] = ['v1', 'v2'].map((version) => `gen/pinfold/iam/${version}/roles_pb.ts`)
  assert.ok(refused('iam/roles/roles.v2.ts', older!) && refused('iam/roles/roles.v1.ts', newer!))
  assert.ok(refused('iam/roles/roles.v1.ts', 'src/domains/iam/roles/roles.v2.ts'))
  assert.ok(!refused('iam/roles/roles.v2.ts', newer!) && !refused('iam/roles/roles.v1.ts', older!))
  const planted: Import = { from: 'src/lib/uid.ts', to: 'src/db/sql.ts', typeOnly: false, specifier: '#db/sql.ts' }
  assert.equal(allowed[roomOf(planted.from)]!(planted, roomOf(planted.to)), false)
  assert.ok(all.length > 100, 'the pattern that finds imports no longer finds them')
})

test('another file imports every source file', () => {
  const users = globSync(['{src,test,bench,scripts}/**/*.{ts,mjs}', 'bin/*'], { cwd: root })
  const used = new Set<string>()
  for (const user of users) {
    const text = readFileSync(join(root, user), 'utf8')
    for (const [, path] of text.matchAll(/['"`]((?:#|\.{1,2}\/)[^'"`\n]+\.(?:ts|mjs))['"`]/g)) {
      used.add(path!.startsWith('#') ? `src/${path!.slice(1)}` : join(dirname(user), path!))
    }
  }
  // The script bin/pinfold starts this file.
  assert.deepEqual(
    files.filter((file) => !used.has(file)),
    ['src/main.ts'],
  )
})
