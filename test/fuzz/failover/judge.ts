// Verdict on one round of a failover, from the answers, the acknowledged pushes and the checkpoints of the log.
import { leafHash, rootHash } from '#lib/tlog/merkle.ts'
import { tileWidth } from '#lib/tlog/tiles.ts'
import { entriesIn, nodesOver, tilePathOf } from '../../support/log-tree.ts'
import type { Answer, Head, Load, Target } from './load.ts'

/** Milliseconds from the first answer of a new primary until each server has answered a push again. */
export function recoveryMs(answers: readonly Answer[], servers: number, primaryAt: number): number[] {
  return Array.from({ length: servers }, (_, server) => {
    const good = answers.filter((one) => one.server === server && one.kind === 'push' && one.status === 201)
    const first = good
      .filter(({ ended }) => ended >= primaryAt)
      .reduce((least, { ended }) => Math.min(least, ended), Number.POSITIVE_INFINITY)
    return first - primaryAt
  })
}

/** Longest time during which one of the servers answered no push. */
export function longestGapMs(answers: readonly Answer[], servers: number): number {
  let longest = 0
  for (let server = 0; server < servers; server++) {
    const times = answers
      .filter((one) => one.server === server && one.kind === 'push' && one.status === 201)
      .map(({ ended }) => ended)
      .sort((a, b) => a - b)
    for (const [i, time] of times.entries()) if (i > 0) longest = Math.max(longest, time - times[i - 1]!)
  }
  return longest
}

const readyzMs = 2500

/** Answers that no client may get, each once. A pull may get 404 only if writes were lost. */
export function badAnswers(answers: readonly Answer[], hasLost: boolean): string[] {
  const bad = answers.flatMap((one) => {
    const { kind, status, canRetry, problem, began, ended, server } = one
    const where = `server ${server}, ${kind}`
    if (kind === 'readyz' && ended - began > readyzMs) return [`${where}: no answer within ${readyzMs} ms`]
    if (status === 503) return kind === 'readyz' || canRetry ? [] : [`${where}: 503 without Retry-After`]
    if (status < 400 && status > 0) return []
    // A log without a checkpoint answers 404.
    if (status === 404 && (kind === 'log' || (kind === 'pull' && hasLost))) return []
    return [`${where}: ${status === 0 ? 'no answer' : status}: ${problem}`]
  })
  return [...new Set(bad)]
}

/** Acknowledged pushes that the server no longer has. */
export async function lostPushes({ acknowledged }: Load, { base, token }: Target): Promise<string[]> {
  const lost: string[] = []
  const left = [...acknowledged]
  const worker = async () => {
    for (let next = left.pop(); next; next = left.pop()) {
      const [tag, { repo, digest }] = next
      const headers = { authorization: `Bearer ${await token()}`, accept: '*/*' }
      const answer = await fetch(`${base}/v2/${repo}/manifests/${tag}`, { method: 'HEAD', headers })
      if (answer.headers.get('docker-content-digest') !== digest) lost.push(`${tag} (${answer.status})`)
    }
  }
  await Promise.all(Array.from({ length: 8 }, worker))
  return lost
}

/**
 * Checkpoints that contradict each other: two roots for one size, or a checkpoint that is no prefix of the served log.
 * Checkpoints larger than the served log cannot be compared. They exist only if the database has lost entries.
 */
export async function contradictions(
  heads: readonly Head[],
  { base, organization }: Target,
  served: Head,
): Promise<string[]> {
  const found: string[] = []
  const roots = new Map<string, string>()
  for (const { origin, size, root } of heads) {
    const known = roots.get(`${origin} ${size}`)
    if (known !== undefined && known !== root) found.push(`two roots of ${origin} at size ${size}`)
    roots.set(`${origin} ${size}`, root)
  }
  const rootAt = await servedRoots(base, organization, served)
  for (const [at, root] of roots) {
    const [origin, size] = at.split(' ') as [string, string]
    if (origin !== served.origin || Number(size) > served.size || size === '0') continue
    if (rootAt(Number(size)) !== root)
      found.push(`the head of size ${size} is not the beginning of the one of size ${served.size}`)
  }
  return found
}

/** Root of the served log at each size, computed from its entries. */
async function servedRoots(
  base: string,
  organization: string,
  { size, origin }: Head,
): Promise<(size: number) => string> {
  const leaves: Buffer[] = []
  // The path of a later log of an organization has its generation after the organization.
  const folder = origin.slice(origin.indexOf('/ledger/'))
  for (let index = 0; index * tileWidth < size; index++) {
    const width = Math.min(size - index * tileWidth, tileWidth)
    const path = tilePathOf({ kind: 'entries', level: 0, index, width })
    const answer = await fetch(`${base}${folder}/${path}`)
    if (!answer.ok) throw new Error(`entries of ${organization}: ${answer.status}`)
    leaves.push(...entriesIn(Buffer.from(await answer.arrayBuffer())).map(leafHash))
  }
  const nodes = nodesOver(leaves)
  return (at) => rootHash(at, nodes).toString('base64')
}
