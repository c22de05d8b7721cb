// Server whose transparency log other servers witness.
import type { Config } from '#config.ts'
import { sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { createWitnessing } from '#domains/ledger/proofs/witnessing.ts'
import { type NoteKey, parseVkey } from '#lib/tlog/notes.ts'
import { parsePolicy } from '#lib/tlog/policy.ts'
import { runJob } from './background-jobs.ts'
import { type Pinfold, startPinfold } from './pinfold.ts'
import { digestOf, plantTag } from './tags.ts'

/** The server and its witnesses, in the state after a restart with these settings. */
export async function witnessed(count: number, allowed: Partial<Config> = { witnessesPrivate: ['127.0.0.1'] }) {
  const closing = new AsyncDisposableStack()
  const log = closing.use(
    await startPinfold({ allowPrivateAddresses: false, allowInsecureUpstreams: true, logLevel: 'error', ...allowed }),
  )
  const org = (await log.seed.group('', { name: 'acme' })).uid as string
  const repo = (await log.seed.repo(org, { name: 'app' })).uid as string
  const { updateTime: at } = await plantTag(log, repo, 'v1', 'a')
  await runJob(log.app, sequenceLedgers)
  const [logKey] = parsePolicy((await log.operator.get(`/ledger/${org}/policy`)).text).logs as [NoteKey]
  const keys: NoteKey[] = []
  const witnesses: Pinfold[] = []
  for (let i = 0; i < count; i++) {
    const one = closing.use(await startPinfold({ witnessLogs: [logKey] }))
    keys.push(parseVkey((await one.anonymous.get('/ledger/witness/key')).text.trim())!)
    witnesses.push(one)
  }
  const config: Partial<Config> = log.app.config
  config.transparencyLogWitnesses = keys.map((own, i) => ({ key: own, url: `${witnesses[i]!.url}/ledger/witness` }))
  const policy = async () => parsePolicy((await log.operator.get(`/ledger/${org}/policy`)).text)
  const proof = async () => (await log.operator.get(`/ledger/${org}/repos/${repo}/tags/v1/proof?at=${at}`)).text
  const checkpoint = async () => (await log.operator.get(`/ledger/${org}/checkpoint`)).text
  const claim = { host: new URL(log.url).host, path: 'acme/app', tag: 'v1', digest: digestOf('a'), at: at as string }
  return { closing, log, org, repo, keys, witnesses, policy, proof, checkpoint, claim }
}

/** Resets the state as a restart on the same database does: earlier answers of witnesses are forgotten. */
export function restart({ app }: Pinfold, monotonic = () => performance.now()): void {
  app.witnessing = createWitnessing(monotonic)
}
