// Pulls of everything from an upstream that is hostile, and what has come of it.
import { createHash } from 'node:crypto'
import { sql } from '#db/sql.ts'
import { ok } from './expect.ts'
import { hostile, publishAt } from './hostile-upstreams.ts'
import { startRegistry } from './registry.ts'
import { localUpstreams, startUpstream } from './upstream.ts'

/** A server with room for a megabyte in all, whose time for the upstreams goes fast. */
export async function startHostilePulls(canary: string) {
  let shift = 0
  const registry = await startRegistry({
    ...localUpstreams,
    // Only this address: the canary is at another one.
    upstreamsPrivate: ['127.0.0.1'],
    quotaBytes: 1_000_000,
    monotonic: () => performance.now() * 1000 + shift,
  })
  const { app, operator, org, seed, puller } = registry
  let count = 0

  /** What is stored in the repo that is not what it says, or belongs to nothing that the upstream was asked for. */
  async function wrongIn(repo: string): Promise<string[]> {
    const manifests = await app.db.all<{ digest: string; content: Uint8Array }>(sql`
      SELECT m.digest, m.content FROM manifests m JOIN repos r ON r.id = m.repo_id WHERE r.uid = ${repo}`)
    const wrong = manifests.filter(({ digest, content }) => {
      return digest !== `sha256:${createHash('sha256').update(content).digest('hex')}`
    })
    return wrong.map(({ digest }) => `stored ${digest}`)
  }

  return {
    /** Everything is pulled, by tag and by digest; `problems` is what should not have been. Of no kind, nothing is wrong. */
    async pullFrom(kind: string): Promise<{ problems: string[]; statuses: number[] }> {
      await using there = await startUpstream()
      const name = `hostile-${count++}`
      const good = publishAt(there, '1.0')
      hostile[kind]?.({ there, good, canary })
      const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, { name, url: there.url }))
      const repo = (await seed.repo(org.uid, { name })).uid as string
      const body = { upstreamUid: upstream.uid, path: 'app', mode: 'MODE_ON_DEMAND' }
      ok(await operator.post(`/registry/v2/repos/${repo}/follow`, body))
      const problems: string[] = []
      const statuses: number[] = []
      const wanted = [
        'manifests/1.0',
        `manifests/${good.image.digest}`,
        ...[good.layer, good.config].map(({ digest }) => `blobs/${digest}`),
      ]
      for (const path of wanted) {
        shift += 3_600_000
        // A blob that is wrong breaks off, since its first bytes are on their way by then.
        const answer = await puller.call('GET', `acme/${name}/${path}`).catch(() => undefined)
        statuses.push(answer?.status ?? 0)
        if (answer && answer.status >= 500 && ![502, 503].includes(answer.status))
          problems.push(`${path}: ${answer.status}`)
        if (answer?.status !== 200) continue
        const digest = /sha256:[0-9a-f]{64}/.exec(path)?.[0]
        const has = `sha256:${createHash('sha256').update(answer.bytes).digest('hex')}`
        if (digest !== undefined && has !== digest) problems.push(`${path}: served ${has}`)
      }
      problems.push(...(await wrongIn(repo)))
      const stored = await app.db.all<{ digest: string }>(sql`
        SELECT b.digest FROM repo_blobs b JOIN repos r ON r.id = b.repo_id WHERE r.uid = ${repo}`)
      const known = [good.layer.digest, good.config.digest]
      problems.push(...stored.filter(({ digest }) => !known.includes(digest)).map(({ digest }) => `stored ${digest}`))
      for (const { digest } of stored) {
        const { bytes } = await puller.ok(200, 'GET', `acme/${name}/blobs/${digest}`)
        const has = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
        if (has !== digest) problems.push(`${digest} is ${has}`)
      }
      // An organisation has so many upstreams at a time.
      ok(await operator.delete(`/registry/v2/repos/${repo}/follow`))
      ok(await operator.delete(`/registry/v2/upstreams/${upstream.uid}`))
      return { problems, statuses }
    },
    [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose](),
  }
}
