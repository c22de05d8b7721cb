// Pushes, pulls and readers of the log during a failover, and a record of every answer.
import { setTimeout as sleep } from 'node:timers/promises'
import { parseCheckpoint } from '#lib/tlog/checkpoint.ts'
import { parseNote } from '#lib/tlog/notes.ts'
import { type Descriptor, digestOf, imageOf, types } from '../../support/registry.ts'

export type Kind = 'push' | 'pull' | 'readyz' | 'log'
/** Times are values of `performance.now()`. `status` is 0 if no answer came. */
export type Answer = {
  server: number
  kind: Kind
  began: number
  ended: number
  status: number
  canRetry: boolean
  problem: string
}
export type Head = { origin: string; size: number; root: string; at: number }

export type Target = {
  base: string
  organization: string
  repo: string
  config: Descriptor
  token: () => Promise<string>
}

/** Longer than any timeout of the server, so a request that takes this long hangs. */
const hangMs = 60_000
const pauseMs = 100

/** Sends requests to every server until it is stopped. */
export class Load {
  readonly answers: Answer[] = []
  /** Pushes with the answer 201, by tag. Each tag is pushed only once. */
  readonly acknowledged = new Map<string, { repo: string; digest: string }>()
  readonly heads: Head[] = []
  readonly #targets: readonly Target[]
  readonly #running: Promise<void>[]
  #isOver = false
  static #pushes = 0

  constructor(targets: readonly Target[], clients: number) {
    this.#targets = targets
    this.#running = targets.flatMap((target, server) => [
      ...Array.from({ length: clients }, () => this.#repeat(() => this.#push(server, target))),
      ...Array.from({ length: Math.ceil(clients / 2) }, () => this.#repeat(() => this.#pull(server, target))),
      this.#repeat(() => this.#ask('readyz', server, `${target.base}/readyz`, {}), 400),
      this.#repeat(() => this.#readHead(server, target), 400),
    ])
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#running)
  }

  /** Keeps all database connections of each server busy for a moment. */
  burst(requests = 60): void {
    for (const [server, target] of this.#targets.entries()) {
      for (let i = 0; i < requests; i++) void this.#pull(server, target)
    }
  }

  async #repeat(work: () => Promise<unknown>, ms = pauseMs): Promise<void> {
    while (!this.#isOver) {
      await work()
      await sleep(ms)
    }
  }

  async #ask(kind: Kind, server: number, url: string, init: RequestInit): Promise<{ status: number; body: string }> {
    const began = performance.now()
    const record = (status: number, canRetry: boolean, problem: string) =>
      this.answers.push({ server, kind, began, ended: performance.now(), status, canRetry, problem })
    try {
      const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(hangMs) })
      const body = await answer.text()
      record(answer.status, answer.headers.has('retry-after'), answer.ok ? '' : body.slice(0, 300))
      return { status: answer.status, body }
    } catch (error) {
      record(0, false, String((error as Error).cause ?? error))
      return { status: 0, body: '' }
    }
  }

  async #push(server: number, { base, repo, config, token }: Target): Promise<void> {
    const number = Load.#pushes++
    const tag = `t${number}`
    const body = JSON.stringify(imageOf(config, [], { annotations: { number: `${number}` } }))
    const headers = { authorization: `Bearer ${await token()}`, 'content-type': types.image }
    const { status } = await this.#ask('push', server, `${base}/v2/${repo}/manifests/${tag}`, {
      method: 'PUT',
      body,
      headers,
    })
    if (status === 201) this.acknowledged.set(tag, { repo, digest: digestOf(body) })
  }

  /** Pulls a tag that was pushed just now, so no cache has it. */
  async #pull(server: number, { base, token }: Target): Promise<void> {
    const pushed = [...this.acknowledged]
    const recent = pushed[Math.max(pushed.length - 1 - Math.floor(Math.random() * 50), 0)]
    if (recent === undefined) return
    const [tag, { repo }] = recent
    const headers = { authorization: `Bearer ${await token()}`, accept: types.image }
    await this.#ask('pull', server, `${base}/v2/${repo}/manifests/${tag}`, { headers })
  }

  /** Each restore starts a new log, so the newest one is looked up. */
  async #readHead(server: number, { base, organization }: Target): Promise<void> {
    const policy = await this.#ask('log', server, `${base}/ledger/${organization}/policy`, {})
    const location = /^log \S+ (\S+)$/m.exec(policy.body)?.[1]
    if (policy.status !== 200 || location === undefined) return
    const { status, body } = await this.#ask('log', server, `${base}${new URL(location).pathname}/checkpoint`, {})
    const head = status === 200 ? parseCheckpoint(parseNote(body)?.text ?? '') : undefined
    if (!head) return
    this.heads.push({ origin: head.origin, size: head.size, root: head.root.toString('base64'), at: performance.now() })
  }
}
