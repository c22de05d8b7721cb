// Serves logs to clients: checkpoints, tiles, policies, and inclusion proofs for the digest of a tag.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { repoType } from '#domains/registry/repos/repos.model.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { tagType } from '#domains/registry/tags/tags.model.ts'
import { AppError, notFound } from '#lib/errors.ts'
import { inclusionProof, type Nodes } from '#lib/tlog/merkle.ts'
import { vkeyOf } from '#lib/tlog/notes.ts'
import { openingText, saltOf } from '#lib/tlog/tag-entry.ts'
import { tagProofText } from '#lib/tlog/tag-proof.ts'
import { bundleOf, type TileRequest, tileKey, tileWidth } from '#lib/tlog/tiles.ts'
import { quorumOf, type Witness } from '#lib/tlog/witnesses.ts'
import { rootOf } from '#lib/uid.ts'
import { type CosignedCheckpoint, cosignedCheckpoints, cosignedOf } from './cosignatures.store.ts'
import { logKeysNow } from './log-keys.service.ts'
import { type EntryRow, type LedgerLog, ledgerLogType, saltedBy } from './logs.model.ts'
import * as store from './logs.store.ts'

/** Identifies a log of an organization. The first log has an empty name. */
export type LogAt = { organization: string; name: string }

async function getLog(reader: Reader, at: LogAt): Promise<LedgerLog> {
  const log = (await store.listLogs(reader, at.organization)).find(({ origin }) => nameIn(origin) === at.name)
  // Clients cannot see a log before it is signed.
  if (!log || log.checkpoint === '') throw notFound(ledgerLogType, idOf(at))
  return log
}

/** Name of a log: the part of the origin after the organization. Empty for the first log. */
function nameIn(origin: string): string {
  return /\/ledger\/[0-9a-f]{40}\/(.+)/.exec(origin)?.[1] ?? ''
}

const idOf = ({ organization, name }: LogAt): string => (name === '' ? organization : `${organization}/${name}`)

/** Last signed checkpoint of a log, with its cosignatures. */
export async function readCheckpoint({ db }: Pick<App, 'db'>, at: LogAt): Promise<string> {
  const log = await getLog(db, at)
  const cosigned = await cosignedOf(db, log.id)
  return cosigned?.size === log.checkpointSize ? cosigned.checkpoint : log.checkpoint
}

/**
 * Checkpoint for the proof of an entry. This is the last checkpoint with enough cosignatures if it contains the entry, and
 * otherwise the last signed checkpoint.
 */
function headOf(log: LedgerLog, cosigned: readonly CosignedCheckpoint[], index: number): CosignedCheckpoint {
  const own = { log: log.id, checkpoint: log.checkpoint, size: log.checkpointSize }
  return cosigned.find((head) => head.log === log.id && index < head.size) ?? own
}

/** Bytes of a tile or of a bundle of entries, up to the last checkpoint. Throws NOT_FOUND if the tile is not full yet. */
export async function readTile({ db }: Pick<App, 'db'>, at: LogAt, asked: TileRequest): Promise<Buffer> {
  const { id, checkpointSize } = await getLog(db, at)
  const { kind, level, index, width } = asked
  const first = index * tileWidth
  const count = Math.floor(checkpointSize / tileWidth ** level)
  const missing = () => notFound(ledgerLogType, `a tile of ${idOf(at)}`)
  if (first + width > count) throw missing()
  if (kind === 'entries') {
    const entries = await store.readEntries(db, id, first, first + width)
    return bundleOf(entries.map((entry) => Buffer.from(entry)))
  }
  const tile = (await store.readTiles(db, id, [{ level, index }])).get(tileKey({ level, index }))
  if (!tile) throw missing()
  return tile.subarray(0, width * 32)
}

/** Policy that names the logs to trust, newest first (c2sp.org/tlog-policy). `url` is the base URL of this server. */
export async function policyOf(
  app: Pick<App, 'db' | 'config' | 'clock'>,
  organization: string,
  url: string,
): Promise<string> {
  const { db, config } = app
  const logs = await store.listLogs(db, organization)
  if (logs.length === 0) throw notFound(ledgerLogType, organization)
  const ids = logs.map(({ id }) => id)
  const keys = await logKeysNow(db, app, ids)
  const lines = logs.flatMap(({ id, origin }) => {
    const location = `${url}/ledger/${idOf({ organization, name: nameIn(origin) })}`
    return keys.filter(({ log }) => log === id).map(({ vkey }) => `log ${vkey} ${location}`)
  })
  return `${[...lines, ...quorumLines(config.transparencyLogWitnesses)].join('\n')}\n`
}

/** Lines of the policy for the quorum: more than half of the witnesses. */
function quorumLines(witnesses: readonly Witness[]): string[] {
  if (witnesses.length === 0) return ['quorum none']
  const names = witnesses.map((_witness, i) => `W${i + 1}`)
  return [
    ...witnesses.map(({ key, url }, i) => `witness ${names[i]} ${vkeyOf(key)} ${url}`),
    `group witnesses ${quorumOf(witnesses.length)} ${names.join(' ')}`,
    'quorum witnesses',
  ]
}

export type ProofRequest = { repo: string; tag: string; at: string }

/**
 * Proof for the digest of a tag at a time, and for the next row of the tag if there is one. Throws ProofPending while a row has
 * no entry yet. A new row gets its entry in about a second. A row that is older than the log may wait longer.
 */
export async function proofOf(
  app: Pick<App, 'db' | 'cipher' | 'config' | 'tiles'>,
  asked: ProofRequest,
): Promise<string> {
  const { db, cipher, config, tiles } = app
  const { repo: uid, tag, at } = asked
  const organization = rootOf(uid)
  // Reads checkpoints first, so that the following reads have everything that the checkpoints cover.
  const [repo, logs, cosigned] = await Promise.all([
    findRepoRow(db, { uid }),
    store.listLogs(db, organization),
    config.transparencyLogWitnesses.length > 0 ? cosignedCheckpoints(db, organization) : [],
  ])
  if (!repo) throw notFound(repoType, uid)
  const row = await store.rowAt(db, repo.ledger, tag, at)
  if (!row) throw notFound(tagType, `${uid} ${tag} at ${at}`)
  if (row.log === null) throw new ProofPending()
  const log = logs.find(({ id }) => id === row.log)
  if (!log || row.index >= log.checkpointSize) throw new ProofPending()
  const [began, found] = await Promise.all([
    store.beganAt(db, log.id, row.chain),
    store.findInChain(db, log.id, row.chain, row.seq + 1),
  ])
  if (began === undefined) throw new ProofPending()
  const secret = cipher.decrypt('ledger-secret', log.secret)
  if (!secret) throw new Error(`the secret of the log ${log.origin} is encrypted under another master key`)
  const opening = openingText({ ...row, organization })
  const head = headOf(log, cosigned, row.index)
  const salt = saltOf(secret, saltedBy(row, began))
  const next = found && found.index < head.size ? [found] : []
  const leaves = [row, ...next].map(({ index }) => index)
  const nodes = await tiles.nodesFor(head, leaves)
  return tagProofText([
    { ...included(head, row, nodes), beside: { entry: row.entry, opening, salt } },
    ...next.map((one) => ({ ...included(head, one, nodes), beside: { entry: one.entry } })),
  ])
}

/** Error for a proof that is not ready yet. The client only has to try again. */
export class ProofPending extends AppError {
  constructor() {
    const details = [{ type: 'RetryInfo', retryDelaySeconds: 1 }] as const
    super('UNAVAILABLE', 'the transparency log does not have this entry yet; try again in a second', { details })
  }
}

function included({ checkpoint, size }: CosignedCheckpoint, { index }: EntryRow, nodes: Nodes) {
  return { index, hashes: inclusionProof(index, size, nodes), checkpoint }
}
