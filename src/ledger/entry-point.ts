// Entry point of the transparency logs: `/ledger/…`. It serves checkpoints and tiles (c2sp.org/tlog-tiles), and inclusion proofs
// of tags.
import type { Caller } from '#caller.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { ProofPending, policyOf, proofOf, readCheckpoint, readTile } from '#domains/ledger/proofs/proofs.service.ts'
import { cosign, witnessVkey } from '#domains/ledger/proofs/witness.service.ts'
import { answer } from '#edge/answer.ts'
import type { Edge } from '#edge/arrival.ts'
import { authenticate, nobody } from '#edge/caller.ts'
import { type EntryPoint, type HttpArrival, withVerbs } from '#edge/entry-points.ts'
import { readBody } from '#edge/read-body.ts'
import { createVerifier } from '#issuer/access-token.ts'
import { invalid, permissionDenied, unauthenticated } from '#lib/errors.ts'
import { parseTimestamp, toIso } from '#lib/timestamp.ts'
import { rootOf } from '#lib/uid.ts'
import { refusalOf } from './errors.ts'
import { type Route, routeKinds, routeOf } from './routes.ts'

const text = 'text/plain; charset=utf-8'
const bytes = 'application/octet-stream'
/** Largest request body in bytes. It holds a checkpoint with many signatures and a consistency proof of 63 hashes. */
const mostRequestBytes = 64 * 1024

/** Variant of the entry point, with its own path prefix and authentication. */
export type Way = {
  /** Name of the entry point. */
  name: string
  /** Path prefix of the entry point. */
  prefix: string
  /** Kinds of routes that the entry point serves. Other paths get 404. */
  kinds: readonly Route['kind'][]
  /** True if the entry point counts requests with an invalid credential. If false, `callerOf` must count them. */
  verifies: boolean
  /** Authenticates the caller. Returns undefined if it has already sent an error response. */
  callerOf(arrival: HttpArrival): Promise<Caller | undefined>
}

/** Entry point of `/ledger/…`. By default, callers authenticate with bearer tokens. `way` can set another authentication. */
export function ledgerEntryPoint(edge: Edge, way: Way = wayOfTokens(edge)): EntryPoint {
  const { app } = edge
  const { name, prefix, kinds, verifies } = way
  return {
    ...{ name, verifies, countsItself: !verifies },
    methods: withVerbs([...new Set([...kinds, 'unknown'])]),
    deadlineMs: app.config.requestTimeoutMs,
    matches: (path) => path.startsWith(`${prefix}/ledger/`),
    serve: (arrival) => serve(edge, way, arrival),
    refuse,
  }
}

function wayOfTokens({ app, url }: Edge): Way {
  const verify = createVerifier(app.keyring, url, url, app.clock)
  return {
    ...{ name: 'ledger', prefix: '', kinds: routeKinds, verifies: true },
    callerOf: async (arrival) => (arrival.authorization === undefined ? nobody : authenticate(app, verify, arrival)),
  }
}

type Read = Exclude<Route, { kind: 'unknown' | 'witness' }>
type Answer = { type: string; body: string | Buffer; cache: string }

async function serve(edge: Edge, way: Way, arrival: HttpArrival): Promise<void> {
  const served = servedRoute(edge, arrival.path.slice(way.prefix.length))
  const route: Route = way.kinds.includes(served.kind) ? served : { kind: 'unknown' }
  const turnAway: typeof send = (...given) => {
    // For these responses, `callerOf` is not called. So the request is counted here as unauthenticated.
    if (!way.verifies) arrival.countStranger()
    send(...given)
  }
  arrival.named(route.kind)
  if (route.kind === 'witness') return answerAsWitness(edge, arrival, route.wants)
  if (route.kind === 'unknown') return turnAway(arrival, 404, 'path not found\n')
  if (arrival.verb !== 'GET' && arrival.verb !== 'HEAD')
    return turnAway(arrival, 405, 'only GET and HEAD are allowed\n', { allow: 'GET, HEAD' })
  const caller = await way.callerOf(arrival)
  if (!caller) return
  const isAnonymous = caller.uid === ''
  if (!isAnonymous) arrival.admit(caller)
  requireReader(edge, caller, route)
  if (isAnonymous) arrival.admit(caller)
  const { type, body, cache } = await answerTo(edge, arrival, route)
  send(arrival, 200, body, { 'content-type': type, 'cache-control': cache })
}

/** Route of the path, or `unknown` if the settings turn this kind of route off. */
function servedRoute({ app: { config } }: Edge, path: string): Route {
  const route = routeOf(path)
  const isOffered = route.kind === 'witness' ? config.witnessLogs.length > 0 : config.transparencyLog !== 'off'
  return isOffered ? route : { kind: 'unknown' }
}

/**
 * Serves the endpoints of a witness: its public key, and cosignatures. Clients need no credential; the log's signature is
 * verified instead.
 */
async function answerAsWitness(edge: Edge, arrival: HttpArrival, wants: 'key' | 'cosignature'): Promise<void> {
  const { app, url } = edge
  const name = `${new URL(url).host}/ledger/witness`
  if (wants === 'key') {
    if (arrival.verb !== 'GET' && arrival.verb !== 'HEAD')
      return send(arrival, 405, 'only GET and HEAD are allowed\n', { allow: 'GET, HEAD' })
    return send(arrival, 200, `${await witnessVkey(app, name)}\n`)
  }
  if (arrival.verb !== 'POST') return send(arrival, 405, 'only POST is allowed\n', { allow: 'POST' })
  const { status, body } = await cosign(app, (await readBody(arrival, mostRequestBytes)).toString('utf8'), name)
  send(arrival, status, body, status === 409 ? { 'content-type': 'text/x.tlog.size' } : {})
}

const tagList = [capabilityNumber('tag.list')]

/**
 * Throws unless the caller has `tag.list` on the repository or organization. Checkpoints and tiles contain no tag names, so the
 * settings can make them public.
 */
function requireReader({ app }: Edge, { uid, rights }: Caller, route: Read): void {
  if (route.kind !== 'proof' && app.config.transparencyLog === 'public') return
  const scope = route.kind === 'proof' ? route.repo : route.organization
  if (rights.holds(scope, tagList)) return
  // To verify a proof, clients need the checkpoint and the policy. So `tag.list` in any part of the organization is sufficient
  // for these two.
  const isHead = route.kind === 'checkpoint' || route.kind === 'policy'
  if (isHead && rights.roots(tagList).some((root) => rootOf(root) === route.organization)) return
  if (uid === '')
    throw unauthenticated('no credentials were sent; send a token in the header "Authorization: Bearer TOKEN"')
  throw permissionDenied('reading this log or proof needs the capability tag.list')
}

async function answerTo(edge: Edge, arrival: HttpArrival, route: Read): Promise<Answer> {
  const { app, url } = edge
  const seenBy = app.config.transparencyLog === 'public' ? 'public' : 'private'
  switch (route.kind) {
    case 'checkpoint':
      return { type: text, body: await readCheckpoint(app, route), cache: 'no-cache' }
    case 'policy':
      return { type: text, body: await policyOf(app, route.organization, url), cache: 'no-cache' }
    case 'tile':
      // A tile with fewer entries has another path, so the content of a path never changes.
      return {
        type: bytes,
        body: await readTile(app, route, route.asked),
        cache: `${seenBy}, max-age=31536000, immutable`,
      }
    case 'proof': {
      const { repo, tag } = route
      return { type: text, body: await proofOf(app, { repo, tag, at: timeOf(edge, arrival) }), cache: 'no-store' }
    }
  }
}

/** Time in the query parameter `at`, in ISO 8601. Without the parameter, the current time. */
function timeOf({ app }: Edge, { search }: HttpArrival): string {
  const now = app.clock().toISOString()
  const given = new URLSearchParams(search).get('at')
  if (given === null) return now
  const instant = parseTimestamp(given.replace(/ (?=\d{2}:\d{2}$)/, '+'))
  if (!instant) throw invalid({ field: 'at', description: 'must be a time such as 2026-08-01T12:00:00Z' })
  const at = toIso(instant)
  if (at > now) throw invalid({ field: 'at', description: 'must not be in the future' })
  return at
}

function refuse(arrival: HttpArrival, thrown: unknown): void {
  const { status, message, headers, cause } = refusalOf(thrown)
  const { app } = arrival.edge
  const isPending = cause instanceof ProofPending
  if (status >= 500 && !isPending)
    app.failures.request(app.log, 'ledger request failed', cause, { requestId: arrival.requestId })
  send(arrival, status, `${message}\n`, headers)
}

function send(arrival: HttpArrival, status: number, body: string | Buffer, headers: Record<string, string> = {}): void {
  answer(arrival, status, body, { 'content-type': text, ...headers })
}
