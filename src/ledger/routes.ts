import { tagPattern } from '#lib/oci-names.ts'
import { readTilePath, type TileRequest } from '#lib/tlog/tiles.ts'
import { isUid, rootOf } from '#lib/uid.ts'

/**
 * Route of a path. The first log of an organization has the path of the organization's uid. A later log has its name after the
 * uid.
 */
export type Route =
  | { kind: 'checkpoint'; organization: string; name: string }
  | { kind: 'tile'; organization: string; name: string; asked: TileRequest }
  | { kind: 'policy'; organization: string }
  | { kind: 'proof'; repo: string; tag: string }
  | { kind: 'witness'; wants: 'key' | 'cosignature' }
  | { kind: 'unknown' }

export const routeKinds = [
  'checkpoint',
  'tile',
  'policy',
  'proof',
  'witness',
  'unknown',
] as const satisfies Route['kind'][]

const ofLog = /^\/ledger\/([0-9a-f]{40})(?:\/([1-9]\d{0,5}-[0-9a-f]{8}))?\/(checkpoint|policy|tile\/.{1,64})$/
const ofTag = /^\/ledger\/([0-9a-f]{40})\/repos\/([0-9a-f/]{1,1024})\/tags\/([^/]{1,128})\/proof$/
const unknown: Route = { kind: 'unknown' }

export function routeOf(path: string): Route {
  if (path === '/ledger/witness/key') return { kind: 'witness', wants: 'key' }
  if (path === '/ledger/witness/add-checkpoint') return { kind: 'witness', wants: 'cosignature' }
  const [, organization, name = '', rest] = ofLog.exec(path) ?? []
  if (organization === undefined) return proofRoute(path)
  if (rest === 'policy') return name === '' ? { kind: 'policy', organization } : unknown
  if (rest === 'checkpoint') return { kind: 'checkpoint', organization, name }
  const asked = readTilePath(rest!.slice('tile/'.length))
  return asked ? { kind: 'tile', organization, name, asked } : unknown
}

function proofRoute(path: string): Route {
  const [, organization, repo, tag] = ofTag.exec(path) ?? []
  if (repo === undefined || !isUid(repo) || rootOf(repo) !== organization || repo === organization) return unknown
  return tagPattern.test(tag!) ? { kind: 'proof', repo, tag: tag! } : unknown
}
