// What others read of the logs: checkpoints, tiles, policies, and the proof of what a tag was.
import type { App } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { notFound, unavailable } from '#lib/errors.ts'
import { inclusionProof } from '#lib/tlog/merkle.ts'
import { openingText, saltOf } from '#lib/tlog/tag-entry.ts'
import { tagProofText } from '#lib/tlog/tag-proof.ts'
import { bundleOf, nodesOf, type TileAsked, tileKey, tilesFor, tileWidth } from '#lib/tlog/tiles.ts'
import { rootOf } from '#lib/uid.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
import { tagType } from '../tags/tags.model.ts'
import { type EntryRow, type LedgerLog, ledgerLogType } from './logs.model.ts'
import * as store from './logs.store.ts'

/** A log of an organisation; those of later generations took the place of the first. */
export type LogAt = { organization: string; generation: number }

async function getLog(reader: Reader, { organization, generation }: LogAt): Promise<LedgerLog> {
  const log = await store.findLog(reader, organization, generation)
  // Before it is signed there is nothing to show.
  if (!log || log.checkpoint === '') throw notFound(ledgerLogType, `${organization}/${generation}`)
  return log
}

/** The last signed note. */
export async function readCheckpoint({ db }: Pick<App, 'db'>, at: LogAt): Promise<string> {
  return (await getLog(db, at)).checkpoint
}

/** The bytes of a tile, or of a bundle of entries, as far as the checkpoint goes. Throws NOT_FOUND for what is not full yet. */
export async function readTile({ db }: Pick<App, 'db'>, at: LogAt, asked: TileAsked): Promise<Buffer> {
  const { id, checkpointSize } = await getLog(db, at)
  const { kind, level, index, width } = asked
  const first = index * tileWidth
  const count = Math.floor(checkpointSize / tileWidth ** level)
  const missing = () => notFound(ledgerLogType, `a tile of ${at.organization}/${at.generation}`)
  if (first + width > count) throw missing()
  if (kind === 'entries') {
    const entries = await store.readEntries(db, id, first, first + width)
    return bundleOf(entries.map((entry) => Buffer.from(entry)))
  }
  const tile = (await store.readTiles(db, id, [{ level, index }])).get(tileKey({ level, index }))
  if (!tile) throw missing()
  return tile.subarray(0, width * 32)
}

/** Which logs to believe, the newest first (c2sp.org/tlog-policy). `url` is what clients call us. */
export async function policyOf({ db }: Pick<App, 'db'>, organization: string, url: string): Promise<string> {
  const logs = await store.listLogs(db, organization)
  if (logs.length === 0) throw notFound(ledgerLogType, organization)
  const keys = await store.logKeys(
    db,
    logs.map(({ id }) => id),
  )
  const lines = logs.flatMap(({ id, generation }) => {
    const place = `${url}/ledger/${organization}${generation === 1 ? '' : `/${generation}`}`
    return keys.filter(({ log }) => log === id).map(({ vkey }) => `log ${vkey} ${place}`)
  })
  return `${lines.join('\n')}\nquorum none\n`
}

export type ProofAsked = { repo: string; tag: string; at: string }

/**
 * The proof of what the tag was at a time, and where there is one of the row that follows. Throws UNAVAILABLE while the row
 * waits for its entry, which takes about a second, and longer for what was there before the log.
 */
export async function proofOf({ db, sealer }: Pick<App, 'db' | 'sealer'>, asked: ProofAsked): Promise<string> {
  const { repo: uid, tag, at } = asked
  const repo = await findRepoRow(db, { uid })
  if (!repo) throw notFound(repoType, uid)
  const row = await store.rowAt(db, repo.ledger, tag, at)
  if (!row) throw notFound(tagType, `${uid} ${tag} at ${at}`)
  const log = row.log === null ? undefined : await store.findLogById(db, row.log)
  if (!log || row.index >= log.checkpointSize) {
    throw unavailable('what the tag was then is not in the log yet; try again in a moment')
  }
  const secret = sealer.unseal('ledger-secret', log.secret)
  if (!secret) throw new Error(`the secret of the log ${log.origin} was sealed under another master key`)
  const entry = (await store.findEntry(db, log.id, row.index))!
  const opening = openingText({ ...row, organization: rootOf(uid) })
  const found = await store.findInChain(db, log.id, entry.chain, entry.seq + 1)
  const next = found && found.index < log.checkpointSize ? [found] : []
  return tagProofText([
    { ...(await included(db, log, entry)), beside: { entry: entry.entry, opening, salt: saltOf(secret, row.path) } },
    ...(await Promise.all(
      next.map(async (one) => ({ ...(await included(db, log, one)), beside: { entry: one.entry } })),
    )),
  ])
}

async function included(reader: Reader, { id, checkpoint, checkpointSize }: LedgerLog, { index }: EntryRow) {
  const tiles = await store.readTiles(reader, id, tilesFor(index, checkpointSize))
  return { index, hashes: inclusionProof(index, checkpointSize, nodesOf(tiles)), checkpoint }
}
