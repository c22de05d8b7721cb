import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = globSync('src/**/*.ts', { cwd: root })
  .filter((file) => !file.endsWith('.test.ts'))
  .sort()

type Import = { from: string; to: string; typeOnly: boolean; specifier: string }

/** Every import of ours that a file makes, as paths from the project's root. Packages and node: are left out. */
function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8')
  const found: Import[] = []
  const statement = /^(import|export)\s+(type\s+)?[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\(\s*'([^']+)'/gm
  for (const match of text.matchAll(statement)) {
    const specifier = match[3] ?? match[4] ?? match[5]!
    if (!specifier.startsWith('.') && !specifier.startsWith('#')) continue
    const to = specifier.startsWith('.')
      ? relative(root, resolve(root, dirname(file), specifier))
      : specifier.startsWith('#gen/')
        ? specifier.slice(1)
        : `src/${specifier.slice(1)}`
    found.push({ from: file, to, typeOnly: match[2] !== undefined, specifier })
  }
  return found
}

const all = files.flatMap(importsOf)

/** Which row of the import table a file belongs to. */
function roomOf(path: string): string {
  if (path.startsWith('gen/')) return 'gen'
  const [, top, domain, name] = path.split('/')
  if (top !== 'domains') return path.split('/').length === 2 ? `src/${top}` : top!
  if (name === 'domain.ts') return 'domain'
  const role = /\.(model|store|service|v1|v2|control)\.ts$/.exec(name ?? '')?.[1]
  return role ?? `${domain}/${name}`
}

const domainOf = (path: string): string => path.split('/')[2] ?? ''
const sameDomain = (one: Import): boolean => domainOf(one.from) === domainOf(one.to)
const isRule = (to: string): boolean => /^src\/domains\/[a-z]+\/[a-z-]+\.ts$/.test(to) && !to.endsWith('/domain.ts')

/** The types of the application, and those of a query, may be named anywhere but in lib and the models. */
const everywhere = (one: Import): boolean => one.to === 'src/app.ts' || (one.typeOnly && one.to === 'src/db/sql.ts')

const allowed: Record<string, (one: Import, to: string) => boolean> = {
  lib: (_, to) => to === 'lib',
  contents: (_, to) => to === 'contents' || to === 'lib',
  db: (_, to) => to === 'db' || to === 'lib',
  model: (one, to) => to === 'lib' || (to === 'model' && sameDomain(one)),
  store: (one, to) => to === 'lib' || to === 'db' || (['model', 'store'].includes(to) && sameDomain(one)),
  service: (one, to) =>
    ['lib', 'service', 'blobs', 'contents'].includes(to) ||
    (sameDomain(one) && ['model', 'store'].includes(to)) ||
    isRule(one.to),
  v2: (one, to) =>
    to === 'gen' || to === 'lib' || (sameDomain(one) && (['service', 'model', 'v2'].includes(to) || isRule(one.to))),
  control: (one, to) => allowed.v2!(one, to),
  domain: (one, to) => to === 'gen' || (sameDomain(one) && ['v1', 'v2', 'control'].includes(to)),
  api: (one, to) => {
    if (['api', 'lib', 'gen', 'domain', 'issuer'].includes(to)) return true
    if (one.to === 'src/oci/door.ts') return one.from === 'src/api/server.ts'
    if (one.to === 'src/db/unavailable.ts') return one.from === 'src/api/errors.ts'
    return one.from === 'src/api/authenticate.ts' && one.to === 'src/domains/iam/rights.ts'
  },
  issuer: (one, to) => {
    if (['issuer', 'lib', 'gen'].includes(to)) return true
    return (
      domainOf(one.to) === 'iam' && (to === 'service' || isRule(one.to)) && !/\.(?:model|store|v\d)\.ts$/.test(one.to)
    )
  },
  blobs: (_, to) => to === 'blobs' || to === 'lib',
  oci: (one, to) => {
    if (['oci', 'blobs', 'issuer', 'lib'].includes(to)) return true
    if (one.to === 'src/db/unavailable.ts') return one.from === 'src/oci/errors.ts'
    const domain = domainOf(one.to)
    if (domain === 'registry') return ['service', 'model'].includes(to) || isRule(one.to)
    return (
      ['iam', 'events'].includes(domain) &&
      (to === 'service' || isRule(one.to)) &&
      !/\.(?:model|store|v\d)\.ts$/.test(one.to)
    )
  },
  clouds: (_, to) => ['clouds', 'lib'].includes(to),
  cli: (one, to) => {
    if (['cli', 'lib', 'src/config.ts', 'src/create-app.ts'].includes(to)) return true
    if (one.from === 'src/cli/identities-check.ts' && to === 'iam/claims.ts') return true
    if (one.from === 'src/cli/serve.ts' && ['registry/image-reader.ts', 'events/deliver.ts'].includes(to)) return true
    const operators = ['serve', 'token', 'migrate', 'demo', 'operator'].some(
      (name) => one.from === `src/cli/${name}.ts`,
    )
    return operators && ['api', 'issuer', 'db', 'service'].includes(to)
  },
}

test('every import obeys the table of who may import whom', () => {
  const broken = all.filter((one) => {
    const from = roomOf(one.from)
    const to = roomOf(one.to)
    // src/*.ts wires the rooms together; a rule file of a domain (rights.ts, readme.ts) obeys the services' row.
    if (from.startsWith('src/')) return false
    const rule = allowed[from] ?? allowed.service!
    if (['iam/capabilities.ts', 'iam/service-principals.ts'].includes(from) && to === 'gen') return false
    return !everywhere(one) && !rule(one, to)
  })
  assert.deepEqual(
    broken.map((one) => `${one.from} -> ${one.to}`),
    [],
  )
})

test('imports are relative inside a room and start with # across rooms', () => {
  const wrong = all.filter((one) => {
    const crossing = (path: string) =>
      path
        .split('/')
        .slice(0, path.startsWith('src/domains/') ? 3 : 2)
        .join('/')
    const [from, to] = [crossing(one.from), crossing(one.to)]
    if (one.from.split('/').length === 2) return !one.specifier.startsWith('.') && one.to.split('/').length === 2
    if (one.to.split('/').length === 2) return false
    return (from === to) !== one.specifier.startsWith('.')
  })
  assert.deepEqual(
    wrong.map((one) => `${one.from}: ${one.specifier}`),
    [],
  )
})

test('a forbidden import would be noticed', () => {
  const planted: Import = { from: 'src/lib/uid.ts', to: 'src/db/sql.ts', typeOnly: false, specifier: '#db/sql.ts' }
  assert.equal(allowed[roomOf(planted.from)]!(planted, roomOf(planted.to)), false)
  assert.ok(all.length > 100, 'the pattern that finds imports no longer finds them')
})
