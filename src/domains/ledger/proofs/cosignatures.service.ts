// Collects cosignatures of witnesses for the logs of this server. Each witness is asked to sign checkpoints that it has not
// signed. The request has a consistency proof from the last checkpoint that the witness has signed.
import type { App } from '#app.ts'
import type { Db } from '#db/sql.ts'
import { readSize } from '#lib/tlog/checkpoint.ts'
import { consistencyProof } from '#lib/tlog/merkle.ts'
import { parseNote, parseSignatures, signatureLine, signedBy, vkeyOf } from '#lib/tlog/notes.ts'
import { nodesOf, tilesFor } from '#lib/tlog/tiles.ts'
import { quorumOf, type Witness } from '#lib/tlog/witnesses.ts'
import * as store from './cosignatures.store.ts'
import { readTiles } from './logs.store.ts'
import { suspendLog } from './stored-checkpoints.store.ts'

const logsAtOnce = 100
const unsureAtOnce = 20
const timeoutMs = 10_000
/** Timeout of witnesses before signing. It is short, since other logs wait meanwhile. */
const shortTimeoutMs = 3000
const maxBytes = 64 * 1024
/** Most attempts with one witness for one checkpoint. A new attempt follows if the witness reports another size than expected. */
const mostTries = 4

type By = Pick<App, 'db' | 'toWitnesses' | 'config' | 'clock' | 'log' | 'witnessing'>

/**
 * Result of asking a witness. `size` is the size of the log that the witness has seen, and `lines` are its signatures. `beyond`
 * is a size larger than the checkpoint, or infinite if the witness has a contradicting checkpoint. `hasAnswered` is true if the
 * witness reported its size, or that it does not know the log.
 */
type WitnessReply = { vkey: string; size: number; lines: string; beyond: number; hasAnswered: boolean }
/** One run. Witnesses that do not answer are added to `silent` and not asked again in the run. */
type Run = { signal: AbortSignal; silent: Set<string>; timeoutMs: number }

/**
 * Asks witnesses about each log with missing cosignatures, several logs at a time. Returns the number of checkpoints with enough
 * cosignatures.
 */
export async function collectCosignatures(by: By, tx: Db['tx'], signal: AbortSignal): Promise<number> {
  const { transparencyLogWitnesses: witnesses } = by.config
  const keys = witnesses.map(({ key }) => vkeyOf(key))
  const run: Run = { signal, silent: new Set(), timeoutMs }
  const asked = new Set<number>()
  let signed = 0
  // If no witness answers, the run ends.
  while (run.silent.size < witnesses.length) {
    const logs = (await store.waitingLogs(by.db, keys, logsAtOnce)).filter(({ id }) => !asked.has(id))
    if (logs.length === 0) break
    for (const log of logs) {
      signal.throwIfAborted()
      asked.add(log.id)
      if (await keep(by, tx, log, await askEach(by, log, run))) signed++
    }
  }
  return signed
}

/**
 * Asks witnesses which sizes of the logs they have seen, before this process signs a log for the first time. The database may be
 * a copy of an earlier one whose logs were extended meanwhile, which a server cannot see on its own. Returns the number of logs.
 */
export async function askBeforeSigning(by: By, tx: Db['tx'], signal: AbortSignal): Promise<number> {
  if (by.config.transparencyLogWitnesses.length === 0) return 0
  const { process, isDue } = by.witnessing
  const run: Run = { signal, silent: new Set(), timeoutMs: shortTimeoutMs }
  let count = 0
  for (let after = 0; ; ) {
    const logs = await store.logsWithoutSizes(by.db, { process, after, most: unsureAtOnce })
    const due = logs.filter(({ id }) => isDue(id))
    const asked = await Promise.all(due.map((log) => askEach(by, log, run, true)))
    for (const [i, log] of due.entries()) await keep(by, tx, log, asked[i]!)
    signal.throwIfAborted()
    count += due.length
    if (logs.length < unsureAtOnce) return count
    after = logs.at(-1)!.id
  }
}

/** Id of this process. Witnesses must have answered this process before it signs a log. Undefined if there are no witnesses. */
export function answersTo({ config, witnessing }: Pick<App, 'config' | 'witnessing'>): string | undefined {
  return config.transparencyLogWitnesses.length > 0 ? witnessing.process : undefined
}

/**
 * Asks all witnesses that have seen less of the log than the checkpoint has. With `anew`, also asks witnesses that have seen this
 * checkpoint already.
 */
async function askEach(by: By, log: store.WaitingLog, run: Run, anew = false): Promise<WitnessReply[]> {
  const known = new Map((await store.sizesByWitness(by.db, log.id)).map(({ vkey, size }) => [vkey, size]))
  return Promise.all(
    by.config.transparencyLogWitnesses
      .filter(({ url }) => !run.silent.has(url))
      .map((witness) => ({ witness, seen: known.get(vkeyOf(witness.key)) ?? 0 }))
      .filter(({ seen }) => seen < log.size || (anew && seen === log.size))
      .map(({ witness, seen }) => ask(by, log, witness, seen, run)),
  )
}

/**
 * Stores a checkpoint if enough witnesses have signed it, or more than before. The log may have been signed again meanwhile. So
 * the sizes that witnesses report are compared with the current size.
 */
async function keep(
  { config, clock, witnessing, log: lines }: By,
  tx: Db['tx'],
  log: store.WaitingLog,
  asked: readonly WitnessReply[],
) {
  const isSure =
    asked.filter(({ hasAnswered }) => hasAnswered).length >= quorumOf(config.transparencyLogWitnesses.length)
  const { now, kept, isBehind } = await tx(
    async (tx) => {
      const now = await store.lockHeads(tx, log.id)
      const kept = cosignedHead(config, log, now, asked)
      const isBehind = asked.some(({ beyond }) => beyond > now.size)
      for (const { vkey, size } of asked) await store.noteWitnessSize(tx, log.id, vkey, size)
      const head = kept ?? { checkpoint: now.cosigned, size: now.cosignedSize }
      const answeredTo = isSure ? witnessing.process : ''
      await store.keepCosigned(tx, log.id, { ...head, time: clock().toISOString(), answeredTo })
      if (isBehind) await suspendLog(tx, log.id)
      return { now, kept, isBehind }
    },
    { isolation: 'rowLocks' },
  )
  // If the log was signed again meanwhile, witnesses are asked about its new checkpoint without delay.
  if (isSure || now.size === log.size) witnessing.note(log.id, isSure)
  if (isBehind)
    lines.error(
      'a witness contradicts a transparency log, so its signing is suspended; run pinfold server complete-restore',
      {
        ledgerLog: log.id,
      },
    )
  return kept !== undefined
}

/** Checkpoint with all known cosignatures. Returns undefined if it has too few, or if a later checkpoint is stored. */
function cosignedHead(
  { transparencyLogWitnesses }: By['config'],
  { checkpoint, size }: store.WaitingLog,
  now: store.CheckpointSizes,
  asked: readonly WitnessReply[],
): { checkpoint: string; size: number } | undefined {
  const before = now.cosignedSize === size ? parseNote(now.cosigned)!.signatures : []
  // The former signature of a witness is dropped if the witness has signed again.
  const silent = transparencyLogWitnesses.filter(({ key }) => {
    return !asked.some(({ vkey, lines }) => lines !== '' && vkey === vkeyOf(key))
  })
  const former = before.filter(({ name, id }) => silent.some(({ key }) => key.name === name && key.id === id))
  const all = new Set([...former.map(signatureLine), ...asked.map((one) => one.lines).filter((one) => one !== '')])
  const isEnough = all.size >= quorumOf(transparencyLogWitnesses.length)
  return isEnough && now.cosignedSize <= size ? { checkpoint: checkpoint + [...all].join(''), size } : undefined
}

/**
 * Asks one witness. If the witness reports another size than expected, asks again with this size. Other failures are retried in a
 * minute.
 */
async function ask(
  by: By,
  log: store.WaitingLog,
  witness: Witness,
  seen: number,
  run: Run,
  tries = 1,
): Promise<WitnessReply> {
  const { key, url } = witness
  const vkey = vkeyOf(key)
  const nothing: WitnessReply = { vkey, size: seen, lines: '', beyond: 0, hasAnswered: false }
  const request = { headers: { 'content-type': 'text/plain; charset=utf-8' }, body: await requestOf(by, log, seen) }
  const answer = await by.toWitnesses
    .post(`${url}/add-checkpoint`, request, { timeoutMs: run.timeoutMs, maxBytes, signal: run.signal })
    .catch((error: unknown) => ({ status: 0, body: '', error }))
  if (answer.status === 200) {
    const signatures = parseSignatures(answer.body) ?? []
    const { text } = parseNote(log.checkpoint)!
    const own = signatures.filter(({ name, id }) => name === key.name && id === key.id)
    if (own.length === 1 && signedBy({ text, signatures: own }, key).is === 'signed') {
      return { vkey, size: log.size, lines: signatureLine(own[0]!), beyond: 0, hasAnswered: true }
    }
  }
  const told = answer.status === 409 ? readSize(answer.body.trim()) : undefined
  // The witness has another checkpoint of the same size. A correct log never gets this answer, even if the log has grown
  // meanwhile.
  const contradicts = answer.status === 422 || (told === seen && told === log.size)
  if (contradicts) return { ...nothing, beyond: Number.POSITIVE_INFINITY, hasAnswered: true }
  if (told !== undefined && told > log.size) return { ...nothing, beyond: told }
  // Another server may ask the same witness, so the size of the witness may grow with each answer.
  if (told !== undefined && tries < mostTries) return ask(by, log, witness, told, run, tries + 1)
  const { status } = answer
  if (status === 0) run.silent.add(url)
  by.log.warn('a witness did not cosign a checkpoint', {
    witness: key.name,
    status,
    ...('error' in answer && { error: answer.error }),
  })
  // A witness that does not know the log or its key has signed no checkpoint of it.
  return { ...nothing, hasAnswered: status === 403 || status === 404 }
}

async function requestOf({ db }: By, { id, size, checkpoint }: store.WaitingLog, seen: number): Promise<string> {
  const tiles = await readTiles(db, id, tilesFor([Math.max(seen - 1, 0)], size))
  const proof = consistencyProof(seen, size, nodesOf(tiles)).map((hash) => hash.toString('base64'))
  return `${[`old ${seen}`, ...proof].join('\n')}\n\n${checkpoint}`
}
