// Inputs for HTTP entry points that are not methods of the API, such as the registry, SCIM and the pages. Their paths are in
// `entriesOf`. The entry points declare which paths must have inputs.

import { gzipSync } from 'node:zlib'
import { openConsole } from '#api/ui/console.ts'
import { formBodies, jsonBodies } from './bodies.ts'
import { hasRegistryHandler, registryHandler } from './handled.ts'
import type { Input } from './input.ts'
import { manifests, typeOf, validManifests } from './manifests.ts'
import type { Facts } from './server.ts'
import { mcpBodies, scimBodies, scimGroupBodies } from './special-bodies.ts'
import type { HttpRequest, Wire } from './wire.ts'

/** `kind` is the name of the path in the metrics. `bodies` are sent in addition to the bodies for all paths. */
type Entry = {
  path: string
  headers?: Record<string, string>
  bodies?: Record<string, () => string | Buffer>
  /** Bodies that the path accepts with this HTTP method. */
  valid?: { verb: string; bodies: readonly string[] }
  /** Content-Type of a body. */
  typeOf?: (shape: string) => string
  queries?: Record<string, string>
}

const fill = (one: string, bytes: number): string => one.repeat(Math.floor(bytes / one.length))
const many = (count: number, make: (at: number) => string, between: string): string =>
  Array.from({ length: count }, (_, at) => make(at)).join(between)

const maxQueryBytes = 120_000
const maxHeaderBytes = 15_000

/** Queries that are sent to every path. */
const queries: Record<string, string> = {
  'many parameters': many(24_000, (at) => at.toString(36).padStart(4, 'a'), '&'),
  'one long parameter': `last=${fill('a', maxQueryBytes)}`,
  'a parameter many times': fill('scope=a&', maxQueryBytes),
  escapes: `last=${fill('%41', maxQueryBytes)}`,
  'escapes of no text': `last=${fill('%ff', maxQueryBytes)}`,
}

const base64 = (text: string): string => Buffer.from(text).toString('base64url')
const deepToken = `${base64(`{"alg":"ES256","kid":${'['.repeat(5000)}${']'.repeat(5000)}}`)}.${base64('{}')}.${fill('A', 86)}`
const wideToken = `${base64(`{"alg":"ES256",${many(1200, (at) => `"${at.toString(36)}":0`, ',')}}`)}.${base64('{}')}.AAAA`

/** Header fields that are sent to every path. */
const headers: Record<string, Record<string, string>> = {
  'a deep token': { authorization: `Bearer ${deepToken.slice(0, maxHeaderBytes)}` },
  'a wide token': { authorization: `Bearer ${wideToken.slice(0, maxHeaderBytes)}` },
  'a long token': { authorization: `Bearer ${fill('a', maxHeaderBytes)}` },
  'a token of dots': { authorization: `Bearer ${fill('.', maxHeaderBytes)}` },
  'a long password': { authorization: `Basic ${Buffer.from(`a:${fill('b', 11_000)}`).toString('base64')}` },
  spaces: { authorization: `Bearer${fill(' ', maxHeaderBytes)}` },
  'many cookies': { cookie: many(3700, (at) => at.toString(36), '; ').slice(0, maxHeaderBytes) },
  'a long cookie': { cookie: `pinfold=${fill('a', maxHeaderBytes)}` },
  'many ranges': { range: `bytes=${fill('0-0,', maxHeaderBytes)}0-0` },
  'many types': { accept: fill('a/b,', maxHeaderBytes) },
  'many etags': { 'if-none-match': fill('"a",', maxHeaderBytes).slice(0, -1) },
  'many proxies': { 'x-forwarded-for': fill('10.0.0.1,', maxHeaderBytes) },
  'a long request id': { 'x-request-id': fill('a', maxHeaderBytes) },
  'a long user agent': { 'user-agent': fill('(a/1 ', maxHeaderBytes) },
}

/** Paths of each kind, by entry point. Requests are made from them. */
export function entriesOf(facts: Facts): Record<string, Record<string, Entry>> {
  const { repo, organization, scim } = facts
  const [digest = ''] = repo.digests
  const registry = { authorization: `Bearer ${facts.registryTokens.operator}` }
  const page = {
    cookie: facts.cookie,
    origin: facts.url,
    'content-type': 'application/x-www-form-urlencoded',
    'sec-fetch-site': 'same-origin',
  }
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const api = { authorization: `Bearer ${facts.tokens.operator}`, 'content-type': 'application/json' }
  const at = (path: string, more: Omit<Entry, 'path'> = {}): Entry => ({ path, ...more })
  const inRegistry = (path: string, more: Omit<Entry, 'path'> = {}): Entry =>
    at(`/v2/${path}`, { headers: registry, ...more })
  const proofs = (prefix: string, headers: Record<string, string>): Record<string, Entry> => ({
    checkpoint: at(`${prefix}/ledger/${organization}/checkpoint`, { headers }),
    tile: at(`${prefix}/ledger/${organization}/tile/entries/000.p/1`, { headers }),
    policy: at(`${prefix}/ledger/${organization}/policy`, { headers }),
    proof: at(`${prefix}/ledger/${organization}/repos/${repo.uid}/tags/latest/proof`, { headers }),
    witness: at(`${prefix}/ledger/witness/add-checkpoint`, { headers, bodies: witnessBodies }),
    unknown: at(`${prefix}/ledger/unknown`, { headers }),
  })
  const manifest = {
    headers: { ...registry, 'content-type': 'application/vnd.oci.image.manifest.v1+json' },
    bodies: manifests({ digest, size: repo.size }, facts.blob),
    valid: { verb: 'PUT', bodies: validManifests },
    typeOf,
  }
  const people = { headers: { ...api, authorization: `Bearer ${scim.token}` }, bodies: scimBodies }
  const groups = { ...people, bodies: scimGroupBodies }
  return {
    registry: {
      base: inRegistry(''),
      catalog: inRegistry('_catalog'),
      manifest: inRegistry('acme/app/manifests/latest', manifest),
      blob: inRegistry(`acme/app/blobs/${facts.blob}`),
      uploads: inRegistry('acme/app/blobs/uploads/'),
      upload: at(facts.upload, {
        headers: registry,
        bodies: { bytes: () => fill('a', 4_000_000) },
        valid: { verb: 'PATCH', bodies: ['bytes'] },
      }),
      tags: inRegistry('acme/app/tags/list'),
      referrers: inRegistry(`acme/app/referrers/${digest}`),
      history: inRegistry('acme/app/_svc/history/latest'),
      resolve: inRegistry('acme/app/_svc/resolve/latest'),
      'tag-history': inRegistry('acme/app/_oci/tag-history/latest'),
      token: at('/token', { headers: registry, queries: tokenQueries }),
    },
    oauth: {
      '/oauth/token': at('/oauth/token', { headers: form, bodies: tokenForms() }),
      '/oauth/device_authorization': at('/oauth/device_authorization', { headers: form }),
      '/oauth': at('/oauth', { headers: page }),
      '/oauth/callback': at('/oauth/callback', { headers: page }),
      '/oauth/backchannel': at('/oauth/backchannel', {
        headers: form,
        bodies: { 'a wide token': () => `logout_token=${claimsToken}` },
      }),
      '/orgcheck': at('/orgcheck'),
    },
    mcp: {
      '/mcp': at('/mcp', { headers: { ...api, accept: 'application/json, text/event-stream' }, bodies: mcpBodies }),
    },
    ui: {
      '/ui/assets/…': at([...openConsole()().assets.keys()][0]!, { headers: page }),
      '/ui/…': at('/ui/repos', { headers: page }),
    },
    'ui-ledger': proofs('/ui/api', page),
    scim: {
      Users: at(`${scim.path}/Users`, { ...people, queries: scimQueries }),
      User: at(`${scim.path}/Users/${scim.user}`, people),
      Search: at(`${scim.path}/Users/.search`, people),
      Groups: at(`${scim.path}/Groups`, { ...groups, queries: scimGroupQueries }),
      Group: at(`${scim.path}/Groups/${scim.group}`, groups),
      GroupSearch: at(`${scim.path}/Groups/.search`, groups),
      ServiceProviderConfig: at(`${scim.path}/ServiceProviderConfig`, people),
      ResourceTypes: at(`${scim.path}/ResourceTypes`, people),
      Schemas: at(`${scim.path}/Schemas`, people),
      none: at(`${scim.path}/Bulk`, people),
    },
    downloads: { report: at(`/downloads/reports/${fill('a', 12_000)}`) },
    ledger: proofs('', api),
    docs: { '/docs': at('/docs') },
    documents: { '/metrics': at('/metrics', { headers: api }) },
  }
}

const claimsToken = `${base64('{"alg":"RS256","typ":"JWT"}')}.${base64(`{"iss":"https://issuer.example.com","sub":"a","aud":[${many(2500, () => '"a"', ',')}]}`)}.AAAA`
const tokenQueries: Record<string, string> = {
  'many scopes': many(32, (at) => `scope=repository:${fill('a/', 200)}a${at}:pull,push`, '&'),
  'scopes in one parameter': `scope=${many(32, (at) => `repository:acme/app${at}:${fill('pull,', 3000)}pull`, '+')}`,
  'a scope of colons': `scope=repository:${fill(':', maxQueryBytes)}`,
}
const scimQueries: Record<string, string> = {
  'a long filter': `filter=${encodeURIComponent(many(100, () => 'userName eq "a"', ' and '))}`,
  'a filter of many conditions': `filter=${encodeURIComponent(many(5, () => 'emails co "a"', ' or '))}`,
  'a filter of parentheses': `filter=${fill('(', 2000)}`,
  'many attributes': `attributes=${many(30, () => 'a.b.c.d', ',')}`,
  'a filter of quotes': `filter=${encodeURIComponent(`userName eq "${fill('\\"', 2000)}`)}`,
  'a filter of spaces': `filter=${encodeURIComponent(`userName eq "a"${fill(' ', 2000)}x`)}`,
  'a long attribute': `filter=${fill('a', 2000)}`,
}
const scimGroupQueries: Record<string, string> = {
  ...scimQueries,
  'a filter of many members': `filter=${encodeURIComponent(many(5, (at) => `members.value eq "${at}"`, ' or '))}`,
  'a long filter': `filter=${encodeURIComponent(many(100, () => 'displayName eq "a"', ' and '))}`,
}
const witnessBodies: Record<string, () => string> = {
  'many hashes': () => `old 1\n${fill(`${fill('A', 43)}=\n`, 60_000)}\nlog.example.com\n1\n${fill('A', 43)}=\n\n`,
  'many signatures': () => `old 1\n\nlog.example.com\n1\n${fill('A', 43)}=\n\n${fill('— a AAAA\n', 60_000)}`,
  lines: () => fill('\n', 64_000),
}

function tokenForms(): Record<string, () => string> {
  const exchange =
    'grant_type=urn:ietf:params:oauth:grant-type:token-exchange&subject_token_type=urn:ietf:params:oauth:token-type:jwt'
  const grants = ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code']
  return {
    'a wide token': () => `${exchange}&subject_token=${claimsToken}`,
    'a long token': () => `${exchange}&subject_token=${fill('a', 60_000)}`,
    'a token of dots': () => `${exchange}&subject_token=${fill('.', 60_000)}`,
    'many audiences': () =>
      `${exchange}&subject_token=a${many(12_000, (at) => `&cap=${at.toString(36)}`, '').slice(0, 60_000)}`,
    ...Object.fromEntries(
      grants.map((grant) => [
        `a long code of ${grant.split(':').at(-1)}`,
        () =>
          `grant_type=${grant}&client_id=a&code=${fill('a', 20_000)}&refresh_token=${fill('a', 20_000)}&device_code=${fill('a', 20_000)}`,
      ]),
    ),
  }
}

/**
 * Kinds that an entry point declares, with their HTTP verbs. Other names in the metrics are API methods, which come from the
 * descriptors.
 */
export function declaredKinds({ doors }: Facts): Map<string, Set<string>> {
  const kinds = new Map<string, Set<string>>()
  for (const { transport, methods } of doors) {
    for (const method of methods) {
      const [, verb, kind] = /^(GET|HEAD|PUT|POST|PATCH|DELETE|OPTIONS|other) (.+)$/.exec(method) ?? []
      if (verb === undefined) continue
      const of = `${transport} ${kind}`
      kinds.set(of, (kinds.get(of) ?? new Set()).add(verb))
    }
  }
  return kinds
}

/** Inputs for every verb of every kind. Throws for a kind without a path. */
export function doorInputs(facts: Facts, wire: Wire): Input[] {
  const entries = entriesOf(facts)
  const inputs: Input[] = []
  for (const [of, verbs] of declaredKinds(facts)) {
    const [transport, kind] = [of.slice(0, of.indexOf(' ')), of.slice(of.indexOf(' ') + 1)]
    // A kind that is a path itself needs no entry.
    const headers: Record<string, string> =
      transport === 'ui'
        ? {
            cookie: facts.cookie,
            origin: facts.url,
            'content-type': 'application/x-www-form-urlencoded',
            'sec-fetch-site': 'same-origin',
          }
        : {}
    const entry =
      entries[transport]?.[kind] ?? (kind.startsWith('/') && !kind.endsWith('…') ? { path: kind, headers } : undefined)
    if (!entry) throw new Error(`${of} has no entry in entry-points.ts, so it has no inputs`)
    for (const verb of verbs) {
      inputs.push(
        ...inputsAt(wire, {
          target: `${transport} ${verb} ${kind}`,
          verb,
          entry,
          isRead: !noBodies.includes(transport),
          ...(transport === 'registry' && hasRegistryHandler(verb, kind) && { handler: registryHandler(verb, kind) }),
        }),
      )
    }
  }
  return inputs
}

/** True if the request deletes a session, a tag or a user, which later requests could need. */
export const isDeletion = ({ target }: Input): boolean => / DELETE | POST \/ui\/(?:signout|sessions\/end)$/.test(target)

/** Entry points that never read a body. */
const noBodies = ['documents', 'docs', 'downloads', 'ui-ledger']

/** `handler` is the handler that serves the request without a change. */
type At = { target: string; verb: string; entry: Entry; isRead: boolean; handler?: string }

function inputsAt(wire: Wire, { target, verb, entry, isRead, handler }: At): Input[] {
  const inputs: Input[] = []
  const add = (shape: string, more: () => Partial<HttpRequest>, isSpecial = false): void => {
    const prepare = () => {
      const { headers, ...request } = more()
      const sent = { verb: verb === 'other' ? 'PROPFIND' : verb, path: entry.path, ...request }
      return () => wire.http({ ...sent, headers: { ...entry.headers, ...headers } })
    }
    inputs.push({ target, caller: 'owner', shape, isSpecial, prepare })
  }
  // Only this shape surely passes the limits for paths and headers and reaches the entry point.
  add('as it is', () => ({}), true)
  if (handler) inputs[0]!.handler = handler
  for (const [name, query] of Object.entries(queries)) add(name, () => ({ path: `${entry.path}?${query}` }))
  for (const [name, fields] of Object.entries(headers)) add(name, () => ({ headers: fields }))
  const long = inputs.length
  add('a long path', () => ({ path: `${entry.path.replace(/\/$/, '')}/${fill('a/', 15_000 - entry.path.length)}` }))
  // The changed path may be of another kind.
  inputs[long]!.isRare = true
  if (verb === 'GET') {
    for (const [name, query] of Object.entries(entry.queries ?? {})) {
      add(name, () => ({ path: `${entry.path}?${query}` }), true)
    }
  }
  if (verb !== 'PUT' && verb !== 'POST' && verb !== 'PATCH') return inputs
  const isForm = entry.headers?.['content-type']?.includes('form') ?? false
  const bodies = Object.entries(isForm ? formBodies : jsonBodies)
  for (const [name, make] of isRead ? bodies : bodies.slice(0, 1)) add(name, () => ({ body: make() }))
  for (const [name, make] of Object.entries(entry.bodies ?? {})) {
    add(name, () => ({ body: make(), headers: entry.typeOf ? { 'content-type': entry.typeOf(name) } : {} }), true)
    if (verb === entry.valid?.verb && entry.valid.bodies.includes(name)) inputs.at(-1)!.isValid = true
  }
  const packed = { 'content-encoding': 'gzip' }
  add('a compressed body', () => ({ body: gzipSync(fill(' ', 4_000_000)), headers: packed }))
  add('chunks of one byte', () => ({ body: fill('a', 64_000), chunkBytes: 1 }))
  return inputs
}
